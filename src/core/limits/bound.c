/* SPDX-License-Identifier: MIT */
/* The bounds in force. See bound.h. */
#include "core/limits/bound.h"

#include "core/device/device.h"
#include "core/process/host.h"
#include "live/layout.h"

/* How often the host is asked: limits change, and so does what others use. Rarely where it has
 * never known any. */
#define PERIOD_NS      UINT64_C(1000000000)
#define RARE_PERIOD_NS UINT64_C(10000000000)

_Atomic int cw_bounds_on;

static struct {
    const struct cw_options *options;
    _Atomic int
        resolved[CW_MAX_DEVICES]; /* the device is known, and what it has from the options */
    _Atomic uint64_t bytes[CW_MAX_DEVICES][CW_BOUND_COUNT];
    _Atomic uint64_t others[CW_MAX_DEVICES][CW_BOUND_COUNT]; /* of it used by others, last seen */
    _Atomic uint64_t next_ns[CW_MAX_DEVICES];                /* when the host is asked again */
    _Atomic int is_served[CW_MAX_DEVICES]; /* by the daemon of MPS: what it bounds holds */
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
        atomic_store_explicit(&self.next_ns[d], 0, memory_order_relaxed);
        atomic_store_explicit(&self.is_served[d], 0, memory_order_relaxed);
        for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
            atomic_store_explicit(&self.bytes[d][i], 0, memory_order_relaxed);
            atomic_store_explicit(&self.others[d][i], 0, memory_order_relaxed);
        }
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

/* ---- what the host says ---- */

void cw_bound_look(uint8_t device, uint64_t held, uint64_t now_ns)
{
    struct cw_host_bounds said;
    int is_there, any = 0;

    if (CW_LIKELY(now_ns < load(&self.next_ns[device])) || cw_host->bounds == NULL ||
        !atomic_load_explicit(&cw_device_state(device)->known, memory_order_acquire))
        return;
    is_there = cw_host->bounds(device, &said);
    atomic_store(&self.next_ns[device], now_ns + (is_there ? PERIOD_NS : RARE_PERIOD_NS));
    if (is_there < 0) /* what it said before goes on */
        return;
    atomic_store(&self.is_served[device], said.is_served);
    for (unsigned i = CW_BOUND_DMEM_MAX; i < CW_BOUND_COUNT; i++) {
        set_bytes(device, (enum cw_bound)i, said.bytes[i]);
        atomic_store_explicit(&self.others[device][i],
                              said.used[i] > held ? said.used[i] - held : 0, memory_order_relaxed);
        any |= said.bytes[i] != 0;
    }
    if (any)
        atomic_store(&cw_bounds_on, 1);
}

/* ---- how far they are used up ---- */

static uint64_t bytes_of(uint8_t device, unsigned bound)
{
    return load(&self.bytes[device][bound]);
}

/* What this process may hold of it; at least a byte, because 0 is none. */
static uint64_t room_of(uint8_t device, unsigned bound)
{
    uint64_t bytes = bytes_of(device, bound), others = load(&self.others[device][bound]);

    return bytes > others ? bytes - others : bytes != 0;
}

/* The one that leaves the least room. */
struct cw_bound_use cw_bound_nearest(uint8_t device, uint64_t held)
{
    struct cw_bound_use nearest = {.bytes = 0};
    uint64_t least = UINT64_MAX;

    if (!cw_bound_is_on() || device >= CW_MAX_DEVICES)
        return nearest;
    resolve(device);
    for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
        uint64_t room = room_of(device, i);

        if (room == 0 || room >= least)
            continue;
        least = room;
        nearest = (struct cw_bound_use){.bytes = bytes_of(device, i),
                                        .used = held + load(&self.others[device][i]),
                                        .bound = (enum cw_bound)i};
    }
    return nearest;
}

uint64_t cw_bound_most(uint8_t device)
{
    struct cw_bound_use nearest = cw_bound_nearest(device, 0);

    return nearest.bytes != 0 ? room_of(device, nearest.bound) : UINT64_MAX;
}

/* By the soft bound that leaves the least room. Others of the group borrow before this process
 * does. */
uint64_t cw_bound_borrowed(uint8_t device, uint64_t held, enum cw_bound *out_bound)
{
    uint64_t least = UINT64_MAX;

    *out_bound = CW_BOUND_OWN;
    if (!cw_bound_is_on() || device >= CW_MAX_DEVICES)
        return 0;
    for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
        uint64_t room = room_of(device, i);

        if (room == 0 || room >= least || cw_bound_kind((enum cw_bound)i)->force != CW_BOUND_SOFT)
            continue;
        least = room;
        *out_bound = (enum cw_bound)i;
    }
    return held > least ? held - least : 0;
}

/* Hard ones; MPS's only where its daemon is there to enforce it. */
void cw_bound_limits(uint8_t device, struct cw_bound_limits *out)
{
    *out = (struct cw_bound_limits){.least = 0};
    if (!cw_bound_is_on() || device >= CW_MAX_DEVICES)
        return;
    resolve(device);
    for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
        const struct cw_bound_kind *kind = cw_bound_kind((enum cw_bound)i);
        uint64_t bytes = bytes_of(device, i);

        if (bytes == 0 || kind->force != CW_BOUND_HARD ||
            (i == CW_BOUND_MPS && !atomic_load(&self.is_served[device])))
            continue;
        if (out->least == 0 || bytes < out->least)
            out->least = bytes;
        if (kind->scope != CW_BOUND_OF_PROCESS && (out->of_all == 0 || bytes < out->of_all))
            out->of_all = bytes;
    }
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
