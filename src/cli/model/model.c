/* SPDX-License-Identifier: MIT */
/* What a model is made of, and where it comes from. See model.h. */
#include "cli/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#include "cli/model/model_json.h"
#include "cli/input/source_file.h"
#include "live/layout.h"
#include "live/view.h"
#include "report/report.h"
#include "cli/ui/message.h"

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
    free(model->suspect);
    free(model->rule);
    free(model->old);
    free(model->oom);
    free(model->holder);
    free(model->diagnostic);
    *model = (struct cw_model){.source = ""};
}

const char *cw_model_module_name(const struct cw_model *model, uint32_t module)
{
    const char *path = module < model->modules ? model->module[module].path : "";
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

uint32_t cw_model_first_inlined(const struct cw_model *model, uint32_t frame)
{
    while (frame > 0 && model->frame[frame - 1].is_inlined)
        frame--;
    return frame;
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

int cw_model_read_file(struct cw_model *model, struct cw_source_file *file,
                       const struct cw_model_request *request)
{
    int rc = -1;

    *model = (struct cw_model){.source = ""};
    if (cw_source_file_to_json(file, request) == 0)
        rc = cw_model_read_json(model, file->fd, file->path);
    model->is_alive = file->is_alive;
    if (rc == 0)
        model->source = cw_model_text(model, file->path, strlen(file->path));
    if (rc == 0 && model->source)
        return 0;
    cw_model_free(model);
    return -1;
}

int cw_model_read(struct cw_model *model, const char *path, const struct cw_model_request *request)
{
    struct cw_source_file file;
    int rc = -1;

    *model = (struct cw_model){.source = ""};
    if (cw_source_file_open(&file, path) != CW_SOURCE_NONE) {
        file.lines = request->lines;
        rc = cw_model_read_file(model, &file, request);
    }
    cw_source_file_close(&file);
    return rc;
}
