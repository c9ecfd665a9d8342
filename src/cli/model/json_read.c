/* SPDX-License-Identifier: MIT */
/*
 * The reader of reports in JSON. See json_read.h.
 *
 * yajl calls back for each token; the rows of report/json/fields.def tell where a value belongs, by
 * its record and key. Keys without a row are skipped, so that reports of newer versions can be
 * read: fields are only ever added. A value of another type than its row's is an error, and so is a
 * report or a summary without a key that it always has.
 */
#include "cli/model/json_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "cli/model/json_place.h"
#include "cli/model/json_value.h"
#include "cli/ui/message.h"

#define READ_SIZE  ((size_t)1 << 18)
#define DEPTH_MAX  16
#define NUMBER_MAX 64
#define KEY_MAX    64
#define TEXT_CACHE 64
#define ROWS_MAX   64 /* of which it is known whether they were there */

/* An open object, whose values have rows, or an open array, whose elements are alike. */
struct level {
    enum { OBJECT, TUPLE, AMOUNT, MAP, ARRAY } kind;
    const struct cw_json_field *rows;  /* object or tuple */
    const struct cw_json_field *row;   /* the current one; NULL: the key has none */
    const struct cw_json_field *next;  /* the most likely next one */
    const struct cw_json_field *field; /* the row that opened this level */
    char *base;                        /* the record; for an array, the record that contains it */
    uint32_t place;                    /* array: elements so far */
    uint64_t seen;                     /* object: a bit for each of its rows */
    uint8_t is_placed;                 /* the record is in `temp` */
    _Alignas(16) char temp[CW_JSON_TEMP_MAX];
};

struct reader {
    struct cw_json_storage *to;
    struct level level[DEPTH_MAX];
    unsigned depth, ignored; /* open levels, and further ones without rows */
    char key[KEY_MAX];
    const char *recent[TEXT_CACHE]; /* recent texts: API names repeat */
};

static struct level *top(struct reader *self)
{
    return &self->level[self->depth - 1];
}

static void *member(const struct level *level, uint32_t offset)
{
    return level->base + offset;
}

/* ---- rows ---- */

/* Keys usually come in the order of the rows. */
static const struct cw_json_field *find_row(struct level *level, const char *key)
{
    const struct cw_json_field *row = level->next;

    while (row->key && strcmp(row->key, key) != 0)
        row++;
    for (row = row->key ? row : level->rows; row->key; row++)
        if (strcmp(row->key, key) == 0)
            break;
    if (!row->key)
        return NULL;
    level->next = row + 1;
    return row;
}

/* Always returns 0, for a value that is skipped. */
static int fail_type(struct reader *self, const char *key)
{
    cw_json_fail(self->to, "\"%s\" is not of its type", key);
    return 0;
}

/* Keys that every version has written: a later one exempts here what it adds. */
static void check_keys(struct reader *self, const struct level *level)
{
    unsigned record = level->field->of;

    if (record != CW_JSON_RECORD_report && record != CW_JSON_RECORD_summary)
        return;
    for (unsigned i = 0; i < ROWS_MAX && level->rows[i].key && !self->to->lacking; i++) {
        const struct cw_json_field *row = &level->rows[i];

        if (row->when != CW_JSON_ALWAYS || row->type == CW_JSON_MADE || (level->seen >> i & 1))
            continue;
        self->to->lacking = row->key;
        self->to->lacking_in = record == CW_JSON_RECORD_summary ? "summary" : NULL;
    }
}

/* The row of the current value, or of its whole array or amount; NULL: none. */
static const struct cw_json_field *row_of(struct reader *self)
{
    struct level *level = self->depth > 0 && self->ignored == 0 ? top(self) : NULL;

    if (!level)
        return NULL;
    if (level->kind == ARRAY || level->kind == AMOUNT)
        return level->field;
    if (level->kind == TUPLE) {
        level->row = level->next->key ? level->next : NULL; /* a newer version may have more */
        level->next += level->row != NULL;
    }
    return level->row;
}

/* ---- elements of arrays ---- */

/* Room for the next element; NULL: skip it. */
static void *next_element(struct reader *self, struct level *level)
{
    const struct cw_json_field *field = level->field;
    struct cw_report_model *model = &self->to->model;
    uint32_t at = level->place++;
    uint32_t *slice = member(level, field->offset);

    switch ((enum cw_json_type)field->type) {
    case CW_JSON_LIST:
        return cw_json_append(self->to, member(level, field->offset), member(level, field->other),
                              field->size);
    case CW_JSON_SLICE:
        if (at == 0)
            slice[0] = *(uint32_t *)((char *)model + field->pools);
        slice[1] = at + 1;
        return cw_json_append(self->to, (char *)model + field->pool,
                              (uint32_t *)((char *)model + field->pools), field->size);
    case CW_JSON_ARRAY:
        if (at >= field->most)
            return NULL;
        if (field->other != 0)
            *(uint32_t *)member(level, field->other) = at + 1;
        return (char *)member(level, field->offset) + (size_t)at * field->size;
    default:
        return NULL;
    }
}

