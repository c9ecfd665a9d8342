/* SPDX-License-Identifier: MIT */
/* Levels of pressure. See pressure.h. */
#include "core/limits/pressure.h"

#include "base/log.h"
#include "base/out.h"
#include "core/limits/admission.h"
#include "core/limits/bound.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/account/event.h"
#include "core/limits/limit.h"
#include "core/limits/scope.h"
#include "core/process/due.h"
#include "core/limits/reclaim_due.h"
#include "core/account/site.h"
#include "core/account/usage.h"

#define WHOLE 10000u /* shares are in 1/10000 */
#define POINT (WHOLE / 100)
/* Reclaim is due again after so long while the level stays high. */
#define AGAIN_NS UINT64_C(100000000)

_Atomic uint8_t cw_pressure_levels[CW_DEVICES];
_Atomic uint8_t cw_pressure_followed[CW_DEVICES];

static struct {
    struct cw_levels thresholds;
    _Atomic int busy[CW_DEVICES]; /* a thread is settling the level of the device */
    uint64_t due_ns[CW_DEVICES];  /* when reclaim last became due; of the settling thread */
} self;

void cw_pressure_init(const struct cw_options *options)
{
    self.thresholds = options->pressure;
    cw_pressure_reset();
}

void cw_pressure_reset(void)
{
    for (int i = 0; i < CW_DEVICES; i++) {
        atomic_store_explicit(&cw_pressure_levels[i], CW_LEVEL_LOW, memory_order_relaxed);
        atomic_store_explicit(&cw_pressure_followed[i], (uint8_t)cw_bound_is_on(),
                              memory_order_relaxed);
        atomic_store_explicit(&self.busy[i], 0, memory_order_relaxed);
        self.due_ns[i] = 0;
    }
    cw_reclaim_due_reset();
    cw_admission_reset();
}

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* ---- how much is in use ---- */

enum part { OF_DEVICE, OF_LIMIT, OF_BOUND, PARTS };

struct use {
    struct {
        uint64_t used, whole; /* whole 0: not known, or there is none */
    } part[PARTS];            /* of the device by anybody; by this process of limit and bound */
    uint64_t held;            /* by this process */
    enum cw_bound bound;      /* the nearest */
};

static struct use use_of(uint8_t ordinal)
{
    const struct cw_device_state *device = cw_device_state(ordinal);
    uint64_t held = cw_usage_device(ordinal).held, total = load(&device->driver_total);
    int64_t free_bytes = cw_device_free_when(ordinal, held);
    struct cw_bound_use bound;
    struct use use = {.part[OF_DEVICE].whole = total};

    held += cw_driver_pool_spare(ordinal);
    use.held = held;
    use.part[OF_LIMIT].used = held + cw_scope_others(ordinal);
    use.part[OF_LIMIT].whole = cw_limit_of(ordinal);
    bound = cw_bound_nearest(ordinal, held);
    use.part[OF_BOUND].used = bound.used;
    use.part[OF_BOUND].whole = bound.bytes;
    use.bound = bound.bound;
    if (free_bytes < 0)
        free_bytes = 0;
    /* Held bytes may exceed what is taken of the device: managed memory, never touched. */
    if ((uint64_t)free_bytes < total)
        use.part[OF_DEVICE].used = total - (uint64_t)free_bytes;
    return use;
}

static uint64_t share(uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return 0;
    return part >= whole ? WHOLE : (uint64_t)((unsigned __int128)part * WHOLE / whole);
}

static uint64_t share_in(const struct use *use, enum part part)
{
    return share(use->part[part].used, use->part[part].whole);
}

/* The first of those of which the largest share is in use. */
static enum part decides(const struct use *use)
{
    enum part most = OF_DEVICE;

    for (unsigned i = 1; i < PARTS; i++)
        if (share_in(use, (enum part)i) > share_in(use, most))
            most = (enum part)i;
    return most;
}

