/* SPDX-License-Identifier: MIT */
/*
 * Documentation of the JSON report. fields.c has what writing and reading need of fields.def; this
 * file has the descriptions, in the same rows (checked by are_alike).
 */
#include "cli/ui/json_docs.h"

#include <string.h>

#include "base/compiler.h"
#include "cli/ui/message.h"
#include "report/json/fields.h"

/* ---- the words of the rows ---- */

struct row {
    const char *key, *unit, *since, *meaning;
    const char *more; /* conditions and functions, as in fields.def */
};

#define RECORD(name, doc) {.meaning = (doc)},
#define END(name)
#define ROW(k, unit, doc, ...) {k, unit, SINCE, doc, #__VA_ARGS__},

#define FIELD(k, kind, member, unit, doc, ...)         ROW(k, unit, doc, __VA_ARGS__)
#define NUMBER(k, table, doc)                          ROW(k, "", doc, )
#define AMOUNT(k, count, bytes, doc, ...)              ROW(k, "", doc, __VA_ARGS__)
#define MADE(k, kind, function, unit, doc, ...)        ROW(k, unit, doc, function __VA_ARGS__)
#define GROUP(k, record, doc, ...)                     ROW(k, "", doc, __VA_ARGS__)
#define PART(k, record, member, doc, ...)              ROW(k, "", doc, __VA_ARGS__)
#define PART_AT(k, record, at, doc)                    ROW(k, "", doc, )
#define OBJECT_EACH(k, record, type, each, doc)        ROW(k, "", doc, each)
#define MAP(k, pointer, count, doc, ...)               ROW(k, "", doc, __VA_ARGS__)
#define LIST(k, record, pointer, count, doc, ...)      ROW(k, "", doc, __VA_ARGS__)
#define PLAIN_LIST(k, kind, pointer, count, doc, ...)  ROW(k, "", doc, __VA_ARGS__)
#define ARRAY(k, record, array, count, doc, ...)       ROW(k, "", doc, __VA_ARGS__)
#define PLAIN_ARRAY(k, kind, array, doc, ...)          ROW(k, "", doc, __VA_ARGS__)
#define SLICE(k, record, begin, list, count, doc, ...) ROW(k, "", doc, __VA_ARGS__)
#define PLAIN_SLICE(k, kind, begin, list, n, doc, ...) ROW(k, "", doc, __VA_ARGS__)
#define EACH(k, record, type, each, doc)               ROW(k, "", doc, )
#define PLAIN_EACH(k, kind, each, doc)                 ROW(k, "", doc, )
static const struct row rows[] = {
#include "report/json/fields.def"
    {.key = NULL}};

/* The row of a record, without a key; the rows of its values follow. */
static const struct row *head_of(unsigned id)
{
    const struct row *row = rows;

    for (; id > CW_JSON_RECORD_NONE + 1; id--)
        do
            row++;
        while (row->key);
    return row;
}

/* The description of a condition in fields.def, or of a function that may omit its value. */
static const struct {
    const char *more, *words;
} conditions[] = {
    {"IF(is_pool_on)", "the pool is on"},
    {"IF(is_selection)", "the report was made of another, with some of its sites"},
    {"HAS(has_exit)", "the process reached its exit"},
    {"IF(has_tensors)", "`cuwarden run --torch` saw PyTorch"},
    {"IF(is_audited)", "`CUWARDEN_CUPTI=audit` was set"},
    {"IF(is_done)", "`status` is `done`"},
    {"IF(has_module)", "the module is known"},
    {"IF(has_tag)", "a range or mark of the site has steps"},
    {"IF(has_idle_trend)", "the pool kept memory"},
    {"IF(has_rule)", "a suppression decided the class"},
    {"IF(has_steps)", "`steps` is not 0"},
    {"IF(is_of_sizes)", "`seen_by` is `both`"},
    {"IF(has_event_device)", "the device is known"},
    {"IF(has_total)", "`total` is known"},
    {"IF(has_allocation)", "the block that an invalid free meant is known"},
    {"IF(has_misuse)", "the kind of invalid free is known"},
    {"IF(has_first_free)", "a block was freed twice, and the site of the first free is known"},
    {"IF(is_out)", "`type` is `oom` or `trim`"},
    {"IF(is_pressure)", "`type` is `pressure`"},
    {"IF(is_of_bound)", "`share_of` is `platform`, or a process that borrowed failed"},
    {"IF(has_soft_bound)", "`bounds` has a soft one"},
    {"IF(is_trim)", "`type` is `trim`"},
    {"IF(has_released)", "`type` is `pressure`, `trim` or `limit`"},
    {"IF(has_event)", "the event is among `events`"},
    {"IF(has_fits)", "`total` or `limit` is known, or a budget refused, and it is less than "
                     "`bytes` where it is `fragmented`"},
    {"IF(is_budget)", "`cause` is `budget`"},
    {"IF(has_oom_total)", "`total` is known"},
    {"IF(has_holders)", "`holders` is not empty"},
    {"IF(is_kind_used)", "the program asked for such memory"},
    {"HAS(sampled)", "the driver was asked"},
    {"HAS(process.has_exit_code)", "the status is known"},
    {"HAS(has_properties)", "the driver has said it"},
    {"HAS(snapshot.device[", "the process used such memory"},
    {"HAS(has_age)", "a live block's time of allocation is known"},
    {"HAS(has_line)", "there are enough steps"},
    {"make_device_name", "known"},
    {"make_injected", "`CUWARDEN_FAIL` caused it"},
    {"make_api", "the site is known"},
    {"make_kind", "the site is known"},
    {"make_stack", "the site has a stack"},
    {"each_site_growth", "the site was watched"},
};

