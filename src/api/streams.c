/* SPDX-License-Identifier: MIT */
/* Stream sets are made, ordered, told about and ended; see streams.h. */
#include "api/stream_table.h"
#include "base/clock.h"
#include "base/float_env.h"

static struct cw_stream_row rows[CW_STREAM_SETS];
struct cw_rows cw_streams = CW_ROWS_INIT("stream set", rows);
const struct cw_transfer_ops *cw_stream_driver;

void cw_api_streams_init(const struct cw_buffer_ops *places, const struct cw_transfer_ops *ops)
{
    cw_streams.places = places;
    cw_stream_driver = ops;
}

void cw_api_streams_forked(void)
{
    cw_rows_reset(&cw_streams);
}

int cw_stream_check(int which)
{
    return which >= 0 && which < CW_STREAM_LANES
               ? CUWARDEN_OK
               : cw_api_fail(CUWARDEN_INVALID,
                             "a set has no stream %d: CUWARDEN_COMPUTE, CUWARDEN_IN or "
                             "CUWARDEN_OUT",
                             which);
}

/* ---- making and ending ---- */

static void keep_first(int *code, int other)
{
    *code = *code != 0 ? *code : other;
}

static void destroy_event(void *event, int *code)
{
    if (event != NULL)
        keep_first(code, cw_stream_driver->event_destroy(event));
}

static void drop_lane(const struct cw_stream_lane *lane, int *code)
{
    if (lane->stream != NULL)
        keep_first(code, cw_stream_driver->stream_wait(lane->stream));
    destroy_event(lane->ready, code);
    for (unsigned i = 0; i < CW_STREAM_WORKS; i++) {
        destroy_event(lane->work[i].begin, code);
        destroy_event(lane->work[i].done, code);
    }
    if (lane->stream != NULL)
        keep_first(code, cw_stream_driver->stream_destroy(lane->stream));
}

/* What of the row is there goes; the first code that is none. The context is current. */
static int drop(const struct cw_stream_row *row)
{
    int code = 0;

    for (int i = 0; i < CW_STREAM_LANES; i++)
        drop_lane(&row->lane[i], &code);
    destroy_event(row->last, &code);
    return code;
}

static int fill_lane(struct cw_stream_lane *lane)
{
    int code = cw_stream_driver->stream_create(&lane->stream);

    if (code == 0)
        code = cw_stream_driver->event_create(0, &lane->ready);
    for (unsigned i = 0; i < CW_STREAM_WORKS && code == 0; i++) {
        code = cw_stream_driver->event_create(1, &lane->work[i].begin);
        if (code == 0)
            code = cw_stream_driver->event_create(1, &lane->work[i].done);
    }
    return code;
}

static int make(struct cw_stream_row *row, int device)
{
    struct cw_row_visit visit = {.row = &row->own};
    int code, error = cw_rows_place_on(&cw_streams, &row->own, device, &row->own.place);

    if (error == CUWARDEN_OK)
        error = cw_rows_enter(&cw_streams, &visit);
    if (error != CUWARDEN_OK)
        return error;
    code = cw_stream_driver->event_create(1, &row->last);
    for (int i = 0; i < CW_STREAM_LANES && code == 0; i++)
        code = fill_lane(&row->lane[i]);
    if (code != 0)
        drop(row);
    cw_rows_leave(&cw_streams, &visit);
    row->times.since_ns = cw_clock_ns();
    return cw_rows_refused(&cw_streams, &row->own, code, "begin");
}

int cw_api_streams_make(const char *name, int device, uint64_t *out)
{
    struct cw_row *row = NULL;
    uint64_t id = 0;
    int error = cw_rows_check_make(&cw_streams, name, out);

    if (error == CUWARDEN_OK)
        error = cw_api_check_driver();
    if (error == CUWARDEN_OK)
        error = cw_rows_claim(&cw_streams, name, &row, &id);
    if (error != CUWARDEN_OK)
        return error;
    error = make((struct cw_stream_row *)row, device);
    return cw_rows_settle(&cw_streams, row, id, error, out);
}

int cw_api_streams_end(uint64_t streams)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_end(&cw_streams, streams, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = cw_rows_enter(&cw_streams, &visit);
    if (error == CUWARDEN_OK) {
        error = cw_rows_refused(&cw_streams, visit.row, drop(cw_streams_of(&visit)), "end");
        cw_rows_leave(&cw_streams, &visit);
    }
    cw_rows_drop(&cw_streams, visit.row);
    return error;
}

/* ---- the order of streams ---- */

int cw_stream_begin_call(uint64_t streams, struct cw_row_visit *visit)
{
    int error = cw_rows_await(&cw_streams, streams, visit);

    if (error != CUWARDEN_OK)
        return error;
    error = cw_stream_enter(visit);
    if (error != CUWARDEN_OK)
        cw_rows_give_up(&cw_streams, visit);
    return error;
}

