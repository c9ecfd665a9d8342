/* SPDX-License-Identifier: MIT */
/* Limits and reservations. See limit.h. */
#include "core/limits/limit.h"

#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/out.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/limits/bound.h"
#include "core/limits/scope.h"
#include "core/account/event.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/account/usage.h"
#include "core/account/idle.h"

/* With MIN_FREE the device is asked before each allocation, unless it would leave so much more. */
#define MIN_FREE_MARGIN_SHARE 8 /* of the device: one in so many */
/* The same while all requests in flight are at most one part in so many of the device: only asking
 * shows what other processes take meanwhile. */
#define ANSWER_SHARE 64
/* Turns of cw_lock_relax that a request waits for others whose reservations may be counted twice
 * (leaves_free). */
#define FLIGHT_TURNS 50u

_Atomic int cw_limits_on;

static struct {
    const struct cw_options *options;
    _Atomic int resolved[CW_DEVICES]; /* limit and min_free are known */
    /* In force. The device's records have copies for readers, which nothing follows. */
    _Atomic uint64_t limit[CW_DEVICES], min_free[CW_DEVICES];
    _Atomic int is_set[CW_DEVICES]; /* by cw_limit_set: the options do not say the limit */
    /* LIMIT=platform: the limit is the lowest of the platform's, and of all in their scope
     * together. 0: none. */
    _Atomic int is_platform[CW_DEVICES];
    _Atomic uint64_t of_all[CW_DEVICES];
    _Atomic int checked; /* whether the options name devices that are not there */
} self;

static int is_any(const struct cw_device_sizes *sizes)
{
    return sizes->count != 0 || sizes->fallback.kind != CW_SIZE_NONE;
}

void cw_limit_init(const struct cw_options *options)
{
    self.options = options;
    for (int i = 0; i < CW_DEVICES; i++) {
        atomic_store_explicit(&self.resolved[i], 0, memory_order_relaxed);
        atomic_store_explicit(&self.limit[i], 0, memory_order_relaxed);
        atomic_store_explicit(&self.min_free[i], 0, memory_order_relaxed);
        atomic_store_explicit(&self.is_set[i], 0, memory_order_relaxed);
        atomic_store_explicit(&self.is_platform[i], 0, memory_order_relaxed);
        atomic_store_explicit(&self.of_all[i], 0, memory_order_relaxed);
        atomic_store_explicit(&cw_usage_flight[i], 0, memory_order_relaxed);
    }
    atomic_store(&self.checked, 0);
    atomic_store(&cw_limits_on, is_any(&options->limit) || is_any(&options->min_free));
}

void cw_limit_reset(void)
{
    atomic_store(&cw_limits_on, 0);
}

static void show(uint8_t device)
{
    struct cw_live_memory *shown = &cw_device_at(device)->memory;

    atomic_store(&shown->limit, atomic_load(&self.limit[device]));
    atomic_store(&shown->min_free, atomic_load(&self.min_free[device]));
}

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* ---- what the options say ---- */

static uint64_t size_for(const struct cw_device_sizes *sizes, uint8_t device)
{
    const struct cw_device_state *live = cw_device_state(device);
    uint64_t bytes = 0;

    return cw_sizes_for(sizes, device, live->uuid, live->total, &bytes) ? bytes : 0;
}

/* The platform's limits may change while the process runs. */
static void take_platform(uint8_t device)
{
    struct cw_bound_limits limits;

    cw_bound_limits(device, &limits);
    atomic_store(&self.of_all[device], limits.of_all);
    if (limits.of_all != 0)
        cw_scope_join(device);
    if (!atomic_load(&self.is_set[device]))
        atomic_store(&self.limit[device], limits.least);
    atomic_store(&cw_device_at(device)->memory.is_platform, 1);
    show(device);
}

static void say_none(uint8_t device)
{
    if (load(&self.limit[device]) == 0)
        cw_log(CW_LOG_WARN,
               CW_OPTION_PREFIX
               "LIMIT=platform: the platform sets no hard limit for device %u (see "
               "'cuwarden options'); nothing is limited there",
               device);
}

