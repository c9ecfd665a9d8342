/* SPDX-License-Identifier: MIT */
/* The rows of fields.def as data, and what they ask of the model. See fields.h. */
#include "report/json/fields.h"

#include "base/compiler.h"
#include "live/view.h"

#define RECORD_OF(type) ((const type *)at->record)

/* ---- words ---- */

#define WORDS(name, function, number)                                                              \
    static const struct cw_json_words name##_words = {function, number};

#define NAMES(function, ...)                                                                       \
    static const char *function(unsigned word)                                                     \
    {                                                                                              \
        static const char *const names[] = {__VA_ARGS__};                                          \
                                                                                                   \
        return word < CW_ARRAY_LEN(names) ? names[word] : "unknown";                               \
    }

#define X(id, name, label, addressed) [CW_AUDIT_##id] = (name),
NAMES(audit_name, CW_AUDIT_CLASSES(X))
#undef X
NAMES(operation_name, [CW_AUDIT_TAKEN] = "allocated", [CW_AUDIT_GIVEN] = "freed")
NAMES(side_name, [CW_AUDIT_TOOL_ALONE] = "cupti", [CW_AUDIT_OURS_ALONE] = "cuwarden",
      [CW_AUDIT_SIZES] = "both")
NAMES(status_name, [CW_AUDIT_OFF] = "", [CW_AUDIT_RUNNING] = "running", [CW_AUDIT_DONE] = "done",
      [CW_AUDIT_REFUSED] = "none", [CW_AUDIT_CUT] = "incomplete")
NAMES(mode_name, "track", "pool")
NAMES(sync_name, "strict", "deferred")
NAMES(share_name, "device", "limit", "platform")
NAMES(budget_name, "warn", "refuse")
NAMES(language_name, "", "python")

WORDS(kind, cw_kind_name, CW_KIND_COUNT)
WORDS(leak, cw_leak_class_name, CW_LEAK_COUNT)
WORDS(event, cw_event_name, CW_EVENT_COUNT)
WORDS(cause, cw_cause_name, CW_CAUSE_COUNT)
WORDS(level, cw_level_name, CW_LEVEL_COUNT)
WORDS(rung, cw_rung_name, CW_RUNG_COUNT)
WORDS(misuse, cw_misuse_name, CW_MISUSE_COUNT)
WORDS(unserved, cw_unserved_name, CW_UNSERVED_COUNT)
WORDS(audit, audit_name, CW_AUDIT_CLASS_COUNT)
WORDS(operation, operation_name, CW_AUDIT_OP_COUNT)
WORDS(side, side_name, 3)
WORDS(status, status_name, CW_AUDIT_CUT + 1)
WORDS(mode, mode_name, 2)
WORDS(sync, sync_name, 2)
WORDS(share, share_name, 3)
WORDS(bound, cw_bound_name, CW_BOUND_COUNT)
WORDS(budget, budget_name, 2)
WORDS(language, language_name, 2)

/* ---- when a value is there ---- */

#define CONDITION(name, type, expression)                                                          \
    static int name(const struct cw_json_at *at, const void *value)                                \
    {                                                                                              \
        const type *self = at->record;                                                             \
                                                                                                   \
        (void)value;                                                                               \
        return (expression);                                                                       \
    }
#define MODEL_CONDITION(name, expression)                                                          \
    static int name(const struct cw_json_at *at, const void *value)                                \
    {                                                                                              \
        const struct cw_report_model *model = at->model;                                           \
                                                                                                   \
        (void)value;                                                                               \
        return (expression);                                                                       \
    }

