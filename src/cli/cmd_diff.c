/* SPDX-License-Identifier: MIT */
/* `cuwarden diff`: what has changed from one process to another, and whether that is too much. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/number.h"
#include "cli/ui/destination.h"
#include "cli/compare/diff.h"
#include "cli/input/operand.h"
#include "cli/model/select.h"
#include "cli/model/site_text.h"

enum form { FORM_TEXT, FORM_JSON, FORM_COLLAPSED };

enum limit_kind { LIMIT_NONE, LIMIT_AMOUNT, LIMIT_PERCENT };

struct request {
    enum form form;
    struct cw_destination destination;
    enum cw_match_how how;
    enum limit_kind limit_kind;
    const char *limit_text;
    uint64_t limit;      /* amount */
    long double percent; /* of what was there before */
    int fails_on_new;
    struct cw_diff diff;
};

static int print_help(void)
{
    printf(
        "Usage: cuwarden diff [OPTION]... BEFORE AFTER\n"
        "Compare two processes by call site: each is a report in JSON, a live file, the id of a\n"
        "process, or - for standard input.\n"
        "\n"
        "  --format=FORM          text (default), json, or collapsed: stacks with both values,\n"
        "                         as flamegraph.pl draws them\n"
        "  -o, --output=FILE      write to FILE, not to standard output\n"
        "  --fail-on-growth=SIZE|N%%\n"
        "                         exit with 1 if the sum of the metric, live by default, grew\n"
        "                         by more than that\n"
        "  --fail-on-new          exit with 1 if a call site is new\n"
        "  --by-device            call sites of two devices are two\n"
        "  --match=HOW            auto (default): by id, and by the names of functions where\n"
        "                         a module is another build; id: never by name; name: whatever\n"
        "                         has no equal id by name, lines of Python by their function\n");
    cw_select_print_help();
    printf("  -h, --help             display this help and exit\n"
           "\n"
           "Exit status is 0 if all went well, 1 if something failed or what --fail-on- names has\n"
           "happened, 2 for a bad command line.\n");
    return CW_EXIT_OK;
}

/* ---- what is too much ---- */

static void say_worst(const struct cw_diff *diff, char *buf, size_t cap, int only_new)
{
    uint64_t most = 0;
    uint32_t worst = 0;
    const struct cw_model_site *site;
    char change[CW_AMOUNT_MAX], name[256];

    for (uint32_t i = 0; i < diff->rows; i++) {
        uint64_t before = cw_match_cell(&diff->match, diff->row[i], 0)->value;
        uint64_t after = cw_match_cell(&diff->match, diff->row[i], 1)->value;

        if (!cw_match_record(&diff->match, diff->row[i])->is_counted || after <= before ||
            after - before <= most ||
            (only_new && cw_diff_state(diff, diff->row[i]) != CW_DIFF_NEW))
            continue;
        most = after - before;
        worst = diff->row[i];
    }
    if (most == 0) {
        buf[0] = '\0';
        return;
    }
    site = cw_match_record(&diff->match, worst);
    snprintf(buf, cap, "; most at site %08x, %s: %s", site->id,
             cw_site_name(cw_match_model(&diff->match, worst), site, name, sizeof(name)),
             cw_change_format(change, diff->selection.metric, 0, most));
}

static int is_too_much(const struct request *request)
{
    uint64_t before = request->diff.sum[0], after = request->diff.sum[1];

    if (request->limit_kind == LIMIT_NONE || after <= before)
        return 0;
    if (request->limit_kind == LIMIT_AMOUNT)
        return after - before > request->limit;
    return (long double)(after - before) * 100 > (long double)before * request->percent;
}

/* CW_EXIT_FAILURE after a line that says what was too much, and where most of it is. */
static int judge(const struct request *request)
{
    const struct cw_diff *diff = &request->diff;
    enum cw_metric metric = diff->selection.metric;
    char from[CW_AMOUNT_MAX], to[CW_AMOUNT_MAX], change[CW_AMOUNT_MAX], worst[512];
    int status = CW_EXIT_OK;

    if (is_too_much(request)) {
        say_worst(diff, worst, sizeof(worst), 0);
        cw_cli_error("%s grew by %s, from %s to %s, more than --fail-on-growth=%s%s",
                     cw_metric_name(metric),
                     cw_change_format(change, metric, diff->sum[0], diff->sum[1]) + 1,
                     cw_amount_format(from, metric, diff->sum[0]),
                     cw_amount_format(to, metric, diff->sum[1]), request->limit_text, worst);
        status = CW_EXIT_FAILURE;
    }
    if (request->fails_on_new && diff->count[CW_DIFF_NEW] > 0) {
        say_worst(diff, worst, sizeof(worst), 1);
        cw_cli_error("--fail-on-new: %u new call site%s%s", diff->count[CW_DIFF_NEW],
                     diff->count[CW_DIFF_NEW] == 1 ? "" : "s", worst);
        status = CW_EXIT_FAILURE;
    }
    return status;
}

