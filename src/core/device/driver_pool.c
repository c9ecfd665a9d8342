/* SPDX-License-Identifier: MIT */
/* Pools of stream-ordered memory. See driver_pool.h. */
#include "core/device/driver_pool.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/device/device.h"
#include "core/process/gate.h"
#include "core/process/session.h"

/* More are not asked about. */
#define POOLS_MAX 64

struct entry {
    uint64_t pool;
    uint8_t device;
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_DRIVER_POOL);
static struct entry entries[POOLS_MAX];
static unsigned count;
static _Atomic uint64_t used; /* bit n: on device n */
/* Stream-ordered memory by our own count, since the start. */
static _Atomic uint64_t taken[CW_DEVICES], returned[CW_DEVICES];
/* Bytes spare at the last sample, minus those returned by then. One word: together with the bytes
 * returned since, it bounds what may be spare now, however old it is, because bytes taken since
 * count as held in full. */
static _Atomic int64_t spare_before[CW_DEVICES];

void cw_driver_pool_reset(void)
{
    cw_lock_reset(&lock);
    count = 0;
    atomic_store(&used, 0);
    for (int i = 0; i < CW_DEVICES; i++) {
        atomic_store_explicit(&taken[i], 0, memory_order_relaxed);
        atomic_store_explicit(&returned[i], 0, memory_order_relaxed);
        atomic_store_explicit(&spare_before[i], 0, memory_order_relaxed);
    }
}

void cw_driver_pool_used(uint8_t device)
{
    uint64_t bit;

    if (device >= CW_MAX_DEVICES)
        return;
    bit = (uint64_t)1 << device;
    if (CW_UNLIKELY((atomic_load_explicit(&used, memory_order_relaxed) & bit) == 0))
        atomic_fetch_or(&used, bit);
}

void cw_driver_pool_taken(uint8_t device, uint64_t bytes)
{
    cw_driver_pool_used(device);
    atomic_fetch_add(&taken[device], bytes);
}

void cw_driver_pool_returned(uint8_t device, uint64_t bytes)
{
    atomic_fetch_add(&returned[device], bytes);
}

void cw_driver_pool_insert(uint8_t device, uint64_t pool)
{
    if (device >= CW_MAX_DEVICES)
        return;
    cw_driver_pool_used(device);
    cw_lock_acquire(&lock);
    if (count < POOLS_MAX)
        entries[count++] = (struct entry){.pool = pool, .device = device};
    cw_lock_release(&lock);
}

void cw_driver_pool_remove_begin(uint64_t pool)
{
    cw_lock_acquire(&lock);
    for (unsigned i = 0; i < count; i++) {
        if (entries[i].pool != pool)
            continue;
        entries[i] = entries[--count];
        break;
    }
    cw_lock_release(&lock);
    cw_gate_close(CW_GATE_POOL); /* a query may have found it, for example as the current one */
}

void cw_driver_pool_remove_end(void)
{
    cw_gate_open(CW_GATE_POOL);
}

/* The pools of a device, its own and those that the program made, each once. Inside the gate. */
static unsigned list(uint8_t device, uint64_t out[CW_DRIVER_POOLS + POOLS_MAX])
{
    unsigned own = 0, all;

    if (cw_session.ops->driver_pools(device, out, &own) != 0)
        own = 0;
    all = own;
    cw_lock_acquire(&lock);
    for (unsigned i = 0; i < count; i++) {
        int is_own = 0;

        for (unsigned k = 0; k < own; k++) /* the program's may have become the device's */
            is_own |= out[k] == entries[i].pool;
        if (!is_own && entries[i].device == device)
            out[all++] = entries[i].pool;
    }
    cw_lock_release(&lock);
    return all;
}

static int is_used(uint8_t device)
{
    return device < CW_MAX_DEVICES && (atomic_load(&used) >> device & 1) != 0;
}

