/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden top`: what the user's processes hold, continuously on a terminal, or once.
 *
 * Signals are unblocked only while waiting for the terminal, so that none is missed; however the
 * command ends, the terminal is restored.
 */
#include "cli/ui/flags.h"

#include <curses.h>
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/options/option_values.h"
#include "cli/fleet/top_json.h"
#include "cli/fleet/top_screen.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"
#include "cli/ui/screen.h"

#define GPU_LINE_MAX 1024
#define SECOND_NS    UINT64_C(1000000000)

struct request {
    struct cw_fleet_choice whom;
    struct cw_top_choice what;
    uint64_t interval_ns;
    int is_once, is_json, has_format;
};

enum {
    FLAG_ONCE = 0x100,
    FLAG_FORMAT,
    FLAG_INTERVAL,
    FLAG_DEVICE,
    FLAG_SORT,
    FLAG_DEAD,
    FLAG_DIRECTORY
};

const struct cw_command_line *cw_line_top(void)
{
    static const struct cw_flag flags[] = {
        {.id = FLAG_ONCE,
         .name = "once",
         .help = "print a table once and exit, with all columns unless on a terminal"},
        {.id = FLAG_FORMAT,
         .name = "format",
         .value = "FORM",
         .words = "*text json",
         .help = "with --once: %w"},
        {.id = FLAG_INTERVAL,
         .name = "interval",
         .value = "TIME",
         .help = "refresh interval, from 100ms to 1h (default: 1s)"},
        {.id = FLAG_DEVICE,
         .name = "device",
         .value = "N",
         .offers = "host",
         .help = "show only device N, or host"},
        {.id = FLAG_SORT,
         .name = "sort",
         .value = "COLUMN",
         .words =
             "pid user dev *live idle held peak limit level alloc/s hit% fail frag% eff% pkfrag% "
             "command",
         .help = "%w"},
        {.id = FLAG_DEAD, .name = "dead", .help = "also show dead processes that left a live file"},
        {.id = FLAG_DIRECTORY,
         .name = "directory",
         .value = "DIR",
         .help = "look for live files in DIR instead; may be repeated"},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]... [PID]...",
        .about = "Show what processes under libcuwarden.so hold on each device.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL}},
        .operands = CW_OPERAND_PID,
        .most = -1,
        .notes = "Keys: s sort, r reverse, / filter, Enter call stacks, d dead, p pause, + and - "
                 "interval, arrows, h help, q quit.\n\n"
                 "LEVEL is the level of pressure: low, medium, high or critical. LENT is idle "
                 "memory given back because another process had run out of memory. USER owns the "
                 "live file; a PID with * counts in another PID namespace, such as a container's. "
                 "cuwarden(1) "
                 "has the other columns.\n\n"
                 "The exit status is 0 on success, 1 if a PID has no live file or DIR cannot be "
                 "read (both with --once) or the terminal cannot be used, and 2 for a usage "
                 "error.",
    };

    return &line;
}

/* ---- once ---- */

static int has_process(const struct cw_fleet *fleet, uint32_t pid)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->process[i]->pid == pid)
            return 1;
    }
    return 0;
}

static int check_processes(const struct cw_fleet *fleet, const struct cw_fleet_choice *whom)
{
    for (size_t i = 0; i < whom->pids; i++) {
        if (has_process(fleet, whom->pid[i]))
            continue;
        cw_cli_error("no live file for process %u: it does not run under libcuwarden.so, has "
                     "ended, or keeps its live file elsewhere (see --directory)",
                     (unsigned)whom->pid[i]);
        return -1;
    }
    return 0;
}

/* Of a table printed once: a pipe or a file gets everything. */
static size_t find_columns(void)
{
    return isatty(STDOUT_FILENO) ? cw_screen_columns(stdout) : SIZE_MAX;
}

static void print_table(const struct cw_fleet *fleet, const struct cw_top_row *rows, long count)
{
    struct cw_top_layout layout;
    char *line = malloc(CW_TOP_LINE_MAX);

    cw_top_fit(&layout, fleet, find_columns());
    for (long i = -1; line && i < count; i++) {
        if (i < 0)
            cw_top_print_heading(line, CW_TOP_LINE_MAX, &layout, NULL);
        else
            cw_top_print_row(line, CW_TOP_LINE_MAX, &layout, &rows[i]);
        puts(line);
    }
    free(line);
}

static void print_gpus(const struct cw_gpus *gpus)
{
    size_t columns = find_columns();
    char line[GPU_LINE_MAX];

    for (unsigned i = 0; i < gpus->count; i++) {
        cw_gpu_format(&gpus->gpu[i], columns, line, sizeof(line));
        printf("%s%s\n", i == 0 ? "\n" : "", line);
    }
}

static int print_once(const struct cw_fleet *fleet, const struct request *request)
{
    static struct cw_gpus gpus;
    long count;
    struct cw_top_row *rows = cw_top_rows(fleet, &request->what, &count);
    int rc = count < 0 ? -1 : 0, error = 0;

    cw_gpus_look(&gpus, fleet);
    if (rc == 0 && request->is_json) {
        error = cw_top_print_json(stdout, fleet, &gpus, rows, count);
    } else if (rc == 0) {
        print_table(fleet, rows, count);
        if (request->what.device == CW_TOP_ANY_DEVICE)
            print_gpus(&gpus);
    }
    if (rc != 0)
        cw_cli_error("out of memory");
    else if (error != 0)
        cw_cli_error("write error: %s", strerror(error));
    free(rows);
    return rc == 0 && error == 0 ? 0 : -1;
}

static int run_once(const struct request *request)
{
    struct cw_fleet fleet = {.count = 0};
    int rc = cw_fleet_look(&fleet, &request->whom);

    if (rc == 0 && fleet.has_lost) {
        cw_cli_error("%s", fleet.why);
        rc = -1;
    }
    if (rc == 0) {
        if (fleet.unreadable)
            cw_cli_error("%s; skipped", fleet.why);
        rc = check_processes(&fleet, &request->whom);
    }
    if (rc == 0)
        rc = print_once(&fleet, request);
    cw_fleet_free(&fleet);
    return rc;
}

/* ---- the terminal ---- */

static volatile sig_atomic_t ended_by;

static void on_end(int number)
{
    ended_by = number;
}

/* Nothing else can be done, but the terminal must be restored. */
static void on_crash(int number)
{
    endwin();
    signal(number, SIG_DFL);
    raise(number);
}

static void take_signals(sigset_t *old)
{
    static const int ends[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,   SIGPIPE,
                               SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    struct sigaction end = {.sa_handler = on_end};
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND};
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGWINCH);
    for (size_t i = 0; i < CW_ARRAY_LEN(ends); i++) {
        if (signal(ends[i], SIG_IGN) == SIG_IGN)
            continue; /* it was ignored before, and stays so */
        sigaddset(&blocked, ends[i]);
        sigaction(ends[i], &end, NULL);
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(crashes); i++)
        sigaction(crashes[i], &crash, NULL);
    sigprocmask(SIG_BLOCK, &blocked, old);
}

static int open_terminal(struct cw_top_screen *screen)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        cw_cli_error("standard input and output must be a terminal; use --once to print a table");
        return -1;
    }
    if (!newterm(NULL, stdout, stdin)) {
        cw_cli_error("unknown terminal type (TERM); use --once to print a table");
        return -1;
    }
    set_escdelay(25);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    screen->has_colours = has_colors() && start_color() == OK && use_default_colors() == OK &&
                          init_pair(COLOR_RED, COLOR_RED, -1) == OK &&
                          init_pair(COLOR_YELLOW, COLOR_YELLOW, -1) == OK;
    return 0;
}

/* Waits for a key, a signal or the deadline. 0, or -1 if the terminal is gone. */
static int wait_until(uint64_t moment_ns, const sigset_t *old)
{
    struct pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t now = cw_clock_ns(), left = moment_ns > now ? moment_ns - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / SECOND_NS),
                               .tv_nsec = (long)(left % SECOND_NS)};

    if (ppoll(&terminal, 1, &timeout, old) < 0)
        return errno == EINTR ? 0 : -1;
    return terminal.revents & (POLLHUP | POLLERR | POLLNVAL) ? -1 : 0;
}

static void press_all(struct cw_top_screen *screen)
{
    int key;

    while ((key = getch()) != ERR)
        cw_top_press(screen, key);
}

static int show(struct cw_top_screen *screen, const struct cw_fleet_choice *whom,
                const sigset_t *old)
{
    uint64_t looked_ns = 0;

    while (!screen->is_done && !ended_by) {
        uint64_t now = cw_clock_ns();

        if (!screen->is_paused && now - looked_ns >= screen->interval_ns) {
            if (cw_fleet_look(&screen->fleet, whom) != 0)
                return -1;
            looked_ns = now;
            cw_gpus_look(&screen->gpus, &screen->fleet);
            cw_top_look_at_sites(screen);
        }
        if (cw_top_refresh(screen) != 0)
            return -1;
        cw_top_draw(screen);
        if (wait_until(screen->is_paused ? now + SECOND_NS : looked_ns + screen->interval_ns,
                       old) != 0)
            return 0;
        press_all(screen);
    }
    return 0;
}

static int run_screen(const struct request *request)
{
    struct cw_top_screen screen = {.choice = request->what, .interval_ns = request->interval_ns};
    sigset_t old;
    int rc;

    screen.choice.filter = screen.filter;
    if (open_terminal(&screen) != 0)
        return -1;
    take_signals(&old);
    rc = show(&screen, &request->whom, &old);
    endwin();
    cw_top_screen_free(&screen);
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (ended_by) {
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
    return rc;
}

/* ---- the command line ---- */

static int set_interval(struct request *request, const char *value)
{
    if (cw_time_parse(value, &request->interval_ns) == 0 &&
        request->interval_ns >= CW_TOP_INTERVAL_LEAST &&
        request->interval_ns <= CW_TOP_INTERVAL_MOST)
        return 0;
    cw_cli_error("--interval: '%s' is not a time from 100ms to 1h, as in 500ms, 2s or 1m", value);
    return -1;
}

static int set_device(struct request *request, const char *value)
{
    if (cw_top_parse_device(value, &request->what.device) == 0)
        return 0;
    cw_cli_error("--device: '%s' is neither a device number from 0 to %d nor host", value,
                 CW_MAX_DEVICES - 1);
    return -1;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_ONCE:
        request->is_once = 1;
        return 0;
    case FLAG_DEAD:
        request->what.shows_dead = 1;
        return 0;
    case FLAG_FORMAT:
        request->has_format = 1;
        request->is_json = strcmp(value, "json") == 0;
        return 0;
    case FLAG_INTERVAL:
        return set_interval(request, value);
    case FLAG_DEVICE:
        return set_device(request, value);
    case FLAG_SORT:
        return cw_top_parse_sort(value, &request->what.sort);
    default:
        return cw_fleet_add_directory(&request->whom, value);
    }
}

static int parse_operands(struct request *request, int argc, char **argv)
{
    for (int i = optind; i < argc; i++) {
        if (cw_fleet_add_pid(&request->whom, argv[i]) != 0)
            return -1;
    }
    if (request->has_format && !request->is_once) {
        cw_cli_error("--format can only be used with --once");
        return -1;
    }
    return 0;
}

int cw_cmd_top(int argc, char **argv)
{
    struct request request = {
        .what = {.sort = CW_TOP_LIVE, .device = CW_TOP_ANY_DEVICE, .filter = ""},
        .interval_ns = SECOND_NS,
    };
    int status = cw_flags_parse(cw_line_top(), argc, argv, set_flag, &request);

    if (status < 0 && parse_operands(&request, argc, argv) != 0)
        status = cw_cli_usage_error();
    if (status < 0) {
        setlocale(LC_CTYPE, "");
        status = request.is_once ? run_once(&request) : run_screen(&request);
        status = status == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
    }
    cw_fleet_choice_free(&request.whom);
    return status;
}