/* ---- the command line ---- */

static int find_word(const char *flag, const char *value, const char *const *words, int *out)
{
    char known[128] = "";

    for (int i = 0; words[i]; i++) {
        if (strcmp(value, words[i]) == 0) {
            *out = i;
            return 0;
        }
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "",
                 words[i]);
    }
    cw_cli_error("--%s: '%s' is not one of %s", flag, value, known);
    return -1;
}

static int set_limit(struct request *request, const char *value)
{
    struct cw_decimal number;
    const char *end = cw_number_read_decimal(value, &number);

    request->limit_text = value;
    request->limit_kind = LIMIT_PERCENT;
    if (end && strcmp(end, "%") == 0) {
        request->percent =
            (long double)number.whole + (long double)number.fraction / CW_DECIMAL_ONE;
        return 0;
    }
    request->limit_kind = LIMIT_AMOUNT;
    if (end)
        end = cw_number_read_bytes(end, &number, &request->limit);
    if (end && *end == '\0')
        return 0;
    cw_cli_error("--fail-on-growth: '%s' is neither a size, as in 1M, nor a share, as in 10%%",
                 value);
    return -1;
}

enum flag { FLAG_GROWTH = 0x200, FLAG_NEW, FLAG_BY_DEVICE, FLAG_MATCH, FLAG_FORMAT };

static int set_flag(struct request *request, int flag)
{
    static const char *const forms[] = {"text", "json", "collapsed", NULL};
    static const char *const ways[] = {"auto", "id", "name", NULL};
    int word = 0;

    switch (flag) {
    case FLAG_FORMAT:
        if (find_word("format", optarg, forms, &word) != 0)
            return -1;
        request->form = (enum form)word;
        return 0;
    case FLAG_MATCH:
        if (find_word("match", optarg, ways, &word) != 0)
            return -1;
        request->how = (enum cw_match_how)word;
        return 0;
    case FLAG_GROWTH:
        return set_limit(request, optarg);
    case FLAG_NEW:
        request->fails_on_new = 1;
        return 0;
    case FLAG_BY_DEVICE:
        request->diff.by_device = 1;
        return 0;
    case 'o':
        cw_destination_set_path(&request->destination, optarg);
        return 0;
    default:
        return cw_select_set(&request->diff.selection, flag, optarg);
    }
}

static int write_result(struct request *request)
{
    struct cw_destination *to = &request->destination;
    int failed = 0;

    to->is_text = request->form == FORM_TEXT;
    if (cw_destination_open(to) != 0)
        return -1;
    if (request->form == FORM_JSON)
        failed = cw_diff_json(&request->diff, to->out);
    else if (request->form == FORM_COLLAPSED)
        cw_diff_collapsed(&request->diff, to->out);
    else
        cw_diff_text(&request->diff, to->out, cw_destination_has_color(to));
    failed = failed ? cw_destination_fail(to) : 0;
    return cw_destination_close(to) == 0 ? failed : -1;
}

static int compare(struct request *request, char **operand)
{
    struct cw_diff *diff = &request->diff;
    int status = CW_EXIT_FAILURE;

    if (cw_operand_read(&diff->model[0], operand[0]) == 0 &&
        cw_operand_read(&diff->model[1], operand[1]) == 0 &&
        cw_diff_make(diff, request->how) == 0 && write_result(request) == 0)
        status = judge(request);
    cw_diff_free(diff);
    return status;
}

int cw_cmd_diff(int argc, char **argv)
{
    static struct option flags[CW_SELECT_FLAGS + 8] = {
        {"format", required_argument, NULL, FLAG_FORMAT},
        {"output", required_argument, NULL, 'o'},
        {"fail-on-growth", required_argument, NULL, FLAG_GROWTH},
        {"fail-on-new", no_argument, NULL, FLAG_NEW},
        {"by-device", no_argument, NULL, FLAG_BY_DEVICE},
        {"match", required_argument, NULL, FLAG_MATCH},
        {"help", no_argument, NULL, 'h'},
    };
    static struct request request = {
        .destination = {.noun = "comparison", .without_pager = 1, .makes_directories = 1}};
    int flag;

    cw_select_fill_flags(flags + 7);
    while ((flag = getopt_long(argc, argv, "ho:", flags, NULL)) != -1) {
        if (flag == 'h')
            return print_help();
        if (flag == '?' || set_flag(&request, flag) != 0)
            return cw_cli_usage_error();
    }
    if (argc - optind < 2)
        cw_cli_error("two processes are compared: name BEFORE and AFTER");
    else if (argc - optind > 2)
        cw_cli_error("extra operand '%s'", argv[optind + 2]);
    if (argc - optind != 2)
        return cw_cli_usage_error();
    return compare(&request, argv + optind);
}
