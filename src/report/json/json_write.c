/* SPDX-License-Identifier: MIT */
/* The JSON report: goes through the rows of fields.def. See json_write.h. One line for each element
 * of the long arrays. */
#include "report/json/json_write.h"

#include <string.h>

#include "base/compiler.h"
#include "report/json/fields.h"
#include "report/json/json_put.h"

#define KEY_MAX 16

static void put_fields(struct cw_json *json, const struct cw_json_at *at,
                       const struct cw_json_field *field, int is_tuple);

static const void *member(const struct cw_json_at *at, uint32_t offset)
{
    return (const char *)at->record + offset;
}

static uint64_t load(const void *value, size_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)value;
    case 2:
        return *(const uint16_t *)value;
    case 4:
        return *(const uint32_t *)value;
    default:
        return *(const uint64_t *)value;
    }
}

static const char *text_of(const void *value)
{
    const char *text = *(const char *const *)value;

    return text ? text : "";
}

/* ---- plain values ---- */

/* The number of a record by its place in its table. */
static uint64_t number_of(const struct cw_json_at *at, unsigned table)
{
    const struct cw_report_model *model = at->model;

    switch (table) {
    case CW_JSON_SITES:
        return ((const struct cw_snapshot_site *)at->record)->number;
    case CW_JSON_STACKS:
        return ((const struct cw_report_stack *)at->record)->id;
    case CW_JSON_FRAMES:
        return (uint64_t)((const struct cw_report_frame *)at->record - model->frame);
    default:
        return (uint64_t)((const struct cw_report_module *)at->record - model->module) + 1;
    }
}

static void put_key(struct cw_json *json, const char *key, uint64_t value)
{
    char text[KEY_MAX];

    cw_format(text, sizeof(text), "%08jx", (uintmax_t)value);
    cw_json_string(json, key, text);
}

/* Left out if it names nothing. */
static void put_ref(struct cw_json *json, const struct cw_json_at *at, unsigned table,
                    const char *key, uint32_t number)
{
    const struct cw_report_stack *stack = cw_report_stack(at->model, number);
    const struct cw_snapshot_site *site = cw_report_site(at->model, number);

    if (table == CW_JSON_STACKS)
        number = stack ? stack->id : CW_SITE_NONE;
    if (table == CW_JSON_SITES)
        number = site ? site->number : CW_SITE_NONE;
    if (number != CW_SITE_NONE)
        cw_json_number(json, key, number);
}

/* Left out if the word is none. */
static void put_word(struct cw_json *json, const char *key, const char *word)
{
    if (word[0] != '\0')
        cw_json_string(json, key, word);
}

static void put_plain(struct cw_json *json, const struct cw_json_at *at,
                      const struct cw_json_field *field, unsigned type, const char *key,
                      const void *value)
{
    switch ((enum cw_json_type)type) {
    case CW_JSON_INT:
        cw_json_key(json, key);
        cw_out_printf(json->out, "%d", *(const int32_t *)value);
        break;
    case CW_JSON_REAL:
        cw_json_decimal(json, key, *(const double *)value);
        break;
    case CW_JSON_TRUTH:
        cw_json_truth(json, key, load(value, field->size) != 0);
        break;
    case CW_JSON_TEXT:
        cw_json_string(json, key, text_of(value));
        break;
    case CW_JSON_ADDRESS:
        cw_json_address(json, key, *(const uint64_t *)value);
        break;
    case CW_JSON_KEY:
        put_key(json, key, load(value, field->size));
        break;
    case CW_JSON_SHARE:
        cw_json_share(json, key, load(value, field->size), 10000);
        break;
    case CW_JSON_WORD:
        put_word(json, key, field->words->name((unsigned)load(value, field->size)));
        break;
    case CW_JSON_DEVICE:
        cw_json_device(json, key, (unsigned)load(value, field->size));
        break;
    case CW_JSON_TAG:
        put_word(json, key, cw_report_tag_label(at->model, (uint32_t)load(value, field->size)));
        break;
    case CW_JSON_REF:
        put_ref(json, at, field->table, key, *(const uint32_t *)value);
        break;
    default:
        cw_json_number(json, key, load(value, field->size));
        break;
    }
}

/* As cw_json_share, but that it stays within 1. */
static void put_made(struct cw_json *json, const struct cw_json_at *at,
                     const struct cw_json_field *field)
{
    struct cw_json_made made = {.form = CW_JSON_MADE_NONE};

    field->make(at, member(at, field->offset), &made);
    if (made.form == CW_JSON_MADE_UINT)
        cw_json_number(json, field->key, made.part);
    else if (made.form == CW_JSON_MADE_SHARE)
        cw_json_share(json, field->key, made.part, made.whole);
    else if (made.form == CW_JSON_MADE_TEXT)
        cw_json_string(json, field->key, made.text);
    else if (made.form == CW_JSON_MADE_TRUE)
        cw_json_truth(json, field->key, 1);
}

/* ---- objects and lists ---- */

/* What a list goes through: `each`, or records that lie one behind the other. */
struct range {
    const char *first;
    uint32_t count;
};

static struct range range_of(const struct cw_json_at *at, const struct cw_json_field *field)
{
    const uint32_t *slice = member(at, field->offset);
    const char *list;

