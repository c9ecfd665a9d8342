/* SPDX-License-Identifier: MIT */
/* `cuwarden replay`: a trace played against the pool, a limit, or all policies. */
#include "cli/ui/flags.h"
#include "cli/ui/docs.h"
#include "cli/ui/destination.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/printable.h"
#include "cli/replay/replay_memory.h"
#include "cli/replay/replay_policy.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#define DEVICE_DEFAULT "24G"
#define DEVICE_LEAST   (UINT64_C(64) << 20)
#define DEVICE_MOST    (CW_REPLAY_MOST - CW_REPLAY_PAGE)

enum { FLAG_DEVICE_SIZE = 0x100, FLAG_COMPARE, FLAG_PLOT, FLAG_FORMAT, FLAG_FIRST_ROW };

/* Options of the library that apply to a replay; policies differ in the first ones. */
static const uint8_t rows[] = {
    CW_OPTION_INDEX_MODE,     CW_OPTION_INDEX_PRESET,          CW_OPTION_INDEX_FREE_SYNC,
    CW_OPTION_INDEX_POOL_MAX, CW_OPTION_INDEX_POOL_BUCKET_MAX, CW_OPTION_INDEX_POOL_IDLE,
    CW_OPTION_INDEX_PREWARM,  CW_OPTION_INDEX_LIMIT,           CW_OPTION_INDEX_MIN_FREE,
    CW_OPTION_INDEX_PRESSURE,
};
#define ROWS          CW_ARRAY_LEN(rows)
#define COMPARED_ROWS 3

struct request {
    struct cw_options options;
    struct cw_policies policies;
    struct cw_destination plot;
    int wants_json, compares;
};

const struct cw_command_line *cw_line_replay(void)
{
    static struct cw_docs_flag options[ROWS];
    static struct cw_flag rows_as_flags[ROWS];
    static const struct cw_flag flags[] = {
        {.id = FLAG_DEVICE_SIZE,
         .name = "device-size",
         .value = "SIZE",
         .help = "memory of each device (default: " DEVICE_DEFAULT ")"},
        {.id = FLAG_COMPARE,
         .name = "compare",
         .help = "compare policies in a table: native, track, pool, inference, constrained, "
                 "deferred, and models of other caches: unbounded, pytorch, rmm"},
        {.id = FLAG_PLOT,
         .name = "plot",
         .value = "FILE",
         .help = "write an SVG plot of memory over time to FILE"},
        {.id = FLAG_FORMAT, .name = "format", .value = "FORM", .words = "*text json", .help = "%w"},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]... TRACE",
        .about =
            "Replay a program's allocations under other settings: would they have fitted, and what "
            "would the pool have served? TRACE is a file written by CUWARDEN_TRACE or RMM's "
            "logging resource adaptor, plain or gzip-compressed, or - for standard input.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL}, {rows_as_flags, ROWS, NULL}},
        .operands = CW_OPERAND_FILE,
        .least = 1,
        .most = 1,
        .missing = "TRACE",
        .notes = "The trace runs on one thread through the pool's own code and a simulated driver, "
                 "which places blocks first-fit in 2 MiB pages. The option flags take the same "
                 "values as in 'cuwarden run'; environment variables are ignored.\n\n"
                 "Exit status is 0, or 1 if the trace cannot be read or does not fit within "
                 "--limit, 2 for a usage error.",
    };

    for (size_t i = 0; i < ROWS; i++) {
        cw_docs_flag(&options[i], rows[i], FLAG_FIRST_ROW + (int)i);
        rows_as_flags[i] = options[i].flag;
        if (rows[i] == CW_OPTION_INDEX_LIMIT)
            rows_as_flags[i].below = "none or usable or SIZES";
    }
    return &line;
}

static int is_of_platform(const struct cw_device_sizes *sizes)
{
    for (unsigned i = 0; i < sizes->count; i++)
        if (sizes->device[i].size.kind == CW_SIZE_PLATFORM)
            return 1;
    return sizes->fallback.kind == CW_SIZE_PLATFORM;
}

static int set_row(struct request *request, size_t row, const char *value)
{
    const char *name = cw_options_row(rows[row])->name;
    char why[CW_OPTION_LINE_MAX], flag[CW_FLAG_MAX];

    if (cw_options_set(&request->options, name, value, why, sizeof(why)) != 0)
        cw_cli_error("--%s: %s", cw_docs_flag_name(flag, sizeof(flag), name), why);
    else if (is_of_platform(&request->options.limit))
        cw_cli_error("--limit: '%s': a trace does not say what a platform sets; give its limit as "
                     "a size",
                     value);
    else
        return 0;
    return -1;
}

