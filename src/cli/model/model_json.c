/* SPDX-License-Identifier: MIT */
/*
 * The reader of reports in JSON. See model_json.h.
 *
 * yajl calls for each token; the rows of model_fields.c say where a value belongs, by the object
 * that it stands in and its key. What no row names is passed over, so that reports of newer
 * versions can be read: fields are only ever added. The report names modules, frames and stacks by
 * numbers of its own, which model_links.c follows at the end.
 */
#include "cli/model/model_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>
#include <stdint.h>

#include "cli/model/model_reader.h"
#include "cli/ui/message.h"

#define READ_SIZE ((size_t)1 << 18)

/* ---- tokens; 0 stops the parser ---- */

static int on_begin(void *arg)
{
    struct cw_reader *self = arg;
    const struct cw_reader_row *row = cw_reader_find_row(self);
    enum cw_reader_in into;

    if (!row || row->action != INTO || self->depth + 1 == DEPTH_MAX) {
        self->ignored++;
        return 1;
    }
    into = row->into;
    cw_reader_begin(self, into);
    self->level[self->depth + 1].base = cw_reader_field(self, row);
    self->level[++self->depth].context = into;
    return 1;
}

static int on_end(void *arg)
{
    struct cw_reader *self = arg;
    enum cw_reader_in context = self->level[self->depth].context;

    if (self->ignored) {
        self->ignored--;
        return 1;
    }
    self->depth--;
    cw_reader_end(self, context);
    return !self->failed;
}

static int on_key(void *arg, const unsigned char *key, size_t len)
{
    struct cw_reader *self = arg;

    if (len >= sizeof(self->key))
        len = 0; /* none of ours is so long */
    memcpy(self->key, key, len);
    self->key[len] = '\0';
    return 1;
}

static const char *keep_text(struct cw_reader *self, const char *text, size_t len)
{
    size_t hash = len;
    const char **recent;
    const char *copy;

    for (size_t i = 0; i < len; i++)
        hash = hash * 31 + (unsigned char)text[i];
    recent = &self->recent[hash % TEXT_CACHE];
    if (*recent && strlen(*recent) == len && memcmp(*recent, text, len) == 0)
        return *recent;
    copy = cw_model_text(self->model, text, len);
    if (!copy) {
        self->failed = 1;
        return "";
    }
    *recent = copy;
    return copy;
}

static int on_string(void *arg, const unsigned char *text, size_t len)
{
    struct cw_reader *self = arg;
    const struct cw_reader_row *row = cw_reader_find_row(self);

    if (row && row->action == TEXT) {
        *(const char **)cw_reader_field(self, row) = keep_text(self, (const char *)text, len);
        cw_reader_after_element(self);
    }
    return !self->failed;
}

/* As a whole number that fits; programs that rewrite JSON may put 1e3 for 1000. */
static uint64_t to_whole(const char *digits, uint64_t most)
{
    uint64_t value = UINT64_MAX;

    if (digits[strspn(digits, "0123456789")] == '\0') {
        value = strtoull(digits, NULL, 10);
    } else {
        double real = strtod(digits, NULL);

        if (real < 0x1p64)
            value = (uint64_t)real;
    }
    return value < most ? value : most;
}

static void put_number(void *field, enum cw_reader_action action, const char *digits)
{
    switch (action) {
    case U8:
        *(uint8_t *)field = (uint8_t)to_whole(digits, UINT8_MAX);
        break;
    case U32:
        *(uint32_t *)field = (uint32_t)to_whole(digits, UINT32_MAX);
        break;
    case U64:
        *(uint64_t *)field = to_whole(digits, UINT64_MAX);
        break;
    case I32:
        *(int *)field = (int)strtol(digits, NULL, 10);
        break;
    default:
        *(double *)field = strtod(digits, NULL);
        break;
    }
}

static int refuse_negative(struct cw_reader *self, const char *digits)
{
    char why[128];

    snprintf(why, sizeof(why), "\"%s\" cannot be %.40s", self->key, digits);
    cw_reader_fail(self, why);
    return 0;
}

static int on_number(void *arg, const char *digits, size_t len)
{
    struct cw_reader *self = arg;
    const struct cw_reader_row *row = cw_reader_find_row(self);
    char buf[64];

    if (!row || row->action == TEXT || row->action == INTO || row->action == TRUTH ||
        len >= sizeof(buf))
        return 1;
    memcpy(buf, digits, len);
    buf[len] = '\0';
    if (buf[0] == '-' && row->action != I32 && row->action != REAL && strtod(buf, NULL) < 0)
        return refuse_negative(self, buf);
    put_number(cw_reader_field(self, row), row->action, buf);
    if (row->in == IN_EXIT)
        self->model->process.has_exit_code = 1;
    cw_reader_after_element(self);
    return !self->failed;
}