static uint64_t share_of(const struct use *use)
{
    return share_in(use, decides(use));
}

void cw_pressure_read(uint8_t device, struct cw_pressure_state *out)
{
    struct use use = use_of(device);

    *out = (struct cw_pressure_state){.device_used = use.part[OF_DEVICE].used,
                                      .device_total = use.part[OF_DEVICE].whole,
                                      .held = use.held,
                                      .limit = use.part[OF_LIMIT].whole,
                                      .share = (unsigned)share_of(&use)};
}

int cw_pressure_is_of_device(uint8_t device)
{
    struct use use = use_of(device);

    return cw_pressure_level(device) >= CW_LEVEL_HIGH && decides(&use) == OF_DEVICE;
}

static uint64_t begins_at(unsigned level)
{
    return level == CW_LEVEL_LOW ? 0 : (uint64_t)self.thresholds.percent[level - 1] * POINT;
}

/* The share below which the level is left; never 0, however low it begins. */
static uint64_t ends_below(unsigned level)
{
    uint64_t begins = begins_at(level), hysteresis = CW_PRESSURE_HYSTERESIS * POINT;

    return begins - (hysteresis < begins / 2 ? hysteresis : begins / 2);
}

/* Up at a threshold, down a little below it: use that swings around one does not flap. */
static unsigned next_level(unsigned level, uint64_t now)
{
    while (level < CW_LEVEL_CRITICAL && now >= begins_at(level + 1))
        level++;
    while (level > CW_LEVEL_LOW && now < ends_below(level))
        level--;
    return level;
}

/* ---- a change ---- */

/* With LOG=info: a warning from high on, an error at critical. Otherwise the report tells it: a
 * preload is silent while memory is only scarce. */
static void tell_change(uint8_t device, unsigned from, unsigned to, const struct use *use)
{
    const char *const of[PARTS] = {"device", "limit", cw_bound_kind(use->bound)->name};
    uint64_t percent = share_of(use) / POINT;
    enum part part = decides(use);
    enum cw_log_level level = to == CW_LEVEL_CRITICAL ? CW_LOG_ERROR
                              : to == CW_LEVEL_HIGH   ? CW_LOG_WARN
                                                      : CW_LOG_INFO;
    uint64_t released = load(&cw_device_at(device)->pool.released[CW_RELEASE_PRESSURE].bytes);
    char used[24], given[24];

    if (cw_log_get_level() < CW_LOG_INFO)
        return;
    cw_log(level, "device %u: pressure %s -> %s, %s in use (%ju%% of the %s); %s released so far",
           device, cw_level_name(from), cw_level_name(to),
           cw_format_size(used, sizeof(used), use->part[part].used), (uintmax_t)percent, of[part],
           cw_format_size(given, sizeof(given), released));
}

static void change(uint8_t device, unsigned from, unsigned to, const struct use *use, uint32_t api,
                   uint64_t now_ns)
{
    static const uint8_t causes[PARTS] = {CW_CAUSE_DRIVER, CW_CAUSE_LIMIT, CW_CAUSE_PLATFORM};
    struct cw_live_memory *memory = &cw_device_at(device)->memory;
    uint64_t since = load(&memory->level_since_ns);
    enum part part = decides(use);
    struct cw_live_event event = {
        .type = CW_EVENT_PRESSURE,
        .device = device,
        .site = api != 0 ? cw_site_here(api, CW_KIND_DEVICE, device) : 0,
        .level = (uint8_t)to,
        .level_before = (uint8_t)from,
        .cause = causes[part],
        .bound = (uint8_t)use->bound,
        .share = (uint16_t)share_of(use),
        .bytes = use->part[part].used,
    };

    if (now_ns < since) /* another thread looked at the clock later and was here first */
        now_ns = since;
    atomic_fetch_add(&memory->level_ns[from], now_ns - since);
    atomic_store(&memory->level_since_ns, now_ns);
    atomic_fetch_add(&memory->level_entered[to], 1);
    atomic_store(&memory->level, to);
    atomic_store(&cw_pressure_levels[device], (uint8_t)to);
    if (to == CW_LEVEL_CRITICAL)
        cw_admission_close(device);
    else if (from == CW_LEVEL_CRITICAL)
        cw_admission_open(device);
    atomic_store(&memory->last_change, cw_event_add(&event));
    tell_change(device, from, to, use);
    cw_due_set(CW_DUE_NOTICE);
}

