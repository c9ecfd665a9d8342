/* SPDX-License-Identifier: MIT */
/* Growth in the JSON report. See json_growth.h. */
#include "report/json/json_growth.h"

#include "base/compiler.h"
#include "report/snapshot/snapshot_growth.h"
#include "report/snapshot/tag.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void put_trend(struct cw_json *json, const struct cw_trend *trend)
{
    cw_json_decimal(json, "slope_bps", trend->slope);
    cw_json_decimal(json, "r2", trend->r2);
    cw_json_number(json, "n", trend->n);
    cw_json_number(json, "windows", trend->rises);
    cw_json_open(json, "floors", '[');
    for (unsigned i = 0; i < CW_TREND_QUARTERS; i++)
        cw_json_number(json, NULL, trend->floor[i]);
    cw_json_close(json, ']');
    cw_json_truth(json, "suspect", trend->is_steady);
}

/* ---- of a site ---- */

static void put_step_of(struct cw_json *json, const struct cw_growth_row *row)
{
    char label[CW_TAG_LABEL_MAX];

    cw_json_open(json, "per_step", '{');
    cw_json_string(json, "tag", cw_tag_label(json->view, row->tag, label, sizeof(label)));
    cw_json_decimal(json, "bytes", row->per_step);
    cw_json_close(json, '}');
}

/* One number for each moment of growth.t_ns. */
static void put_bytes(struct cw_json *json, const struct cw_snapshot_growth *growth, uint32_t row)
{
    const uint64_t *bytes = cw_snapshot_growth_bytes(growth, row);

    cw_json_open(json, "bytes", '[');
    for (uint32_t i = 0; i < growth->moments; i++)
        cw_json_number(json, NULL, bytes[i]);
    cw_json_close(json, ']');
}

void cw_json_site_growth(struct cw_json *json, uint32_t site)
{
    const struct cw_snapshot_growth *growth = &json->snapshot->growth;
    const struct cw_growth_row *row = cw_snapshot_growth_row(json->snapshot, site);

    if (!row)
        return;
    cw_json_open(json, "growth", '{');
    put_trend(json, &row->trend);
    if (row->tag != 0)
        put_step_of(json, row);
    put_bytes(json, growth, (uint32_t)(row - growth->row));
    cw_json_close(json, '}');
}

/* ---- "growth" ---- */

static void put_device(struct cw_json *json, unsigned device)
{
    const struct cw_growth_timeline *timeline = &json->snapshot->growth.timeline[device];

    cw_json_element(json, '{');
    cw_json_device(json, device);
    cw_json_open(json, "peaks", '[');
    for (unsigned i = 0; i < CW_TREND_QUARTERS; i++)
        cw_json_number(json, NULL, timeline->peak[i]);
    cw_json_close(json, ']');
    cw_json_truth(json, "peak_rose", timeline->peak_rose);
    if (timeline->idle.n > 0) {
        cw_json_open(json, "idle", '{');
        put_trend(json, &timeline->idle);
        cw_json_close(json, '}');
    }
    cw_json_close(json, '}');
}

static void put_growth(struct cw_json *json)
{
    const struct cw_snapshot_growth *growth = &json->snapshot->growth;
    const struct cw_live_growth *live = &cw_view_header(json->view)->growth;

    cw_json_open(json, "growth", '{');
    cw_json_truth(json, "on", LOAD(live->is_on) != 0);
    cw_json_number(json, "samples", LOAD(live->taken));
    cw_json_number(json, "period_ns", LOAD(live->period_ns));
    cw_json_number(json, "sites_dropped", LOAD(live->dropped));
    cw_json_number(json, "watched_ns", growth->end_ns);
    cw_json_open(json, "t_ns", '[');
    for (uint32_t i = 0; i < growth->moments; i++)
        cw_json_number(json, NULL, growth->t_ns[i]);
    cw_json_close(json, ']');
    cw_json_open(json, "suspects", '[');
    for (uint32_t i = 0; i < growth->suspects; i++)
        cw_json_number(json, NULL, growth->row[growth->suspect[i]].site);
    cw_json_close(json, ']');
    cw_json_open(json, "devices", '[');
    for (unsigned i = 0; i < CW_DEVICES; i++)
        if (growth->timeline[i].has_peaks || growth->timeline[i].idle.is_steady)
            put_device(json, i);
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}

/* ---- "timeline" ---- */

static void put_point(struct cw_json *json, const struct cw_growth_point *point)
{
    cw_json_open(json, NULL, '[');
    cw_json_number(json, NULL, point->t_ns);
    cw_json_number(json, NULL, point->live);
    cw_json_number(json, NULL, point->held);
    cw_json_number(json, NULL, point->idle);
    cw_json_number(json, NULL, point->used);
    cw_json_close(json, ']');
}

static void put_timelines(struct cw_json *json)
{
    static const char *const columns[] = {"t_ns", "live", "held", "idle", "used"};
    const struct cw_growth_timeline *timeline = json->snapshot->growth.timeline;

    cw_json_open(json, "timeline", '{');
    cw_json_open(json, "columns", '[');
    for (unsigned i = 0; i < CW_ARRAY_LEN(columns); i++)
        cw_json_string(json, NULL, columns[i]);
    cw_json_close(json, ']');
    cw_json_open(json, "series", '[');
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        if (timeline[i].count == 0)
            continue;
        cw_json_element(json, '{');
        cw_json_device(json, i);
        cw_json_open(json, "points", '[');
        for (uint32_t k = 0; k < timeline[i].count; k++)
            put_point(json, &timeline[i].point[k]);
        cw_json_close(json, ']');
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}

/* ---- "regrowth" ---- */

static void put_regrowth(struct cw_json *json, const struct cw_growth_regrowth *regrowth)
{
    cw_json_element(json, '{');
    cw_json_number(json, "site", regrowth->site);
    cw_json_number(json, "resizes", regrowth->resizes);
    cw_json_decimal(json, "factor", regrowth->factor);
    cw_json_number(json, "copied_bytes", regrowth->copied_bytes);
    cw_json_number(json, "chains", regrowth->chains);
    cw_json_number(json, "first_bytes", regrowth->first_bytes);
    cw_json_number(json, "capacity_bytes", regrowth->largest_bytes);
    cw_json_close(json, '}');
}

void cw_json_growth(struct cw_json *json)
{
    const struct cw_snapshot_growth *growth = &json->snapshot->growth;

    put_growth(json);
    put_timelines(json);
    cw_json_open(json, "regrowth", '[');
    for (uint32_t i = 0; i < growth->regrowths; i++)
        put_regrowth(json, &growth->regrowth[i]);
    cw_json_close(json, ']');
}
