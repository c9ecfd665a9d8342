/* SPDX-License-Identifier: MIT */
/* `cuwarden diff`: compares two processes, and checks the changes against limits. */
#include "cli/ui/flags.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options/number.h"
#include "cli/ui/destination.h"
#include "cli/compare/diff.h"
#include "cli/input/operand.h"
#include "cli/model/select.h"
#include "cli/model/site_text.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

enum form { FORM_UNNAMED, FORM_TEXT, FORM_JSON, FORM_COLLAPSED };

enum limit_kind { LIMIT_NONE, LIMIT_AMOUNT, LIMIT_PERCENT };

struct request {
    enum form form;
    struct cw_destination destination;
    enum cw_match_how how;
    enum limit_kind limit_kind;
    const char *limit_text;
    uint64_t limit;      /* amount */
    long double percent; /* of the old value */
    int fails_on_new;
    struct cw_diff diff;
};

enum flag { FLAG_GROWTH = 0x200, FLAG_NEW, FLAG_BY_DEVICE, FLAG_MATCH, FLAG_FORMAT };

const struct cw_command_line *cw_line_diff(void)
{
    static const struct cw_flag_word ways[] = {
        {"auto", "by id, and by function names in rebuilt modules (default)"},
        {"id", "never by name"},
        {"name", "by id, else by function name; Python lines by their function"},
        {NULL, NULL},
    };
    static const struct cw_flag flags[] = {
        {.id = FLAG_FORMAT,
         .name = "format",
         .value = "FORM",
         .words = "*text json collapsed",
         .help = "%w: stacks with both values, as flamegraph.pl draws them"},
        {.id = 'o',
         .name = "output",
         .value = "FILE",
         .help = "write to FILE instead of standard output; a name that ends in .json or .folded "
                 "(collapsed) chooses the form unless --format does"},
        {.id = FLAG_GROWTH,
         .name = "fail-on-growth",
         .value = "SIZE|N%",
         .help = "exit with 1 if the metric's sum grew by more than that (default metric: live)"},
        {.id = FLAG_NEW, .name = "fail-on-new", .help = "exit with 1 if a call site is new"},
        {.id = FLAG_BY_DEVICE,
         .name = "by-device",
         .help = "list call sites separately for each device"},
        {.id = FLAG_MATCH, .name = "match", .value = "HOW", .help = "one of", .each = ways},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]... BEFORE AFTER",
        .about = "Compare two processes by call site: each is a report in JSON, a live file, the "
                 "id of a process, or - for standard input.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL},
                  {cw_select_flags, CW_SELECT_FLAGS, "Which call sites, and which metric:"}},
        .operands = CW_OPERAND_PID | CW_OPERAND_FILE,
        .least = 2,
        .most = 2,
        .missing = "operand: name the two processes to compare, BEFORE and AFTER",
        .notes = "Exit status is 0 on success, 1 if something failed or a --fail-on- condition "
                 "was met, 2 for a usage error.",
    };

    return &line;
}

/* ---- limits ---- */

static void say_worst(const struct cw_diff *diff, char *buf, size_t cap, int only_new)
{
    uint64_t most = 0;
    uint32_t worst = 0;
    const struct cw_snapshot_site *site;
    char change[CW_AMOUNT_MAX], name[256];

    for (uint32_t i = 0; i < diff->rows; i++) {
        uint32_t row = diff->row[i].site;
        uint64_t before = cw_match_cell(&diff->match, row, 0)->value;
        uint64_t after = cw_match_cell(&diff->match, row, 1)->value;

        if (cw_report_site_home(cw_match_record(&diff->match, row)) == CW_SITE_NONE ||
            after <= before || after - before <= most ||
            (only_new && cw_diff_state(diff, row) != CW_DIFF_NEW))
            continue;
        most = after - before;
        worst = row;
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

/* CW_EXIT_FAILURE after a line that names the exceeded limit and the largest contribution. */
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

static enum form form_of(const char *word)
{
    return *word == 't' ? FORM_TEXT : *word == 'j' ? FORM_JSON : FORM_COLLAPSED;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_FORMAT:
        request->form = form_of(value);
        return 0;
    case FLAG_MATCH:
        request->how = *value == 'a' ? CW_MATCH_AUTO : *value == 'i' ? CW_MATCH_ID : CW_MATCH_NAME;
        return 0;
    case FLAG_GROWTH:
        return set_limit(request, value);
    case FLAG_NEW:
        request->fails_on_new = 1;
        return 0;
    case FLAG_BY_DEVICE:
        request->diff.by_device = 1;
        return 0;
    case 'o':
        cw_destination_set_path(&request->destination, value);
        return 0;
    default:
        return cw_select_set(&request->diff.selection, flag, value);
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

    if (cw_model_read(&diff->model[0], operand[0], 0) == 0 &&
        cw_model_read(&diff->model[1], operand[1], 0) == 0 &&
        cw_diff_make(diff, request->how) == 0 && write_result(request) == 0)
        status = judge(request);
    cw_diff_free(diff);
    return status;
}

/* 0, or -1 after a message. */
static int set_form_by_name(struct request *request)
{
    static const struct cw_named_form names[] = {
        {".json", "json"}, {".folded", "collapsed"}, {NULL, NULL}};
    const char *form;

    if (request->form != FORM_UNNAMED)
        return 0;
    if (cw_destination_form(&request->destination, names, &form) != 0)
        return -1;
    request->form = form_of(form ? form : "text");
    return 0;
}

int cw_cmd_diff(int argc, char **argv)
{
    static struct request request = {
        .destination = {.noun = "comparison", .without_pager = 1, .makes_directories = 1}};
    int status = cw_flags_parse(cw_line_diff(), argc, argv, set_flag, &request);

    if (status >= 0)
        return status;
    if (set_form_by_name(&request) != 0)
        return cw_cli_usage_error();
    return compare(&request, argv + optind);
}
