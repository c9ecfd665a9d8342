/* SPDX-License-Identifier: MIT */
/* One tick. See tick.h. */
#include "core/control/tick.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/out.h"
#include "core/device/device.h"
#include "core/process/gate.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/reclaim/reclaim.h"
#include "core/process/session.h"
#include "core/account/usage.h"
#include "core/account/idle.h"
#include "core/reclaim/sweep.h"

#define LEAST_NS UINT64_C(20000000)

static struct {
    const struct cw_options *options;
    uint64_t next_dump_ns, next_line_ns;
} self;

int cw_tick_is_asked(const struct cw_options *options)
{
    return options->dump_interval != 0 || options->log_interval != 0;
}

void cw_tick_init(const struct cw_options *options)
{
    uint64_t now = cw_session_now();

    self.options = options;
    self.next_dump_ns = now + options->dump_interval;
    self.next_line_ns = now + options->log_interval;
}

/* Of something with this interval, 0 for none. */
static uint64_t left_of(uint64_t interval, uint64_t next_ns, uint64_t now_ns)
{
    if (interval == 0)
        return UINT64_MAX;
    return next_ns > now_ns ? next_ns - now_ns : 0;
}

uint64_t cw_tick_left(int is_watching)
{
    uint64_t now = cw_session_now();
    uint64_t left = left_of(self.options->dump_interval, self.next_dump_ns, now);
    uint64_t lines = left_of(self.options->log_interval, self.next_line_ns, now);

    if (lines < left)
        left = lines;
    if (is_watching && cw_sweep_interval() < left)
        left = cw_sweep_interval();
    return left > LEAST_NS ? left : LEAST_NS;
}

/* In thousandths. */
static uint64_t share_of(uint64_t part, uint64_t whole)
{
    return (uint64_t)((unsigned __int128)part * 1000 / whole);
}

/* ---- a line of use ---- */

static const char *level_name(enum cw_level level)
{
    static const char *const names[CW_LEVEL_COUNT] = {
#define X(id, name) [CW_LEVEL_##id] = (name),
        CW_LEVELS(X)
#undef X
    };

    return names[level];
}

static void print_line(uint8_t device)
{
    const struct cw_device_state *live = cw_device_state(device);
    struct cw_live_sums sums = cw_usage_device(device);
    uint64_t total = atomic_load(&live->driver_total), limit = cw_limit_of(device);
    uint64_t used = atomic_load(&live->driver_used);
    char of_limit[48] = "", size[6][24];

    if (limit != 0)
        cw_format(of_limit, sizeof(of_limit), " of %s", cw_format_size(size[0], 24, limit));
    if (total == 0) {
        cw_log_note("device %u: live %s, idle %s, held %s%s; the device could not be asked", device,
                    cw_format_size(size[1], 24, sums.live),
                    cw_format_size(size[2], 24, cw_idle_bytes(device)),
                    cw_format_size(size[3], 24, sums.held), of_limit);
        return;
    }
    cw_log_note("device %u: live %s, idle %s, held %s%s; device %ju.%ju%% used (%s of %s), "
                "pressure %s",
                device, cw_format_size(size[1], 24, sums.live),
                cw_format_size(size[2], 24, cw_idle_bytes(device)),
                cw_format_size(size[3], 24, sums.held), of_limit,
                (uintmax_t)(share_of(used, total) / 10), (uintmax_t)(share_of(used, total) % 10),
                cw_format_size(size[4], 24, used), cw_format_size(size[5], 24, total),
                level_name(cw_pressure_level(device)));
}

/* ---- what the program's calls would do, if it made any ---- */

#define TURNS 64 /* of cw_reclaim_work in one tick */

static void look_after(void)
{
    if (cw_sweep_is_overdue()) {
        for (unsigned i = 0; i < CW_MAX_DEVICES; i++)
            if (atomic_load(&cw_device_state((uint8_t)i)->known))
                cw_device_sample_now((uint8_t)i, 0);
        cw_reclaim_settle();
        cw_sweep_serve();
    }
    if (!cw_reclaim_is_due() || !cw_reclaim_is_calm())
        return;
    for (int i = 0; i < TURNS && cw_reclaim_is_due() && cw_gate_is_open(); i++)
        cw_reclaim_work();
}

/* Whether something with this interval, 0 for none, is due; the clock may be some ms behind, by
 * less at the last tick. */
static int is_due(uint64_t interval, uint64_t *next_ns)
{
    uint64_t now = cw_session_now();

    if (interval == 0 || now + LEAST_NS / 2 < *next_ns)
        return 0;
    *next_ns = now + interval;
    return 1;
}

static void look_at_devices(int has_lines)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        uint8_t device = (uint8_t)i;

        if (atomic_load(&cw_device_state(device)->known) == 0)
            continue;
        cw_device_sample_now(device, 0);
        if (has_lines)
            print_line(device);
    }
}

int cw_tick(void)
{
    int has_dump = is_due(self.options->dump_interval, &self.next_dump_ns);
    int has_lines = is_due(self.options->log_interval, &self.next_line_ns);

    if (self.options->log_interval == 0)
        has_lines = has_dump && self.options->log >= CW_LOG_INFO;
    if (self.options->mode == CW_MODE_POOL && self.options->idle_thread == CW_THREAD_AUTO)
        look_after();
    if (has_dump || has_lines)
        look_at_devices(has_lines);
    return has_dump;
}