static int on_truth(void *arg, int truth)
{
    struct cw_reader *self = arg;
    const struct cw_reader_row *row = cw_reader_find_row(self);

    if (row && row->action == TRUTH)
        *(uint8_t *)cw_reader_field(self, row) = (uint8_t)truth;
    return 1;
}

static int on_null(void *arg)
{
    (void)arg;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_truth,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_begin,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_begin,
    .yajl_end_array = on_end,
};

/* ---- the file ---- */

/* at: where in the file the text begins. */
static void explain(struct cw_reader *self, yajl_handle parser, const unsigned char *text,
                    size_t len, off_t at)
{
    unsigned char *why;

    if (self->failed)
        return;
    why = yajl_get_error(parser, 0, text, len);
    if (text)
        at += (off_t)yajl_get_bytes_consumed(parser);
    if (why)
        why[strcspn((char *)why, "\n")] = '\0';
    cw_cli_error("'%s' is damaged or cut off at byte %jd: %s", self->name, (intmax_t)at,
                 why ? (char *)why : "no JSON");
    yajl_free_error(parser, why);
    self->failed = 1;
}

static void parse(struct cw_reader *self, yajl_handle parser, int fd)
{
    unsigned char *buf = malloc(READ_SIZE);
    off_t at = 0;
    ssize_t got = 0;

    while (buf && (got = pread(fd, buf, READ_SIZE, at)) > 0) {
        if (yajl_parse(parser, buf, (size_t)got) != yajl_status_ok) {
            explain(self, parser, buf, (size_t)got, at);
            break;
        }
        at += got;
    }
    if (!buf || got < 0) {
        cw_cli_error("cannot read '%s': %s", self->name, strerror(errno));
        self->failed = 1;
    } else if (!self->failed && yajl_complete_parse(parser) != yajl_status_ok)
        explain(self, parser, NULL, 0, at);
    free(buf);
}

/* A series has a number for each moment, or it is none. */
static void drop_bad_series(struct cw_reader *self)
{
    struct cw_model *model = self->model;

    for (uint32_t i = 0; i < model->sites; i++)
        if (model->site[i].series != CW_MODEL_NONE &&
            (model->samples == 0 || self->series.count - model->site[i].series < model->samples))
            model->site[i].series = CW_MODEL_NONE;
}

static void hand_over(struct cw_reader *self)
{
    struct cw_model *model = self->model;

    model->devices = (uint32_t)self->device.count;
    model->points = (uint32_t)self->point.count;
    model->buckets = (uint32_t)self->bucket.count;
    model->modules = (uint32_t)self->module.count;
    model->frames = (uint32_t)self->frame.count;
    model->stacks = (uint32_t)self->stack.count;
    model->sites = (uint32_t)self->site.count;
    model->blocks = (uint32_t)self->block.count;
    model->events = (uint32_t)self->event.count;
    model->samples = (uint32_t)self->sample.count;
    model->steps = (uint32_t)self->step.count;
    model->regrowths = (uint32_t)self->regrowth.count;
    model->suspects = (uint32_t)self->suspect.count;
    model->rules = (uint32_t)self->rule.count;
    model->olds = (uint32_t)self->old.count;
    model->ooms = (uint32_t)self->oom.count;
    model->holders = (uint32_t)self->holder.count;
    if (model->growth_end_ns == 0) /* of a report that does not say so */
        model->growth_end_ns = model->process.duration_ns;
    drop_bad_series(self);
    model->diagnostics = (uint32_t)self->diagnostic.count;
    if (self->command)
        model->process.command = cw_model_text(model, self->command, self->command_len);
}

int cw_model_read_json(struct cw_model *model, int fd, const char *name)
{
    struct cw_reader *self = calloc(1, sizeof(*self));
    yajl_handle parser = self ? yajl_alloc(&callbacks, NULL, self) : NULL;
    int rc;

    if (!parser) {
        cw_cli_error("'%s': out of memory", name);
        free(self);
        return -1;
    }
    cw_reader_index_rows();
    self->model = model;
    self->name = name;
    self->level[0].context = IN_TOP;
    self->now.schema = "";
    model->process = (struct cw_model_process){.exe = "",
                                               .command = "",
                                               .cwd = "",
                                               .host = "",
                                               .end = "",
                                               .mode = "",
                                               .free_sync = "",
                                               .rank = "",
                                               .version = ""};
    model->audit.why = "";
    parse(self, parser, fd);
    yajl_free(parser);
    if (!self->failed)
        cw_reader_link(self);
    if (!self->failed)
        hand_over(self);
    rc = self->failed ? -1 : 0;
    free(self->command);
    cw_reader_free_ids(&self->modules);
    cw_reader_free_ids(&self->frames);
    cw_reader_free_ids(&self->stacks);
    cw_reader_free_ids(&self->sites);
    free(self->inlined_of);
    free(self->stack_id);
    free(self);
    return rc;
}