void cw_limit_follow_platform(uint8_t device)
{
    if (atomic_load_explicit(&self.is_platform[device], memory_order_relaxed))
        take_platform(device);
}

static int is_platform(uint8_t device)
{
    return atomic_load_explicit(&self.is_platform[device], memory_order_relaxed);
}

/* Once the device's size and uuid are known; until then nothing is limited. */
static void resolve(uint8_t device)
{
    uint64_t none = 0;

    if (CW_LIKELY(atomic_load_explicit(&self.resolved[device], memory_order_acquire)) ||
        !cw_device_describe(device))
        return;
    if (!atomic_load(&self.is_set[device]))
        atomic_compare_exchange_strong(&self.limit[device], &none,
                                       size_for(&self.options->limit, device));
    atomic_store(&self.min_free[device], size_for(&self.options->min_free, device));
    if (cw_sizes_kind_for(&self.options->limit, device, cw_device_state(device)->uuid) ==
            CW_SIZE_PLATFORM &&
        !atomic_exchange(&self.is_platform[device], 1)) {
        cw_bound_look(device, cw_usage_device(device).held, cw_session_now());
        take_platform(device);
        say_none(device);
    }
    show(device);
    atomic_store_explicit(&self.resolved[device], 1, memory_order_release);
}

uint64_t cw_limit_of(uint8_t device)
{
    if (!cw_limit_is_on() || device >= CW_MAX_DEVICES)
        return 0;
    resolve(device);
    return load(&self.limit[device]);
}

void cw_limit_set(uint8_t device, uint64_t bytes)
{
    if (device >= CW_MAX_DEVICES)
        return;
    resolve(device);
    atomic_store(&self.is_set[device], 1);
    atomic_store(&self.limit[device], bytes);
    show(device);
    if (bytes != 0)
        atomic_store(&cw_limits_on, 1);
    cw_event_add(&(struct cw_live_event){.type = CW_EVENT_LIMIT, .device = device, .bytes = bytes});
}

/* ---- reservations ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* What is left of the limit for this process and its idle memory. */
static uint64_t limit_less_others(uint8_t device)
{
    uint64_t limit = load(&self.limit[device]), all = load(&self.of_all[device]);

    if (limit == 0 || all == 0)
        return limit;
    all = minus(all, cw_scope_others(device));
    return least(limit, all != 0 ? all : 1);
}

/* The most that the limit lets the process hold. */
static uint64_t most_by_limit(uint8_t device)
{
    uint64_t limit = limit_less_others(device);

    return limit != 0 ? minus(limit, cw_driver_pool_spare(device)) : UINT64_MAX;
}

/* The same by the limit and, as of the last sample, by MIN_FREE. */
static uint64_t most_held(uint8_t device)
{
    uint64_t min_free = load(&self.min_free[device]);

    return least(most_by_limit(device),
                 min_free != 0 ? cw_device_ceiling(device, min_free) : UINT64_MAX);
}

/* The last sample leaves so much room that the device need not be asked: other processes take
 * memory too, but not all that in the time that a sample is good for. left: free by that sample. */
static int has_plenty(uint8_t device, int64_t left, uint64_t min_free, uint64_t flight)
{
    uint64_t total = load(&cw_device_state(device)->driver_total);

    return total != 0 && !cw_device_is_sample_old(device) && flight <= total / ANSWER_SHARE &&
           left >= (int64_t)(min_free + total / MIN_FREE_MARGIN_SHARE);
}

/*
 * Whether MIN_FREE stays free, once the caller has added its request to `held` and `flight`.
 *
 * The device's answer may or may not include each allocation in flight. All of `flight` is taken
 * off it: one that is counted twice makes the answer too small, never too large. Two threads that
 * compete for the last bytes each add their own before they ask, so at least one sees the other.
 * `held` is not used for it, because a free lowers the device's use before it lowers `held`.
 */
