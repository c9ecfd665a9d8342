/* SPDX-License-Identifier: MIT */
/* The bounds in force. See bound.h. */
#include "core/limits/bound.h"

#include "core/device/device.h"
#include "live/layout.h"

_Atomic int cw_bounds_on;

static struct {
    const struct cw_options *options;
    _Atomic int
        resolved[CW_MAX_DEVICES]; /* the device is known, and what it has from the options */
    _Atomic uint64_t bytes[CW_MAX_DEVICES][CW_BOUND_COUNT];
} self;

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static int is_any(const struct cw_options *options)
{
    if (options->soft_limit.count != 0 || options->soft_limit.fallback.kind != CW_SIZE_NONE)
        return 1;
    for (unsigned i = 0; i < CW_BOUND_VARIABLES; i++)
        if (cw_platform_limits_has(&options->platform, i))
            return 1;
    return 0;
}

void cw_bound_init(const struct cw_options *options)
{
    self.options = options;
    for (unsigned d = 0; d < CW_MAX_DEVICES; d++) {
        atomic_store_explicit(&self.resolved[d], 0, memory_order_relaxed);
        for (unsigned i = 0; i < CW_BOUND_COUNT; i++)
            atomic_store_explicit(&self.bytes[d][i], 0, memory_order_relaxed);
    }
    atomic_store(&cw_bounds_on, is_any(options));
}

void cw_bound_reset(void)
{
    atomic_store(&cw_bounds_on, 0);
}

/* ---- what the options and the environment say ---- */

static void set_bytes(uint8_t device, enum cw_bound bound, uint64_t bytes)
{
    atomic_store_explicit(&self.bytes[device][bound], bytes, memory_order_relaxed);
    atomic_store_explicit(&cw_device_at(device)->memory.bound[bound], bytes, memory_order_relaxed);
}

static void take(uint8_t device, enum cw_bound bound, const struct cw_device_sizes *sizes)
{
    const struct cw_device_state *state = cw_device_state(device);
    uint64_t bytes;

    if (cw_sizes_for(sizes, device, state->uuid, state->total, &bytes))
        set_bytes(device, bound, bytes);
}

/* Once the device's size and uuid are known. Two threads that do it at once write the same. */
static void resolve(uint8_t device)
{
    if (CW_LIKELY(atomic_load_explicit(&self.resolved[device], memory_order_acquire)) ||
        !atomic_load_explicit(&cw_device_state(device)->known, memory_order_acquire))
        return;
    for (unsigned i = 0; i < CW_BOUND_VARIABLES; i++)
        take(device, (enum cw_bound)i, &self.options->platform.of[i]);
    take(device, CW_BOUND_OWN, &self.options->soft_limit);
    atomic_store_explicit(&self.resolved[device], 1, memory_order_release);
}

/* ---- how far they are used up ---- */

/* Of two bounds of the same use the smaller is nearer. */
struct cw_bound_use cw_bound_nearest(uint8_t device, uint64_t held)
{
    struct cw_bound_use nearest = {.used = held};

    if (!cw_bound_is_on() || device >= CW_MAX_DEVICES)
        return nearest;
    resolve(device);
    for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
        uint64_t bytes = load(&self.bytes[device][i]);

        if (bytes == 0 || (nearest.bytes != 0 && bytes >= nearest.bytes))
            continue;
        nearest.bytes = bytes;
        nearest.bound = (enum cw_bound)i;
    }
    return nearest;
}

uint64_t cw_bound_most(uint8_t device)
{
    uint64_t bytes = cw_bound_nearest(device, 0).bytes;

    return bytes != 0 ? bytes : UINT64_MAX;
}

/* The lowest soft bound of the device; bytes 0: there is none. */
static uint64_t lowest_soft(uint8_t device, enum cw_bound *out_bound)
{
    uint64_t lowest = 0;

    for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
        uint64_t bytes = load(&self.bytes[device][i]);

        if (bytes == 0 || cw_bound_kind((enum cw_bound)i)->force != CW_BOUND_SOFT ||
            (lowest != 0 && bytes >= lowest))
            continue;
        lowest = bytes;
        *out_bound = (enum cw_bound)i;
    }
    return lowest;
}

uint64_t cw_bound_borrowed(uint8_t device, uint64_t held, enum cw_bound *out_bound)
{
    uint64_t soft;

    *out_bound = CW_BOUND_OWN;
    if (!cw_bound_is_on() || device >= CW_MAX_DEVICES)
        return 0;
    soft = lowest_soft(device, out_bound);
    return soft != 0 && held > soft ? held - soft : 0;
}

void cw_bound_note(uint8_t device, uint64_t held)
{
    struct cw_live_memory *memory = &cw_device_at(device)->memory;
    enum cw_bound bound;
    uint64_t now;

    if (!cw_bound_is_on() || device >= CW_MAX_DEVICES)
        return;
    now = cw_bound_borrowed(device, held, &bound);
    atomic_store_explicit(&memory->borrowed, now, memory_order_relaxed);
    if (now > load(&memory->peak_borrowed))
        atomic_store_explicit(&memory->peak_borrowed, now, memory_order_relaxed);
}