MODEL_CONDITION(is_pool_on, model->snapshot.pool.on)
MODEL_CONDITION(is_selection, model->selection != NULL)
MODEL_CONDITION(has_tensors, model->tensors.framework != NULL)
MODEL_CONDITION(is_audited, model->audit.status != CW_AUDIT_OFF)
MODEL_CONDITION(is_done, model->audit.status == CW_AUDIT_DONE)
CONDITION(has_module, struct cw_report_frame, self->module != 0)
CONDITION(has_tag, struct cw_growth_row, self->tag != 0)
CONDITION(has_idle_trend, struct cw_growth_timeline, self->idle.n > 0)
CONDITION(has_rule, struct cw_snapshot_site, self->rule != CW_RULE_NONE)
CONDITION(has_steps, struct cw_report_tag, self->steps > 0)
CONDITION(is_of_sizes, struct cw_report_finding, self->side == CW_AUDIT_SIZES)
CONDITION(has_event_device, struct cw_report_event,
          self->site != CW_SITE_NONE ||
              (self->type != CW_EVENT_INVALID_FREE && self->type != CW_EVENT_FATAL))
CONDITION(has_total, struct cw_report_event, self->total_bytes != 0)
CONDITION(has_first_free, struct cw_report_event,
          self->type == CW_EVENT_INVALID_FREE && self->first_site != CW_SITE_NONE)
CONDITION(has_allocation, struct cw_report_event,
          self->type == CW_EVENT_INVALID_FREE && self->alloc_site != CW_SITE_NONE)
CONDITION(has_misuse, struct cw_report_event,
          self->type == CW_EVENT_INVALID_FREE && self->misuse != CW_MISUSE_UNKNOWN)
CONDITION(is_out, struct cw_report_event, self->type == CW_EVENT_OOM || self->type == CW_EVENT_TRIM)
CONDITION(is_pressure, struct cw_report_event, self->type == CW_EVENT_PRESSURE)
CONDITION(is_of_bound, struct cw_report_event,
          (self->type == CW_EVENT_PRESSURE && self->share_of == CW_SHARE_OF_BOUND) ||
              (self->type == CW_EVENT_FATAL && self->bytes != 0))
CONDITION(has_soft_bound, struct cw_snapshot_pressure_device, cw_snapshot_has_soft_bound(self))
CONDITION(is_trim, struct cw_report_event, self->type == CW_EVENT_TRIM)
CONDITION(has_released, struct cw_report_event,
          self->type == CW_EVENT_PRESSURE || self->type == CW_EVENT_TRIM ||
              self->type == CW_EVENT_LIMIT)
CONDITION(has_event, struct cw_report_oom, self->event != CW_SITE_NONE)
CONDITION(is_budget, struct cw_report_oom, self->cause == CW_CAUSE_BUDGET)
CONDITION(has_fits, struct cw_report_oom,
          self->total_bytes != 0 || self->limit != 0 || self->cause == CW_CAUSE_BUDGET)
CONDITION(has_oom_total, struct cw_report_oom, self->total_bytes != 0)
CONDITION(has_holders, struct cw_report_oom, self->holders != 0)

static int is_kind_used(const struct cw_json_at *at, const void *value)
{
    const struct cw_snapshot_sums *sums = value;

    (void)at;
    return sums->allocs != 0 || sums->failed != 0 || sums->live_blocks != 0;
}

/* ---- what is worked out ---- */

static void put_number(struct cw_json_made *out, uint64_t number)
{
    out->form = CW_JSON_MADE_UINT;
    out->part = number;
}

static void put_share(struct cw_json_made *out, uint64_t part, uint64_t whole)
{
    out->form = CW_JSON_MADE_SHARE;
    out->part = part;
    out->whole = whole;
}

static void put_text(struct cw_json_made *out, const char *text)
{
    out->form = text ? CW_JSON_MADE_TEXT : CW_JSON_MADE_NONE;
    out->text = text;
}

/* The record of a device, or the snapshot: of all devices together. */
static const struct cw_snapshot_pool_device *pool_of(const struct cw_json_at *at)
{
    const struct cw_snapshot *snapshot = &at->model->snapshot;

    return at->record == snapshot ? &snapshot->pool.all : at->record;
}

static void make_efficiency(const struct cw_json_at *at, const void *value,
                            struct cw_json_made *out)
{
    (void)value;
    put_share(out, pool_of(at)->requested_bytes, pool_of(at)->allocated_bytes);
}

