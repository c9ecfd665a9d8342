/* SPDX-License-Identifier: MIT */
/* Pieces of work on the streams of a set: they are marked, seen to be done, and added up. See
 * streams.h. */
#include "api/arrivals.h"
#include "api/stream_table.h"
#include "core/process/gate.h"

/* ---- what has passed ---- */

/* For how long a span of one stream lay in another's. */
static uint64_t common_ns(const struct cw_stream_span *one, const struct cw_stream_span *other,
                          struct cw_stream_span *out)
{
    out->from_ns = one->from_ns > other->from_ns ? one->from_ns : other->from_ns;
    out->to_ns = one->to_ns < other->to_ns ? one->to_ns : other->to_ns;
    return out->to_ns > out->from_ns ? (uint64_t)(out->to_ns - out->from_ns) : 0;
}

static unsigned spans_of(const struct cw_stream_lane *lane)
{
    return lane->spans < CW_STREAM_SPANS ? (unsigned)lane->spans : CW_STREAM_SPANS;
}

/* For how long in a span a stream had work; its own spans have nothing in common. */
static uint64_t worked_ns(const struct cw_stream_lane *lane, const struct cw_stream_span *span)
{
    struct cw_stream_span both;
    uint64_t sum = 0;

    for (unsigned i = 0; i < spans_of(lane); i++)
        sum += common_ns(span, &lane->span[i], &both);
    return sum;
}

/* For how long in a span either of the two other streams had work. */
static uint64_t covered_ns(const struct cw_stream_row *row, int which,
                           const struct cw_stream_span *span)
{
    const struct cw_stream_lane *one = &row->lane[(which + 1) % CW_STREAM_LANES],
                                *other = &row->lane[(which + 2) % CW_STREAM_LANES];
    uint64_t sum = worked_ns(other, span), length = (uint64_t)(span->to_ns - span->from_ns);
    struct cw_stream_span both;

    for (unsigned i = 0; i < spans_of(one); i++) {
        uint64_t ns = common_ns(span, &one->span[i], &both);

        if (ns != 0)
            sum += ns - worked_ns(other, &both);
    }
    return sum < length ? sum : length;
}

static void count(struct cw_stream_row *row, int which, const struct cw_stream_span *span)
{
    struct cw_stream_lane *lane = &row->lane[which];
    uint64_t ns = (uint64_t)(span->to_ns - span->from_ns), covered = covered_ns(row, which, span);

    lane->span[lane->spans++ % CW_STREAM_SPANS] = *span;
    cw_lock_acquire(&cw_streams.lock);
    row->times.lane_ns[which] += ns;
    row->times.busy_ns += ns - covered;
    row->times.works++;
    cw_lock_release(&cw_streams.lock);
}

/* When a work has passed, by the one before, which may have passed later. Its event takes the place
 * of that one's. */
static int date(struct cw_stream_row *row, struct cw_stream_work *work)
{
    void *event = work->done;
    uint64_t ns = 0;
    int code = 0;

    if (row->has_last) {
        code = cw_stream_driver->event_elapsed(row->last, event, &ns);
        row->last_ns += (int64_t)ns;
        if (code == 0 && ns == 0) {
            code = cw_stream_driver->event_elapsed(event, row->last, &ns);
            row->last_ns -= (int64_t)ns;
        }
    }
    if (code != 0)
        return code;
    work->done = row->last;
    row->last = event;
    row->has_last = 1;
    return 0;
}

static int pass(struct cw_stream_row *row, int which, struct cw_stream_work *work)
{
    struct cw_stream_span span;
    uint64_t ns = 0;
    int code = cw_stream_driver->event_elapsed(work->begin, work->done, &ns);

    if (code == 0)
        code = date(row, work);
    if (code != 0)
        return code;
    span = (struct cw_stream_span){.from_ns = row->last_ns - (int64_t)ns, .to_ns = row->last_ns};
    if (work->is_counted)
        count(row, which, &span);
    return 0;
}

static int settle_work(struct cw_stream_row *row, int which, struct cw_stream_work *work)
{
    int code = cw_stream_driver->event_query(work->done);

    return code == 0 ? pass(row, which, work) : code;
}

