/* SPDX-License-Identifier: MIT */
/*
 * What each site held over time. See growth_read.h.
 *
 * A slot is read for all series at once, between two looks at its time; when the time has changed,
 * the whole moment is dropped. A series counts where its record and that of its site name each
 * other. A record without a series held nothing at the samples, unless there was no room for one:
 * then, as its past is not known, what it holds now is left out too.
 */
#include "report/snapshot/growth_read.h"

#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define ACQUIRE(field) atomic_load_explicit(&(field), memory_order_acquire)

struct slot {
    uint64_t t_ns;
    uint32_t at;
};

/* A series, and the row that it belongs to. */
struct member {
    uint32_t live_site, series, row;
};

struct reader {
    struct cw_snapshot *snapshot;
    struct cw_snapshot_growth *growth;
    struct member *member;
    uint32_t members, limit;
};

static uint64_t *row_bytes(struct cw_snapshot_growth *growth, uint32_t row)
{
    return growth->bytes + (size_t)row * CW_SAMPLE_TIMES;
}

/* ---- moments ---- */

static int is_earlier(const void *a, const void *b, const void *arg)
{
    const struct slot *left = a;
    const struct slot *right = b;

    (void)arg;
    return left->t_ns != right->t_ns ? left->t_ns < right->t_ns : left->at < right->at;
}

static uint32_t find_slots(const struct reader *reader, struct slot *slot)
{
    const struct cw_live_growth *live = &cw_view_header(reader->snapshot->view)->growth;
    uint32_t count = 0;

    for (uint32_t i = 0; i < CW_SAMPLES; i++) {
        uint64_t t_ns = ACQUIRE(live->t_ns[i]);

        if (t_ns != 0 && t_ns < reader->growth->end_ns)
            slot[count++] = (struct slot){t_ns, i};
    }
    cw_sort(slot, count, sizeof(*slot), is_earlier, NULL);
    return count;
}

/* What comes behind it, such as a program that writes its results to a disk, is no part of a span:
 * how long it takes says nothing about memory. */
static uint64_t find_last_work(const struct cw_snapshot *snapshot)
{
    uint64_t last_ns = LOAD(cw_view_header(snapshot->view)->growth.worked_ns);

    for (uint32_t i = 0; i < snapshot->sites; i++)
        if (snapshot->site[i].last_ns > last_ns)
            last_ns = snapshot->site[i].last_ns;
    return last_ns != 0 && last_ns < snapshot->growth.end_ns ? last_ns : snapshot->growth.end_ns;
}

/* ---- rows ---- */

/* The series of a live site, 0: it has none. */
static uint32_t series_of(const struct cw_view *view, uint32_t live_site)
{
    const struct cw_live_site *site = cw_view_site(view, live_site);
    uint32_t index = site ? ACQUIRE(site->series) : 0;
    const struct cw_live_series *series = cw_view_series(view, index);

    return series && LOAD(series->site) == live_site ? index : 0;
}

static int is_counted(const struct cw_snapshot *snapshot, uint32_t merged)
{
    return merged != CW_SITE_NONE &&
           cw_kind_counted(snapshot->site[merged].kind) != CW_COUNTED_NONE;
}

/* Marks the sites that have a series, and numbers their rows. */
static void find_members(struct reader *reader)
{
    struct cw_snapshot *snapshot = reader->snapshot;

    for (uint32_t i = 1; i < reader->limit; i++) {
        uint32_t series = series_of(snapshot->view, i);

        if (series == 0 || !is_counted(snapshot, snapshot->merged[i]))
            continue;
        reader->member[reader->members++] =
            (struct member){.live_site = i, .series = series, .row = snapshot->merged[i]};
        snapshot->site[snapshot->merged[i]].growth = 1;
    }
    for (uint32_t i = 0; i < snapshot->sites; i++)
        if (snapshot->site[i].growth != 0)
            snapshot->site[i].growth = ++reader->growth->rows;
    for (uint32_t i = 0; i < reader->members; i++)
        reader->member[i].row = snapshot->site[reader->member[i].row].growth - 1;
}