/* Texts with a fixed format, by record and key. */
static const struct {
    uint8_t record;
    const char *key, *pattern;
} patterns[] = {
    {CW_JSON_RECORD_report, "schema", "^cuwarden-report/1$"},
    {CW_JSON_RECORD_device, "uuid",
     "^(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {CW_JSON_RECORD_process, "rank", "^[0-9]+$"},
    {CW_JSON_RECORD_exit, "kind", "^(exit|_exit|quick_exit|running|died|killed|unknown)$"},
    {CW_JSON_RECORD_module, "build_id", "^[0-9a-f]+$"},
};

struct type {
    const char *words, *schema;
};

static const struct type types[] = {
    [CW_JSON_UINT] = {"integer", "\"type\":\"integer\",\"minimum\":0"},
    [CW_JSON_INT] = {"integer, may be negative", "\"type\":\"integer\""},
    [CW_JSON_REAL] = {"number or null", "\"type\":[\"number\",\"null\"]"},
    [CW_JSON_TRUTH] = {"true or false", "\"type\":\"boolean\""},
    [CW_JSON_TEXT] = {"string", "\"type\":\"string\""},
    [CW_JSON_ADDRESS] = {"string, as \"0x7f00\"",
                         "\"type\":\"string\",\"pattern\":\"^0x[0-9a-f]+$\""},
    [CW_JSON_KEY] = {"string of 8 hex digits", "\"type\":\"string\",\"pattern\":\"^[0-9a-f]{8}$\""},
    [CW_JSON_SHARE] = {"0 to 1", "\"type\":\"number\",\"minimum\":0,\"maximum\":1"},
    [CW_JSON_DEVICE] = {"0 to 63, or \"host\"",
                        "\"oneOf\":[{\"type\":\"integer\",\"minimum\":0,\"maximum\":63},"
                        "{\"const\":\"host\"}]"},
    [CW_JSON_TAG] = {"string", "\"type\":\"string\",\"minLength\":1"},
    [CW_JSON_REF] = {"id", "\"type\":\"integer\",\"minimum\":0"},
    [CW_JSON_ID] = {"id", "\"type\":\"integer\",\"minimum\":0"},
    [CW_JSON_AMOUNT] = {"[amount](#amount)", "\"$ref\":\"#/$defs/amount\""},
    [CW_JSON_MAP] = {"object of strings",
                     "\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}"},
    [CW_JSON_MADE] = {NULL, NULL},
};
static const struct type made_types[] = {
    [CW_JSON_MADE_UINT] = {"integer", "\"type\":\"integer\",\"minimum\":0"},
    [CW_JSON_MADE_SHARE] = {"0 to 1, or null",
                            "\"type\":[\"number\",\"null\"],\"minimum\":0,\"maximum\":1"},
    [CW_JSON_MADE_TEXT] = {"string", "\"type\":\"string\""},
    [CW_JSON_MADE_TRUE] = {"true", "\"const\":true"},
};

static const struct type *type_of(const struct cw_json_field *field, unsigned type)
{
    return type == CW_JSON_MADE ? &made_types[field->form] : &types[type];
}

static int is_list(const struct cw_json_field *field)
{
    return field->type >= CW_JSON_LIST && field->type <= CW_JSON_EACH;
}

/* ---- when a value is there ---- */

static int may_be_none(const struct cw_json_field *field)
{
    if (field->type == CW_JSON_WORD)
        for (unsigned i = 0; i < field->words->count; i++)
            if (field->words->name(i)[0] == '\0')
                return 1;
    return field->type == CW_JSON_REF || field->type == CW_JSON_TAG;
}

static const char *known_words(const struct cw_json_field *field)
{
    if (field->type == CW_JSON_TRUTH)
        return "true";
    if (field->type == CW_JSON_TEXT || field->type == CW_JSON_REF || field->type == CW_JSON_TAG)
        return "known";
    return is_list(field) || field->type == CW_JSON_MAP ? "not empty" : "not 0";
}

/* Calls `add` with each condition; returns their number. */
static unsigned name_conditions(const struct row *row, const struct cw_json_field *field, FILE *to)
{
    unsigned count = 0;

    for (size_t i = 0; i < CW_ARRAY_LEN(conditions); i++)
        if (strstr(row->more, conditions[i].more) && ++count && to)
            fprintf(to, "%s%s", count > 1 ? ", and " : "", conditions[i].words);
    if (count == 0 && (field->when == CW_JSON_KNOWN || may_be_none(field)) && ++count && to)
        fputs(field->when == CW_JSON_KNOWN ? known_words(field) : "there is one", to);
    return count;
}

/* Whether both tables have the same rows, and each condition has a description. */
static int are_alike(void)
{
    for (unsigned i = CW_JSON_RECORD_NONE + 1; i < CW_JSON_RECORDS; i++) {
        const struct cw_json_field *field = cw_json_record[i].field;
        const struct row *row = head_of(i) + 1;

        for (; field->key && row->key && strcmp(field->key, row->key) == 0; field++, row++)
            if (field->when >= CW_JSON_HAS && name_conditions(row, field, NULL) == 0)
                break;
        if (field->key || row->key) {
            cw_cli_error("%s.%s: no words for %s", cw_json_record[i].name,
                         field->key ? field->key : "", row->key ? row->more : "it");
            return 0;
        }
    }
    return 1;
}

/* ---- docs/report-json.md ---- */

static const char introduction[] =
    "# The report in JSON\n\n"
    "<!-- made by scripts/update-docs from src/report/json/fields.def -->\n\n"
    "`CUWARDEN_FORMAT=json` and `cuwarden report --format=json` write one object, the\n"
    "[report](#report), with `\"schema\":\"cuwarden-report/1\"`. A JSON Schema of it is in\n"
    "`report-1.schema.json`, and `cuwarden options --format=schema` prints it.\n\n"
    "- Sizes are in bytes. Times are nanoseconds since the account began, in a process's first\n"
    "  CUDA call or before, unless the table says otherwise.\n"
    "- A key that is absent has nothing to tell; the column *present when* says of what that\n"
    "  depends. `null` is a number that does not exist, such as a share of nothing.\n"
    "- An id is the number of an element of `modules`, `frames`, `stacks` or `sites`, which has "
    "it\n"
    "  as `id`.\n"
    "- Later versions add keys, and words where words are listed; a key's meaning never changes,\n"
    "  and none goes. The column *since* is the first version of cuwarden that wrote the key.\n"
    "- `cuwarden` reads keys in any order, and passes over those that it does not know. It\n"
    "  refuses a value of another type, and a report or a [summary](#summary) without a key that\n"
    "  is always present: read as 0, it would be a program without leaks.\n";

static void print_words(FILE *to, const struct cw_json_words *words, const char *mark,
                        const char *between)
{
    const char *begin = "";

    for (unsigned i = 0; i < words->count; i++)
        if (words->name(i)[0] != '\0') {
            fprintf(to, "%s%s%s%s", begin, mark, words->name(i), mark);
            begin = between;
        }
}

static void print_type(FILE *to, const struct cw_json_field *field)
{
    if (is_list(field))
        fputs("list of ", to);
    if (field->of != CW_JSON_RECORD_NONE)
        fprintf(to, "[%s](#%s)", cw_json_record[field->of].name, cw_json_record[field->of].name);
    else if (field->type == CW_JSON_WORD)
        print_words(to, field->words, "`", ", ");
    else
        fputs(type_of(field, is_list(field) ? field->plain : field->type)->words, to);
}

static void print_row(FILE *to, const struct row *row, const struct cw_json_field *field)
{
    fprintf(to, "| `%s` | ", row->key);
    print_type(to, field);
    fprintf(to, " | %s | %s | ", row->unit, row->since);
    if (name_conditions(row, field, to) == 0)
        fputs("always", to);
    fprintf(to, " | %s |\n", row->meaning);
}

/* A record, then those that it refers to, each once. */
static void print_record(FILE *to, unsigned id, uint8_t *printed)
{
    const struct cw_json_field *field = cw_json_record[id].field;

    if (printed[id])
        return;
    printed[id] = 1;
    fprintf(to,
            "\n## %s\n\n%s.\n\n| key | type | unit | since | present when | meaning |\n"
            "|---|---|---|---|---|---|\n",
            cw_json_record[id].name, head_of(id)->meaning);
    for (size_t i = 0; field[i].key; i++)
        print_row(to, head_of(id) + 1 + i, &field[i]);
    for (; field->key; field++)
        if (field->of != CW_JSON_RECORD_NONE)
            print_record(to, field->of, printed);
}

int cw_json_docs_print_fields(FILE *to)
{
    uint8_t printed[CW_JSON_RECORDS] = {0};

    if (!are_alike())
        return -1;
    fputs(introduction, to);
    print_record(to, CW_JSON_RECORD_report, printed);
    fputs("\n## amount\n\n`{\"count\":2,\"bytes\":30}`: a number of blocks, and the bytes in them; "
          "both are integers, always present.\n",
          to);
    return 0;
}

/* ---- the schema ---- */

static void put_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++)
        fprintf(to, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    fputc('"', to);
}