/* ---- opening levels ---- */

/* NULL: too deep. */
static struct level *open_level(struct reader *self, int kind, const struct cw_json_field *field,
                                char *base)
{
    struct level *level = &self->level[self->depth];

    if (self->depth == DEPTH_MAX)
        return NULL;
    self->depth++;
    level->kind = kind;
    level->field = field;
    level->base = base;
    level->row = NULL;
    level->rows = level->next = cw_json_record[field->of].field;
    level->place = 0;
    level->seen = 0;
    level->is_placed = 0;
    return level;
}

static int open_record(struct reader *self, int kind, const struct cw_json_field *field, char *base)
{
    const void *initial = cw_json_initial(field->of);
    struct level *level = open_level(self, kind, field, base);

    if (!level)
        return 0;
    level->is_placed = (uint8_t)cw_json_is_placed(field->of);
    if (level->is_placed) {
        level->base = level->temp;
        memset(level->temp, 0, field->size);
    }
    if (initial)
        memcpy(level->base, initial, field->size);
    return 1;
}

/* An array element; 0: skip it. */
static int open_element(struct reader *self, struct level *array, int is_array)
{
    const struct cw_json_field *field = array->field;
    char *base = array->base;

    if (field->of == CW_JSON_RECORD_NONE || is_array != field->is_tuple)
        return fail_type(self, field->key);
    if (!cw_json_is_placed(field->of))
        base = next_element(self, array);
    return base && open_record(self, is_array ? TUPLE : OBJECT, field, base);
}

/* An object member; 0: skip it. */
static int open_member(struct reader *self, struct level *object, const struct cw_json_field *row,
                       int is_array)
{
    int kind = row->type == CW_JSON_AMOUNT ? AMOUNT : row->type == CW_JSON_MAP ? MAP : ARRAY;
    int is_object = row->type == CW_JSON_OBJECT;
    int is_open;

    if (row->type == CW_JSON_MADE)
        return 0;
    if (row->type < CW_JSON_AMOUNT || is_array != (is_object ? row->is_tuple : kind == ARRAY))
        return fail_type(self, row->key);
    if (is_object)
        is_open = open_record(self, is_array ? TUPLE : OBJECT, row, member(object, row->offset));
    else
        is_open = open_level(self, kind, row, object->base) != NULL;
    if (is_open && row->when == CW_JSON_HAS)
        *(uint8_t *)member(object, row->has) = 1;
    return is_open;
}

static int is_of_amount(const char *key)
{
    return strcmp(key, "count") == 0 || strcmp(key, "bytes") == 0;
}

static int on_begin(struct reader *self, int is_array)
{
    const struct cw_json_field *row = row_of(self);
    struct level *level = row ? top(self) : NULL;
    int is_open = 0;

    if (row && level->kind == ARRAY)
        is_open = open_element(self, level, is_array);
    else if (row && level->kind != AMOUNT)
        is_open = open_member(self, level, row, is_array);
    else if (row && is_of_amount(self->key))
        fail_type(self, self->key);
    if (!is_open)
        self->ignored++;
    return !self->to->failed;
}

static int on_end(void *arg)
{
    struct reader *self = arg;
    struct level *level;

    if (self->ignored > 0) {
        self->ignored--;
        return 1;
    }
    level = top(self);
    if (level->kind == OBJECT)
        check_keys(self, level);
    self->depth--;
    if (level->is_placed && self->depth > 0)
        cw_json_place(self->to, level->field->of, level->temp, top(self)->base);
    return !self->to->failed;
}

static int on_begin_array(void *arg)
{
    return on_begin(arg, 1);
}

static int on_begin_object(void *arg)
{
    static const struct cw_json_field whole = {.of = CW_JSON_RECORD_report};
    struct reader *self = arg;

    if (self->depth > 0 || self->ignored > 0)
        return on_begin(self, 0);
    open_level(self, OBJECT, &whole, (char *)&self->to->model);
    return 1;
}

static int on_key(void *arg, const unsigned char *key, size_t len)
{
    struct reader *self = arg;
    struct level *level;

    if (self->ignored > 0)
        return 1;
    level = top(self);
    if (len >= sizeof(self->key))
        len = 0; /* longer than any known key */
    memcpy(self->key, key, len);
    self->key[len] = '\0';
    if (level->kind == OBJECT)
        level->row = find_row(level, self->key);
    if (level->kind == OBJECT && level->row && level->row - level->rows < ROWS_MAX)
        level->seen |= UINT64_C(1) << (level->row - level->rows);
    return 1;
}

