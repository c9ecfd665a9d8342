/* SPDX-License-Identifier: MIT */
/*
 * Growth: a part of the snapshot (report/snapshot/snapshot.h), frozen from the layout's records
 * over time. Filled by cw_snapshot_growth_read before leaks are classified: a leak that grew
 * steadily has its own class.
 *
 * Glossary
 *   moment   a sample's time, or the last of all: the present, with what is held now.
 *   row      what one site of the snapshot held at each moment.
 *   suspect  a row that grew steadily (trend.h), whether it was freed in the end or not.
 */
#ifndef CW_REPORT_SNAPSHOT_GROWTH_H
#define CW_REPORT_SNAPSHOT_GROWTH_H

#include <stddef.h>
#include <stdint.h>

#include "live/view.h"
#include "report/snapshot/trend.h"

#define CW_SAMPLE_TIMES    (CW_SAMPLES + 1)
#define CW_STEPS_MIN       3 /* fewer are not reported */
#define CW_STEPS_SHOWN     5
#define CW_REGROWTHS_SHOWN 5

struct cw_growth_row {
    uint32_t site;         /* of the snapshot */
    uint32_t first, count; /* its part of the bytes: one number for each moment, or none */
    struct cw_trend trend;
    /* Of a suspect, in a place that has a tag with CW_STEPS_MIN steps: the tag, else 0, and how
     * much it grew in the mean time of a step. */
    uint32_t tag;
    double per_step;
};

/* A tag with at least one completed step. */
struct cw_growth_step {
    uint32_t tag;
    uint8_t has_line, is_rising; /* of what the whole process held */
    uint64_t steps;
    double slope, r2; /* a step */
    double growth;    /* of the line from the first to the last step */
    double mean_ns;   /* from one end to the next */
    uint64_t first_bytes, last_bytes;
};

struct cw_growth_regrowth {
    uint32_t site; /* of the snapshot */
    uint64_t resizes, copied_bytes, chains;
    uint64_t factor_sum; /* in 1/1000 */
    double factor;       /* by which a block became larger, on average */
    uint64_t first_bytes, largest_bytes;
};

struct cw_growth_point {
    uint64_t t_ns, live, held, idle, used;
};

struct cw_growth_timeline {
    uint8_t ordinal;
    struct cw_growth_point *point; /* in the order of time; the last is the present */
    uint32_t count, points_limit;
    uint8_t has_peaks;                /* there are enough points for them to mean something */
    uint8_t peak_rose;                /* the last of them is clearly above all others */
    uint64_t peak[CW_TREND_QUARTERS]; /* live, in each quarter of the process's life */
    struct cw_trend idle;             /* of what the pool kept, from when it kept any */
};

struct cw_snapshot_growth {
    uint64_t end_ns;    /* the present */
    uint64_t worked_ns; /* when the program last worked with a device: here spans end */
    uint64_t t_ns[CW_SAMPLE_TIMES];
    uint32_t moments;
    uint8_t is_on;
    uint64_t taken, period_ns, dropped; /* samples, the time between two, sites without room */
    struct cw_growth_row *row;          /* in the order of sites */
    uint32_t rows, rows_limit;
    uint64_t *bytes;
    uint32_t byte_count;
    uint32_t *suspect; /* sites, that which grew most first */
    uint32_t suspects;
    struct cw_growth_step *step;
    uint32_t steps, steps_limit;
    uint32_t rising[CW_STEPS_SHOWN];     /* of `step`, that which grew most first */
    uint32_t risings;                    /* entries in `rising`; there may be more that rise */
    struct cw_growth_regrowth *regrowth; /* most bytes copied first */
    uint32_t regrowths, regrowths_limit;
    struct cw_growth_timeline timeline[CW_DEVICES];
};

void cw_snapshot_growth_fini(struct cw_snapshot_growth *growth);

/* Whether growth was recorded for long enough that "none found" is meaningful. */
int cw_snapshot_growth_was_watched(const struct cw_snapshot_growth *growth);
/* Whether the regrowth is worth a line. */
int cw_snapshot_regrowth_is_large(const struct cw_growth_regrowth *regrowth);
/* Adds rising step `index` to `rising` if it grew more than others there. */
void cw_snapshot_note_rising(struct cw_snapshot_growth *growth, uint32_t index);

/* The bytes of a row at each moment. */
static inline const uint64_t *cw_snapshot_growth_bytes(const struct cw_snapshot_growth *growth,
                                                       uint32_t row)
{
    return growth->bytes + growth->row[row].first;
}

static inline uint64_t cw_add_capped(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

#endif