static int set_device_size(struct request *request, const char *value)
{
    struct cw_device_sizes sizes = {.count = 0};

    if (cw_sizes_parse(value, 0, &sizes) != 0 || sizes.count != 0 ||
        sizes.fallback.kind != CW_SIZE_BYTES || sizes.fallback.amount < DEVICE_LEAST ||
        sizes.fallback.amount > DEVICE_MOST) {
        cw_cli_error("--device-size: '%s' is not a size from 64M to 4095G", value);
        return -1;
    }
    request->policies.device_bytes = sizes.fallback.amount / CW_REPLAY_PAGE * CW_REPLAY_PAGE;
    return 0;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_DEVICE_SIZE:
        return set_device_size(request, value);
    case FLAG_COMPARE:
        request->compares = 1;
        return 0;
    case FLAG_PLOT:
        request->plot = (struct cw_destination){.noun = "plot", .path = value};
        if (strcmp(value, "-") != 0)
            return 0;
        cw_cli_error("--plot: '-' is not the name of a file");
        return -1;
    case FLAG_FORMAT:
        request->wants_json = strcmp(value, "json") == 0;
        return 0;
    default:
        return set_row(request, (size_t)(flag - FLAG_FIRST_ROW), value);
    }
}

/* Rejects invalid combinations, and traces that cannot be read several times. */
static int check(const struct request *request)
{
    struct stat info;

    if (request->options.mode == CW_MODE_OFF) {
        cw_cli_error("--mode=off leaves nothing to replay; to see the program without the library, "
                     "use --compare (policy 'native')");
        return CW_EXIT_USAGE;
    }
    for (size_t i = 0; request->compares && i < COMPARED_ROWS; i++) {
        char flag[CW_FLAG_MAX];

        if (request->options.origin[rows[i]] != CW_ORIGIN_ENVIRONMENT)
            continue;
        cw_cli_error("--%s cannot be combined with --compare, which compares several values of it",
                     cw_docs_flag_name(flag, sizeof(flag), cw_options_row(rows[i])->name));
        return CW_EXIT_USAGE;
    }
    if (request->compares &&
        (strcmp(request->policies.trace, "-") == 0 ||
         (stat(request->policies.trace, &info) == 0 && !S_ISREG(info.st_mode)))) {
        cw_cli_error("--compare reads the trace several times, but '%s' is not a regular file; "
                     "save it to a file first",
                     request->policies.trace);
        return CW_EXIT_USAGE;
    }
    return CW_EXIT_OK;
}

static int write_plot(struct request *request)
{
    struct cw_destination *to = &request->plot;

    if (cw_destination_open(to) != 0)
        return CW_EXIT_FAILURE;
    cw_replay_print_svg(&request->policies, to->out);
    return cw_destination_close(to) == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
}

/* Whether a limit was given that the pool does not keep. A comparison is for reading. */
static int exceeds_limit(const struct request *request)
{
    const struct cw_device_sizes *limit = &request->options.limit;

    return !request->compares && (limit->count != 0 || limit->fallback.kind != CW_SIZE_NONE) &&
           request->policies.policy[0].result.ooms != 0;
}

static int run(struct request *request, const char *trace)
{
    int status;

    request->policies.trace = trace;
    snprintf(request->policies.shown, sizeof(request->policies.shown), "%s", trace);
    (void)cw_printable_clean_string(request->policies.shown);
    status = check(request);
    if (status != CW_EXIT_OK)
        return status;
    if (request->compares)
        cw_policies_all(&request->policies, &request->options);
    else
        cw_policies_one(&request->policies, &request->options);
    cw_log_set_level(CW_LOG_ERROR);
    if (cw_policies_run(&request->policies) != 0)
        return CW_EXIT_FAILURE;
    /* First, because the reader of the text may quit early. */
    status = request->plot.path != NULL ? write_plot(request) : CW_EXIT_OK;
    if (request->wants_json)
        cw_replay_print_json(&request->policies, stdout);
    else
        cw_replay_print_text(&request->policies, stdout);
    return status == CW_EXIT_OK && exceeds_limit(request) ? CW_EXIT_FAILURE : status;
}

int cw_cmd_replay(int argc, char **argv)
{
    struct request *request = calloc(1, sizeof(*request));
    int status;

    if (request == NULL) {
        cw_cli_error("out of memory");
        return CW_EXIT_FAILURE;
    }
    cw_options_parse(NULL, 1, &request->options, NULL);
    set_device_size(request, DEVICE_DEFAULT);
    status = cw_flags_parse(cw_line_replay(), argc, argv, set_flag, request);
    if (status < 0)
        status = run(request, argv[optind]);
    free(request);
    return status;
}
