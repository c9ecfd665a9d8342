/* SPDX-License-Identifier: MIT */
/*
 * A report in JSON with some of its sites. See json_pick.h.
 *
 * The reader appends a record for each element of an array, in order, so the n-th element of
 * "sites" is the n-th site of the model. Only the places of elements are noted; the text is the
 * file's.
 */
#include "cli/model/json_pick.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <yajl/yajl_parse.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"

struct piece {
    size_t begin, end;
};

struct array {
    struct piece inside; /* between the brackets; 0, 0: it is not there */
    struct piece *element;
    uint32_t count, cap;
};

/* "selection" is an object, which a report has that was made by us: it is written anew. */
enum which { SITES, LEAKS, REGROWTH, SELECTION, ARRAYS };

static const char *const names[ARRAYS] = {"sites", "leaks", "regrowth", "selection"};

struct pick {
    yajl_handle parser;
    unsigned depth;
    enum which key;    /* the last one of the outermost object; ARRAYS: another */
    enum which inside; /* the array whose elements are at hand, or ARRAYS */
    struct array array[ARRAYS];
    int failed;
};

/* ---- where things are ---- */

static size_t here(const struct pick *pick)
{
    return yajl_get_bytes_consumed(pick->parser);
}

static int begin_element(struct pick *pick)
{
    struct array *array = &pick->array[pick->inside];

    if (array->count == array->cap) {
        uint32_t cap = array->cap ? array->cap * 2 : 1024;
        struct piece *grown = reallocarray(array->element, cap, sizeof(*grown));

        if (!grown) {
            pick->failed = 1;
            return 0;
        }
        array->element = grown;
        array->cap = cap;
    }
    array->element[array->count++].begin = here(pick) - 1;
    return 1;
}

static int on_begin(void *arg)
{
    struct pick *pick = arg;

    pick->depth++;
    return pick->depth == 3 && pick->inside != ARRAYS ? begin_element(pick) : 1;
}

static int on_begin_array(void *arg)
{
    struct pick *pick = arg;

    if (pick->depth == 1 && pick->key != ARRAYS && pick->key != SELECTION) {
        pick->inside = pick->key;
        pick->array[pick->inside].inside.begin = here(pick);
    }
    return on_begin(arg);
}

static int on_begin_object(void *arg)
{
    struct pick *pick = arg;

    if (pick->depth == 1 && pick->key == SELECTION) {
        pick->inside = SELECTION;
        pick->array[SELECTION].inside.begin = here(pick);
    }
    return on_begin(arg);
}

static int on_end(void *arg)
{
    struct pick *pick = arg;
    struct array *array = pick->inside != ARRAYS ? &pick->array[pick->inside] : NULL;

    if (array && pick->depth == 3)
        array->element[array->count - 1].end = here(pick);
    if (array && pick->depth == 2) {
        array->inside.end = here(pick) - 1;
        pick->inside = ARRAYS;
    }
    pick->depth--;
    return 1;
}

static int on_key(void *arg, const unsigned char *key, size_t len)
{
    struct pick *pick = arg;
    unsigned at = 0;

    if (pick->depth != 1)
        return 1;
    while (at < ARRAYS && (strlen(names[at]) != len || memcmp(names[at], key, len) != 0))
        at++;
    pick->key = (enum which)at;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_start_map = on_begin_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_begin_array,
    .yajl_end_array = on_end,
};

/* ---- what is written ---- */

/* Whose the n-th element is; CW_MODEL_NONE: nobody's. */
static uint32_t owner_of(const struct cw_model *model, enum which which, uint32_t at)
{
    if (which == LEAKS)
        return at < model->blocks ? model->block[at].site : CW_MODEL_NONE;
    return at < model->regrowths ? model->regrowth[at].site : CW_MODEL_NONE;
}

static void put_piece(const char *text, struct piece piece, unsigned *written, FILE *out)
{
    if ((*written)++ > 0)
        fputs(",\n", out);
    fwrite(text + piece.begin, 1, piece.end - piece.begin, out);
}

struct wanted {
    const struct cw_model *model;
    const uint32_t *site;
    uint32_t sites;
    uint8_t *is_shown; /* by site */
};

