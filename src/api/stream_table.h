/* SPDX-License-Identifier: MIT */
/* The rows of stream sets; see streams.h. For streams.c and stream_works.c alone. */
#ifndef CW_API_STREAM_TABLE_H
#define CW_API_STREAM_TABLE_H

#include "api/rows.h"
#include "api/streams.h"

#define CW_STREAM_SPANS 64u

struct cw_stream_work {
    void *begin, *done; /* timed */
    int is_counted;     /* it has begun since the last reset */
};

/* When a piece of work was done, on a clock of the set's own. */
struct cw_stream_span {
    int64_t from_ns, to_ns;
};

struct cw_stream_lane {
    void *stream, *ready; /* constant as long as the row is somebody's */
    struct cw_stream_work work[CW_STREAM_WORKS];
    uint64_t begun, ended, passed; /* works; while one is open, ended is one less than begun */
    int has_missed_end;            /* of the one that is open */
    struct cw_stream_span span[CW_STREAM_SPANS];
    uint64_t spans; /* that were written; the last of them are there */
};

struct cw_stream_times {
    uint64_t since_ns;
    uint64_t lane_ns[CW_STREAM_LANES];
    uint64_t busy_ns; /* any of them had work */
    uint64_t works, refused;
};

struct cw_stream_row {
    struct cw_row own;
    struct cw_stream_times times; /* guarded by the table's lock */
    /* The submitter's. */
    struct cw_stream_lane lane[CW_STREAM_LANES];
    void *last; /* the event that passed last, at last_ns */
    int64_t last_ns;
    int has_last;
};

extern CW_HIDDEN struct cw_rows cw_streams;
extern CW_HIDDEN const struct cw_transfer_ops *cw_stream_driver;

static inline struct cw_stream_row *cw_streams_of(const struct cw_row_visit *visit)
{
    return (struct cw_stream_row *)visit->row;
}

/* INVALID: a set has no such stream. */
int cw_stream_check(int which);

/* The row, which is the visitor's, is called for. BUSY, DRIVER. */
static inline int cw_stream_enter(struct cw_row_visit *visit)
{
    int error = cw_api_check_driver();

    return error == CUWARDEN_OK ? cw_rows_enter(&cw_streams, visit) : error;
}

/* The visitor submits, in the row's context, once others do not. NOT_FOUND, BUSY, DRIVER. */
int cw_stream_begin_call(uint64_t streams, struct cw_row_visit *visit);

/* Whatever has passed is counted. Does not wait; the submitter's, in the row's context. The
 * driver's code. */
int cw_stream_settle(struct cw_stream_row *row);

#endif
