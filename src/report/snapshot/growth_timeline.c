/* SPDX-License-Identifier: MIT */
/*
 * What each device held over time: peaks by quarters of the process's life, and what the pool kept.
 * See growth_read.h. A point that changed while it was read is dropped.
 *
 * Samples tell trends. Points are the samples, the moments between two of them when the device held
 * less or more than at both, its peak, and each out of memory.
 */
#include "base/mem.h"
#include "report/snapshot/growth_read.h"

#include <string.h>

#include "base/sort.h"

#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define ACQUIRE(field) atomic_load_explicit(&(field), memory_order_acquire)

#define SAMPLES (CW_POINTS + 1) /* with the present */

/* A sample, and what was lowest and highest since the one before; the time is 0: not known. */
struct sample {
    struct cw_growth_point at, least, most;
};

/* All samples of one device, and room for what a straight line is fitted to. */
struct samples {
    struct sample sample[SAMPLES];
    uint32_t count;
    struct cw_trend_point trend[SAMPLES];
};

/* One that changes while it is read is none. */
static struct cw_growth_point read_extreme(const struct cw_live_extreme *live)
{
    struct cw_growth_point point = {.t_ns = ACQUIRE(live->t_ns),
                                    .live = LOAD(live->live),
                                    .held = LOAD(live->held),
                                    .idle = LOAD(live->idle)};

    atomic_thread_fence(memory_order_acquire);
    if (LOAD(live->t_ns) != point.t_ns)
        point.t_ns = 0;
    return point;
}

/* 0, or -1 when there is none in the slot, or it is changing. */
static int read_sample(const struct cw_live_point *live, uint64_t end_ns, struct sample *out)
{
    struct cw_growth_point *at = &out->at;

    at->t_ns = ACQUIRE(live->t_ns);
    at->live = LOAD(live->live);
    at->held = LOAD(live->held);
    at->idle = LOAD(live->idle);
    at->used = LOAD(live->used);
    out->least = read_extreme(&live->least);
    out->most = read_extreme(&live->most);
    atomic_thread_fence(memory_order_acquire);
    return at->t_ns != 0 && at->t_ns < end_ns && LOAD(live->t_ns) == at->t_ns ? 0 : -1;
}

static int is_earlier(const void *a, const void *b, const void *arg)
{
    (void)arg;
    return ((const struct sample *)a)->at.t_ns < ((const struct sample *)b)->at.t_ns;
}

static void drop_equal(struct samples *samples)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < samples->count; i++)
        if (kept == 0 || samples->sample[kept - 1].at.t_ns != samples->sample[i].at.t_ns)
            samples->sample[kept++] = samples->sample[i];
    samples->count = kept;
}

static struct sample present(const struct cw_snapshot *snapshot, unsigned device)
{
    const struct cw_live_device *live = &cw_view_header(snapshot->view)->device[device];
    struct cw_live_sums sums = cw_view_device_live(snapshot->view, device);

    return (struct sample){.at = {.t_ns = snapshot->growth.end_ns,
                                  .live = sums.live,
                                  .held = sums.held,
                                  .idle = snapshot->pool.device[device].sums.idle_bytes,
                                  .used = snapshot->device[device].driver_used},
                           .least = read_extreme(&live->least),
                           .most = read_extreme(&live->most)};
}

static void read_samples(const struct cw_snapshot *snapshot, const struct cw_live_timeline *live,
                         unsigned device, struct samples *out)
{
    out->count = 0;
    for (unsigned i = 0; i < CW_POINTS; i++)
        if (read_sample(&live->point[i], snapshot->growth.end_ns, &out->sample[out->count]) == 0)
            out->count++;
    cw_sort(out->sample, out->count, sizeof(*out->sample), is_earlier, NULL);
    drop_equal(out);
    out->sample[out->count++] = present(snapshot, device);
}

/* ---- points ---- */

static void append(struct cw_growth_timeline *timeline, struct cw_growth_point point)
{
    timeline->point[timeline->count++] = point;
}

/* The lowest and the highest moment before a sample, if it and the one before do not tell them.
 * What the whole device used was not asked then. */
