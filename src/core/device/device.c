/* SPDX-License-Identifier: MIT */
/* Identity and samples of devices. See device.h. */
#include "core/device/device.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/host_memory.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/out.h"
#include "core/device/context.h"
#include "core/device/driver_pool.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/account/usage.h"
#include "core/process/deadline.h"

#define SAMPLE_PERIOD_NS 100000000u
/* Turns of cw_lock_relax for which a thread waits for another that asks what the device is. */
#define DESCRIBE_TURNS 20000u

static struct cw_arena *arena;
static const struct cw_device_listener *listener;
/* Bytes used by others at the last sample: used on the device minus held by this process. One word,
 * because values of two samples must not be mixed. */
static _Atomic int64_t by_others[CW_DEVICES];
static struct cw_device_state states[CW_DEVICES];

void cw_device_init(struct cw_arena *in)
{
    arena = in;
    memset(states, 0, sizeof(states));
    for (int i = 0; i < CW_DEVICES; i++)
        atomic_store_explicit(&by_others[i], 0, memory_order_relaxed);
}

void cw_device_set_listener(const struct cw_device_listener *to)
{
    listener = to;
}

struct cw_live_device *cw_device_at(uint8_t device)
{
    return &arena->header->device[device < CW_DEVICES ? device : 0];
}

static struct cw_device_state *state_at(uint8_t device)
{
    return &states[device < CW_DEVICES ? device : 0];
}

const struct cw_device_state *cw_device_state(uint8_t device)
{
    return state_at(device);
}

static void show_facts(struct cw_live_device *shown, const struct cw_device_facts *facts)
{
    shown->total = facts->total;
    shown->shares_host = facts->memory != CW_DEVICE_MEMORY_OWN;
    memcpy(shown->uuid, facts->uuid, sizeof(shown->uuid));
    memcpy(shown->name, facts->name, sizeof(shown->name));
    shown->properties = facts->properties;
    atomic_store_explicit(&shown->known, 1, memory_order_release);
}

/* 1: the calling thread is to ask the driver. 0: another has, or it took too long. */
static int may_ask(struct cw_device_state *device)
{
    unsigned turns = 0;

    while (atomic_exchange(&device->asked, 1)) {
        if (atomic_load(&device->known) || turns >= DESCRIBE_TURNS)
            return 0;
        cw_lock_relax(&turns);
    }
    return 1;
}

static int describe(uint8_t ordinal, struct cw_device_state *device)
{
    struct cw_device_facts facts;
    int rc;

    if (!may_ask(device))
        return atomic_load(&device->known) != 0;
    rc = cw_gate_enter() ? 0 : -1;
    if (rc == 0) {
        rc = cw_session.ops->device_facts(ordinal, &facts);
        cw_gate_leave();
    }
    if (rc != 0) {
        atomic_store(&device->asked, 0); /* the next allocation tries again */
        return 0;
    }
    device->total = facts.total;
    memcpy(device->uuid, facts.uuid, sizeof(device->uuid));
    device->shares_host = facts.memory != CW_DEVICE_MEMORY_OWN;
    device->host_node = facts.memory == CW_DEVICE_MEMORY_NODE ? facts.node : CW_HOST_MEMORY_ALL;
    show_facts(cw_device_at(ordinal), &facts);
    atomic_store_explicit(&device->known, 1, memory_order_release);
    if (listener != NULL)
        listener->described();
    return 1;
}

int cw_device_describe(uint8_t ordinal)
{
    struct cw_device_state *device = state_at(ordinal);

    if (CW_LIKELY(atomic_load_explicit(&device->known, memory_order_acquire)))
        return 1;
    return ordinal != CW_DEVICE_HOST && describe(ordinal, device);
}

static unsigned device_count(void)
{
    unsigned count = 0;

    if (!cw_gate_enter())
        return CW_MAX_DEVICES; /* those that are known may still be found */
    if (cw_session.ops->device_count(&count) != 0)
        count = 0;
    cw_gate_leave();
    return count < CW_MAX_DEVICES ? count : CW_MAX_DEVICES;
}