int cw_api_streams_order(uint64_t streams, int later, int earlier)
{
    struct cw_row_visit visit;
    const struct cw_stream_lane *lane;
    int code, error = cw_stream_check(later);

    if (error == CUWARDEN_OK)
        error = cw_stream_check(earlier);
    if (error == CUWARDEN_OK && later == earlier)
        error = cw_api_fail(CUWARDEN_INVALID, "stream %d of a set keeps its own order", later);
    if (error == CUWARDEN_OK)
        error = cw_stream_begin_call(streams, &visit);
    if (error != CUWARDEN_OK)
        return error;
    lane = cw_streams_of(&visit)->lane;
    code = cw_stream_driver->event_record(lane[earlier].ready, lane[earlier].stream);
    if (code == 0)
        code = cw_stream_driver->event_order(lane[earlier].ready, lane[later].stream);
    error = cw_rows_refused(&cw_streams, visit.row, code, "order its streams");
    cw_rows_end_call(&cw_streams, &visit);
    return error;
}

/* ---- how it stands ---- */

static double share(uint64_t part_ns, uint64_t of_ns)
{
    return part_ns < of_ns || of_ns == 0 ? cw_float_ratio(part_ns, of_ns) : 1;
}

static void tell(const struct cw_stream_row *row, struct cuwarden_streams *out)
{
    struct cw_stream_times times;
    uint64_t sum_ns = 0;

    cw_lock_acquire(&cw_streams.lock);
    times = row->times;
    cw_lock_release(&cw_streams.lock);
    for (int i = 0; i < CW_STREAM_LANES; i++)
        sum_ns += times.lane_ns[i];
    out->name = row->own.name;
    out->compute = row->lane[CUWARDEN_COMPUTE].stream;
    out->in = row->lane[CUWARDEN_IN].stream;
    out->out = row->lane[CUWARDEN_OUT].stream;
    out->age_ns = cw_clock_ns() - times.since_ns;
    out->works = times.works;
    out->refused = times.refused;
    out->compute_ns = times.lane_ns[CUWARDEN_COMPUTE];
    out->in_ns = times.lane_ns[CUWARDEN_IN];
    out->out_ns = times.lane_ns[CUWARDEN_OUT];
    out->busy_ns = times.busy_ns;
    out->compute_use = share(out->compute_ns, out->age_ns);
    out->in_use = share(out->in_ns, out->age_ns);
    out->out_use = share(out->out_ns, out->age_ns);
    out->overlap = times.busy_ns < sum_ns ? share(sum_ns - times.busy_ns, sum_ns) : 0;
    out->device = row->own.place.device;
}

/* The row is the visitor's, without its context. */
static int visit_now(uint64_t streams, struct cw_row_visit *visit)
{
    int code, error = cw_rows_begin_call(&cw_streams, streams, 1, visit);

    /* What another is at, or a context that ends, leaves what was seen before. */
    if (error != CUWARDEN_OK)
        return cw_rows_take(&cw_streams, streams, 0, visit);
    code = cw_stream_settle(cw_streams_of(visit));
    cw_rows_leave(&cw_streams, visit);
    error = cw_rows_refused(&cw_streams, visit->row, code, "say when its work was done");
    if (error != CUWARDEN_OK)
        cw_rows_give_up(&cw_streams, visit);
    return error;
}

int cw_api_streams_now(uint64_t streams, struct cuwarden_streams *out, size_t size)
{
    struct cuwarden_streams now = {.id = streams};
    struct cw_row_visit visit;
    int error = visit_now(streams, &visit);

    if (error != CUWARDEN_OK)
        return error;
    tell(cw_streams_of(&visit), &now);
    cw_rows_give_up(&cw_streams, &visit);
    cw_api_give(out, size, &now, sizeof(now));
    return CUWARDEN_OK;
}

static void reset(struct cw_stream_row *row)
{
    for (struct cw_stream_lane *lane = row->lane; lane < row->lane + CW_STREAM_LANES; lane++) {
        for (unsigned i = 0; i < CW_STREAM_WORKS; i++)
            lane->work[i].is_counted = 0;
        lane->spans = 0;
    }
    cw_lock_acquire(&cw_streams.lock);
    row->times = (struct cw_stream_times){.since_ns = cw_clock_ns()};
    cw_lock_release(&cw_streams.lock);
}

int cw_api_streams_reset(uint64_t streams)
{
    struct cw_row_visit visit;
    int error = cw_rows_await(&cw_streams, streams, &visit);

    if (error != CUWARDEN_OK)
        return error;
    reset(cw_streams_of(&visit));
    cw_rows_give_up(&cw_streams, &visit);
    return CUWARDEN_OK;
}
