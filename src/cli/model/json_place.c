/* SPDX-License-Identifier: MIT */
/* Places the records of a report in JSON in the model. See json_place.h. */
#include "cli/model/json_place.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "cli/ui/message.h"

#define TAGS_MAX  65535u
#define TAG_SLOTS 131072u /* a power of two */

void cw_json_fail(struct cw_json_storage *self, const char *fmt, ...)
{
    char why[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    if (!self->failed)
        cw_cli_error("'%s' is not a cuwarden report that this version can read: %s", self->name,
                     why);
    self->failed = 1;
}

/* ---- records ---- */

static const struct cw_snapshot_site no_site = {.stack = CW_SITE_NONE,
                                                .owner = CW_SITE_NONE,
                                                .device = CW_DEVICE_HOST,
                                                .rule = CW_RULE_NONE,
                                                .kind = CW_KIND_COUNT,
                                                .api = ""};
static const struct cw_snapshot_bucket no_bucket = {.kind = CW_KIND_COUNT};
static const struct cw_report_module no_module = {.path = "", .build_id = ""};
static const struct cw_report_frame no_frame = {.module = CW_SITE_NONE};
static const struct cw_report_tag no_tag = {.label = ""};
static const struct cw_report_block no_block = {.site = CW_SITE_NONE};
static const struct cw_report_old no_old = {.site = CW_SITE_NONE};
static const struct cw_growth_regrowth no_regrowth = {.site = CW_SITE_NONE};
static const struct cw_report_holder no_holder = {.site = CW_SITE_NONE};
static const struct cw_report_budget no_budget = {.pattern = ""};
static const struct cw_report_rule no_rule = {.pattern = "", .source = "", .owner = ""};
static const struct cw_report_cache no_cache = {
    .owner = "", .memory = "", .keeps = "", .inside = "", .flag = "", .empties = ""};
static const struct cw_report_finding no_finding = {.source = ""};
static const struct cw_report_static no_variable = {.name = ""};
static const struct cw_report_diagnostic no_diagnostic = {.text = "", .is_loss = 1};
static const struct cw_report_event no_event = {.site = CW_SITE_NONE,
                                                .first_site = CW_SITE_NONE,
                                                .alloc_site = CW_SITE_NONE,
                                                .device = CW_DEVICE_HOST,
                                                .type = CW_EVENT_COUNT,
                                                .count = 1};
static const struct cw_report_oom no_oom = {
    .site = CW_SITE_NONE, .event = CW_SITE_NONE, .device = CW_DEVICE_HOST};
static const struct cw_snapshot_device no_device = {.ordinal = CW_DEVICE_HOST};
static const struct cw_snapshot_pool_device no_pool_device = {.ordinal = CW_DEVICE_HOST};
static const struct cw_snapshot_pressure_device no_pressure_device = {.ordinal = CW_DEVICE_HOST};
static const struct cw_snapshot_bound no_bound = {.bound = CW_BOUND_COUNT};
static const struct cw_growth_timeline no_timeline = {.ordinal = CW_DEVICE_HOST};

const void *cw_json_initial(unsigned record)
{
    static const void *const initial[CW_JSON_RECORDS] = {
        [CW_JSON_RECORD_site] = &no_site,
        [CW_JSON_RECORD_bucket] = &no_bucket,
        [CW_JSON_RECORD_module] = &no_module,
        [CW_JSON_RECORD_frame] = &no_frame,
        [CW_JSON_RECORD_tag] = &no_tag,
        [CW_JSON_RECORD_leak] = &no_block,
        [CW_JSON_RECORD_old_site] = &no_old,
        [CW_JSON_RECORD_regrowth] = &no_regrowth,
        [CW_JSON_RECORD_holder] = &no_holder,
        [CW_JSON_RECORD_budget] = &no_budget,
        [CW_JSON_RECORD_rule] = &no_rule,
        [CW_JSON_RECORD_cache] = &no_cache,
        [CW_JSON_RECORD_finding] = &no_finding,
        [CW_JSON_RECORD_variable] = &no_variable,
        [CW_JSON_RECORD_diagnostic] = &no_diagnostic,
        [CW_JSON_RECORD_event] = &no_event,
        [CW_JSON_RECORD_oom] = &no_oom,
        [CW_JSON_RECORD_device] = &no_device,
        [CW_JSON_RECORD_pool_device] = &no_pool_device,
        [CW_JSON_RECORD_pressure_device] = &no_pressure_device,
        [CW_JSON_RECORD_bound] = &no_bound,
        [CW_JSON_RECORD_growth_device] = &no_timeline,
        [CW_JSON_RECORD_timeline_device] = &no_timeline,
    };

    return initial[record];
}

/* ---- lists ---- */

static int own(struct cw_json_storage *self, void **list)
{
    void ***grown = reallocarray(self->list, self->lists + 1, sizeof(*grown));

    if (!grown)
        return -1;
    self->list = grown;
    self->list[self->lists++] = list;
    return 0;
}

/* The capacity is a power of two, at least 32. */
void *cw_json_append(struct cw_json_storage *self, void *items, uint32_t *count, size_t size)
{
    void **list = items;

    if (*count == 0 && *list == NULL && own(self, list) != 0) {
        cw_json_fail(self, "it does not fit in memory");
        return NULL;
    }
    if (*list == NULL || (*count >= 32 && (*count & (*count - 1)) == 0)) {
        size_t room = *count >= 32 ? (size_t)*count * 2 : 32;
        void *grown = room <= UINT32_MAX ? reallocarray(*list, room, size) : NULL;

        if (!grown) {
            cw_json_fail(self, "it does not fit in memory");
            return NULL;
        }
        *list = grown;
    }
    memset((char *)*list + *count * size, 0, size);
    return (char *)*list + (*count)++ * size;
}

/* Updates the address of a list that moved with its record. */
static void move_list(struct cw_json_storage *self, void *from, void *to)
{
    for (size_t i = self->lists; i-- > 0;)
        if (self->list[i] == from) {
            self->list[i] = to;
            return;
        }
}

/* ---- tags ---- */

uint32_t cw_json_tag(struct cw_json_storage *self, const char *label)
{
    struct cw_report_model *model = &self->model;
    uint32_t at = (uint32_t)cw_hash_text(label) % TAG_SLOTS;
    struct cw_report_tag *tag;

    if (!self->tag_slot)
        self->tag_slot = calloc(TAG_SLOTS, sizeof(*self->tag_slot));
    if (!self->tag_slot || label[0] == '\0')
        return 0;
    for (; self->tag_slot[at] != 0; at = (at + 1) % TAG_SLOTS)
        if (strcmp(model->tag[self->tag_slot[at] - 1].label, label) == 0)
            return self->tag_slot[at];
    tag = model->tags < TAGS_MAX
              ? cw_json_append(self, &model->tag, &model->tags, sizeof(*model->tag))
              : NULL;
    if (!tag)
        return 0;
    tag->label = label;
    self->tag_slot[at] = model->tags;
    return model->tags;
}

/* ---- records placed by their content ---- */

static void place_device(struct cw_json_storage *self, void *item, void *outer)
{
    struct cw_snapshot_device *device = item;

    (void)outer;
    if (device->ordinal >= CW_DEVICE_HOST)
        return;
    device->seen = 1;
    self->model.snapshot.device[device->ordinal] = *device;
}

static void place_pool_device(struct cw_json_storage *self, void *item, void *outer)
{
    struct cw_snapshot_pool_device *device = item;

    (void)outer;
    device->used = 1;
    self->model.snapshot.pool.device[device->ordinal] = *device;
}

static void place_pressure_device(struct cw_json_storage *self, void *item, void *outer)
{
    struct cw_snapshot_pressure_device *device = item;

    (void)outer;
    device->used = 1;
    self->model.snapshot.pressure.device[device->ordinal] = *device;
}

static void place_rung(struct cw_json_storage *self, void *item, void *outer)
{
    const struct cw_snapshot_rung *rung = item;
    struct cw_snapshot_pressure_device *device = outer;

    (void)self;
    if (rung->rung < CW_RUNG_COUNT)
        device->rung[rung->rung] = *rung;
}

static void place_bound(struct cw_json_storage *self, void *item, void *outer)
{
    const struct cw_snapshot_bound *bound = item;
    struct cw_snapshot_pressure_device *device = outer;

    (void)self;
    if (bound->bound < CW_BOUND_COUNT)
        device->bound[bound->bound] = *bound;
}

static void place_growth_device(struct cw_json_storage *self, void *item, void *outer)
{
    const struct cw_growth_timeline *from = item;
    struct cw_growth_timeline *to = &self->model.snapshot.growth.timeline[from->ordinal];

    (void)outer;
    memcpy(to->peak, from->peak, sizeof(to->peak));
    to->peak_rose = from->peak_rose;
    to->idle = from->idle;
    to->has_peaks = 1;
}

static void place_timeline(struct cw_json_storage *self, void *item, void *outer)
{
    struct cw_growth_timeline *from = item;
    struct cw_growth_timeline *to = &self->model.snapshot.growth.timeline[from->ordinal];

    (void)outer;
    if (!from->point)
        return;
    if (to->point) { /* the device occurs twice: the second counts */
        free(to->point);
        move_list(self, &to->point, &self->no_list);
    }
    to->point = from->point;
    to->count = from->count;
    move_list(self, &from->point, &to->point);
}

static void place_tag(struct cw_json_storage *self, void *item, void *outer)
{
    const struct cw_report_tag *from = item;
    uint32_t number = cw_json_tag(self, from->label);
    uint32_t *next = number != 0 ? cw_json_append(self, &self->tag_order, &self->tag_orders,
                                                  sizeof(*self->tag_order))
                                 : NULL;

    (void)outer;
    if (!next)
        return;
    *next = number;
    self->model.tag[number - 1] = *from;
}

static void place_site_growth(struct cw_json_storage *self, void *item, void *outer)
{
    struct cw_snapshot *snapshot = &self->model.snapshot;
    struct cw_snapshot_growth *growth = &snapshot->growth;
    struct cw_snapshot_site *site = outer;
    struct cw_growth_row *row =
        cw_json_append(self, &growth->row, &growth->rows, sizeof(*growth->row));

    if (!row)
        return;
    *row = *(const struct cw_growth_row *)item;
    row->site = (uint32_t)(site - snapshot->site);
    site->growth = growth->rows;
    site->grows = row->trend.is_steady;
}

/* Records that are read first, then placed. */
static void (*const places[CW_JSON_RECORDS])(struct cw_json_storage *, void *, void *) = {
    [CW_JSON_RECORD_device] = place_device,
    [CW_JSON_RECORD_pool_device] = place_pool_device,
    [CW_JSON_RECORD_pressure_device] = place_pressure_device,
    [CW_JSON_RECORD_rung] = place_rung,
    [CW_JSON_RECORD_bound] = place_bound,
    [CW_JSON_RECORD_growth_device] = place_growth_device,
    [CW_JSON_RECORD_timeline_device] = place_timeline,
    [CW_JSON_RECORD_tag] = place_tag,
    [CW_JSON_RECORD_site_growth] = place_site_growth,
};

_Static_assert(sizeof(struct cw_snapshot_device) <= CW_JSON_TEMP_MAX &&
                   sizeof(struct cw_snapshot_pool_device) <= CW_JSON_TEMP_MAX &&
                   sizeof(struct cw_snapshot_pressure_device) <= CW_JSON_TEMP_MAX &&
                   sizeof(struct cw_growth_timeline) <= CW_JSON_TEMP_MAX,
               "a record has room while it is read");

int cw_json_is_placed(unsigned record)
{
    return places[record] != NULL;
}

void cw_json_place(struct cw_json_storage *self, unsigned record, void *item, void *outer)
{
    places[record](self, item, outer);
}
