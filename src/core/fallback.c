/* SPDX-License-Identifier: MIT */
/* Managed memory in the place of device memory. See fallback.h. */
#include "core/fallback.h"

#include <stdatomic.h>

#include "base/host_memory.h"
#include "core/device.h"
#include "core/gate.h"
#include "core/session.h"
#include "live/view.h"

/* Of what the host has to spare, one part in so many is left for the program itself. */
#define LEFT_SHARE 8

static int on;
static _Atomic uint64_t under_way; /* asked for, and not among the sites yet */

void cw_fallback_init(const struct cw_options *options)
{
    on = options->fallback == CW_FALLBACK_MANAGED;
    atomic_store(&under_way, 0);
}

int cw_fallback_is_on(void)
{
    return on;
}

/* Live bytes of managed memory that stands in for device memory. */
static uint64_t outstanding(void)
{
    uint64_t bytes = 0;
    struct cw_view view;
    uint32_t sites;

    cw_arena_view(&cw_session.arena, &view);
    sites = cw_view_count(&view, CW_TABLE_SITE);
    for (uint32_t i = 1; i < sites; i++) {
        const struct cw_live_site *site = cw_view_site(&view, i);
        struct cw_site_sums sums;

        if (site == NULL || site->kind != CW_KIND_MANAGED || site->device != CW_DEVICE_HOST)
            continue;
        cw_view_site_sums(site, &sums);
        bytes += sums.live_bytes;
    }
    return bytes;
}

/* The host gives the pages when they are first touched, so what the program has already may still
 * be on top of what the kernel counts: all of it is taken to be. */
static int host_can_spare(uint64_t bytes)
{
    uint64_t available = cw_host_memory_available(), there = available - available / LEFT_SHARE;
    uint64_t taken = outstanding() + atomic_load(&under_way) - bytes;

    return taken <= there && bytes <= there - taken;
}

static int ask(uint8_t device, uint64_t bytes, uint64_t *out_key)
{
    int rc;

    if (!host_can_spare(bytes) || !cw_gate_enter())
        return -1;
    rc = cw_session.ops->fallback_alloc(device, bytes, out_key);
    cw_gate_leave();
    return rc;
}

int cw_fallback_alloc(uint8_t device, uint64_t bytes, struct cw_request *out)
{
    struct cw_live_memory *memory = &cw_device_at(device)->memory;

    if (!on)
        return -1;
    atomic_fetch_add(&under_way, bytes);
    if (ask(device, bytes, &out->key) != 0) {
        atomic_fetch_sub(&under_way, bytes);
        return -1;
    }
    out->space = CW_SPACE_ADDRESS;
    out->kind = CW_KIND_MANAGED;
    out->flags |= CW_BLOCK_FALLBACK;
    out->bytes = bytes;
    out->held = bytes;
    atomic_fetch_add(&memory->fallbacks, 1);
    atomic_fetch_add(&memory->fallback_bytes, bytes);
    return 0;
}

void cw_fallback_committed(uint64_t bytes)
{
    atomic_fetch_sub(&under_way, bytes);
}