static void settle(uint8_t device, uint32_t api, uint64_t now_ns)
{
    struct cw_live_memory *memory = &cw_device_at(device)->memory;
    struct use use;
    uint64_t now;
    unsigned from = cw_pressure_level(device), to;

    cw_bound_look(device, cw_usage_device(device).held, now_ns);
    cw_limit_follow_platform(device);
    cw_scope_show(device, cw_driver_pool_spare(device));
    use = use_of(device);
    now = share_of(&use);
    to = next_level(from, now);
    cw_bound_note(device, use.held);
    atomic_store(&memory->share, (uint32_t)now);
    atomic_store_explicit(&cw_pressure_followed[device],
                          to != CW_LEVEL_LOW || use.part[OF_BOUND].whole != 0,
                          memory_order_relaxed);
    if (now > load(&memory->highest_use))
        atomic_store(&memory->highest_use, now);
    if (to != from)
        change(device, from, to, &use, api, now_ns);
    /* Reclaim is due when the level rises, and at intervals for as long as it stays high. */
    if (to > from || (to >= CW_LEVEL_HIGH && now_ns >= self.due_ns[device] + AGAIN_NS)) {
        self.due_ns[device] = now_ns;
        cw_reclaim_due_set(device, CW_RECLAIM_LEVEL);
        if (to >= CW_LEVEL_HIGH)
            cw_due_set(CW_DUE_NEIGHBOURS);
    }
}

void cw_pressure_update(uint8_t device, uint32_t api, uint64_t now_ns)
{
    int idle = 0;

    if (device >= CW_MAX_DEVICES || !atomic_compare_exchange_strong(&self.busy[device], &idle, 1))
        return;
    settle(device, api, now_ns);
    atomic_store(&self.busy[device], 0);
}

/* ---- reclaim ---- */

static uint64_t excess_over(uint64_t part, uint64_t whole, uint64_t aim)
{
    uint64_t most = (uint64_t)((unsigned __int128)whole * aim / WHOLE);

    return whole != 0 && part > most ? part - most : 0;
}

uint64_t cw_pressure_excess(uint8_t device)
{
    struct use use = use_of(device);
    uint64_t aim = ends_below(CW_LEVEL_HIGH) - 1;
    uint64_t most = 0;

    for (unsigned i = 0; i < PARTS; i++) {
        uint64_t excess = excess_over(use.part[i].used, use.part[i].whole, aim);

        if (excess > most)
            most = excess;
    }
    return most;
}

uint64_t cw_pressure_most_at_low(uint8_t device)
{
    uint64_t most = UINT64_MAX;
    struct use use;

    if (cw_pressure_level(device) != CW_LEVEL_LOW)
        return 0;
    use = use_of(device);
    for (unsigned i = 0; i < PARTS; i++) {
        uint64_t whole = use.part[i].whole;
        uint64_t aim = (uint64_t)((unsigned __int128)whole * begins_at(CW_LEVEL_MEDIUM) / WHOLE);
        uint64_t there = use.held + aim;

        if (whole == 0)
            continue;
        there = there > use.part[i].used ? there - use.part[i].used : 0;
        most = there < most ? there : most;
    }
    return most;
}

void cw_pressure_relieved(uint8_t device, uint64_t bytes)
{
    uint32_t event = atomic_load(&cw_device_at(device)->memory.last_change);

    if (event != 0)
        atomic_fetch_add(&cw_event_at(event)->released, bytes);
}