static void make_efficiency_total(const struct cw_json_at *at, const void *value,
                                  struct cw_json_made *out)
{
    (void)value;
    put_share(out, pool_of(at)->sums.asked_bytes, pool_of(at)->sums.given_bytes);
}

static void make_fragmentation(const struct cw_json_at *at, const void *value,
                               struct cw_json_made *out)
{
    (void)value;
    put_share(out, pool_of(at)->spare, pool_of(at)->held_bytes);
}

static void make_fragmentation_peak(const struct cw_json_at *at, const void *value,
                                    struct cw_json_made *out)
{
    (void)value;
    put_share(out, pool_of(at)->peak_spare, pool_of(at)->peak_held);
}

static void make_hit_rate(const struct cw_json_at *at, const void *value, struct cw_json_made *out)
{
    const struct cw_bucket_sums *sums = &pool_of(at)->sums;

    (void)value;
    put_share(out, sums->hits, sums->hits + sums->misses);
}

static void make_waste(const struct cw_json_at *at, const void *value, struct cw_json_made *out)
{
    (void)value;
    put_number(out, cw_pool_waste(pool_of(at)));
}

static void make_driver_allocs(const struct cw_json_at *at, const void *value,
                               struct cw_json_made *out)
{
    (void)value;
    put_number(out, pool_of(at)->sums.misses + pool_of(at)->prewarmed);
}

static void make_device_name(const struct cw_json_at *at, const void *ordinal,
                             struct cw_json_made *out)
{
    put_text(out, at->model->snapshot.device[*(const uint8_t *)ordinal].name);
}

static void make_force(const struct cw_json_at *at, const void *bound, struct cw_json_made *out)
{
    (void)at;
    put_text(out, cw_bound_force_name(cw_bound_kind(*(const uint8_t *)bound)->force));
}

static void make_scope(const struct cw_json_at *at, const void *bound, struct cw_json_made *out)
{
    (void)at;
    put_text(out, cw_bound_scope_name(cw_bound_kind(*(const uint8_t *)bound)->scope));
}

static void make_selected(const struct cw_json_at *at, const void *value, struct cw_json_made *out)
{
    (void)value;
    put_number(out, at->model->selection->sites);
}

static void make_warning(const struct cw_json_at *at, const void *value, struct cw_json_made *out)
{
    (void)at;
    (void)value;
    put_text(out, "warning");
}

static void make_injected(const struct cw_json_at *at, const void *cause, struct cw_json_made *out)
{
    (void)at;
    if (*(const uint8_t *)cause == CW_CAUSE_INJECTED)
        out->form = CW_JSON_MADE_TRUE;
}

/* ---- of the site that a record names ---- */

static void make_api(const struct cw_json_at *at, const void *index, struct cw_json_made *out)
{
    const struct cw_snapshot_site *site = cw_report_site(at->model, *(const uint32_t *)index);

    put_text(out, site ? site->api : NULL);
}

static void make_kind(const struct cw_json_at *at, const void *index, struct cw_json_made *out)
{
    const struct cw_snapshot_site *site = cw_report_site(at->model, *(const uint32_t *)index);

    put_text(out, site ? cw_kind_name(site->kind) : NULL);
}

static void make_stack(const struct cw_json_at *at, const void *index, struct cw_json_made *out)
{
    const struct cw_snapshot_site *site = cw_report_site(at->model, *(const uint32_t *)index);

    if (site && cw_report_stack(at->model, site->stack))
        put_number(out, cw_report_stack(at->model, site->stack)->id);
}

/* ---- lists ---- */

static uint32_t count_devices(const struct cw_json_at *at)
{
    (void)at;
    return CW_DEVICES;
}

static const void *get_device(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_snapshot_device *device = &at->model->snapshot.device[index];

    return device->seen && index != CW_DEVICE_HOST ? device : NULL;
}

static const void *get_pool_device(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_snapshot_pool *pool = &at->model->snapshot.pool;

    return pool->on && pool->device[index].used ? &pool->device[index] : NULL;
}

static const void *get_pressure_device(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_snapshot_pressure_device *device = &at->model->snapshot.pressure.device[index];

    return device->used ? device : NULL;
}

