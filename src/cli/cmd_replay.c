/* SPDX-License-Identifier: MIT */
/* `cuwarden replay`: a trace played against the pool, a limit, or all policies. */
#include "cli/cli.h"
#include "cli/ui/destination.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/replay/replay_memory.h"
#include "cli/replay/replay_policy.h"

#define DEVICE_DEFAULT "24G"
#define DEVICE_LEAST   (UINT64_C(64) << 20)
#define DEVICE_MOST    (CW_REPLAY_MOST - CW_REPLAY_PAGE)

enum {
    FLAG_HELP = 'h',
    FLAG_DEVICE_SIZE = 0x100,
    FLAG_COMPARE,
    FLAG_PLOT,
    FLAG_FORMAT,
    FLAG_FIRST_ROW
};

/* Options of the library that mean something in a replay; the first ones are what policies differ
 * in. */
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
    int wants_json, compares, wants_help;
};

static int print_help(void)
{
    char name[CW_FLAG_MAX], flag[64];

    printf(
        "Usage: cuwarden replay [OPTION]... TRACE\n"
        "Say what a program's allocations would have come to under other settings. TRACE is a\n"
        "file that CUWARDEN_TRACE or RMM's logging resource adaptor wrote, as it is or\n"
        "compressed by gzip, or - for standard input.\n"
        "\n"
        "  --device-size=SIZE     memory of each device, " DEVICE_DEFAULT " by default\n"
        "  --compare              a table of policies: native, track, pool, inference,\n"
        "                         constrained, deferred, and models of other caches: unbounded,\n"
        "                         pytorch, rmm\n"
        "  --plot=FILE            write a picture (SVG) of memory over time to FILE\n"
        "  --format=FORMAT        text or json\n");
    for (size_t i = 0; i < ROWS; i++) {
        const struct cw_option_row *row = cw_options_row(rows[i]);

        cw_docs_flag_name(name, sizeof(name), row->name);
        snprintf(flag, sizeof(flag), "--%s=...", name);
        printf("  %-22s %s\n", flag, row->help);
    }
    printf("  -h, --help             display this help and exit\n"
           "\n"
           "The trace is played on one thread against the pool's own code and a simulated driver\n"
           "that places blocks first-fit in pages of 2 MiB. Values are those of 'cuwarden run';\n"
           "the environment is not asked.\n");
    return CW_EXIT_OK;
}

static int set_row(struct request *request, size_t row, const char *value)
{
    const char *name = cw_options_row(rows[row])->name;
    char why[CW_OPTION_LINE_MAX], flag[CW_FLAG_MAX];

    if (cw_options_set(&request->options, name, value, why, sizeof(why)) == 0)
        return CW_EXIT_OK;
    cw_cli_error("--%s: %s", cw_docs_flag_name(flag, sizeof(flag), name), why);
    return CW_EXIT_USAGE;
}

static int set_device_size(struct request *request, const char *value)
{
    struct cw_device_sizes sizes = {.count = 0};

    if (cw_sizes_parse(value, 0, &sizes) != 0 || sizes.count != 0 ||
        sizes.fallback.kind != CW_SIZE_BYTES || sizes.fallback.amount < DEVICE_LEAST ||
        sizes.fallback.amount > DEVICE_MOST) {
        cw_cli_error("--device-size: '%s' is no size from 64M to 4095G", value);
        return CW_EXIT_USAGE;
    }
    request->policies.device_bytes = sizes.fallback.amount / CW_REPLAY_PAGE * CW_REPLAY_PAGE;
    return CW_EXIT_OK;
}

static int set_format(struct request *request, const char *value)
{
    request->wants_json = strcmp(value, "json") == 0;
    if (request->wants_json || strcmp(value, "text") == 0)
        return CW_EXIT_OK;
    cw_cli_error("--format: '%s' is neither text nor json", value);
    return CW_EXIT_USAGE;
}