static void put_type(FILE *to, unsigned record, const struct cw_json_field *field)
{
    if (is_list(field))
        fputs("\"type\":\"array\",\"items\":{", to);
    if (field->of != CW_JSON_RECORD_NONE) {
        fprintf(to, "\"$ref\":\"#/$defs/%s\"", cw_json_record[field->of].name);
    } else if (field->type == CW_JSON_WORD) {
        fputs("\"enum\":[", to);
        print_words(to, field->words, "\"", ",");
        fputs(",\"unknown\"]", to); /* of a damaged or newer live file */
    } else {
        fputs(type_of(field, is_list(field) ? field->plain : field->type)->schema, to);
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(patterns); i++)
        if (patterns[i].record == record && strcmp(patterns[i].key, field->key) == 0)
            fprintf(to, ",\"pattern\":\"%s\"", patterns[i].pattern);
    if (is_list(field))
        fputc('}', to);
}

static int is_tuple(unsigned id)
{
    for (unsigned i = CW_JSON_RECORD_NONE + 1; i < CW_JSON_RECORDS; i++)
        for (const struct cw_json_field *field = cw_json_record[i].field; field->key; field++)
            if (field->of == id && field->is_tuple)
                return 1;
    return 0;
}

/* Lists the keys that an object always has; returns the number of rows. */
static unsigned put_required(FILE *to, unsigned id)
{
    const struct cw_json_field *field = cw_json_record[id].field;
    const char *begin = "";
    unsigned count;

    for (count = 0; field[count].key; count++)
        if (to && name_conditions(head_of(id) + 1 + count, &field[count], NULL) == 0) {
            fprintf(to, "%s\"%s\"", begin, field[count].key);
            begin = ",";
        }
    return count;
}

