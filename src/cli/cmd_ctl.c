/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden ctl`: sends a request to a running process through its live file (live/layout.h: struct
 * cw_live_control). One sender at a time, by a lock that ends with its process. A request that is
 * not answered in time is withdrawn, so it never takes effect later. The file is not mapped: one
 * that is cut off meanwhile is an error here and not a signal.
 */
#include "cli/ui/flags.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/printable.h"
#include "base/clock.h"
#include "base/options/option_values.h"
#include "live/live_copy.h"
#include "live/live_dir.h"
#include "live/mailbox.h"
#include "base/out.h"
#include "base/sys.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/input/foreign_file.h"
#include "cli/input/live_files.h"
#include "cli/input/run_live.h"
#include "cli/ui/message.h"

#define SIZE_TEXT_MAX 24
#define WHY_MAX       256
#define POLL_NS       5000000
#define TIMEOUT_NS    UINT64_C(5000000000)
#define TIMEOUT_MOST  UINT64_C(86400000000000)
#define SECOND_NS     UINT64_C(1000000000)
#define SHARE_DIVISOR (CW_SHARE_OF_WHOLE / 10000) /* shares in the file are in 1/10000 */

/* What makes the library start its thread. */
#define STARTS_THREAD                                                                              \
    "CUWARDEN_DUMP_SIGNAL, CUWARDEN_DUMP_INTERVAL and CUWARDEN_LOG_INTERVAL start one, and "       \
    "CUWARDEN_THREAD=auto does once more than 32 MiB are idle"

struct wish {
    struct cw_mail mail;
    uint64_t timeout_ns;
    int is_all;
};

/* ---- the command line ---- */

enum { FLAG_ALL = 0x100, FLAG_DEVICE, FLAG_TIMEOUT };

const struct cw_command_line *cw_line_ctl(void)
{
    static const struct cw_flag flags[] = {
        {.id = FLAG_ALL,
         .name = "all",
         .help = "with trim: also release memory that pending work may still use"},
        {.id = FLAG_DEVICE,
         .name = "device",
         .value = "N",
         .help = "act on device N only (default: all devices of the process)"},
        {.id = FLAG_TIMEOUT,
         .name = "timeout",
         .value = "TIME",
         .help = "time to wait for the answer (default: 5s)"},
    };
    static const struct cw_flag_word requests[] = {
        {"trim", "release idle pool memory to the driver"},
        {"shrink", "release half of it, the largest blocks first"},
        {"clear",
         "also release what threads keep, and what the device has meanwhile finished with"},
        {"dump", "write a complete report now and print its file name"},
        {"limit=SIZE", "set the memory limit on a device: 8G, 50%, none"},
        {"budget=RULE", "set what a tag may have: tag:^cache$=2G, ...=2G:refuse, ...=none"},
        {"pool-max=SIZE", "set the maximum idle pool memory on a device: 1G, 10%, 0"},
        {NULL, NULL},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]... PID|FILE REQUEST",
        .about = "Control a process that runs under libcuwarden.so.",
        .requests = requests,
        .group = {{flags, CW_ARRAY_LEN(flags), NULL}},
        .operands = CW_OPERAND_PID | CW_OPERAND_FILE,
        .most = 2,
        .notes =
            "The process answers in its next CUDA call that allocates or frees memory or "
            "waits for the device. If it makes no such call, a thread of the library "
            "answers: " STARTS_THREAD ". 'cuwarden report --help' says where PID is looked up.\n\n"
            "The exit status is 0 if the process carried out the request, 1 if it did not, "
            "and 2 for a usage error.",
    };

    return &line;
}

struct target {
    const char *path;
    const struct cw_live_name *name;
    int is_number; /* the user named the process, not the file */
    int fd;
    uint32_t pid, uid; /* uid: the file's owner */
};

static void pause_briefly(void)
{
    struct timespec moment = {.tv_nsec = POLL_NS};

    nanosleep(&moment, NULL);
}

/* ---- the process ---- */

static int is_alive(const struct target *target)
{
    return cw_mailbox_get(target->fd, CW_MAILBOX_AT(exit_kind)) == CW_EXIT_RUNNING &&
           cw_live_file_is_in_use(target->fd, target->pid, target->path);
}

/* A run removes the files of its processes, and has their reports. */
static int is_of_run(const char *path)
{
    const char *name = strrchr(path, '/');

    if (!name)
        return 0;
    while (name > path && name[-1] != '/')
        name--;
    return cw_live_dir_is_run(name);
}

static int fail_dead(const struct target *target)
{
    if (is_of_run(target->path) || access(target->path, F_OK) != 0)
        cw_cli_error("process %u has ended; its report is that of its 'cuwarden run'",
                     (unsigned)target->pid);
    else
        cw_cli_error("process %u has ended; run 'cuwarden report %s' for its report",
                     (unsigned)target->pid, target->path);
    return -1;
}

static int fail_open(const struct target *target, int flags, const char *why)
{
    if (why[0])
        cw_cli_error("'%s' %s", target->path, why);
    else if (flags == O_RDONLY)
        cw_cli_error("cannot read '%s': %s", target->path, strerror(errno));
    else if (errno == EACCES || errno == EPERM)
        cw_cli_error("cannot write '%s': %s; only its user (id %u) or root can control process %u",
                     target->path, strerror(errno), (unsigned)target->uid, (unsigned)target->pid);
    else
        cw_cli_error("cannot write '%s': %s", target->path, strerror(errno));
    return -1;
}

/* Whose the open file is; a process that the user named is one as it counts here. Returns 0, or -1
 * after a message. */
static int check(struct target *target, int fd)
{
    struct cw_live_identity identity;
    char why[WHY_MAX];

    if (cw_live_copy_check(fd, &identity, why, sizeof(why)) != 0) {
        cw_cli_error("'%s' %s", target->path, why);
        return -1;
    }
    target->pid = identity.pid;
    if (target->is_number && cw_foreign_is_of_other(target->pid, target->uid)) {
        cw_cli_error("'%s' belongs to user %u, but process %u does not", target->path,
                     (unsigned)target->uid, (unsigned)target->pid);
        return -1;
    }
    return cw_live_file_is_in_use(fd, target->pid, target->path) ? 0 : fail_dead(target);
}

/* Returns the descriptor, or -1 after a message. */
static int open_checked(struct target *target, int flags)
{
    char why[WHY_MAX];
    int fd = cw_live_file_open(target->name, flags, &target->uid, why, sizeof(why));

    if (fd < 0)
        return fail_open(target, flags, why);
    if (check(target, fd) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Checks the file before it is opened for writing, since the file of a dead process may be
 * read-only. The file opened then may not be the one that was checked. Returns 0, or -1 after a
 * message. */
static int attach(struct target *target)
{
    target->fd = open_checked(target, O_RDONLY);
    if (target->fd < 0)
        return -1;
    close(target->fd);
    target->fd = open_checked(target, O_RDWR);
    return target->fd < 0 ? -1 : 0;
}

/* ---- asking ---- */

/* 0, or -1 after a message. Released when the file is closed. */
static int take_lock(const struct target *target, uint64_t deadline)
{
    while (cw_mailbox_lock(target->fd) != 0) {
        if (errno != EAGAIN && errno != EACCES) {
            cw_cli_error("cannot lock '%s': %s", target->path, strerror(errno));
            return -1;
        }
        if (!is_alive(target))
            return fail_dead(target);
        if (cw_clock_ns() >= deadline) {
            cw_cli_error("process %u is busy with a request from process %u; try again, or use a "
                         "longer --timeout",
                         (unsigned)target->pid,
                         (unsigned)cw_mailbox_get(target->fd, CW_MAILBOX_CONTROL(asker)));
            return -1;
        }
        pause_briefly();
    }
    return 0;
}

/* Returns 1 if answered. Called a second time if the process has taken the request. */
static int wait_for_answer(const struct target *target, uint32_t number, uint64_t deadline)
{
    while (!cw_mailbox_is_answered(target->fd, number)) {
        if (!is_alive(target) || cw_clock_ns() >= deadline)
            return cw_mailbox_is_answered(target->fd, number);
        pause_briefly();
    }
    return 1;
}

static int fail_timeout(const struct target *target, const struct wish *wish)
{
    cw_cli_error("process %u did not answer within %g second%s: it makes no CUDA calls, and the "
                 "library has no thread there (" STARTS_THREAD "); nothing was changed",
                 (unsigned)target->pid, (double)wish->timeout_ns / (double)SECOND_NS,
                 wish->timeout_ns == SECOND_NS ? "" : "s");
    return -1;
}

/* ---- the answer ---- */

/* A limit takes nothing away, so more than it may be live already. */
static void warn_of_excess(const struct target *target)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        struct cw_live_device device = {.live_bytes = 0};
        uint64_t limit, live;
        char size[2][SIZE_TEXT_MAX];

        (void)cw_sys_read_at(target->fd, &device, sizeof(device), CW_MAILBOX_AT(device[i]));
        limit = atomic_load(&device.memory.limit);
        live = atomic_load(&device.live_bytes);
        if (limit != 0 && live > limit)
            cw_cli_warn("device %u: %s are live, more than the limit of %s: requests fail until "
                        "the program frees enough",
                        i, cw_format_size(size[0], sizeof(size[0]), live),
                        cw_format_size(size[1], sizeof(size[1]), limit));
    }
}

/* The text comes from another process and may contain anything. */
static int tell(const struct target *target, const struct wish *wish)
{
    struct cw_live_control control = {.answer = ""};

    (void)cw_sys_read_at(target->fd, &control, sizeof(control), CW_MAILBOX_AT(control));
    control.answer[sizeof(control.answer) - 1] = '\0';
    (void)cw_printable_clean_string(control.answer);
    if (atomic_load(&control.result) == ECANCELED)
        return fail_timeout(target, wish);
    if (atomic_load(&control.result) != 0) {
        cw_cli_error("process %u refused: %s", (unsigned)target->pid, control.answer);
        return -1;
    }
    if (wish->mail.what == CW_CONTROL_DUMP)
        printf("%s\n", control.answer);
    else
        printf("process %u: %s\n", (unsigned)target->pid, control.answer);
    if (wish->mail.what == CW_CONTROL_LIMIT)
        warn_of_excess(target);
    return 0;
}

static int ask_and_tell(const struct target *target, const struct wish *wish)
{
    uint64_t deadline = cw_clock_ns() + wish->timeout_ns;
    uint32_t number;

    if (take_lock(target, deadline) != 0)
        return -1;
    if (cw_mailbox_ask(target->fd, &wish->mail, &number) != 0)
        return fail_open(target, O_RDWR, "");
    if (wait_for_answer(target, number, deadline))
        return tell(target, wish);
    if (cw_mailbox_withdraw(target->fd, number))
        return is_alive(target) ? fail_timeout(target, wish) : fail_dead(target);
    if (wait_for_answer(target, number, deadline + wish->timeout_ns))
        return tell(target, wish);
    if (!is_alive(target))
        return fail_dead(target);
    cw_cli_error(
        "process %u is still processing the request; 'cuwarden report %u' will show the effect",
        (unsigned)target->pid, (unsigned)target->pid);
    return -1;
}

static int run(const struct cw_live_name *name, int is_number, const struct wish *wish)
{
    struct target target = {.path = name->path, .name = name, .is_number = is_number, .fd = -1};
    int rc;

    if (attach(&target) != 0)
        return -1;
    rc = ask_and_tell(&target, wish);
    close(target.fd);
    return rc;
}

static int run_operand(const char *operand, const struct wish *wish)
{
    struct cw_live_name named = cw_live_name_of(operand);
    struct cw_live_files files = {.count = 0};
    const struct cw_live_name *found;
    int rc = -1;

    if (operand[strspn(operand, "0123456789")] != '\0')
        return run(&named, 0, wish);
    found = cw_live_files_of_process(&files, operand);
    if (found)
        rc = run(found, 1, wish);
    cw_live_files_free(&files);
    return rc;
}

/* ---- the command line ---- */

static int fail_value(const char *request, const char *form)
{
    cw_cli_error("'%s' is not %s", request, form);
    return -1;
}

/* "8G", "50%", or "none" for a limit. 0, or -1 after a message. */
static int parse_size(struct wish *wish, const char *request, const char *value)
{
    int is_limit = wish->mail.what == CW_CONTROL_LIMIT;
    const char *form =
        is_limit ? "limit=SIZE with a size (8G) or a share (50%) above 0, or none; use --device=N "
                   "for one device"
                 : "pool-max=SIZE with a size (1G) or a share (10%); use --device=N for one device";
    struct cw_device_sizes sizes = {.count = 0};

    if (is_limit && strcmp(value, "none") == 0)
        return 0;
    if (cw_sizes_parse(value, 0, &sizes) != 0 || sizes.count != 0)
        return fail_value(request, form);
    wish->mail.argument = sizes.fallback.amount;
    if (sizes.fallback.kind == CW_SIZE_SHARE) {
        wish->mail.is_share = 1;
        wish->mail.argument /= SHARE_DIVISOR;
    }
    if (is_limit && wish->mail.argument == 0)
        return fail_value(request, form);
    return 0;
}

/* One item of CUWARDEN_BUDGET, or one that ends in =none. 0, or -1 after a message. */
static int parse_budget(struct wish *wish, const char *request, const char *value)
{
    struct cw_budget_rule rule;
    int is_none;

    if (cw_budget_rule_parse(value, 1, &rule, &is_none) != 0)
        return fail_value(request,
                          "budget=tag:PATTERN=SIZE (tag:^cache$=2G), with :warn or :refuse "
                          "after it or nothing; or budget=tag:PATTERN=none");
    wish->mail.subject = value;
    return 0;
}

static int parse_value(struct wish *wish, const char *request, const char *value)
{
    return wish->mail.what == CW_CONTROL_BUDGET ? parse_budget(wish, request, value)
                                                : parse_size(wish, request, value);
}

static int parse_request(struct wish *wish, const char *request)
{
    static const char *const names[CW_CONTROL_COUNT] = {
#define X(id, name) [CW_CONTROL_##id] = (name),
        CW_CONTROLS(X)
#undef X
    };
    size_t len = strcspn(request, "=");

    for (unsigned what = CW_CONTROL_TRIM; what <= CW_CONTROL_BUDGET; what++) {
        int takes_value =
            what == CW_CONTROL_LIMIT || what == CW_CONTROL_POOL_MAX || what == CW_CONTROL_BUDGET;

        if (strlen(names[what]) != len || strncmp(names[what], request, len) != 0 ||
            takes_value != (request[len] == '='))
            continue;
        wish->mail.what = (enum cw_control)what;
        return takes_value ? parse_value(wish, request, request + len + 1) : 0;
    }
    return fail_value(request,
                      "one of trim, shrink, clear, dump, limit=SIZE, budget=RULE, pool-max=SIZE");
}

static int set_device(struct wish *wish, const char *value)
{
    uint64_t number;

    if (cw_count_parse(value, &number) != 0 || number >= CW_MAX_DEVICES) {
        cw_cli_error("--device: '%s' is not a device number from 0 to %d", value,
                     CW_MAX_DEVICES - 1);
        return -1;
    }
    wish->mail.device = (uint32_t)number;
    return 0;
}

static int set_timeout(struct wish *wish, const char *value)
{
    if (cw_time_parse(value, &wish->timeout_ns) != 0 || wish->timeout_ns > TIMEOUT_MOST) {
        cw_cli_error("--timeout: '%s' is not a time up to 24h, as in 500ms, 10s or 2m", value);
        return -1;
    }
    return 0;
}

/* Rejects invalid combinations. */
static int check_wish(const struct wish *wish)
{
    if (wish->is_all && wish->mail.what != CW_CONTROL_TRIM) {
        cw_cli_error("--all can only be used with trim");
        return -1;
    }
    if (wish->mail.what == CW_CONTROL_BUDGET && wish->mail.device != CW_CONTROL_ALL_DEVICES) {
        cw_cli_error("--device cannot be used with budget: a budget covers all devices");
        return -1;
    }
    if (wish->mail.what == CW_CONTROL_DUMP && wish->mail.device != CW_CONTROL_ALL_DEVICES) {
        cw_cli_error("--device cannot be used with dump: a report covers all devices");
        return -1;
    }
    return 0;
}

static int parse_operands(struct wish *wish, int argc, char **argv)
{
    if (optind + 2 > argc)
        cw_cli_error("missing %s", optind == argc ? "process id or file" : "request");
    if (optind + 2 != argc || parse_request(wish, argv[optind + 1]) != 0)
        return -1;
    if (wish->mail.what == CW_CONTROL_TRIM)
        wish->mail.argument = (uint64_t)wish->is_all;
    return check_wish(wish);
}

static int set_flag(void *request, int flag, char *value)
{
    struct wish *wish = request;

    switch (flag) {
    case FLAG_DEVICE:
        return set_device(wish, value);
    case FLAG_TIMEOUT:
        return set_timeout(wish, value);
    default:
        wish->is_all = 1;
        return 0;
    }
}

int cw_cmd_ctl(int argc, char **argv)
{
    struct wish wish = {.mail = {.device = CW_CONTROL_ALL_DEVICES, .subject = ""},
                        .timeout_ns = TIMEOUT_NS};
    int status = cw_flags_parse(cw_line_ctl(), argc, argv, set_flag, &wish);

    if (status >= 0)
        return status;
    if (parse_operands(&wish, argc, argv) != 0)
        return cw_cli_usage_error();
    return run_operand(argv[optind], &wish) == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
}