static void append_extremes(const struct sample *sample, const struct sample *before,
                            struct cw_growth_timeline *out)
{
    uint64_t live = sample->at.live, earlier = before ? before->at.live : live;
    struct cw_growth_point least = sample->least, most = sample->most;
    int has_least = least.t_ns != 0 && least.live < live && least.live < earlier;
    int has_most = most.t_ns != 0 && most.live > live && most.live > earlier;

    least.used = sample->at.used;
    most.used = sample->at.used == 0 || sample->at.used > most.held ? sample->at.used : most.held;
    if (has_least && (!has_most || least.t_ns <= most.t_ns))
        append(out, least);
    if (has_most)
        append(out, most);
    if (has_least && has_most && least.t_ns > most.t_ns)
        append(out, least);
}

/* In the order of time, and before the last. */
static void insert(struct cw_growth_timeline *timeline, struct cw_growth_point point)
{
    uint32_t at = timeline->count - 1;
    struct cw_growth_point *next;

    while (at > 0 && timeline->point[at - 1].t_ns > point.t_ns)
        at--;
    next = &timeline->point[at];
    point.used = next->used == 0 || next->used > point.held ? next->used : point.held;
    memmove(next + 1, next, (timeline->count - at) * sizeof(*next));
    *next = point;
    timeline->count++;
}

/* A process that was killed while it wrote may have lost the sample that knew. */
static void insert_peak(const struct cw_snapshot_device *device,
                        struct cw_growth_timeline *timeline)
{
    struct cw_growth_point peak = {
        .t_ns = device->peak_ns, .live = device->peak_bytes, .held = device->peak_bytes};

    for (uint32_t i = 0; i < timeline->count; i++)
        if (timeline->point[i].live >= peak.live)
            return;
    insert(timeline, peak);
}

/* The device's out of memory that event i was, or NULL. */
static const struct cw_live_event *oom_at(const struct cw_view *view, unsigned device, uint32_t i)
{
    const struct cw_live_event *event = cw_view_event(view, i);

    return event && event->t_ns != 0 && event->type == CW_EVENT_OOM && event->device == device
               ? event
               : NULL;
}

static uint32_t count_ooms(const struct cw_view *view, unsigned device)
{
    uint32_t ooms = 0, count = cw_view_count(view, CW_TABLE_EVENT);

    for (uint32_t i = 1; i < count; i++)
        ooms += oom_at(view, device, i) != NULL;
    return ooms;
}

/* At most so many: events may have come since they were counted. */
static void insert_ooms(const struct cw_view *view, unsigned device, uint32_t most,
                        struct cw_growth_timeline *timeline)
{
    uint32_t count = cw_view_count(view, CW_TABLE_EVENT);

    for (uint32_t i = 1; i < count && most > 0; i++) {
        const struct cw_live_event *oom = oom_at(view, device, i);

        if (!oom)
            continue;
        insert(timeline, (struct cw_growth_point){
                             .t_ns = oom->t_ns,
                             .live = oom->live,
                             .held = oom->held,
                             .idle = oom->idle,
                         });
        most--;
    }
}

/* The clock is coarse, and no two points have the same time. The last one's stays. */
static void part_times(struct cw_growth_timeline *timeline)
{
    struct cw_growth_point *point = timeline->point;
    uint64_t end_ns = point[timeline->count - 1].t_ns;

    for (uint32_t i = 1; i < timeline->count; i++)
        if (point[i].t_ns <= point[i - 1].t_ns)
            point[i].t_ns = point[i - 1].t_ns + 1;
    point[timeline->count - 1].t_ns = end_ns;
    for (uint32_t i = timeline->count - 1; i > 0; i--)
        if (point[i - 1].t_ns >= point[i].t_ns && point[i].t_ns > 0)
            point[i - 1].t_ns = point[i].t_ns - 1;
}