static uint64_t spare_of(uint64_t pool)
{
    uint64_t held = 0, in_use = 0;

    return cw_session.ops->driver_pool_use(pool, &held, &in_use) == 0 && held > in_use
               ? held - in_use
               : 0;
}

/* What the pools hold, together, and what of that the driver says is not in use. */
static uint64_t add_up(uint8_t device, uint64_t *out_unused)
{
    uint64_t pool[CW_DRIVER_POOLS + POOLS_MAX], sum = 0;
    unsigned pools = list(device, pool);

    *out_unused = 0;
    for (unsigned i = 0; i < pools; i++) {
        uint64_t held = 0, in_use = 0;

        if (cw_session.ops->driver_pool_use(pool[i], &held, &in_use) != 0)
            continue;
        sum += held;
        *out_unused += held > in_use ? held - in_use : 0;
    }
    return sum;
}

/* What has been returned may still be in use to the driver, which has yet to come to its free. But
 * memory may also lie in a pool that is not asked: a destroyed one, or one too many. */
void cw_driver_pool_sample(uint8_t device)
{
    uint64_t in, out, held, unused;
    int64_t spare;

    if (!is_used(device))
        return;
    in = atomic_load(&taken[device]); /* read before the pools are asked: errs on the low side */
    out = atomic_load(&returned[device]);
    held = add_up(device, &unused);
    spare = (int64_t)(held - (in - out));
    if (spare < (int64_t)unused)
        spare = (int64_t)unused;
    atomic_store(&spare_before[device], spare - (int64_t)out);
    atomic_store(&cw_device_at(device)->memory.spare, cw_driver_pool_spare(device));
}

void cw_driver_pool_refresh(uint8_t device)
{
    unsigned passed;

    if (!is_used(device))
        return;
    passed = cw_gate_enter_beside(cw_gate_kinds_apart() | CW_GATE_ENDS);
    if (passed == 0)
        return;
    cw_driver_pool_sample(device);
    cw_gate_leave_beside(passed);
}

static uint64_t trim(uint64_t pool)
{
    uint64_t before = spare_of(pool), after;

    if (before == 0 || cw_session.ops->driver_pool_trim(pool) != 0)
        return 0;
    after = spare_of(pool);
    return before > after ? before - after : 0;
}

uint64_t cw_driver_pool_trim(uint8_t device)
{
    uint64_t pool[CW_DRIVER_POOLS + POOLS_MAX], bytes = 0;
    unsigned pools, passed;

    if (!is_used(device))
        return 0;
    passed = cw_gate_enter_beside(cw_gate_kinds_apart() | CW_GATE_ENDS);
    if (passed == 0)
        return 0;
    pools = list(device, pool);
    for (unsigned i = 0; i < pools; i++)
        bytes += trim(pool[i]);
    cw_driver_pool_sample(device);
    cw_gate_leave_beside(passed);
    return bytes;
}

uint64_t cw_driver_pool_spare(uint8_t device)
{
    int64_t spare = atomic_load(&spare_before[device]) + (int64_t)atomic_load(&returned[device]);

    return spare > 0 ? (uint64_t)spare : 0;
}

static int is_own(uint64_t pool, unsigned device)
{
    uint64_t own[CW_DRIVER_POOLS];
    unsigned count_of_own = 0;

    if (cw_session.ops->driver_pools(device, own, &count_of_own) != 0)
        return 0;
    for (unsigned i = 0; i < count_of_own; i++)
        if (own[i] == pool)
            return 1;
    return 0;
}

int cw_driver_pool_find(uint64_t pool, uint8_t *out_device)
{
    unsigned devices = 0, i = 0;

    if (!cw_gate_enter())
        return 0;
    if (cw_session.ops->device_count(&devices) != 0 || devices > CW_MAX_DEVICES)
        devices = 0;
    while (i < devices && !is_own(pool, i))
        i++;
    cw_gate_leave();
    if (i >= devices)
        return 0;
    *out_device = (uint8_t)i;
    return 1;
}