/* ---- values ---- */

static const char *keep_text(struct reader *self, const char *text, size_t len)
{
    size_t hash = len;
    const char **recent;

    for (size_t i = 0; i < len; i++)
        hash = hash * 31 + (unsigned char)text[i];
    recent = &self->recent[hash % TEXT_CACHE];
    if (*recent && strlen(*recent) == len && memcmp(*recent, text, len) == 0)
        return *recent;
    *recent = cw_pages_copy(&self->to->pages, text, len);
    if (!*recent)
        cw_json_fail(self->to, "it does not fit in memory");
    return *recent ? *recent : "";
}

/* The destination of the current plain value if its row has one of the types, else NULL. */
static void *target(struct reader *self, unsigned types, const struct cw_json_field **out_row,
                    unsigned *out_type)
{
    const struct cw_json_field *row = row_of(self);
    struct level *level = row ? top(self) : NULL;

    if (!row || level->kind == AMOUNT) {
        if (row && !(types >> CW_JSON_UINT & 1) && is_of_amount(self->key))
            fail_type(self, self->key);
        return NULL;
    }
    *out_row = row;
    *out_type = level->kind == ARRAY ? row->plain : row->type;
    if (*out_type == CW_JSON_MADE)
        return NULL;
    if (!(types >> *out_type & 1) || (level->kind == ARRAY && row->of != CW_JSON_RECORD_NONE)) {
        fail_type(self, row->key);
        return NULL;
    }
    if (level->kind == ARRAY)
        return next_element(self, level);
    if (row->when == CW_JSON_HAS)
        *(uint8_t *)member(level, row->has) = 1;
    return member(level, row->offset);
}

static void put_variable(struct reader *self, const char *text, size_t len)
{
    struct level *level = top(self);
    struct cw_report_variable *variable =
        cw_json_append(self->to, member(level, level->field->offset),
                       member(level, level->field->other), sizeof(*variable));

    if (!variable)
        return;
    variable->name = keep_text(self, self->key, strlen(self->key));
    variable->value = keep_text(self, text, len);
}

static int on_string(void *arg, const unsigned char *bytes, size_t len)
{
    struct reader *self = arg;
    const struct cw_json_field *row;
    const char *text;
    unsigned type;
    void *to;

    if (self->depth > 0 && self->ignored == 0 && top(self)->kind == MAP) {
        put_variable(self, (const char *)bytes, len);
        return !self->to->failed;
    }
    to = target(self, CW_JSON_TEXTS, &row, &type);
    if (!to)
        return !self->to->failed;
    text = keep_text(self, (const char *)bytes, len);
    cw_json_put_text(self->to, row, type, to, text);
    return !self->to->failed;
}

/* Assigns this number to the last record. Sites and stacks keep theirs. */
static void put_number(struct reader *self, unsigned table, uint64_t number)
{
    struct cw_report_model *model = &self->to->model;
    const uint32_t count[CW_JSON_TABLES] = {[CW_JSON_SITES] = model->snapshot.sites,
                                            [CW_JSON_STACKS] = model->stacks,
                                            [CW_JSON_FRAMES] = model->frames,
                                            [CW_JSON_MODULES] = model->modules};

    if (number >= CW_JSON_NUMBERS)
        cw_json_fail(self->to, "a number is out of range");
    else if (cw_json_numbers_insert(&self->to->number[table], (uint32_t)number, count[table] - 1) !=
             0)
        cw_json_fail(self->to, "it does not fit in memory");
    else if (table == CW_JSON_SITES)
        model->snapshot.site[model->snapshot.sites - 1].number = (uint32_t)number;
    else if (table == CW_JSON_STACKS)
        model->stack[model->stacks - 1].id = (uint32_t)number;
}

static void put_amount(struct reader *self, const char *digits)
{
    struct level *level = top(self);

    if (strcmp(self->key, "count") == 0)
        *(uint64_t *)member(level, level->field->offset) = cw_json_to_whole(digits);
    else if (strcmp(self->key, "bytes") == 0)
        *(uint64_t *)member(level, level->field->other) = cw_json_to_whole(digits);
}

static int on_number(void *arg, const char *text, size_t len)
{
    struct reader *self = arg;
    struct level *level = self->depth > 0 && self->ignored == 0 ? top(self) : NULL;
    const struct cw_json_field *row;
    char digits[NUMBER_MAX];
    unsigned type = CW_JSON_UINT;
    void *to = target(self, CW_JSON_NUMERIC, &row, &type);
    int is_amount = level && level->kind == AMOUNT;

    if ((!to && !is_amount) || len >= sizeof(digits))
        return !self->to->failed;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (digits[0] == '-' && type != CW_JSON_INT && type != CW_JSON_REAL && strtod(digits, NULL) < 0)
        cw_json_fail(self->to, "\"%s\" cannot be %.40s", self->key, digits);
    else if (is_amount)
        put_amount(self, digits);
    else if (type == CW_JSON_ID)
        put_number(self, row->table, cw_json_to_whole(digits));
    else
        cw_json_put_number(row, type, to, digits);
    return !self->to->failed;
}