/* 0, or -1: no memory. */
static int make_points(const struct cw_snapshot *snapshot, unsigned device,
                       const struct samples *samples, struct cw_growth_timeline *out)
{
    uint32_t ooms = count_ooms(snapshot->view, device), limit = 3 * samples->count + 1 + ooms;

    out->point = cw_mem_alloc(limit * sizeof(*out->point));
    if (!out->point)
        return -1;
    out->points_limit = limit;
    for (uint32_t i = 0; i < samples->count; i++) {
        append_extremes(&samples->sample[i], i > 0 ? &samples->sample[i - 1] : NULL, out);
        append(out, samples->sample[i].at);
    }
    insert_peak(&snapshot->device[device], out);
    insert_ooms(snapshot->view, device, ooms, out);
    part_times(out);
    return 0;
}

/* ---- what they tell ---- */

static void note_peak(struct cw_growth_timeline *timeline, uint64_t end_ns, uint64_t t_ns,
                      uint64_t bytes)
{
    uint64_t quarter = t_ns / (end_ns / CW_TREND_QUARTERS + 1);

    if (quarter >= CW_TREND_QUARTERS)
        quarter = CW_TREND_QUARTERS - 1;
    if (bytes > timeline->peak[quarter])
        timeline->peak[quarter] = bytes;
}

/* A peak of which no sample knows must not make the last quarter look worse than those before. */
static void find_peaks(const struct cw_snapshot *snapshot, unsigned device,
                       const struct samples *samples, struct cw_growth_timeline *timeline)
{
    const unsigned last = CW_TREND_QUARTERS - 1;
    uint64_t end_ns = snapshot->growth.worked_ns;
    uint64_t sampled, before = 0;

    for (uint32_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->sample[i];

        note_peak(timeline, end_ns, sample->at.t_ns, sample->at.live);
        if (sample->most.t_ns != 0)
            note_peak(timeline, end_ns, sample->most.t_ns, sample->most.live);
    }
    sampled = timeline->peak[last];
    note_peak(timeline, end_ns, snapshot->device[device].peak_ns,
              snapshot->device[device].peak_bytes);
    for (unsigned i = 0; i < last; i++)
        before = timeline->peak[i] > before ? timeline->peak[i] : before;
    timeline->has_peaks =
        samples->count >= CW_TREND_POINTS_MIN && end_ns >= CW_TREND_SPAN_MIN && before > 0;
    if (timeline->has_peaks && sampled > before)
        timeline->peak_rose =
            (uint8_t)cw_trend_is_large((double)(sampled - before), (double)before);
}

static void fit_idle(struct samples *samples, struct cw_trend *out)
{
    uint64_t begin_ns = 0;

    for (uint32_t i = 0; i < samples->count; i++) {
        const struct cw_growth_point *at = &samples->sample[i].at;

        samples->trend[i] = (struct cw_trend_point){at->t_ns, at->idle};
        if (begin_ns == 0 && at->idle > 0)
            begin_ns = at->t_ns;
    }
    if (begin_ns != 0)
        cw_trend_fit(samples->trend, samples->count, begin_ns, out);
}

/* Of several records of a device, the first. */
static void read_timeline(struct cw_snapshot *snapshot, const struct cw_live_timeline *live,
                          struct samples *samples)
{
    unsigned device = live->device;
    struct cw_growth_timeline *timeline;

    if (device >= CW_DEVICES)
        return;
    timeline = &snapshot->growth.timeline[device];
    timeline->ordinal = (uint8_t)device;
    if (timeline->point)
        return;
    read_samples(snapshot, live, device, samples);
    if (make_points(snapshot, device, samples, timeline) != 0)
        return;
    find_peaks(snapshot, device, samples, timeline);
    fit_idle(samples, &timeline->idle);
}

void cw_snapshot_read_timelines(struct cw_snapshot *snapshot)
{
    struct samples *samples = cw_mem_alloc(sizeof(*samples));
    uint32_t count = cw_view_count(snapshot->view, CW_TABLE_TIMELINE);

    for (uint32_t i = 1; samples && i < count; i++) {
        const struct cw_live_timeline *live = cw_view_timeline(snapshot->view, i);

        if (live)
            read_timeline(snapshot, live, samples);
    }
    cw_mem_free(samples, sizeof(*samples));
}