static void put_counts(const struct wanted *wanted, FILE *out)
{
    fprintf(out, "\"sites\":%" PRIu32 ",\"of\":%" PRIu32, wanted->sites, wanted->model->sites_of);
}

static void put_array(const struct pick *pick, enum which which, const struct wanted *wanted,
                      const char *text, FILE *out)
{
    const struct array *array = &pick->array[which];
    unsigned written = 0;

    if (which == SELECTION) {
        put_counts(wanted, out);
        return;
    }
    if (which == SITES) {
        for (uint32_t i = 0; i < wanted->sites; i++)
            if (wanted->site[i] < array->count)
                put_piece(text, array->element[wanted->site[i]], &written, out);
        return;
    }
    for (uint32_t i = 0; i < array->count; i++) {
        uint32_t owner = owner_of(wanted->model, which, i);

        if (owner < wanted->model->sites && wanted->is_shown[owner])
            put_piece(text, array->element[i], &written, out);
    }
}

/* The array that begins first behind `at`, or ARRAYS. */
static enum which next_array(const struct pick *pick, size_t at)
{
    enum which next = ARRAYS;

    for (unsigned i = 0; i < ARRAYS; i++)
        if (pick->array[i].inside.begin > at &&
            (next == ARRAYS || pick->array[i].inside.begin < pick->array[next].inside.begin))
            next = (enum which)i;
    return next;
}

static void put_all(const struct pick *pick, const struct wanted *wanted, const char *text,
                    size_t len, FILE *out)
{
    const char *brace = memchr(text, '{', len);
    size_t at = brace ? (size_t)(brace - text) + 1 : 0;
    enum which which;

    fputc('{', out);
    if (pick->array[SELECTION].inside.end == 0) {
        fputs("\"selection\":{", out);
        put_counts(wanted, out);
        fputs("},", out);
    }
    while ((which = next_array(pick, at)) != ARRAYS) {
        const struct piece *inside = &pick->array[which].inside;

        fwrite(text + at, 1, inside->begin - at, out);
        put_array(pick, which, wanted, text, out);
        at = inside->end;
    }
    fwrite(text + at, 1, len - at, out);
}

/* ---- the whole ---- */

static int pick_from(struct pick *pick, const struct wanted *wanted, const char *text, size_t len,
                     FILE *out)
{
    if (!pick->parser ||
        yajl_parse(pick->parser, (const unsigned char *)text, len) != yajl_status_ok ||
        pick->failed)
        return -1;
    put_all(pick, wanted, text, len, out);
    return ferror(out) ? -1 : 0;
}

static const char *map_file(int fd, size_t *len)
{
    struct stat status;
    void *text;

    if (fstat(fd, &status) != 0 || status.st_size == 0)
        return NULL;
    *len = (size_t)status.st_size;
    text = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
    return text == MAP_FAILED ? NULL : text;
}

int cw_json_pick(const struct cw_model *model, int fd, const uint32_t *site, uint32_t sites,
                 FILE *out)
{
    struct wanted wanted = {.model = model, .site = site, .sites = sites};
    struct pick pick = {.key = ARRAYS, .inside = ARRAYS};
    size_t len = 0;
    const char *text = map_file(fd, &len);
    int rc = -1;

    wanted.is_shown = calloc(model->sites + 1, 1);
    for (uint32_t i = 0; wanted.is_shown && i < sites; i++)
        wanted.is_shown[site[i]] = 1;
    pick.parser = yajl_alloc(&callbacks, NULL, &pick);
    if (text && wanted.is_shown)
        rc = pick_from(&pick, &wanted, text, len, out);
    if (pick.parser)
        yajl_free(pick.parser);
    for (unsigned i = 0; i < ARRAYS; i++)
        free(pick.array[i].element);
    free(wanted.is_shown);
    if (text)
        munmap((void *)text, len);
    return rc;
}

int cw_json_copy(int fd, FILE *out)
{
    size_t len = 0;
    const char *text = map_file(fd, &len);
    size_t written;

    if (!text)
        return -1;
    written = fwrite(text, 1, len, out);
    munmap((void *)text, len);
    return written == len ? 0 : -1;
}