static const void *get_growth_device(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_growth_timeline *timeline = &at->model->snapshot.growth.timeline[index];

    return timeline->has_peaks || timeline->idle.is_steady ? timeline : NULL;
}

static const void *get_timeline(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_growth_timeline *timeline = &at->model->snapshot.growth.timeline[index];

    return timeline->count > 0 ? timeline : NULL;
}

static const struct cw_json_each each_device = {count_devices, get_device};
static const struct cw_json_each each_pool_device = {count_devices, get_pool_device};
static const struct cw_json_each each_pressure_device = {count_devices, get_pressure_device};
static const struct cw_json_each each_growth_device = {count_devices, get_growth_device};
static const struct cw_json_each each_timeline = {count_devices, get_timeline};

static uint32_t count_rungs(const struct cw_json_at *at)
{
    (void)at;
    return CW_RUNG_COUNT;
}

static const void *get_rung(const struct cw_json_at *at, uint32_t index)
{
    return &((const struct cw_snapshot_pressure_device *)at->record)->rung[index];
}

static uint32_t count_bounds(const struct cw_json_at *at)
{
    (void)at;
    return CW_BOUND_COUNT;
}

static const void *get_bound(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_snapshot_bound *bound =
        &((const struct cw_snapshot_pressure_device *)at->record)->bound[index];

    return bound->bytes != 0 ? bound : NULL;
}

static const char *const columns[] = {"t_ns", "live", "held", "idle", "used"};

static uint32_t count_columns(const struct cw_json_at *at)
{
    (void)at;
    return CW_ARRAY_LEN(columns);
}

static const void *get_column(const struct cw_json_at *at, uint32_t index)
{
    (void)at;
    return &columns[index];
}

static uint32_t count_tags(const struct cw_json_at *at)
{
    return at->model->tags;
}

static const void *get_tag(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_report_tag *tag = &at->model->tag[index];

    return tag->begun > 0 ? tag : NULL;
}

static uint32_t count_stacks(const struct cw_json_at *at)
{
    return at->model->stacks;
}

static const void *get_stack(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_report_stack *stack = &at->model->stack[index];

    return stack->count > 0 ? stack : NULL;
}

static uint32_t count_sites(const struct cw_json_at *at)
{
    const struct cw_report_selection *selection = at->model->selection;

    return selection ? selection->sites : at->model->snapshot.sites;
}

static const void *get_site(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_report_selection *selection = at->model->selection;

    return &at->model->snapshot.site[selection ? selection->site[index] : index];
}

static uint32_t count_site_growth(const struct cw_json_at *at)
{
    (void)at;
    return 1;
}

static const void *get_site_growth(const struct cw_json_at *at, uint32_t index)
{
    const struct cw_snapshot_site *site = at->record;

    (void)index;
    return site->growth != 0 ? &at->model->snapshot.growth.row[site->growth - 1] : NULL;
}

static const struct cw_json_each each_bound = {count_bounds, get_bound};
static const struct cw_json_each each_rung = {count_rungs, get_rung};
static const struct cw_json_each each_column = {count_columns, get_column};
static const struct cw_json_each each_tag = {count_tags, get_tag};
static const struct cw_json_each each_stack = {count_stacks, get_stack};
static const struct cw_json_each each_site = {count_sites, get_site};
static const struct cw_json_each each_site_growth = {count_site_growth, get_site_growth};

/* ---- the rows ---- */

#define RECORD(name, doc) static const struct cw_json_field name##_fields[] = {
#define END(name)                                                                                  \
    {                                                                                              \
        .key = NULL                                                                                \
    }                                                                                              \
    }                                                                                              \
    ;
#define OF(record)        .of = CW_JSON_RECORD_##record
#define SIZE(member)      sizeof(((T *)0)->member)
#define ROW(k, kind, ...) {.key = (k), .type = CW_JSON_##kind, __VA_ARGS__},