/* What a capture is in the way of is asked about again. */
static int settle_lane(struct cw_stream_row *row, int which)
{
    struct cw_stream_lane *lane = &row->lane[which];
    int code = 0;

    while (code == 0 && lane->passed < lane->ended && cw_gate_enter()) {
        code = settle_work(row, which, &lane->work[lane->passed % CW_STREAM_WORKS]);
        cw_gate_leave();
        if (code == CW_TRANSFER_NOT_READY || cw_arrival_is_captured(code))
            return 0;
        lane->passed++;
    }
    return code;
}

int cw_stream_settle(struct cw_stream_row *row)
{
    int code = 0;

    for (int i = 0; i < CW_STREAM_LANES && code == 0; i++)
        code = settle_lane(row, i);
    return code;
}

/* ---- marks ---- */

static int refuse(struct cw_stream_row *row, int which)
{
    cw_lock_acquire(&cw_streams.lock);
    row->times.refused++;
    cw_lock_release(&cw_streams.lock);
    return cw_api_fail(CUWARDEN_BUSY,
                       "%u pieces of work are on their way in stream %d of stream set '%s'",
                       CW_STREAM_WORKS, which, row->own.name);
}

static void drop_open(struct cw_stream_lane *lane)
{
    lane->begun = lane->ended;
    lane->has_missed_end = 0;
}

static int begin(struct cw_stream_row *row, int which)
{
    struct cw_stream_lane *lane = &row->lane[which];
    struct cw_stream_work *work;
    int code;

    if (lane->has_missed_end)
        drop_open(lane);
    if (lane->begun != lane->ended)
        return cw_api_fail(CUWARDEN_UNBALANCED,
                           "work in stream %d of stream set '%s' has begun, and not ended", which,
                           row->own.name);
    code = cw_stream_settle(row);
    if (code == 0 && lane->begun - lane->passed == CW_STREAM_WORKS)
        return refuse(row, which);
    work = &lane->work[lane->begun % CW_STREAM_WORKS];
    if (code == 0)
        code = cw_stream_driver->event_record(work->begin, lane->stream);
    if (code == 0) {
        work->is_counted = 1;
        lane->begun++;
    }
    return cw_rows_refused(&cw_streams, &row->own, code, "mark work");
}

static int end(struct cw_stream_row *row, int which)
{
    struct cw_stream_lane *lane = &row->lane[which];
    int code;

    if (lane->begun == lane->ended)
        return cw_api_fail(CUWARDEN_UNBALANCED, "no work has begun in stream %d of stream set '%s'",
                           which, row->own.name);
    code = cw_stream_driver->event_record(lane->work[lane->ended % CW_STREAM_WORKS].done,
                                          lane->stream);
    lane->ended += code == 0;
    drop_open(lane);
    return cw_rows_refused(&cw_streams, &row->own, code, "mark work");
}

int cw_api_work_begin(uint64_t streams, int which)
{
    struct cw_row_visit visit;
    int error = cw_stream_check(which);

    if (error == CUWARDEN_OK)
        error = cw_stream_begin_call(streams, &visit);
    if (error != CUWARDEN_OK)
        return error;
    error = begin(cw_streams_of(&visit), which);
    cw_rows_end_call(&cw_streams, &visit);
    return error;
}

/* Where it cannot be marked, the program may ask again, or begin the next: it has no other way to
 * be rid of this one. */
int cw_api_work_end(uint64_t streams, int which)
{
    struct cw_row_visit visit;
    struct cw_stream_lane *lane;
    int error = cw_stream_check(which);

    if (error == CUWARDEN_OK)
        error = cw_rows_await(&cw_streams, streams, &visit);
    if (error != CUWARDEN_OK)
        return error;
    lane = &cw_streams_of(&visit)->lane[which];
    error = cw_stream_enter(&visit);
    if (error == CUWARDEN_OK) {
        error = end(cw_streams_of(&visit), which);
        cw_rows_leave(&cw_streams, &visit);
    } else {
        lane->has_missed_end = lane->begun != lane->ended;
    }
    cw_rows_give_up(&cw_streams, &visit);
    return error;
}
