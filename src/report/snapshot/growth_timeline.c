/* SPDX-License-Identifier: MIT */
/*
 * What each device held over time: peaks by quarters of the process's life, and what the pool kept.
 * See growth_read.h. A point that changed while it was read is dropped.
 */
#include "base/mem.h"
#include "report/snapshot/growth_read.h"
#include "base/sort.h"

#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define ACQUIRE(field) atomic_load_explicit(&(field), memory_order_acquire)

/* 0, or -1 when there is none in the slot, or it is changing. */
static int read_point(const struct cw_live_point *live, uint64_t end_ns,
                      struct cw_growth_point *out)
{
    out->t_ns = ACQUIRE(live->t_ns);
    out->live = LOAD(live->live);
    out->held = LOAD(live->held);
    out->idle = LOAD(live->idle);
    out->used = LOAD(live->used);
    atomic_thread_fence(memory_order_acquire);
    return out->t_ns != 0 && out->t_ns < end_ns && LOAD(live->t_ns) == out->t_ns ? 0 : -1;
}

static int is_earlier(const void *a, const void *b, const void *arg)
{
    (void)arg;
    return ((const struct cw_growth_point *)a)->t_ns < ((const struct cw_growth_point *)b)->t_ns;
}

static void drop_equal(struct cw_growth_timeline *timeline)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < timeline->count; i++)
        if (kept == 0 || timeline->point[kept - 1].t_ns != timeline->point[i].t_ns)
            timeline->point[kept++] = timeline->point[i];
    timeline->count = kept;
}

static struct cw_growth_point present(const struct cw_snapshot *snapshot, unsigned device)
{
    struct cw_live_sums sums = cw_view_device_live(snapshot->view, device);

    return (struct cw_growth_point){.t_ns = snapshot->growth.end_ns,
                                    .live = sums.live,
                                    .held = sums.held,
                                    .idle = snapshot->pool.device[device].sums.idle_bytes,
                                    .used = snapshot->device[device].driver_used};
}

static void read_points(const struct cw_snapshot *snapshot, const struct cw_live_timeline *live,
                        unsigned device, struct cw_growth_timeline *out)
{
    for (unsigned i = 0; i < CW_POINTS; i++)
        if (read_point(&live->point[i], snapshot->growth.end_ns, &out->point[out->count]) == 0)
            out->count++;
    cw_sort(out->point, out->count, sizeof(*out->point), is_earlier, NULL);
    drop_equal(out);
    out->point[out->count++] = present(snapshot, device);
}

/* ---- what they tell ---- */

static void note_peak(struct cw_growth_timeline *timeline, uint64_t end_ns, uint64_t t_ns,
                      uint64_t bytes)
{
    uint64_t quarter = t_ns / (end_ns / CW_TREND_QUARTERS + 1);

    if (quarter < CW_TREND_QUARTERS && bytes > timeline->peak[quarter])
        timeline->peak[quarter] = bytes;
}

/* The points are samples, which miss short peaks. Of the highest of all it is known exactly how
 * high it was, and when; it must not make the last quarter look worse than those before it. */
static void find_peaks(const struct cw_snapshot *snapshot, unsigned device,
                       struct cw_growth_timeline *timeline)
{
    const unsigned last = CW_TREND_QUARTERS - 1;
    uint64_t end_ns = snapshot->growth.end_ns;
    uint64_t sampled, before = 0;

    for (uint32_t i = 0; i < timeline->count; i++)
        note_peak(timeline, end_ns, timeline->point[i].t_ns, timeline->point[i].live);
    sampled = timeline->peak[last];
    note_peak(timeline, end_ns, snapshot->device[device].peak_ns,
              snapshot->device[device].peak_bytes);
    for (unsigned i = 0; i < last; i++)
        before = timeline->peak[i] > before ? timeline->peak[i] : before;
    timeline->has_peaks =
        timeline->count >= CW_TREND_POINTS_MIN && end_ns >= CW_TREND_SPAN_MIN && before > 0;
    if (timeline->has_peaks && sampled > before)
        timeline->peak_rose =
            (uint8_t)cw_trend_is_large((double)(sampled - before), (double)before);
}

static void fit_idle(struct cw_growth_timeline *timeline, struct cw_trend_point *scratch)
{
    uint64_t begin_ns = 0;

    for (uint32_t i = 0; i < timeline->count; i++) {
        const struct cw_growth_point *point = &timeline->point[i];

        scratch[i] = (struct cw_trend_point){point->t_ns, point->idle};
        if (begin_ns == 0 && point->idle > 0)
            begin_ns = point->t_ns;
    }
    if (begin_ns != 0)
        cw_trend_fit(scratch, timeline->count, begin_ns, &timeline->idle);
}

/* Of several records of a device, the first. */
static void read_timeline(struct cw_snapshot *snapshot, const struct cw_live_timeline *live,
                          struct cw_trend_point *scratch)
{
    unsigned device = live->device;
    struct cw_growth_timeline *timeline;

    if (device >= CW_DEVICES)
        return;
    timeline = &snapshot->growth.timeline[device];
    timeline->ordinal = (uint8_t)device;
    if (timeline->point)
        return;
    timeline->point = cw_mem_alloc((CW_POINTS + 1) * sizeof(*timeline->point));
    if (!timeline->point)
        return;
    read_points(snapshot, live, device, timeline);
    find_peaks(snapshot, device, timeline);
    fit_idle(timeline, scratch);
}

void cw_snapshot_read_timelines(struct cw_snapshot *snapshot)
{
    size_t size = (CW_POINTS + 1) * sizeof(struct cw_trend_point);
    struct cw_trend_point *scratch = cw_mem_alloc(size);
    uint32_t count = cw_view_count(snapshot->view, CW_TABLE_TIMELINE);

    for (uint32_t i = 1; scratch && i < count; i++) {
        const struct cw_live_timeline *live = cw_view_timeline(snapshot->view, i);

        if (live)
            read_timeline(snapshot, live, scratch);
    }
    cw_mem_free(scratch, size);
}