#define KNOWN        .when = CW_JSON_KNOWN
#define HAS(member)  .when = CW_JSON_HAS, .has = offsetof(T, member)
#define IF(function) .when = CW_JSON_IF, .is_there = function
#define AT(member)   .offset = offsetof(T, member)
#define BREAKS       .breaks_lines = 1

#define FIELD(k, kind, member, unit, doc, ...)                                                     \
    ROW(k, kind, AT(member), .size = SIZE(member), __VA_ARGS__)
#define NUMBER(k, of_table, doc) ROW(k, ID, .table = CW_JSON_##of_table)
#define AMOUNT(k, count, bytes, doc, ...)                                                          \
    ROW(k, AMOUNT, AT(count), .other = offsetof(T, bytes), __VA_ARGS__)
#define MADE(k, kind, function, unit, doc, ...)                                                    \
    ROW(k, MADE, .form = CW_JSON_MADE_##kind, .make = function, __VA_ARGS__)
#define GROUP(k, record, doc, ...)        ROW(k, OBJECT, OF(record), __VA_ARGS__)
#define PART(k, record, member, doc, ...) ROW(k, OBJECT, OF(record), AT(member), __VA_ARGS__)
#define PART_AT(k, record, at, doc)       ROW(k, OBJECT, OF(record), .offset = (at))
#define OBJECT_EACH(k, record, struct_of, each_of, doc)                                            \
    ROW(k, OBJECT, OF(record), .size = sizeof(struct_of), .each = each_of)
#define MAP(k, pointer, count, doc, ...)                                                           \
    ROW(k, MAP, AT(pointer), .size = SIZE(pointer[0]), .other = offsetof(T, count), __VA_ARGS__)
#define LIST(k, record, pointer, count, doc, ...)                                                  \
    ROW(k, LIST, OF(record), AT(pointer), .size = SIZE(pointer[0]), .other = offsetof(T, count),   \
        __VA_ARGS__)
#define PLAIN_LIST(k, kind, pointer, count, doc, ...)                                              \
    ROW(k, LIST, .plain = CW_JSON_##kind, AT(pointer), .size = SIZE(pointer[0]),                   \
        .other = offsetof(T, count), __VA_ARGS__)
#define ARRAY(k, record, array, count, doc, ...)                                                   \
    ROW(k, ARRAY, OF(record), AT(array), .size = SIZE(array[0]), .other = offsetof(T, count),      \
        .most = SIZE(array) / SIZE(array[0]), __VA_ARGS__)
#define PLAIN_ARRAY(k, kind, array, doc, ...)                                                      \
    ROW(k, ARRAY, .plain = CW_JSON_##kind, AT(array), .size = SIZE(array[0]),                      \
        .most = SIZE(array) / SIZE(array[0]), __VA_ARGS__)
#define SLICE(k, record, begin, list, count, doc, ...)                                             \
    ROW(k, SLICE, OF(record), AT(begin), .size = sizeof(((struct cw_report_model *)0)->list[0]),   \
        .pool = offsetof(struct cw_report_model, list),                                            \
        .pools = offsetof(struct cw_report_model, count), __VA_ARGS__)
#define PLAIN_SLICE(k, kind, begin, list, count, doc, ...)                                         \
    ROW(k, SLICE, .plain = CW_JSON_##kind, AT(begin),                                              \
        .size = sizeof(((struct cw_report_model *)0)->list[0]),                                    \
        .pool = offsetof(struct cw_report_model, list),                                            \
        .pools = offsetof(struct cw_report_model, count), __VA_ARGS__)
#define EACH(k, record, struct_of, each_of, doc)                                                   \
    ROW(k, EACH, OF(record), .size = sizeof(struct_of), .each = each_of, BREAKS)
#define PLAIN_EACH(k, kind, each_of, doc) ROW(k, EACH, .plain = CW_JSON_##kind, .each = each_of)

#include "report/json/fields.def"

#define RECORD(name, doc) [CW_JSON_RECORD_##name] = {#name, name##_fields},
#include "report/json/fields_none.h"

const struct cw_json_record cw_json_record[CW_JSON_RECORDS] = {
#include "report/json/fields.def"
};