static int make_rows(struct reader *reader)
{
    struct cw_snapshot_growth *growth = reader->growth;

    growth->rows_limit = growth->rows;
    growth->row = cw_mem_alloc(growth->rows * sizeof(*growth->row));
    growth->bytes = cw_mem_alloc((size_t)growth->rows * CW_SAMPLE_TIMES * sizeof(*growth->bytes));
    growth->suspect = cw_mem_alloc(growth->rows * sizeof(*growth->suspect));
    if (!growth->row || !growth->bytes || !growth->suspect)
        return -1;
    for (uint32_t i = 0; i < reader->snapshot->sites; i++)
        if (reader->snapshot->site[i].growth != 0)
            growth->row[reader->snapshot->site[i].growth - 1].site = i;
    for (uint32_t i = 0; i < growth->rows; i++)
        growth->row[i].first = i * CW_SAMPLE_TIMES;
    return 0;
}

static void add_member(const struct reader *reader, const struct member *member, uint32_t slot,
                       uint32_t moment)
{
    const struct cw_live_series *series = cw_view_series(reader->snapshot->view, member->series);
    uint64_t *cell = &row_bytes(reader->growth, member->row)[moment];
    uint64_t bytes = series ? ACQUIRE(series->bytes[slot]) : 0;

    if (series && LOAD(series->site) == member->live_site)
        *cell = cw_add_capped(*cell, bytes);
}

static void read_moment(struct reader *reader, const struct slot *slot)
{
    const struct cw_live_growth *live = &cw_view_header(reader->snapshot->view)->growth;
    struct cw_snapshot_growth *growth = reader->growth;
    uint32_t moment = growth->moments;

    if (moment > 0 && growth->t_ns[moment - 1] == slot->t_ns)
        return;
    for (uint32_t i = 0; i < reader->members; i++)
        add_member(reader, &reader->member[i], slot->at, moment);
    atomic_thread_fence(memory_order_acquire);
    if (LOAD(live->t_ns[slot->at]) == slot->t_ns) {
        growth->t_ns[growth->moments++] = slot->t_ns;
        return;
    }
    for (uint32_t i = 0; i < growth->rows; i++)
        row_bytes(growth, i)[moment] = 0;
}

static int has_known_past(const struct reader *reader, uint32_t live_site,
                          const struct cw_live_site *site)
{
    const struct cw_snapshot_growth *growth = reader->growth;
    const struct cw_live_header *header = cw_view_header(reader->snapshot->view);
    uint64_t last_ns = growth->moments > 0 ? growth->t_ns[growth->moments - 1] : 0;

    return series_of(reader->snapshot->view, live_site) != 0 || LOAD(header->growth.dropped) == 0 ||
           LOAD(site->first_ns) > last_ns;
}

static void read_present(struct reader *reader)
{
    struct cw_snapshot *snapshot = reader->snapshot;
    struct cw_snapshot_growth *growth = reader->growth;

    for (uint32_t i = 1; i < reader->limit; i++) {
        const struct cw_live_site *site = cw_view_site(snapshot->view, i);
        const struct cw_snapshot_site *merged = cw_snapshot_find(snapshot, i);
        struct cw_site_sums sums;
        uint64_t *cell;

        if (!site || !merged || merged->growth == 0 || !has_known_past(reader, i, site))
            continue;
        cw_view_site_sums(site, &sums);
        cell = &row_bytes(growth, merged->growth - 1)[growth->moments];
        *cell = cw_add_capped(*cell, sums.live_bytes);
    }
    growth->t_ns[growth->moments++] = growth->end_ns;
}

/* ---- what they tell ---- */

/* Of the present's point, which is behind all others. */
static uint64_t last_time(const struct cw_snapshot_growth *growth)
{
    uint64_t before_ns = growth->moments > 1 ? growth->t_ns[growth->moments - 2] : 0;

    return growth->worked_ns > before_ns ? growth->worked_ns : before_ns + 1;
}

