/* SPDX-License-Identifier: MIT */
/* `cuwarden merge`: one report of the ranks of a parallel job, from the report of each. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/destination.h"
#include "cli/input/operand.h"
#include "cli/compare/ranks.h"
#include "cli/model/select.h"

struct request {
    int is_json;
    struct cw_destination destination;
    struct cw_ranks ranks;
};

static int print_help(void)
{
    printf("Usage: cuwarden merge [OPTION]... FILE|PID|DIR...\n"
           "Put the ranks of a parallel job beside each other: each is a report in JSON, a live\n"
           "file, the id of a process, or - for standard input; of DIR, all reports (*.json) and\n"
           "live files in it.\n"
           "\n"
           "  --format=FORM          text (default) or json\n"
           "  -o, --output=FILE      write to FILE, not to standard output\n"
           "  --by-device            call sites of two devices are two\n");
    cw_select_print_help();
    printf("  -h, --help             display this help and exit\n"
           "\n"
           "Exit status is 0 if all went well, 1 if something failed, 2 for a bad command line.\n");
    return CW_EXIT_OK;
}

/* ---- reading ---- */

/* A live file may lie beside the report of its process, and a file may be named twice. */
static const struct cw_model *find_twin(const struct cw_ranks *ranks, const struct cw_model *model)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct cw_model_process *a = &ranks->model[i].process, *b = &model->process;

        if (a->pid == b->pid && a->start_realtime_ns == b->start_realtime_ns &&
            a->start_realtime_ns != 0 && strcmp(a->host, b->host) == 0)
            return &ranks->model[i];
    }
    return NULL;
}

static int read_rank(struct cw_ranks *ranks, const char *name)
{
    struct cw_model *model = &ranks->model[ranks->count];
    const struct cw_model *twin;

    if (cw_operand_read(model, name) != 0)
        return -1;
    twin = find_twin(ranks, model);
    if (!twin) {
        ranks->count++;
        return 0;
    }
    cw_cli_warn("'%s' is of the same process as '%s': it is left out", name, twin->source);
    cw_model_free(model);
    return 0;
}

/* Of a job that is not complete nothing is shown. */
static int read_all(struct cw_ranks *ranks, const struct cw_operands *operands)
{
    ranks->model = calloc(operands->count + 1, sizeof(*ranks->model));
    if (!ranks->model) {
        cw_cli_error("out of memory");
        return -1;
    }
    for (size_t i = 0; i < operands->count; i++)
        if (read_rank(ranks, operands->name[i]) != 0)
            return -1;
    return 0;
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
        rc = cw_ranks_make(&request->ranks);
    if (rc == 0)
        rc = write_result(request);
    cw_ranks_free(&request->ranks);
    return rc == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
}

/* ---- the command line ---- */

enum flag { FLAG_FORMAT = 0x200, FLAG_BY_DEVICE };

static int set_form(struct request *request, const char *form)
{
    request->is_json = strcmp(form, "json") == 0;
    if (request->is_json || strcmp(form, "text") == 0)
        return 0;
    cw_cli_error("--format: '%s' is not one of text, json", form);
    return -1;
}

static int set_flag(struct request *request, int flag)
{
    switch (flag) {
    case FLAG_FORMAT:
        return set_form(request, optarg);
    case FLAG_BY_DEVICE:
        request->ranks.by_device = 1;
        return 0;
    case 'o':
        cw_destination_set_path(&request->destination, optarg);
        return 0;
    default:
        return cw_select_set(&request->ranks.selection, flag, optarg);
    }
}

int cw_cmd_merge(int argc, char **argv)
{
    static struct option flags[CW_SELECT_FLAGS + 5] = {
        {"format", required_argument, NULL, FLAG_FORMAT},
        {"output", required_argument, NULL, 'o'},
        {"by-device", no_argument, NULL, FLAG_BY_DEVICE},
        {"help", no_argument, NULL, 'h'},
    };
    static struct request request = {
        .destination = {.noun = "merged report", .without_pager = 1, .makes_directories = 1}};
    int flag;

    cw_select_fill_flags(flags + 4);
    while ((flag = getopt_long(argc, argv, "ho:", flags, NULL)) != -1) {
        if (flag == 'h')
            return print_help();
        if (flag == '?' || set_flag(&request, flag) != 0)
            return cw_cli_usage_error();
    }
    if (optind == argc) {
        cw_cli_error("missing file, process id or directory");
        return cw_cli_usage_error();
    }
    return merge_all(&request, argv + optind, argc - optind);
}