static int leaves_free(uint8_t device)
{
    uint64_t min_free = load(&self.min_free[device]), flight, free_bytes;
    int64_t left;

    if (min_free == 0)
        return 1;
    left = cw_device_free_when(device, cw_usage_device(device).held);
    flight = atomic_load(&cw_usage_flight[device]);
    if (has_plenty(device, left, min_free, flight))
        return 1;
    if (cw_device_ask_free(device, &free_bytes) != 0)
        return left >= (int64_t)min_free;
    return free_bytes >= flight && free_bytes - flight >= min_free;
}

/* The spare bytes of the driver's pools may have changed while the request was counted: a free of
 * stream-ordered memory moves bytes from held to spare. */
static int is_beyond_limit(uint8_t device)
{
    uint64_t limit = load(&self.limit[device]);

    return limit != 0 && cw_usage_device(device).held + cw_driver_pool_spare(device) > limit;
}

static int count(uint8_t device, uint64_t bytes)
{
    uint64_t all = load(&self.of_all[device]), limit = load(&self.limit[device]), spare;
    int rc;

    cw_driver_pool_refresh(device);
    if (all == 0) {
        rc = cw_usage_reserve(device, bytes, most_by_limit(device));
    } else {
        spare = cw_driver_pool_spare(device);
        rc = cw_scope_reserve(device, bytes, spare, limit != 0 ? minus(limit, spare) : UINT64_MAX,
                              all);
    }
    if (rc != 0)
        return -1;
    if (!is_beyond_limit(device))
        return 0;
    cw_usage_sub(device, 0, bytes);
    cw_scope_show(device, cw_driver_pool_spare(device));
    return -1;
}

static int try(uint8_t device, uint64_t bytes, enum cw_cause *out_cause)
{
    int rc;

    *out_cause = is_platform(device) && !atomic_load(&self.is_set[device]) ? CW_CAUSE_PLATFORM
                                                                           : CW_CAUSE_LIMIT;
    atomic_fetch_add(&cw_usage_flight[device], bytes);
    rc = count(device, bytes);
    if (rc == 0 && !leaves_free(device)) {
        *out_cause = CW_CAUSE_MIN_FREE;
        cw_usage_sub(device, 0, bytes);
        cw_scope_show(device, cw_driver_pool_spare(device));
        rc = -1;
    }
    if (rc != 0)
        atomic_fetch_sub(&cw_usage_flight[device], bytes);
    return rc;
}

int cw_limit_reserve(uint8_t device, uint64_t bytes, uint64_t *out_reserved,
                     enum cw_cause *out_cause)
{
    unsigned turns = 0;

    *out_reserved = 0;
    if (!cw_limit_is_on() || device >= CW_MAX_DEVICES)
        return 0;
    resolve(device);
    if ((load(&self.limit[device]) | load(&self.min_free[device]) | load(&self.of_all[device])) ==
        0)
        return 0;
    while (try(device, bytes, out_cause) != 0) {
        /* A sample may have counted twice what other threads were just being given. */
        if (*out_cause == CW_CAUSE_MIN_FREE && load(&cw_usage_flight[device]) != 0 &&
            turns < FLIGHT_TURNS) {
            cw_lock_relax(&turns);
            continue;
        }
        return -1;
    }
    *out_reserved = bytes;
    return 0;
}

void cw_limit_cancel(uint8_t device, uint64_t bytes)
{
    if (bytes == 0)
        return;
    cw_usage_sub(device, 0, bytes);
    atomic_fetch_sub(&cw_usage_flight[device], bytes);
    cw_scope_show(device, cw_driver_pool_spare(device));
}

void cw_limit_committed(uint8_t device, uint64_t bytes)
{
    if (CW_LIKELY(bytes == 0))
        return;
    atomic_fetch_sub(&cw_usage_flight[device], bytes);
}

uint64_t cw_limit_shortfall(uint8_t device, uint64_t bytes)
{
    uint64_t held = cw_usage_device(device).held;

    /* Also for a request that no device could serve: the sum must not wrap around. */
    return minus(bytes > UINT64_MAX - held ? UINT64_MAX : held + bytes, most_held(device));
}