static int set_flag(struct request *request, int flag)
{
    switch (flag) {
    case FLAG_HELP:
        request->wants_help = 1;
        return CW_EXIT_OK;
    case FLAG_DEVICE_SIZE:
        return set_device_size(request, optarg);
    case FLAG_COMPARE:
        request->compares = 1;
        return CW_EXIT_OK;
    case FLAG_PLOT:
        request->plot = (struct cw_destination){.noun = "plot", .path = optarg};
        return CW_EXIT_OK;
    case FLAG_FORMAT:
        return set_format(request, optarg);
    default:
        return flag >= FLAG_FIRST_ROW ? set_row(request, (size_t)(flag - FLAG_FIRST_ROW), optarg)
                                      : cw_cli_usage_error();
    }
}

static int parse_flags(int argc, char **argv, struct request *request)
{
    struct option flags[ROWS + 6] = {{"help", no_argument, NULL, FLAG_HELP},
                                     {"device-size", required_argument, NULL, FLAG_DEVICE_SIZE},
                                     {"compare", no_argument, NULL, FLAG_COMPARE},
                                     {"plot", required_argument, NULL, FLAG_PLOT},
                                     {"format", required_argument, NULL, FLAG_FORMAT}};
    char names[ROWS][CW_FLAG_MAX];
    int status = CW_EXIT_OK, flag;

    for (size_t i = 0; i < ROWS; i++)
        flags[5 + i] =
            (struct option){cw_docs_flag_name(names[i], CW_FLAG_MAX, cw_options_row(rows[i])->name),
                            required_argument, NULL, FLAG_FIRST_ROW + (int)i};
    while (status == CW_EXIT_OK && (flag = getopt_long(argc, argv, "h", flags, NULL)) != -1)
        status = set_flag(request, flag);
    return status;
}

/* What does not go together, or cannot be read several times. */
static int check(const struct request *request)
{
    struct stat info;

    if (request->options.mode == CW_MODE_OFF) {
        cw_cli_error("--mode=off: there is nothing to replay; --compare shows the program without "
                     "the library as 'native'");
        return CW_EXIT_USAGE;
    }
    for (size_t i = 0; request->compares && i < COMPARED_ROWS; i++) {
        char flag[CW_FLAG_MAX];

        if (request->options.origin[rows[i]] != CW_ORIGIN_ENVIRONMENT)
            continue;
        cw_cli_error("--%s goes not together with --compare, which compares several values of it",
                     cw_docs_flag_name(flag, sizeof(flag), cw_options_row(rows[i])->name));
        return CW_EXIT_USAGE;
    }
    if (request->compares &&
        (strcmp(request->policies.trace, "-") == 0 ||
         (stat(request->policies.trace, &info) == 0 && !S_ISREG(info.st_mode)))) {
        cw_cli_error("--compare reads the trace several times, and '%s' is no file; copy it to one",
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

static int run(struct request *request, int argc, char **argv)
{
    int status;

    if (optind + 1 != argc) {
        cw_cli_error(optind == argc ? "missing TRACE" : "only one TRACE can be replayed");
        return cw_cli_usage_error();
    }
    request->policies.trace = argv[optind];
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
    /* First, for who reads the text may leave early. */
    status = request->plot.path != NULL ? write_plot(request) : CW_EXIT_OK;
    if (request->wants_json)
        cw_replay_print_json(&request->policies, stdout);
    else
        cw_replay_print_text(&request->policies, stdout);
    return status;
}

int cw_cmd_replay(int argc, char **argv)
{
    struct request *request = calloc(1, sizeof(*request));
    int status;

    if (request == NULL) {
        cw_cli_error("no memory");
        return CW_EXIT_FAILURE;
    }
    cw_options_parse(NULL, 1, &request->options, NULL);
    status = set_device_size(request, DEVICE_DEFAULT);
    if (status == CW_EXIT_OK)
        status = parse_flags(argc, argv, request);
    if (status == CW_EXIT_OK)
        status = request->wants_help ? print_help() : run(request, argc, argv);
    free(request);
    return status;
}
