/* SPDX-License-Identifier: MIT */
/* What a model is made of, and where it comes from. See model.h. */
#include "cli/model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/model_json.h"
#include "cli/source_file.h"
#include "live/layout.h"
#include "live/view.h"
#include "report/report.h"

#define PAGE_SIZE ((size_t)64 * 1024)

struct cw_model_pages {
    struct cw_model_pages *next;
    size_t used, cap;
    char data[];
};

static char *take(struct cw_model *model, size_t size)
{
    struct cw_model_pages *page = model->pages;

    if (!page || page->cap - page->used < size) {
        size_t cap = size > PAGE_SIZE ? size : PAGE_SIZE;

        page = malloc(sizeof(*page) + cap);
        if (!page) {
            cw_cli_error("out of memory");
            return NULL;
        }
        *page = (struct cw_model_pages){.next = model->pages, .cap = cap};
        model->pages = page;
    }
    page->used += size;
    return page->data + page->used - size;
}

const char *cw_model_text(struct cw_model *model, const char *text, size_t len)
{
    char *copy = take(model, len + 1);

    if (!copy)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void cw_model_free(struct cw_model *model)
{
    while (model->pages) {
        struct cw_model_pages *next = model->pages->next;

        free(model->pages);
        model->pages = next;
    }
    free(model->device);
    free(model->point);
    free(model->bucket);
    free(model->module);
    free(model->frame);
    free(model->stack_frame);
    free(model->stack);
    free(model->site);
    free(model->block);
    free(model->event);
    free(model->sample_ns);
    free(model->series_bytes);
    free(model->step);
    free(model->regrowth);
    free(model->diagnostic);
    *model = (struct cw_model){.source = ""};
}

const char *cw_model_module_name(const struct cw_model *model, uint32_t module)
{
    const char *path = module < model->modules ? model->module[module].path : "";
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

const char *cw_model_frame_name(const struct cw_model *model, const struct cw_model_frame *frame,
                                char *buf, size_t cap)
{
    const char *module;

    if (frame->function[0])
        return frame->function;
    module = cw_model_module_name(model, frame->module);
    if (!module[0])
        return "?";
    snprintf(buf, cap, "%s+0x%llx", module, (unsigned long long)frame->offset);
    return buf;
}

uint32_t cw_model_site_home(const struct cw_model_site *site)
{
    for (unsigned kind = 0; kind < CW_KIND_COUNT; kind++) {
        if (strcmp(site->kind, cw_kind_name(kind)) != 0)
            continue;
        if (cw_kind_counted(kind) == CW_COUNTED_NONE)
            return CW_MODEL_NONE;
        return cw_kind_counted(kind) == CW_COUNTED_HOST ? CW_MODEL_HOST : site->device;
    }
    return site->device; /* a kind of a newer version */
}

/* ---- where it comes from ---- */

/* The report of a live file, as the library would have written it. */
static int report_to(int fd, const struct cw_source_file *file,
                     const struct cw_model_request *request)
{
    struct cw_report_request report = {
        .form = CW_REPORT_JSON,
        .process = file->is_alive ? CW_REPORT_PROCESS_ALIVE : CW_REPORT_PROCESS_DEAD,
        .fd = fd,
        .version = PACKAGE_VERSION,
        .suppressions = request->suppressions,
        .old_ns = request->old_ns,
    };

    cw_source_file_prepare(file, &report);
    return cw_report_write(&file->image.view, &report);
}

static int read_live(struct cw_model *model, const struct cw_source_file *file,
                     const struct cw_model_request *request)
{
    int fd = memfd_create("cuwarden-report", MFD_CLOEXEC);
    int rc = -1;

    if (fd < 0 || report_to(fd, file, request) != 0)
        cw_cli_error("'%s': no room in memory for its report", file->path);
    else
        rc = cw_model_read_json(model, fd, file->path);
    if (fd >= 0)
        close(fd);
    model->is_alive = file->is_alive;
    return rc;
}

int cw_model_read(struct cw_model *model, const char *path, const struct cw_model_request *request)
{
    struct cw_source_file file;
    int rc = -1;

    *model = (struct cw_model){.source = ""};
    switch (cw_source_file_open(&file, path)) {
    case CW_SOURCE_LIVE:
        rc = read_live(model, &file, request);
        break;
    case CW_SOURCE_JSON:
        rc = cw_model_read_json(model, file.fd, path);
        break;
    default:
        break;
    }
    cw_source_file_close(&file);
    if (rc != 0)
        cw_model_free(model);
    else
        model->source = cw_model_text(model, path, strlen(path));
    return rc;
}