static int on_truth(void *arg, int truth)
{
    const struct cw_json_field *row;
    unsigned type;
    void *to = target(arg, 1u << CW_JSON_TRUTH, &row, &type);

    if (to)
        cw_json_put_number(row, type, to, truth ? "1" : "0");
    return !((struct reader *)arg)->to->failed;
}

/* In a tuple it occupies a position. */
static int on_null(void *arg)
{
    struct reader *self = arg;
    const struct cw_json_field *row = row_of(self);
    unsigned type = row && top(self)->kind == ARRAY ? row->plain : row ? row->type : CW_JSON_MADE;

    if (type != CW_JSON_MADE && type != CW_JSON_REAL && type != CW_JSON_SHARE)
        fail_type(self, row->key);
    return !self->to->failed;
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

/* ---- the file ---- */

/* The parser has stopped at it. */
static int is_second_object(const char *why, const unsigned char *text, size_t consumed)
{
    return strstr(why, "trailing garbage") && consumed > 0 && text[consumed - 1] == '{';
}

/* at: the text's offset in the file. */
static void explain(struct cw_json_storage *to, yajl_handle parser, const unsigned char *text,
                    size_t len, off_t at)
{
    size_t consumed = text ? yajl_get_bytes_consumed(parser) : 0;
    unsigned char *why;

    if (to->failed)
        return;
    why = yajl_get_error(parser, 0, text, len);
    at += (off_t)consumed;
    if (why)
        why[strcspn((char *)why, "\n")] = '\0';
    if (why && is_second_object((char *)why, text, consumed))
        cw_cli_error("'%s' holds several reports in a row: give each a file of its own, as with "
                     "'jq -c . FILE | split -l 1'",
                     to->name);
    else
        cw_cli_error("'%s' is damaged or cut off at byte %jd: %s", to->name, (intmax_t)at,
                     why ? (char *)why : "no JSON");
    yajl_free_error(parser, why);
    to->failed = 1;
}

static void parse(struct cw_json_storage *to, yajl_handle parser, int fd)
{
    unsigned char *buf = malloc(READ_SIZE);
    off_t at = 0;
    ssize_t got = 0;

    while (buf && (got = pread(fd, buf, READ_SIZE, at)) > 0) {
        if (yajl_parse(parser, buf, (size_t)got) != yajl_status_ok) {
            explain(to, parser, buf, (size_t)got, at);
            break;
        }
        at += got;
    }
    to->bytes = (uint64_t)at;
    if (!buf || got < 0) {
        cw_cli_error("cannot read '%s': %s", to->name, strerror(errno));
        to->failed = 1;
    } else if (!to->failed && yajl_complete_parse(parser) != yajl_status_ok)
        explain(to, parser, NULL, 0, at);
    free(buf);
}

/* The reader must outlive a bad report's storage: it has the lists of incomplete records. */
static int read_all(struct reader *self, int fd)
{
    yajl_handle parser = yajl_alloc(&callbacks, NULL, self);

    if (!parser)
        cw_json_fail(self->to, "it does not fit in memory");
    else
        parse(self->to, parser, fd);
    if (parser)
        yajl_free(parser);
    if (!self->to->failed)
        cw_json_finish(self->to);
    for (unsigned i = 0; i < CW_JSON_TABLES; i++)
        cw_json_numbers_free(&self->to->number[i]);
    if (!self->to->failed)
        return 0;
    cw_json_storage_free(self->to);
    return -1;
}

struct cw_json_storage *cw_json_read(int fd, const char *name)
{
    struct cw_json_storage *to = calloc(1, sizeof(*to));
    struct reader *self = calloc(1, sizeof(*self));
    int rc = -1;

    if (to && self) {
        self->to = to;
        to->name = to->model.source = name;
        rc = read_all(self, fd);
    } else {
        cw_cli_error("'%s': out of memory", name);
        free(to);
    }
    free(self);
    return rc == 0 ? to : NULL;
}

struct cw_report_model *cw_json_model(struct cw_json_storage *storage)
{
    return &storage->model;
}

void cw_json_storage_free(struct cw_json_storage *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->lists; i++)
        free(*self->list[i]);
    free(self->list);
    free(self->tag_slot);
    cw_pages_free(&self->pages);
    free(self);
}