    switch ((enum cw_json_type)field->type) {
    case CW_JSON_SLICE:
        memcpy(&list, (const char *)at->model + field->pool, sizeof(list));
        return (struct range){list ? list + (size_t)slice[0] * field->size : NULL, slice[1]};
    case CW_JSON_ARRAY:
        return (struct range){member(at, field->offset),
                              field->other != 0 ? *(const uint32_t *)member(at, field->other)
                                                : field->most};
    case CW_JSON_EACH:
        return (struct range){NULL, 0};
    default:
        memcpy(&list, member(at, field->offset), sizeof(list));
        return (struct range){list, *(const uint32_t *)member(at, field->other)};
    }
}

static void put_object(struct cw_json *json, const struct cw_json_at *at,
                       const struct cw_json_field *field)
{
    struct cw_json_at inner = {at->model,
                               field->each ? field->each->item(at, 0) : member(at, field->offset)};

    if (!inner.record)
        return;
    cw_json_open(json, field->key, field->is_tuple ? '[' : '{');
    put_fields(json, &inner, cw_json_record[field->of].field, field->is_tuple);
    cw_json_close(json, field->is_tuple ? ']' : '}');
}

static void put_element(struct cw_json *json, const struct cw_json_at *at,
                        const struct cw_json_field *field, const void *item)
{
    struct cw_json_at inner = {at->model, item};

    if (field->of == CW_JSON_RECORD_NONE) {
        put_plain(json, at, field, field->plain, NULL, item);
        return;
    }
    if (field->breaks_lines)
        cw_json_element(json, '{');
    else
        cw_json_open(json, NULL, field->is_tuple ? '[' : '{');
    put_fields(json, &inner, cw_json_record[field->of].field, field->is_tuple);
    cw_json_close(json, field->is_tuple ? ']' : '}');
}

static void put_list(struct cw_json *json, const struct cw_json_at *at,
                     const struct cw_json_field *field)
{
    struct range range = range_of(at, field);
    uint32_t count = field->each ? field->each->count(at) : range.count;

    cw_json_open(json, field->key, '[');
    for (uint32_t i = 0; i < count; i++) {
        const void *item =
            field->each ? field->each->item(at, i) : range.first + (size_t)i * field->size;

        if (item)
            put_element(json, at, field, item);
    }
    cw_json_close(json, ']');
}

static void put_map(struct cw_json *json, const struct cw_json_at *at,
                    const struct cw_json_field *field)
{
    struct range range = range_of(at, field);
    const struct cw_report_variable *variable = (const void *)range.first;

    cw_json_open(json, field->key, '{');
    for (uint32_t i = 0; i < range.count; i++) {
        cw_json_name(json, variable[i].name, strlen(variable[i].name));
        cw_json_string(json, NULL, variable[i].value);
    }
    cw_json_close(json, '}');
}

/* ---- rows ---- */

static int is_known(const struct cw_json_at *at, const struct cw_json_field *field)
{
    const void *value = member(at, field->offset);

    switch ((enum cw_json_type)field->type) {
    case CW_JSON_TEXT:
        return text_of(value)[0] != '\0';
    case CW_JSON_MAP:
    case CW_JSON_LIST:
    case CW_JSON_SLICE:
    case CW_JSON_ARRAY:
        return range_of(at, field).count > 0;
    default:
        return load(value, field->size) != 0;
    }
}

static int is_there(const struct cw_json_at *at, const struct cw_json_field *field)
{
    switch ((enum cw_json_when)field->when) {
    case CW_JSON_KNOWN:
        return is_known(at, field);
    case CW_JSON_HAS:
        return *(const uint8_t *)member(at, field->has) != 0;
    case CW_JSON_IF:
        return field->is_there(at, member(at, field->offset));
    default:
        return 1;
    }
}

static void put_field(struct cw_json *json, const struct cw_json_at *at,
                      const struct cw_json_field *field, const char *key)
{
    switch ((enum cw_json_type)field->type) {
    case CW_JSON_MADE:
        put_made(json, at, field);
        break;
    case CW_JSON_ID:
        cw_json_number(json, key, number_of(at, field->table));
        break;
    case CW_JSON_AMOUNT:
        cw_json_amount(json, key, *(const uint64_t *)member(at, field->offset),
                       *(const uint64_t *)member(at, field->other));
        break;
    case CW_JSON_OBJECT:
        put_object(json, at, field);
        break;
    case CW_JSON_MAP:
        put_map(json, at, field);
        break;
    case CW_JSON_LIST:
    case CW_JSON_ARRAY:
    case CW_JSON_SLICE:
    case CW_JSON_EACH:
        put_list(json, at, field);
        break;
    default:
        put_plain(json, at, field, field->type, key, member(at, field->offset));
        break;
    }
}

static void put_fields(struct cw_json *json, const struct cw_json_at *at,
                       const struct cw_json_field *field, int is_tuple)
{
    for (; field->key; field++)
        if (is_there(at, field))
            put_field(json, at, field, is_tuple ? NULL : field->key);
}

void cw_report_json_write_record(const struct cw_report_model *model, enum cw_json_record_id id,
                                 const void *record, struct cw_out *out)
{
    struct cw_json json = {.out = out, .first = 1};
    struct cw_json_at at = {.model = model, .record = record};

    cw_out_char(out, '{');
    put_fields(&json, &at, cw_json_record[id].field, 0);
    cw_out_char(out, '}');
}

void cw_report_json_write(const struct cw_report_model *model, struct cw_out *out)
{
    cw_report_json_write_record(model, CW_JSON_RECORD_report, model, out);
    cw_out_char(out, '\n');
}
