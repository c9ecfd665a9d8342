/* SPDX-License-Identifier: MIT */
/* Walks over JSON. See json_walk.h. yajl checks the text; it calls back for each token. */
#include "cli/input/json_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#define READ_SIZE  ((size_t)1 << 16)
#define LEVELS_MAX (2 * CW_JSON_WALK_DEPTH)

/* An open object or array. */
struct level {
    unsigned is_array, elements;
};

struct walk {
    cw_json_value_fn value;
    void *arg;
    int result; /* of the first callback that did not go on */
    struct level level[LEVELS_MAX];
    unsigned levels, ignored; /* open levels, and those inside the last of them */
    unsigned keys;            /* objects among the levels */
    size_t too_long;          /* bytes of a key that is; 0: none was */
    char key[CW_JSON_WALK_DEPTH][CW_JSON_WALK_KEY];
};

static int on_value(struct walk *self, enum cw_json_kind kind, const char *text, size_t len)
{
    struct cw_json_at at = {.depth = self->keys};
    struct level *level = self->levels > 0 ? &self->level[self->levels - 1] : NULL;

    if (self->ignored > 0 || !level)
        return 1;
    at.element = level->is_array ? ++level->elements : 0;
    for (unsigned i = 0; i < self->keys; i++)
        at.key[i] = self->key[i];
    self->result = self->value(self->arg, &at, kind, text, len);
    return self->result == 0;
}

static int on_null(void *arg)
{
    return on_value(arg, CW_JSON_IS_NULL, "null", 4);
}

static int on_truth(void *arg, int truth)
{
    return on_value(arg, CW_JSON_IS_TRUTH, truth ? "true" : "false", truth ? 4 : 5);
}

static int on_number(void *arg, const char *text, size_t len)
{
    return on_value(arg, CW_JSON_IS_NUMBER, text, len);
}

static int on_string(void *arg, const unsigned char *text, size_t len)
{
    return on_value(arg, CW_JSON_IS_STRING, (const char *)text, len);
}

static int on_begin(struct walk *self, unsigned is_array)
{
    int is_inner = self->levels > 0 && self->level[self->levels - 1].is_array;

    if (self->ignored > 0 || is_inner || self->levels == LEVELS_MAX ||
        (!is_array && self->keys == CW_JSON_WALK_DEPTH)) {
        int goes_on = on_value(self, CW_JSON_IS_NESTED, "", 0);

        self->ignored++;
        return goes_on;
    }
    self->level[self->levels++] = (struct level){.is_array = is_array};
    if (!is_array)
        self->key[self->keys++][0] = '\0';
    return 1;
}

static int on_begin_object(void *arg)
{
    return on_begin(arg, 0);
}

static int on_begin_array(void *arg)
{
    return on_begin(arg, 1);
}

static int on_end(void *arg)
{
    struct walk *self = arg;

    if (self->ignored > 0) {
        self->ignored--;
        return 1;
    }
    self->levels--;
    self->keys -= !self->level[self->levels].is_array;
    return 1;
}

static int on_key(void *arg, const unsigned char *key, size_t len)
{
    struct walk *self = arg;

    if (self->ignored > 0)
        return 1;
    if (len >= CW_JSON_WALK_KEY) {
        self->too_long = len;
        return 0;
    }
    memcpy(self->key[self->keys - 1], key, len);
    self->key[self->keys - 1][len] = '\0';
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_truth,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_begin_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_begin_array,
    .yajl_end_array = on_end,
};

static int say_damaged(uint64_t at, char *why, size_t cap)
{
    snprintf(why, cap, "is damaged or cut off at byte %ju: it is no JSON", (uintmax_t)at);
    return -1;
}

static int say_stopped(const struct walk *self, uint64_t at, char *why, size_t cap)
{
    if (self->result != 0)
        return self->result;
    if (self->too_long == 0)
        return say_damaged(at, why, cap);
    snprintf(why, cap, "has a name of %zu bytes, and may have %d", self->too_long,
             CW_JSON_WALK_KEY - 1);
    return -1;
}

static int parse(struct walk *self, yajl_handle parser, unsigned char *buf, int fd, uint64_t from,
                 uint64_t len, char *why, size_t cap)
{
    uint64_t done = 0;
    ssize_t got = 0;

    while (done < len && (got = pread(fd, buf, len - done < READ_SIZE ? len - done : READ_SIZE,
                                      (off_t)(from + done))) > 0) {
        if (yajl_parse(parser, buf, (size_t)got) != yajl_status_ok)
            return say_stopped(self, from + done + yajl_get_bytes_consumed(parser), why, cap);
        done += (uint64_t)got;
    }
    if (got < 0) {
        snprintf(why, cap, "cannot be read: %s", strerror(errno));
        return -1;
    }
    return done == len && yajl_complete_parse(parser) == yajl_status_ok
               ? 0
               : say_damaged(from + done, why, cap);
}

int cw_json_walk(int fd, uint64_t from, uint64_t len, cw_json_value_fn value, void *arg, char *why,
                 size_t cap)
{
    struct walk self = {.value = value, .arg = arg};
    yajl_handle parser = yajl_alloc(&callbacks, NULL, &self);
    unsigned char *buf = malloc(READ_SIZE);
    int rc = -1;

    if (parser && buf)
        rc = parse(&self, parser, buf, fd, from, len, why, cap);
    else
        snprintf(why, cap, "does not fit in memory");
    if (parser)
        yajl_free(parser);
    free(buf);
    return rc;
}