int cw_device_find(const uint8_t uuid[16], uint8_t *out_device)
{
    unsigned count = device_count();

    for (unsigned i = 0; i < count; i++) {
        if (!cw_device_describe((uint8_t)i) || memcmp(state_at((uint8_t)i)->uuid, uuid, 16) != 0)
            continue;
        *out_device = (uint8_t)i;
        return 1;
    }
    return 0;
}

/* ---- samples ---- */

/* With LOG=info. */
static void tell_first(uint8_t ordinal, uint64_t free_bytes, uint64_t total_bytes)
{
    const struct cw_live_device *device = cw_device_at(ordinal);
    uint64_t limit = atomic_load(&device->memory.limit); /* what is shown will do here */
    uint64_t kept = atomic_load(&device->memory.min_free);
    uint64_t usable = total_bytes > kept ? total_bytes - kept : 0;
    char total[24], most[24], free[24];

    if (limit != 0 && limit < usable)
        usable = limit;
    cw_log(CW_LOG_INFO, "device %u: %.*s, %s in total, %s usable, %s free", ordinal,
           (int)sizeof(device->name),
           atomic_load(&device->known) ? device->name : "its name is not known",
           cw_format_size(total, sizeof(total), total_bytes),
           cw_format_size(most, sizeof(most), usable),
           cw_format_size(free, sizeof(free), free_bytes));
}

/* Held bytes without reservations, so that the resulting ceiling is too low rather than too high: a
 * reservation that comes or goes between two of the looks counts as one. */
static uint64_t held_for_certain(uint8_t ordinal)
{
    uint64_t before = cw_usage_in_flight(ordinal);
    uint64_t held = cw_usage_device(ordinal).held;
    uint64_t after = cw_usage_in_flight(ordinal);
    uint64_t flight = before > after ? before : after;

    return held > flight ? held - flight : 0;
}

static uint64_t free_beside(uint8_t ordinal, uint64_t driver_free, uint64_t total, uint64_t held)
{
    const struct cw_device_state *device = state_at(ordinal);
    struct cw_host_memory host;
    uint64_t most = total > held ? total - held : 0;

    if (CW_LIKELY(!atomic_load_explicit(&device->known, memory_order_acquire) ||
                  !device->shares_host) ||
        cw_host_memory_of(device->host_node, &host) != 0)
        return driver_free;
    return host.available < most ? host.available : most;
}

uint64_t cw_device_free_of(uint8_t ordinal, uint64_t driver_free, uint64_t driver_total)
{
    return free_beside(ordinal, driver_free, driver_total, held_for_certain(ordinal));
}

/* held: without what was only reserved. */
static void store_sample(uint8_t ordinal, uint64_t free_bytes, uint64_t total_bytes, uint64_t held,
                         uint32_t api)
{
    struct cw_live_device *shown = cw_device_at(ordinal);
    struct cw_device_state *device = state_at(ordinal);

    /* The driver's answer is not trusted. */
    if (total_bytes == 0 || free_bytes > total_bytes)
        return;
    atomic_store(&device->driver_used, total_bytes - free_bytes);
    atomic_store(&shown->driver_used, total_bytes - free_bytes);
    atomic_store(&shown->sample_held, held);
    atomic_store(&shown->driver_total, total_bytes);
    atomic_store(&by_others[ordinal], (int64_t)(total_bytes - free_bytes - held));
    if (atomic_exchange(&device->driver_total, total_bytes) == 0)
        tell_first(ordinal, free_bytes, total_bytes);
    if (listener != NULL)
        listener->sampled(ordinal, api, cw_session_now());
}

static void set_sample_time(uint8_t ordinal, uint64_t now_ns)
{
    atomic_store(&state_at(ordinal)->sample_ns, now_ns);
    atomic_store(&cw_device_at(ordinal)->sample_ns, now_ns);
}

static int is_sample_due(uint64_t last_ns, uint64_t now_ns)
{
    /* Another thread may have sampled after now_ns was read. */
    return last_ns == 0 || now_ns >= last_ns + SAMPLE_PERIOD_NS;
}

int cw_device_is_sample_old(uint8_t ordinal)
{
    return is_sample_due(atomic_load(&state_at(ordinal)->sample_ns), cw_session_now());
}