static void fit_rows(struct reader *reader)
{
    struct cw_snapshot_growth *growth = reader->growth;
    struct cw_trend_point point[CW_SAMPLE_TIMES];

    for (uint32_t i = 0; i < growth->rows; i++) {
        struct cw_growth_row *row = &growth->row[i];
        struct cw_snapshot_site *site = &reader->snapshot->site[row->site];

        for (uint32_t k = 0; k < growth->moments; k++)
            point[k] = (struct cw_trend_point){growth->t_ns[k], row_bytes(growth, i)[k]};
        point[growth->moments - 1].t_ns = last_time(growth);
        cw_trend_fit(point, growth->moments, site->first_ns, &row->trend);
        site->grows = row->trend.is_steady;
        if (site->grows)
            growth->suspect[growth->suspects++] = row->site;
        row->count = growth->moments;
    }
}

static int grew_more(const void *a, const void *b, const void *arg)
{
    const struct cw_snapshot *snapshot = arg;
    uint32_t i = *(const uint32_t *)a;
    uint32_t k = *(const uint32_t *)b;
    double left = cw_snapshot_growth_row(snapshot, i)->trend.growth;
    double right = cw_snapshot_growth_row(snapshot, k)->trend.growth;

    return left > right || (!(left < right) && i < k);
}

static const struct cw_growth_step *find_step(const struct cw_snapshot_growth *growth, uint32_t tag)
{
    for (uint32_t i = 0; i < growth->steps && tag != 0; i++)
        if (growth->step[i].tag == tag && growth->step[i].has_line)
            return &growth->step[i];
    return NULL;
}

/* Of a place in several tags that of the record that allocated most. */
static void find_tags(struct reader *reader)
{
    struct cw_snapshot_growth *growth = reader->growth;
    uint64_t *most = cw_mem_alloc(growth->rows * sizeof(*most));

    for (uint32_t i = 0; most && i < reader->members; i++) {
        const struct member *member = &reader->member[i];
        const struct cw_live_site *site = cw_view_site(reader->snapshot->view, member->live_site);
        uint64_t bytes = site ? LOAD(site->total_bytes) : 0;

        if (bytes <= most[member->row])
            continue;
        most[member->row] = bytes;
        growth->row[member->row].tag = site->tag;
    }
    cw_mem_free(most, growth->rows * sizeof(*most));
    for (uint32_t i = 0; i < growth->rows; i++) {
        struct cw_growth_row *row = &growth->row[i];
        const struct cw_growth_step *step =
            row->trend.is_steady ? find_step(growth, row->tag) : NULL;

        row->tag = step ? step->tag : 0;
        row->per_step = step ? cw_trend_to_decimal(row->trend.slope * step->mean_ns / 1e9) : 0;
    }
}

static void read_rows(struct reader *reader)
{
    struct cw_snapshot_growth *growth = reader->growth;
    struct slot slot[CW_SAMPLES];
    uint32_t slots;

    find_members(reader);
    if (growth->rows == 0)
        return;
    if (make_rows(reader) != 0) {
        growth->rows = 0;
        for (uint32_t i = 0; i < reader->snapshot->sites; i++)
            reader->snapshot->site[i].growth = 0;
        return;
    }
    slots = find_slots(reader, slot);
    for (uint32_t i = 0; i < slots; i++)
        read_moment(reader, &slot[i]);
    read_present(reader);
    fit_rows(reader);
    cw_sort(growth->suspect, growth->suspects, sizeof(uint32_t), grew_more, reader->snapshot);
    find_tags(reader);
}

void cw_snapshot_growth_read(struct cw_snapshot *snapshot, uint64_t now_ns)
{
    const struct cw_live_growth *live = &cw_view_header(snapshot->view)->growth;
    struct reader reader = {
        .snapshot = snapshot, .growth = &snapshot->growth, .limit = snapshot->merged_count};

    snapshot->growth.end_ns = now_ns;
    snapshot->growth.worked_ns = find_last_work(snapshot);
    snapshot->growth.is_on = LOAD(live->is_on) != 0;
    snapshot->growth.taken = LOAD(live->taken);
    snapshot->growth.period_ns = LOAD(live->period_ns);
    snapshot->growth.dropped = LOAD(live->dropped);
    cw_snapshot_read_steps(snapshot);
    cw_snapshot_read_regrowth(snapshot);
    cw_snapshot_read_timelines(snapshot);
    reader.member = cw_mem_alloc(reader.limit * sizeof(*reader.member));
    if (reader.member)
        read_rows(&reader);
    cw_mem_free(reader.member, reader.limit * sizeof(*reader.member));
}
