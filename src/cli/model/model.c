/* SPDX-License-Identifier: MIT */
/* Reads models. See model.h. */
#include "cli/model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/input/live_files.h"
#include "cli/input/source_file.h"
#include "cli/model/json_lines.h"
#include "cli/model/json_read.h"
#include "cli/model/selection.h"
#include "cli/ui/message.h"
#include "report/report.h"

struct cw_model_file {
    struct cw_source_file file;
    struct cw_options options; /* of the environment */
    char path[];
};

static enum cw_report_process process_of(const struct cw_source_file *file,
                                         const struct cw_model_request *request)
{
    if (file->is_alive)
        return CW_REPORT_PROCESS_ALIVE;
    return request->process != CW_REPORT_PROCESS_UNKNOWN ? request->process
                                                         : CW_REPORT_PROCESS_DEAD;
}

static int read_live(struct cw_model *model, struct cw_source_file *file,
                     const struct cw_model_request *request)
{
    static int knows_rules; /* one command, one file of rules */
    struct cw_report_request report = {
        .knows_rules = knows_rules,
        .process = process_of(file, request),
        .version = PACKAGE_VERSION,
        .suppressions = request->suppressions,
        .old_ns = request->old_ns,
        .tensors = request->tensors,
    };

    cw_report_prepare(request->lines, &report);
    model->job = cw_report_open(&file->image.view, &report);
    knows_rules = 1;
    if (!model->job) {
        cw_cli_error("'%s': out of memory for its report", file->path);
        return -1;
    }
    model->report = cw_report_of(model->job);
    return 0;
}

static int read_json(struct cw_model *model, const struct cw_source_file *file)
{
    model->storage = cw_json_read(file->fd, file->path);
    if (model->storage)
        model->report = cw_json_model(model->storage);
    return model->storage ? 0 : -1;
}

int cw_model_read_file(struct cw_model *model, struct cw_source_file *file,
                       const struct cw_model_request *request)
{
    int rc;

    *model = (struct cw_model){.report = NULL};
    model->lines = request->lines;
    rc = file->fd < 0 ? read_live(model, file, request) : read_json(model, file);
    if (rc == 0)
        model->report->source = file->path;
    return rc;
}

/* Without a selection the model has all sites that the process had. */
static void warn_of_selection(const struct cw_report_model *model)
{
    uint32_t sites = 0;

    for (uint32_t i = 0; i < model->snapshot.sites; i++)
        sites += !model->snapshot.site[i].is_empty;
    if (sites < model->sites_of)
        cw_cli_warn("'%s' has only %" PRIu32 " of the %" PRIu32 " call sites of its process: write "
                    "it without flags that select, and give these here instead",
                    model->source, sites, model->sites_of);
}

static int read_path(struct cw_model *model, const char *path, size_t named)
{
    struct cw_model_file *own = calloc(1, sizeof(*own) + strlen(path) + 1);
    struct cw_model_request request;
    enum cw_source source;

    if (!own) {
        cw_cli_error("'%s': out of memory", path);
        return -1;
    }
    cw_options_parse(environ, 1, &own->options, NULL);
    request = (struct cw_model_request){.suppressions = own->options.suppressions,
                                        .old_ns = own->options.old};
    strcpy(own->path, path);
    source = cw_source_file_open(&own->file, own->path, named);
    if ((source == CW_SOURCE_LIVE || source == CW_SOURCE_JSON) &&
        cw_model_read_file(model, &own->file, &request) == 0) {
        if (own->file.fd >= 0) /* read to its end; a job has thousands */
            close(own->file.fd);
        own->file.fd = -1;
        model->file = own;
        warn_of_selection(model->report);
        cw_model_read_stacks(model, 0);
        return 0;
    }
    cw_source_file_close(&own->file);
    free(own);
    return source == CW_SOURCE_GONE ? 1 : -1;
}

int cw_model_read(struct cw_model *model, const char *operand, size_t named)
{
    struct cw_live_files files = {.count = 0};
    const struct cw_live_name *found;
    int rc;

    *model = (struct cw_model){.report = NULL};
    if (*operand == '\0' || operand[strspn(operand, "0123456789")] != '\0')
        return read_path(model, operand, named);
    found = cw_live_files_of_process(&files, operand);
    rc = found ? read_path(model, found->path, found->named) : -1;
    if (rc > 0)
        cw_cli_error("process %s has just ended, and its live file with it", operand);
    cw_live_files_free(&files);
    return rc == 0 ? 0 : -1;
}

void cw_model_read_stacks(struct cw_model *model, int is_for_text)
{
    if (model->job)
        cw_report_read_stacks(model->job, is_for_text);
    else if (model->lines)
        model->own_lines = cw_json_lines_add(model->report, model->lines, is_for_text);
}

void cw_model_free(struct cw_model *model)
{
    cw_selection_free(model);
    if (model->job)
        cw_report_close(model->job);
    cw_json_lines_free(model->own_lines);
    cw_json_storage_free(model->storage);
    if (model->file) {
        cw_source_file_close(&model->file->file);
        free(model->file);
    }
    *model = (struct cw_model){.report = NULL};
}