/* The gate is open. context: one on the device, handle 0: the current one. */
static int ask(uint8_t ordinal, struct cw_context_name context, uint32_t api, uint64_t *out_free)
{
    uint64_t held = held_for_certain(ordinal), total_bytes = 0;

    *out_free = 0;
    if (cw_session.ops->memory_info(context, out_free, &total_bytes) != 0)
        return -1;
    *out_free = free_beside(ordinal, *out_free, total_bytes, held);
    store_sample(ordinal, *out_free, total_bytes, held, api);
    return 0;
}

void cw_device_sample(uint32_t api)
{
    uint64_t now = cw_session_now();

    cw_deadline_look(now);
    cw_device_sample_at(now, api);
}

void cw_device_sample_at(uint64_t now_ns, uint32_t api)
{
    struct cw_device_state *device;
    uint64_t last, free_bytes;
    uint8_t ordinal;

    if (cw_context_current(&ordinal) == 0)
        return;
    device = state_at(ordinal);
    last = atomic_load(&device->sample_ns);
    if (!is_sample_due(last, now_ns) || !cw_gate_enter())
        return;
    /* One thread samples in a period; a closed gate does not use the period up. */
    if (atomic_compare_exchange_strong(&device->sample_ns, &last, now_ns)) {
        atomic_store(&cw_device_at(ordinal)->sample_ns, now_ns);
        if (ask(ordinal, (struct cw_context_name){0}, api, &free_bytes) == 0)
            cw_driver_pool_sample(ordinal);
    }
    cw_gate_leave();
}

/* beside: kinds of reasons for the gate to be shut (core/process/gate.h). */
static int sample_now(uint8_t ordinal, uint32_t api, uint32_t beside, uint64_t *out_free)
{
    struct cw_context_name context = {0};
    uint8_t current;
    int is_here = cw_context_current(&current) != 0 && current == ordinal;
    unsigned passed = cw_gate_enter_beside(beside);
    int rc = -1;

    if (passed == 0)
        return -1;
    if (!is_here || beside != 0) /* inside the gate: there it cannot end */
        context = cw_context_on(ordinal);
    if ((is_here && beside == 0) || context.handle != 0)
        rc = ask(ordinal, context, api, out_free);
    if (rc == 0) {
        set_sample_time(ordinal, cw_session_now());
        cw_driver_pool_sample(ordinal);
    }
    cw_gate_leave_beside(passed);
    return rc;
}

int cw_device_sample_now(uint8_t ordinal, uint32_t api)
{
    uint64_t free_bytes;

    return sample_now(ordinal, api, 0, &free_bytes);
}

int cw_device_ask_free(uint8_t ordinal, uint64_t *out_free)
{
    return sample_now(ordinal, 0, cw_gate_kinds_apart() | CW_GATE_ENDS, out_free);
}

void cw_device_sampled(uint64_t free_bytes, uint64_t total_bytes, uint32_t api)
{
    uint64_t held;
    uint8_t ordinal;

    if (total_bytes == 0 || cw_context_current(&ordinal) == 0)
        return;
    held = held_for_certain(ordinal);
    set_sample_time(ordinal, cw_session_now());
    store_sample(ordinal, free_beside(ordinal, free_bytes, total_bytes, held), total_bytes, held,
                 api);
}

/* ---- what follows ---- */

int64_t cw_device_free_when(uint8_t ordinal, uint64_t held)
{
    const struct cw_device_state *device = state_at(ordinal);
    uint64_t total = atomic_load_explicit(&device->driver_total, memory_order_relaxed);

    if (total == 0)
        return INT64_MAX;
    return (int64_t)(total - held) -
           atomic_load_explicit(&by_others[ordinal < CW_DEVICES ? ordinal : 0],
                                memory_order_relaxed);
}

uint64_t cw_device_ceiling(uint8_t ordinal, uint64_t least)
{
    int64_t most;

    if (atomic_load_explicit(&state_at(ordinal)->driver_total, memory_order_relaxed) == 0)
        return UINT64_MAX;
    /* Free when this process held nothing at all. */
    most = cw_device_free_when(ordinal, 0) - (int64_t)least;
    return most > 0 ? (uint64_t)most : 0;
}