uint64_t cw_limit_room(uint8_t device)
{
    uint64_t held = cw_usage_device(device).held;
    uint64_t most;

    if (!cw_limit_is_on() || device >= CW_MAX_DEVICES)
        return UINT64_MAX;
    resolve(device);
    most = most_held(device);
    return most == UINT64_MAX ? UINT64_MAX : minus(most, minus(held, cw_idle_bytes(device)));
}

/* ---- what the program is told ---- */

uint64_t cw_limit_total(uint8_t device, uint64_t driver_total)
{
    uint64_t limit = cw_limit_of(device);

    return limit != 0 ? least(limit, driver_total) : driver_total;
}

void cw_limit_view(uint8_t device, uint64_t driver_free, uint64_t driver_total,
                   struct cw_memory_view *out)
{
    uint64_t idle = cw_idle_bytes(device), limit = cw_limit_of(device), in_use;

    if (limit != 0)
        cw_driver_pool_refresh(device);
    out->total_bytes = cw_limit_total(device, driver_total);
    out->free_bytes = least(driver_free + idle, driver_total);
    if (cw_limit_is_on() && device < CW_MAX_DEVICES)
        out->free_bytes = minus(out->free_bytes, load(&self.min_free[device]));
    if (limit != 0) {
        in_use = minus(cw_usage_device(device).held, idle) + cw_driver_pool_spare(device);
        out->free_bytes = least(out->free_bytes, minus(limit_less_others(device), in_use));
    }
    out->free_bytes = least(out->free_bytes, out->total_bytes);
}

/* ---- devices that are not there ---- */

struct devices {
    unsigned count;
    uint8_t uuid[CW_MAX_DEVICES][16];
};

/* 0, or -1 when the driver does not say. */
static int list_devices(struct devices *out)
{
    struct cw_device_facts facts;
    int rc;

    if (!cw_gate_enter())
        return -1;
    rc = cw_session.ops->device_count(&out->count);
    if (out->count > CW_MAX_DEVICES)
        out->count = CW_MAX_DEVICES;
    for (unsigned i = 0; rc == 0 && i < out->count; i++) {
        rc = cw_session.ops->device_facts(i, &facts);
        memcpy(out->uuid[i], facts.uuid, 16);
    }
    cw_gate_leave();
    return rc;
}

static int is_there(const struct devices *devices, const struct cw_device_size *item)
{
    if (item->named_by == CW_DEVICE_ORDINAL)
        return item->ordinal < devices->count;
    for (unsigned i = 0; i < devices->count; i++)
        if (memcmp(devices->uuid[i], item->uuid, 16) == 0)
            return 1;
    return 0;
}

static void complain(const char *name, const struct cw_device_size *item, unsigned count)
{
    char text[96];
    struct cw_out out;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_device_size_print(item, &out);
    text[out.len] = '\0';
    if (count == 1)
        cw_log(CW_LOG_WARN,
               CW_OPTION_PREFIX "%s: '%s' names a device that this process does not have (it has "
                                "device 0 only); this item has no effect",
               name, text);
    else
        cw_log(CW_LOG_WARN,
               CW_OPTION_PREFIX "%s: '%s' names a device that this process does not have (it has "
                                "devices 0 to %u); this item has no effect",
               name, text, count - 1);
}

static void check(const struct devices *devices, const char *name,
                  const struct cw_device_sizes *sizes)
{
    for (unsigned i = 0; i < sizes->count; i++)
        if (!is_there(devices, &sizes->device[i]))
            complain(name, &sizes->device[i], devices->count);
}

void cw_limit_check_devices(void)
{
    const struct cw_options *options = self.options;
    struct devices devices = {0};

    if ((options->limit.count | options->soft_limit.count | options->min_free.count |
         options->pool_max.count) == 0 ||
        atomic_exchange(&self.checked, 1))
        return;
    if (list_devices(&devices) != 0 || devices.count == 0) {
        atomic_store(&self.checked, 0); /* the next device that is described tries again */
        return;
    }
    check(&devices, "LIMIT", &options->limit);
    check(&devices, "SOFT_LIMIT", &options->soft_limit);
    check(&devices, "MIN_FREE", &options->min_free);
    check(&devices, "POOL_MAX", &options->pool_max);
}
