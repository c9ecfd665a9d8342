/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden run`: runs the program with the library first in LD_PRELOAD, and sums up all its
 * processes at the end.
 *
 * The program runs as a child and does not notice it (run_child.h). If there is nothing to report
 * at the end (--exec, MODE=off, LIVE=off), or no process can be created, the command executes the
 * program in its place. Every row of options.def is a flag; values are checked by the library's own
 * parser, so that a typo is an error here and not a warning somewhere in the program's output.
 */
#include "cli/ui/flags.h"
#include "cli/ui/docs.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/options/options.h"
#include "cli/doctor/doctor.h"
#include "cli/run/run_account.h"
#include "cli/run/run_child.h"
#include "cli/run/run_device.h"
#include "cli/run/run_left.h"
#include "cli/run/run_next.h"
#include "cli/run/run_preload.h"
#include "cli/devices/need.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/doctor/library.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"
#include "report/leaks/suppress.h"

#define WHY_MAX (2 * PATH_MAX + 256)

enum {
    FLAG_QUIET = 'q',
    FLAG_PRELOAD = 0x100,
    FLAG_ERROR_EXITCODE,
    FLAG_LEAK_BYTES,
    FLAG_LEAK_COUNT,
    FLAG_COUNT_KILLED,
    FLAG_REQUIRE_CUDA,
    FLAG_ALLOW_NO_CUDA,
    FLAG_HTML,
    FLAG_TORCH,
    FLAG_EXEC,
    FLAG_DEVICE,
    FLAG_NEED,
    FLAG_FIRST_ROW
};

struct request {
    struct cw_options options; /* first for checking values, then the effective options */
    const char *preload;
    int error_exitcode;              /* 0: none */
    uint64_t leak_bytes, leak_count; /* 0: not given */
    const char *html;
    const char *device; /* NULL: not given */
    uint64_t need;
    char next[CW_RUN_NEXT_MAX]; /* a command that tells more than this one */
    int requires_cuda, allows_no_cuda, has_torch, is_exec, is_quiet, counts_killed;
};

static const struct cw_flag flags[] = {
    {.id = FLAG_ERROR_EXITCODE,
     .name = "error-exitcode",
     .value = "N",
     .help = "exit with N (1 to 255) if something leaked or a memory error happened (an invalid or "
             "double free, or an error that broke a context; running out of memory does not "
             "count), and "
             "PROGRAM succeeded"},
    {.id = FLAG_LEAK_BYTES,
     .name = "leak-bytes",
     .value = "SIZE",
     .help = "minimum leak for --error-exitcode, over all processes"},
    {.id = FLAG_LEAK_COUNT,
     .name = "leak-count",
     .value = "N",
     .help = "minimum number of leaked blocks, likewise; with both flags, either one suffices"},
    {.id = FLAG_COUNT_KILLED,
     .name = "count-killed",
     .help = "count as leaked what processes other than PROGRAM had when a signal ended them"},
    {.id = FLAG_REQUIRE_CUDA,
     .name = "require-cuda",
     .help = "fail with the reason if no process called CUDA under the library"},
    {.id = FLAG_ALLOW_NO_CUDA,
     .name = "allow-no-cuda",
     .help = "with --error-exitcode, accept that no process called CUDA"},
    {.id = FLAG_HTML,
     .name = "html",
     .value = "FILE",
     .help = "write a page for a browser to FILE, besides any report"},
    {.id = FLAG_TORCH,
     .name = "torch",
     .help = "show the lines that made PyTorch's tensors (for Python programs)"},
    {.id = FLAG_DEVICE,
     .name = "device",
     .value = "DEVICE",
     .offers = "auto",
     .help = "the GPU to run on: auto (the one with most free memory), a number as nvidia-smi "
             "counts, or a UUID (sets CUDA_VISIBLE_DEVICES)"},
    {.id = FLAG_NEED,
     .name = "need",
     .value = "SIZE",
     .help = "with --device: fail before PROGRAM starts unless that GPU has this much memory free, "
             "and a reserve beside it ('cuwarden pick --help' has more)"},
    {.id = FLAG_QUIET, .name = "quiet", .help = "do not print the command's own messages"},
    {.id = FLAG_EXEC,
     .name = "exec",
     .help = "replace this process with PROGRAM; no SUMMARY at the end"},
    {.id = FLAG_PRELOAD,
     .name = "preload",
     .value = "FILE",
     .help = "preload FILE instead of the installed libcuwarden.so"},
};

const struct cw_command_line *cw_line_run(void)
{
    static struct cw_docs_flag options[CW_OPTION_COUNT];
    static struct cw_flag options_as_flags[CW_OPTION_COUNT];
    static const struct cw_command_line line = {
        .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
        .about = "Run PROGRAM with libcuwarden.so preloaded, and report what it leaked.",
        .group = {{options_as_flags, CW_OPTION_COUNT, NULL}, {flags, CW_ARRAY_LEN(flags), NULL}},
        .operands = CW_OPERAND_PROGRAM,
        .least = 1,
        .most = -1,
        .missing = "program",
        .notes =
            "Each option flag sets the environment variable CUWARDEN_NAME for PROGRAM and "
            "overrides an existing value; 'cuwarden options --format=text' explains them all. "
            "NVTX_INJECTION64_PATH, unless already set, is set to the library too, so that it sees "
            "the NVTX ranges and marks of PROGRAM.\n\n"
            "At the end, at most eight lines on stderr say what is wrong in PROGRAM and all "
            "processes that it started, and who held the memory at its peak; the SUMMARY line "
            "after them is for scripts. If no process called CUDA, one line says so. Processes "
            "count if they called CUDA and have ended. Reports have source lines; a name in "
            "--report that ends in .json, .txt, .html, .pb.gz (pprof) or .folded (collapsed "
            "stacks) chooses the form. Reports of killed or crashed processes are written, too. "
            "With --mode=off or --live=off there is nothing to read at the end, so the command is "
            "replaced by PROGRAM as with --exec; the same happens, with a warning, if resource "
            "limits prevent it from creating a process.\n\n"
            "The exit status is that of PROGRAM; if a signal killed PROGRAM, the same signal kills "
            "the command. If PROGRAM succeeded but something leaked or a memory error happened, it "
            "is the N of --error-exitcode. It is 2 for a usage error, 125 if the library was not "
            "found, a check could not be performed, or the page of --html could not be written, "
            "126 if "
            "PROGRAM cannot be executed, and 127 if it cannot "
            "be found.",
    };

    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        cw_docs_flag(&options[i], i, FLAG_FIRST_ROW + (int)i);
        options_as_flags[i] = options[i].flag;
    }
    return &line;
}

static int fail_setenv(const char *variable)
{
    cw_cli_error("cannot set %s: %s", variable, strerror(errno));
    return CW_EXIT_SELF;
}

/* A variable that cannot be set means out of memory, not a usage error. */
static int set_option(struct request *request, size_t index, const char *value)
{
    const char *name = cw_options_row(index)->name;
    char variable[sizeof(CW_OPTION_PREFIX) + CW_FLAG_MAX];
    char why[CW_OPTION_LINE_MAX], flag[CW_FLAG_MAX];

    if (cw_options_set(&request->options, name, value, why, sizeof(why)) != 0) {
        cw_cli_error("--%s: %s", cw_docs_flag_name(flag, sizeof(flag), name), why);
        return -1;
    }
    snprintf(variable, sizeof(variable), "%s%s", CW_OPTION_PREFIX, name);
    if (setenv(variable, value, 1) != 0)
        exit(fail_setenv(variable));
    return 0;
}

static int fail_value(const char *flag, const char *value, const char *form)
{
    cw_cli_error("--%s: '%s' is not %s", flag, value, form);
    return -1;
}

static int set_error_exitcode(struct request *request, const char *value)
{
    uint64_t number;

    if (cw_count_parse(value, &number) != 0 || number < 1 || number > 255)
        return fail_value("error-exitcode", value, "a number from 1 to 255");
    request->error_exitcode = (int)number;
    return 0;
}

static int set_leak_bytes(struct request *request, const char *value)
{
    struct cw_device_sizes sizes = {.fallback = {.kind = CW_SIZE_NONE}};

    if (cw_sizes_parse(value, 0, &sizes) != 0 || sizes.count != 0 ||
        sizes.fallback.kind != CW_SIZE_BYTES || sizes.fallback.amount == 0)
        return fail_value("leak-bytes", value,
                          "a size of at least 1 byte, as in 4096, 64K or 1.5G");
    request->leak_bytes = sizes.fallback.amount;
    return 0;
}

static int set_leak_count(struct request *request, const char *value)
{
    if (cw_count_parse(value, &request->leak_count) != 0 || request->leak_count == 0)
        return fail_value("leak-count", value, "a number of at least 1");
    return 0;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_ERROR_EXITCODE:
        return set_error_exitcode(request, value);
    case FLAG_LEAK_BYTES:
        return set_leak_bytes(request, value);
    case FLAG_LEAK_COUNT:
        return set_leak_count(request, value);
    case FLAG_COUNT_KILLED:
        request->counts_killed = 1;
        return 0;
    case FLAG_REQUIRE_CUDA:
        request->requires_cuda = 1;
        return 0;
    case FLAG_ALLOW_NO_CUDA:
        request->allows_no_cuda = 1;
        return 0;
    case FLAG_HTML:
        request->html = value;
        return *value && strcmp(value, "-") != 0 ? 0
                                                 : fail_value("html", value, "the name of a file");
    case FLAG_TORCH:
        request->has_torch = 1;
        return 0;
    case FLAG_EXEC:
        request->is_exec = 1;
        return 0;
    case FLAG_DEVICE:
        request->device = value;
        return *value ? 0 : fail_value("device", value, "auto, a number or a UUID");
    case FLAG_NEED:
        return cw_need_parse("need", value, 0, &request->need);
    case FLAG_QUIET:
        request->is_quiet = 1;
        return 0;
    case FLAG_PRELOAD:
        request->preload = value;
        return 0;
    default:
        return set_option(request, (size_t)(flag - FLAG_FIRST_ROW), value);
    }
}

/* ---- what can be checked at the end ---- */

/* The setting that leaves nothing to read when the processes have ended, or NULL. */
static const char *blindness(const struct request *request)
{
    if (request->is_exec)
        return "--exec";
    if (request->options.mode == CW_MODE_OFF)
        return "CUWARDEN_MODE=off";
    return strcmp(request->options.live, "off") == 0 ? "CUWARDEN_LIVE=off" : NULL;
}

/* What the user asked for that is made at the end: a check, or a page. */
struct check {
    const char *flag;
    const char *loss; /* what is said where nothing can be known */
};

static const struct check on_exitcode = {"--error-exitcode", "--error-exitcode cannot be checked"};
static const struct check on_cuda = {"--require-cuda", "--require-cuda cannot be checked"};
static const struct check on_page = {"--html", "no page can be written for --html"};

/* The strictest, or NULL. */
static const struct check *check_of(const struct request *request)
{
    if (request->error_exitcode != 0)
        return &on_exitcode;
    if (request->requires_cuda)
        return &on_cuda;
    return request->html ? &on_page : NULL;
}

static int check_request(const struct request *request)
{
    const struct check *check = check_of(request);
    const char *blind = blindness(request), *flag = request->has_torch ? "--torch" : NULL;

    if (check)
        flag = check->flag;
    if (request->error_exitcode == 0 && (request->leak_bytes != 0 || request->leak_count != 0)) {
        cw_cli_error("--%s requires --error-exitcode",
                     request->leak_bytes != 0 ? "leak-bytes" : "leak-count");
        return cw_cli_usage_error();
    }
    if (request->need != 0 && !request->device) {
        cw_cli_error("--need requires --device=auto, or another --device");
        return cw_cli_usage_error();
    }
    if (blind && flag) {
        cw_cli_error("%s cannot be combined with %s, which leaves nothing to read at the end", flag,
                     blind);
        return cw_cli_usage_error();
    }
    return CW_EXIT_OK;
}

/* ---- the program ---- */

static int fail_program(const char *name, int error)
{
    cw_cli_error("cannot run '%s': %s", name, strerror(error));
    return error == ENOENT ? CW_EXIT_NOT_FOUND : CW_EXIT_CANNOT_RUN;
}

static int exec_program(char **argv)
{
    execvp(argv[0], argv);
    return fail_program(argv[0], errno);
}

static void collect(void *arg)
{
    cw_run_account_collect(arg, 0);
}

/* Thresholds are for leaks; one memory error is always one too many. */
static int has_failed(const struct request *request, const struct cw_snapshot_summary *sum)
{
    if (sum->invalid_frees + sum->fatal_errors > 0)
        return 1;
    if (request->leak_bytes == 0 && request->leak_count == 0)
        return sum->leaked_blocks > 0;
    return (request->leak_bytes != 0 && sum->leaked_bytes >= request->leak_bytes) ||
           (request->leak_count != 0 && sum->leaked_blocks >= request->leak_count);
}

/* The exit status by the checks and the page, if the program itself succeeded. */
static int check_end(const struct request *request, const struct cw_run_account *account)
{
    if (request->error_exitcode != 0 && has_failed(request, &account->verdict.sum))
        return request->error_exitcode;
    if (account->unreadable > 0 && (request->error_exitcode != 0 || request->html))
        return CW_EXIT_SELF;
    return account->reports.missing > 0 ? CW_EXIT_SELF : CW_EXIT_OK;
}

/* No process called CUDA, as far as we know: a check that saw nothing has not passed. */
static int explain_silence(const struct request *request, const struct cw_run_account *account,
                           const char *program, const char *library)
{
    const struct cw_run_verdict *verdict = &account->verdict;
    const struct check *check =
        request->requires_cuda || !request->allows_no_cuda ? check_of(request) : NULL;
    const char *way_out = request->requires_cuda || request->error_exitcode == 0
                              ? ""
                              : "; --allow-no-cuda accepts that";
    char why[WHY_MAX];
    int is_kept_out = cw_doctor_keeps_out(program, library, why, sizeof(why));
    unsigned left = cw_run_left_count(account->live.directory);

    if (verdict->uncalled != 0 || verdict->refused != 0) {
        if (check == &on_page)
            check = NULL; /* there are pages of these processes */
        if (check && verdict->uncalled != 0)
            cw_cli_error("%s: no call of CUDA came to the library: '%s', opened with "
                         "RTLD_DEEPBIND, calls past it%s%s",
                         check->flag, verdict->unseen_object,
                         request->options.deepbind == CW_DEEPBIND_PATCH
                             ? ", also with --deepbind=patch"
                             : "; use --deepbind=patch",
                         way_out);
        else if (check)
            cw_cli_error("%s: no process could use CUDA%s", check->flag, way_out);
        return check ? CW_EXIT_SELF : CW_EXIT_OK;
    }
    if (check && is_kept_out)
        cw_cli_error("%s: no process called CUDA under the library: %s%s", check->flag, why,
                     way_out);
    else if (check && left > 0)
        cw_cli_error("%s: no process has called CUDA under the library yet; still running: %u%s",
                     check->flag, left, way_out);
    else if (check)
        cw_cli_error(
            "%s: no process called CUDA under the library: '%s' can load it, but neither it nor "
            "its children called CUDA's driver, or they did so without LD_PRELOAD in their "
            "environment, or as a user who cannot write to '%s' (in that case, try --exec)%s",
            check->flag, program, account->live.directory, way_out);
    else if (is_kept_out && !request->is_quiet)
        cw_cli_warn("this run was not recorded: %s", why);
    else if (!request->is_quiet && left > 0)
        cw_cli_warn("no process has called CUDA under the library yet; still running: %u", left);
    else if (!request->is_quiet && !cw_run_account_is_inner(account))
        fprintf(stderr, "cuwarden: no process called CUDA under the library: nothing to report\n");
    return check ? CW_EXIT_SELF : CW_EXIT_OK;
}

/* CUDA was called, but only by processes that still run: nothing is known of what they leak. */
static int explain_unfinished(const struct request *request)
{
    if (request->error_exitcode == 0 && !request->html)
        return CW_EXIT_OK;
    cw_cli_error("%s: the processes that called CUDA are still running",
                 request->error_exitcode != 0 ? "--error-exitcode: nothing could be checked"
                                              : "--html: no page was written");
    return CW_EXIT_SELF;
}

static int conclude(const struct request *request, struct cw_run_account *account,
                    const char *program, const char *library)
{
    int status = WEXITSTATUS(account->wait_status), verdict = CW_EXIT_OK;

    cw_run_account_print(account);
    if (account->live.directory[0] && account->processes + account->unreadable == 0)
        verdict = account->running > 0 ? explain_unfinished(request)
                                       : explain_silence(request, account, program, library);
    if (verdict == CW_EXIT_OK)
        verdict = check_end(request, account);
    if (WIFSIGNALED(account->wait_status))
        cw_run_child_die(WTERMSIG(account->wait_status));
    return status != 0 ? status : verdict;
}

/* The names of reports and suppressions may refer to one of the program's open files. */
static int names_open_file(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* A relative name counts from here, wherever the program is when it calls CUDA. */
static int check_suppressions(struct request *request)
{
    char *path = request->options.suppressions, absolute[PATH_MAX];
    struct cw_rules_fault fault;
    struct cw_rules rules;

    cw_rules_init(&rules, path, &fault);
    cw_rules_fini(&rules);
    if (fault.text[0] != '\0') {
        cw_cli_error("%s", fault.text);
        return CW_EXIT_USAGE;
    }
    if (*path == '\0' || *path == '/' || !realpath(path, absolute) ||
        strlen(absolute) >= sizeof(request->options.suppressions))
        return CW_EXIT_OK;
    strcpy(path, absolute);
    return setenv(CW_OPTION_PREFIX "SUPPRESSIONS", path, 1) == 0
               ? CW_EXIT_OK
               : fail_setenv(CW_OPTION_PREFIX "SUPPRESSIONS");
}

/* Limits that prevent us from creating a process must not prevent the program from running. */
static int run_without_child(const struct request *request, char **argv, int error)
{
    if (check_of(request)) {
        cw_cli_error("cannot create a process for '%s', so %s: %s", argv[0],
                     check_of(request)->loss, strerror(error));
        return CW_EXIT_SELF;
    }
    if (!request->is_quiet)
        cw_cli_warn("cannot create a process for '%s', so there is no SUMMARY: %s", argv[0],
                    strerror(error));
    if (setenv(CW_OPTION_PREFIX "LIVE", request->options.live, 1) != 0)
        return fail_setenv(CW_OPTION_PREFIX "LIVE");
    if (setenv(CW_OPTION_PREFIX "REPORT", request->options.report, 1) != 0)
        return fail_setenv(CW_OPTION_PREFIX "REPORT");
    return exec_program(argv);
}

static int run_program(const struct request *request, struct cw_run_account *account, char **argv,
                       const char *library)
{
    int keeps_files = names_open_file(request->options.report) ||
                      names_open_file(request->options.suppressions) ||
                      (request->html && names_open_file(request->html));
    struct cw_run_child child;
    int error;

    if (cw_run_child_start(&child, argv, keeps_files) != 0) {
        error = errno;
        cw_torch_end(&account->torch);
        cw_run_live_end(&account->live);
        return run_without_child(request, argv, error);
    }
    account->child = child.pid;
    account->wait_status = cw_run_child_wait(&child, collect, account);
    error = cw_run_child_failure(&child);
    cw_run_child_release(&child);
    if (error == 0)
        cw_run_account_collect(account, 1);
    cw_torch_end(&account->torch);
    cw_run_live_end(&account->live);
    return error != 0 ? fail_program(argv[0], error) : conclude(request, account, argv[0], library);
}

/* The library writes what the run cannot improve. */
static int redirect_reports(const char *instead)
{
    if (!instead || setenv(CW_OPTION_PREFIX "REPORT", instead, 1) == 0)
        return CW_EXIT_OK;
    return fail_setenv(CW_OPTION_PREFIX "REPORT");
}

/* Sets the directory of live files for the processes. */
static int prepare_account(const struct request *request, const char *library,
                           struct cw_run_account *account)
{
    const char *instead = NULL;
    char why[WHY_MAX];

    *account = (struct cw_run_account){.options = &request->options,
                                       .next = request->next,
                                       .is_quiet = request->is_quiet,
                                       .counts_killed = request->counts_killed};
    if (cw_run_reports_init(&account->reports, &request->options, request->html, &instead) != 0)
        return cw_cli_usage_error();
    if (cw_run_live_make(&account->live, &request->options, why, sizeof(why)) == 0) {
        if (request->has_torch)
            cw_torch_begin(&account->torch, account->live.directory, library);
        cw_run_live_warn(&account->live, &request->options, request->is_quiet);
        return setenv(CW_OPTION_PREFIX "LIVE", account->live.directory, 1) == 0
                   ? redirect_reports(instead)
                   : fail_setenv(CW_OPTION_PREFIX "LIVE");
    }
    if (check_of(request)) {
        cw_cli_error("no directory for live files, so %s: %s; choose one with --live=DIR",
                     check_of(request)->loss, why);
        return CW_EXIT_SELF;
    }
    if (!request->is_quiet)
        cw_cli_warn(
            "no directory for live files, so there is no SUMMARY: %s; choose one with --live=DIR",
            why);
    return CW_EXIT_OK;
}

static int run_accounted(const struct request *request, char **argv, const char *library)
{
    struct cw_run_account account;
    int status;

    cw_log_set_level(request->options.log);
    status = prepare_account(request, library, &account);
    if (status == CW_EXIT_OK)
        status = run_program(request, &account, argv, library);
    cw_run_account_free(&account);
    return status;
}

int cw_cmd_run(int argc, char **argv)
{
    static struct request request;
    char library[PATH_MAX];
    const char *unset;
    int status;

    cw_options_parse(NULL, 1, &request.options, NULL);
    status = cw_flags_parse(cw_line_run(), argc, argv, set_flag, &request);
    if (status >= 0)
        return status;
    cw_options_parse(environ, 1, &request.options, NULL);
    status = check_request(&request);
    if (status == CW_EXIT_OK)
        status = check_suppressions(&request);
    if (status != CW_EXIT_OK)
        return status;
    if (cw_library_find(request.preload, library, sizeof(library)) != 0)
        return CW_EXIT_SELF;
    if (request.device)
        status = cw_run_device_set(request.device, request.need, request.is_quiet);
    if (status != CW_EXIT_OK)
        return status;
    unset = cw_run_preload(library);
    if (unset)
        return fail_setenv(unset);
    if (blindness(&request))
        return exec_program(argv + optind);
    cw_run_next_format(argv, request.next);
    return run_accounted(&request, argv + optind, library);
}