static void put_record(FILE *to, unsigned id)
{
    const struct cw_json_field *field = cw_json_record[id].field;
    int tuple = is_tuple(id);

    fprintf(to, ",\n\"%s\":{\"description\":", cw_json_record[id].name);
    put_string(to, head_of(id)->meaning);
    if (tuple) {
        fprintf(to, ",\"type\":\"array\",\"minItems\":%u,\"prefixItems\":[",
                put_required(NULL, id));
    } else {
        fputs(",\"type\":\"object\",\"required\":[", to);
        put_required(to, id);
        fputs("],\"properties\":{", to);
    }
    for (size_t i = 0; field[i].key; i++) {
        fprintf(to, "%s\n  ", i > 0 ? "," : "");
        if (!tuple)
            fprintf(to, "\"%s\":", field[i].key);
        fputc('{', to);
        put_type(to, id, &field[i]);
        fputs(",\"description\":", to);
        put_string(to, head_of(id)[1 + i].meaning);
        fputc('}', to);
    }
    fputs(tuple ? "]}" : "}}", to);
}

int cw_json_docs_print_schema(FILE *to)
{
    if (!are_alike())
        return -1;
    fputs(
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n"
        "\"$id\":\"urn:cuwarden:report:1\",\n"
        "\"title\":\"A report of cuwarden\",\n"
        "\"description\":\"Sizes are in bytes, times in nanoseconds since the account began. Later "
        "versions add keys and words.\",\n"
        "\"$ref\":\"#/$defs/report\",\n"
        "\"$defs\":{\n"
        "\"amount\":{\"description\":\"Blocks, and the bytes in them\",\"type\":\"object\","
        "\"required\":[\"count\",\"bytes\"],\"properties\":{\n"
        "  \"count\":{\"type\":\"integer\",\"minimum\":0},\n"
        "  \"bytes\":{\"type\":\"integer\",\"minimum\":0}}}",
        to);
    for (unsigned id = CW_JSON_RECORD_NONE + 1; id < CW_JSON_RECORDS; id++)
        put_record(to, id);
    fputs("}}\n", to);
    return 0;
}
