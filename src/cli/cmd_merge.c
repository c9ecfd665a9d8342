/* SPDX-License-Identifier: MIT */
/* `cuwarden merge`: one report on the ranks of a parallel job. */
#include "cli/ui/flags.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/ui/destination.h"
#include "cli/input/operand.h"
#include "cli/compare/ranks.h"
#include "cli/model/select.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

struct request {
    int has_form, is_json;
    struct cw_destination destination;
    struct cw_ranks ranks;
};

enum flag { FLAG_FORMAT = 0x200, FLAG_BY_DEVICE };

const struct cw_command_line *cw_line_merge(void)
{
    static const struct cw_flag flags[] = {
        {.id = FLAG_FORMAT, .name = "format", .value = "FORM", .words = "*text json", .help = "%w"},
        {.id = 'o',
         .name = "output",
         .value = "FILE",
         .help = "write to FILE instead of standard output; a name that ends in .json chooses the "
                 "form unless --format does"},
        {.id = FLAG_BY_DEVICE,
         .name = "by-device",
         .help = "list call sites separately for each device"},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]... FILE|PID|DIR...",
        .about = "Compare the ranks of a parallel job: each is a report in JSON, a "
                 "live file, the id of a process, or - for standard input; DIR means all reports "
                 "(*.json) and live files in it.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL},
                  {cw_select_flags, CW_SELECT_FLAGS, "Which call sites, and which metric:"}},
        .operands = CW_OPERAND_PID | CW_OPERAND_FILE,
        .least = 1,
        .most = -1,
        .missing = "file, process id or directory",
        .notes = "Exit status is 0 on success, 1 if something failed, 2 for a bad command "
                 "line.",
    };

    return &line;
}

/* ---- reading ---- */

/* A process may have both a live file and a report, and a file may be named twice. */
static const struct cw_report_model *find_twin(const struct cw_ranks *ranks,
                                               const struct cw_report_model *model)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct cw_process_facts *a = &ranks->model[i].report->process;
        const struct cw_process_facts *b = &model->process;

        if (a->pid == b->pid && a->start_realtime_ns == b->start_realtime_ns &&
            a->start_realtime_ns != 0 && strcmp(a->host, b->host) == 0)
            return ranks->model[i].report;
    }
    return NULL;
}

/* A report in JSON of a running process, found in a directory: its final one may be next to it. */
static int is_intermediate(const struct cw_model *model, const struct cw_operand *operand)
{
    return operand->named != 0 && model->storage && model->report->is_alive;
}

static int read_rank(struct cw_ranks *ranks, const struct cw_operand *operand)
{
    const char *name = operand->name;
    struct cw_model *model = &ranks->model[ranks->count];
    const struct cw_report_model *twin;
    int rc;

    rc = cw_model_read(model, name, operand->named);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (is_intermediate(model, operand)) {
        cw_cli_warn("'%s' was written while its process was running and is skipped", name);
        cw_model_free(model);
        return 0;
    }
    twin = find_twin(ranks, model->report);
    if (!twin) {
        ranks->count++;
        return 0;
    }
    cw_cli_warn("'%s' is from the same process as '%s' and is skipped", name, twin->source);
    cw_model_free(model);
    return 0;
}

/* Fails unless all ranks can be read. */
static int read_all(struct cw_ranks *ranks, const struct cw_operands *operands)
{
    ranks->model = calloc(operands->count + 1, sizeof(*ranks->model));
    if (!ranks->model) {
        cw_cli_error("out of memory");
        return -1;
    }
    for (size_t i = 0; i < operands->count; i++)
        if (read_rank(ranks, &operands->operand[i]) != 0)
            return -1;
    if (ranks->count > 0)
        return 0;
    cw_cli_error("nothing to compare: name the reports if they are to count nevertheless");
    return -1;
}

static int has_rank(const struct cw_model *model)
{
    return model->report->process.rank[0] != '\0';
}

/* torchrun and the like load CUDA too, and have a report. It would count for medians and means. */
static int is_launcher(const struct cw_model *model)
{
    const struct cw_snapshot_summary *summary = &model->report->snapshot.summary;

    return !has_rank(model) && summary->allocs == 0 && summary->failed == 0;
}

static void leave_out_launchers(struct cw_ranks *ranks)
{
    uint32_t kept = 0, named = 0;

    for (uint32_t i = 0; i < ranks->count; i++)
        named += (uint32_t)has_rank(&ranks->model[i]);
    for (uint32_t i = 0; named != 0 && i < ranks->count; i++) {
        struct cw_model *model = &ranks->model[i];

        if (is_launcher(model)) {
            cw_cli_warn("'%s' is of a process that has no rank and allocated nothing, such as a "
                        "launcher, and is skipped",
                        model->report->source);
            cw_model_free(model);
        } else {
            ranks->model[kept++] = *model;
        }
    }
    if (named != 0)
        ranks->count = kept;
}

static int write_result(struct request *request)
{
    struct cw_destination *to = &request->destination;
    int failed = 0;

    to->is_text = !request->is_json;
    if (cw_destination_open(to) != 0)
        return -1;
    if (request->is_json)
        failed = cw_ranks_json(&request->ranks, to->out);
    else
        cw_ranks_text(&request->ranks, to->out, cw_destination_has_color(to));
    failed = failed ? cw_destination_fail(to) : 0;
    return cw_destination_close(to) == 0 ? failed : -1;
}

static int merge_all(struct request *request, char **operand, int count)
{
    struct cw_operands operands = {.count = 0};
    int rc = 0;

    for (int i = 0; rc == 0 && i < count; i++)
        rc = cw_operands_add(&operands, operand[i]);
    if (rc == 0)
        rc = read_all(&request->ranks, &operands);
    cw_operands_free(&operands);
    if (rc == 0)
        leave_out_launchers(&request->ranks);
    if (rc == 0)
        rc = cw_ranks_make(&request->ranks);
    if (rc == 0)
        rc = write_result(request);
    cw_ranks_free(&request->ranks);
    return rc == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
}

/* ---- the command line ---- */

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_FORMAT:
        request->has_form = 1;
        request->is_json = strcmp(value, "json") == 0;
        return 0;
    case FLAG_BY_DEVICE:
        request->ranks.by_device = 1;
        return 0;
    case 'o':
        cw_destination_set_path(&request->destination, value);
        return 0;
    default:
        return cw_select_set(&request->ranks.selection, flag, value);
    }
}

/* 0, or -1 after a message. */
static int set_form_by_name(struct request *request)
{
    static const struct cw_named_form names[] = {{".json", "json"}, {NULL, NULL}};
    const char *form;

    if (request->has_form)
        return 0;
    if (cw_destination_form(&request->destination, names, &form) != 0)
        return -1;
    request->is_json = form != NULL;
    return 0;
}

int cw_cmd_merge(int argc, char **argv)
{
    static struct request request = {
        .destination = {.noun = "merged report", .without_pager = 1, .makes_directories = 1}};
    int status = cw_flags_parse(cw_line_merge(), argc, argv, set_flag, &request);

    if (status >= 0)
        return status;
    if (set_form_by_name(&request) != 0)
        return cw_cli_usage_error();
    return merge_all(&request, argv + optind, argc - optind);
}
