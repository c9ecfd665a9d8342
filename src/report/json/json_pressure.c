/* SPDX-License-Identifier: MIT */
/* Limits and pressure in the JSON report. See json_pressure.h. */
#include "report/json/json_pressure.h"

#include "report/snapshot/snapshot_pressure.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void put_known(struct cw_json *json, const char *key, uint64_t value)
{
    if (value != 0)
        cw_json_number(json, key, value);
}

/* ---- "pressure" ---- */

static void put_levels(struct cw_json *json, const struct cw_snapshot_pressure_device *device)
{
    cw_json_string(json, "level", cw_level_name(device->level));
    if (device->highest_use != 0)
        cw_json_share(json, "highest_use", device->highest_use, 10000);
    cw_json_number(json, "level_changes", device->changes);
    cw_json_open(json, "levels", '{');
    for (unsigned i = 0; i < CW_LEVEL_COUNT; i++) {
        cw_json_open(json, cw_level_name(i), '{');
        cw_json_number(json, "entered", device->level_entered[i]);
        cw_json_number(json, "ns", device->level_ns[i]);
        cw_json_close(json, '}');
    }
    cw_json_close(json, '}');
}

static void put_ladder(struct cw_json *json, const struct cw_snapshot_pressure_device *device)
{
    cw_json_open(json, "ladder", '[');
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++) {
        cw_json_element(json, '{');
        cw_json_string(json, "rung", cw_rung_name(i));
        cw_json_number(json, "tried", device->rung[i].tried);
        cw_json_number(json, "helped", device->rung[i].helped);
        cw_json_number(json, "released_bytes", device->rung[i].released);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}

static void put_refused(struct cw_json *json, const struct cw_snapshot_pressure_device *device)
{
    cw_json_number(json, "limited", device->limited);
    cw_json_open(json, "refused", '{');
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        cw_json_number(json, cw_cause_name(i), device->refused[i]);
    cw_json_close(json, '}');
    cw_json_amount(json, "fallbacks", device->fallbacks, device->fallback_bytes);
}

static void put_device(struct cw_json *json, unsigned index)
{
    const struct cw_snapshot_pressure_device *device = &json->snapshot->pressure.device[index];

    cw_json_element(json, '{');
    cw_json_device(json, index);
    cw_json_device_name(json, index);
    put_known(json, "limit", device->limit);
    put_known(json, "min_free", device->min_free);
    cw_json_number(json, "held", device->held);
    cw_json_number(json, "peak_held", device->peak_held);
    cw_json_number(json, "spare", device->spare);
    put_levels(json, device);
    cw_json_open(json, "released", '{');
    cw_json_amount(json, "pressure", device->pressure_blocks, device->pressure_bytes);
    cw_json_close(json, '}');
    put_ladder(json, device);
    put_refused(json, device);
    cw_json_close(json, '}');
}

void cw_json_pressure(struct cw_json *json)
{
    cw_json_open(json, "pressure", '{');
    cw_json_open(json, "devices", '[');
    for (unsigned i = 0; i < CW_DEVICES; i++)
        if (json->snapshot->pressure.device[i].used)
            put_device(json, i);
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}

/* ---- events ---- */

static void put_cause(struct cw_json *json, unsigned cause)
{
    cw_json_string(json, "cause", cw_cause_name(cause));
    if (cause != CW_CAUSE_INJECTED)
        return;
    cw_json_key(json, "injected");
    cw_out_string(json->out, "true");
}

void cw_json_event_pressure(struct cw_json *json, const struct cw_live_event *event)
{
    unsigned type = event->type;

    if (type == CW_EVENT_OOM || type == CW_EVENT_TRIM)
        put_cause(json, event->cause);
    if (type == CW_EVENT_PRESSURE) {
        cw_json_string(json, "level", cw_level_name(event->level));
        cw_json_string(json, "level_before", cw_level_name(event->level_before));
        cw_json_string(json, "share_of", event->cause == CW_CAUSE_LIMIT ? "limit" : "device");
        cw_json_share(json, "share", event->share, 10000);
    }
    if (type == CW_EVENT_TRIM)
        cw_json_string(json, "rung", cw_rung_name(event->rung));
    if (type == CW_EVENT_PRESSURE || type == CW_EVENT_TRIM || type == CW_EVENT_LIMIT)
        cw_json_number(json, "released_bytes", LOAD(event->released));
    put_known(json, "count", LOAD(event->count));
}

/* ---- "oom_accounts" ---- */

static void put_site(struct cw_json *json, uint32_t live_site)
{
    const struct cw_snapshot_site *site = cw_snapshot_find(json->snapshot, live_site);

    if (!site)
        return;
    cw_json_number(json, "site", (uint64_t)(site - json->snapshot->site));
    cw_json_string(json, "api", site->api);
    cw_json_string(json, "kind", cw_kind_name(site->kind));
    if (site->stack != 0)
        cw_json_number(json, "stack", site->stack);
}

static void put_bytes(struct cw_json *json, const struct cw_live_oom *oom)
{
    put_known(json, "bytes", oom->bytes);
    if (oom->total_bytes != 0 || oom->limit != 0)
        cw_json_number(json, "fits", oom->fits);
    put_known(json, "limit", oom->limit);
    put_known(json, "min_free", oom->min_free);
    if (oom->unserved != CW_UNSERVED_UNASKED)
        cw_json_string(json, "fallback", cw_unserved_name(oom->unserved));
    cw_json_number(json, "live", oom->live);
    cw_json_number(json, "held", oom->held);
    cw_json_number(json, "idle", oom->idle);
    cw_json_number(json, "spare", oom->spare);
    if (oom->total_bytes == 0)
        return;
    cw_json_number(json, "free", oom->free_bytes);
    cw_json_number(json, "total", oom->total_bytes);
    cw_json_number(json, "others", cw_oom_others(oom));
    cw_json_key(json, "fragmented");
    cw_out_string(json->out, cw_oom_is_fragmented(oom) ? "true" : "false");
}

static void put_holders(struct cw_json *json, const struct cw_live_oom *oom)
{
    unsigned count = cw_oom_holders(oom);

    cw_json_open(json, "holders", '[');
    for (unsigned i = 0; i < count; i++) {
        cw_json_element(json, '{');
        put_site(json, oom->holder[i].site);
        cw_json_number(json, "count", oom->holder[i].blocks);
        cw_json_number(json, "bytes", oom->holder[i].bytes);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
    if (count != 0)
        cw_json_amount(json, "rest", oom->rest_blocks, oom->rest_bytes);
}

static void put_account(struct cw_json *json, const struct cw_live_oom *oom)
{
    cw_json_element(json, '{');
    cw_json_number(json, "t_ns", oom->t_ns);
    cw_json_key(json, "code");
    cw_out_printf(json->out, "%d", oom->code);
    if (oom->event != 0)
        cw_json_number(json, "event", oom->event - 1);
    cw_json_device(json, oom->device);
    put_cause(json, oom->cause);
    put_site(json, oom->site);
    put_bytes(json, oom);
    put_holders(json, oom);
    cw_json_close(json, '}');
}

void cw_json_oom_accounts(struct cw_json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_OOM);

    cw_json_open(json, "oom_accounts", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_oom *oom = cw_view_oom(json->view, i);

        if (oom && oom->t_ns != 0)
            put_account(json, oom);
    }
    cw_json_close(json, ']');
}
