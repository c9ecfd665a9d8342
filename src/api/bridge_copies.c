/* SPDX-License-Identifier: MIT */
/* What goes over a bridge: copies are checked, ordered and waited for. See bridges.h. */
#include "api/arrivals.h"
#include "api/bridge_table.h"
#include "api/row_memory.h"
#include "api/place.h"
#include "core/tags/tag.h"

static int refused(const struct cw_bridge_row *row, int code, const char *what)
{
    return cw_rows_refused(&cw_bridges, &row->own, code, what);
}

/* ---- what has arrived ---- */

static void complete_locked(struct cw_bridge_row *row, struct cw_bridge_copy *copy, int code,
                            uint64_t ns)
{
    if (code == 0) {
        cw_transfers_add(row->far.place.device, copy->tag, &row->done, copy->bytes, ns,
                         cw_waits_ns(&copy->waits));
        cw_transfers_carried(row->far.place.device, copy->tag, copy->way, copy->bytes);
        row->carried.count[copy->way]++;
        row->carried.bytes[copy->way] += copy->bytes;
    } else if (row->failed == 0) {
        row->failed = copy->number;
        row->code = code;
    }
    copy->number = 0;
}

/* 0: it is not known whether it has arrived. */
static int settle_copy(struct cw_bridge_row *row, struct cw_bridge_copy *copy)
{
    uint64_t number, ns = 0;
    int code;

    cw_lock_acquire(&cw_bridges.lock);
    number = copy->is_submitted ? copy->number : 0;
    cw_lock_release(&cw_bridges.lock);
    if (number == 0)
        return 1;
    code = cw_arrival_ask(cw_bridge_transfers, copy->begin, copy->done, &ns);
    if (code == CW_TRANSFER_NOT_READY || code == CW_ARRIVAL_NOT_NOW)
        return code == CW_TRANSFER_NOT_READY;
    cw_lock_acquire(&cw_bridges.lock);
    if (copy->number == number)
        complete_locked(row, copy, code, ns);
    cw_lock_release(&cw_bridges.lock);
    return 1;
}

int cw_bridge_settle(struct cw_bridge_row *row)
{
    int is_known = 1;

    for (unsigned i = 0; i < CW_BRIDGE_COPIES; i++)
        is_known &= settle_copy(row, &row->copy[i]);
    return is_known;
}

/* ---- what may be copied ---- */

static int check_end(const struct cw_bridge_row *row, const struct cw_bridge_side *side,
                     const void *at, uint64_t bytes, struct cw_bridge_memory *out)
{
    return cw_rows_check_memory(&cw_bridges, &row->own, cw_bridge_driver, &side->place, at, bytes,
                                out);
}

/* One copy that is to be made. */
struct wanted {
    uint64_t to, from, bytes;
    void *stream;
    const struct cw_bridge_side *side; /* the stream's; NULL: there is no stream */
    enum cw_transfer_way way;
};

/* In the calling thread's context, which the default streams belong to. */
static int check_stream(const struct cw_bridge_row *row, void *stream, struct wanted *wanted)
{
    uint64_t context = 0;
    unsigned depth;
    int code;

    if (stream == CUWARDEN_NO_STREAM)
        return CUWARDEN_OK;
    depth = cw_api_enter();
    code = cw_bridge_driver->stream_context(stream, &context);
    cw_api_leave(depth);
    if (code != 0)
        return refused(row, code, "ask for the stream's context");
    wanted->side = context == row->far.place.context.handle    ? &row->far
                   : context == row->near.place.context.handle ? &row->near
                                                               : NULL;
    return wanted->side != NULL
               ? CUWARDEN_OK
               : cw_api_fail(CUWARDEN_INVALID,
                             "bridge '%s' cannot follow a stream that is of neither of its "
                             "contexts, on devices %u and %u",
                             row->own.name, row->near.place.device, row->far.place.device);
}

static int check_copy(const struct cw_bridge_row *row, struct wanted *out)
{
    const void *to = (const void *)(uintptr_t)out->to, *from = (const void *)(uintptr_t)out->from;
    uint64_t bytes = out->bytes;
    struct cw_bridge_memory to_memory, from_memory;
    int error = CUWARDEN_OK;

    if (bytes == 0)
        error = cw_api_fail(CUWARDEN_INVALID, "bridge '%s' cannot copy 0 bytes", row->own.name);
    if (error == CUWARDEN_OK)
        error = check_end(row, &row->near, from, bytes, &from_memory);
    if (error == CUWARDEN_OK)
        error = check_end(row, &row->far, to, bytes, &to_memory);
    if (error != CUWARDEN_OK)
        return error;
    if (out->to < out->from + bytes && out->from < out->to + bytes)
        return cw_api_fail(CUWARDEN_INVALID,
                           "bridge '%s' cannot copy %ju bytes from %p to %p: they overlap",
                           row->own.name, (uintmax_t)bytes, from, to);
    out->way = row->way;
    if (out->way == CW_WAY_PEER && (from_memory.context == 0 || to_memory.context == 0))
        out->way = CW_WAY_STAGED;
    return CUWARDEN_OK;
}

/* ---- the order of copies ---- */

/* `to` begins after what `from` was given; the context of both is current. */
static int order(void *event, void *from, void *to)
{
    int code = cw_bridge_transfers->event_record(event, from);

    return code != 0 ? code : cw_bridge_transfers->event_order(event, to);
}

static int enter(const struct cw_bridge_side *side, int *out_pushed)
{
    return cw_place_enter(cw_bridges.places, &side->place, out_pushed);
}

static void leave(const struct cw_bridge_side *side, int pushed)
{
    cw_bridges.places->leave(side->place.context, pushed);
}

/* Both sides wait for the program's stream. */
static int follow(struct cw_bridge_row *row, const struct wanted *wanted)
{
    const struct cw_bridge_side *side = wanted->side;
    const struct cw_bridge_side *other = side == &row->far ? &row->near : &row->far;
    int pushed, code = enter(side, &pushed);

    if (code != 0)
        return code;
    code = order(side->ready, wanted->stream, side->stream);
    leave(side, pushed);
    if (code == 0)
        code = enter(other, &pushed);
    if (code != 0)
        return code;
    code = cw_bridge_transfers->event_order(side->ready, other->stream);
    leave(other, pushed);
    return code;
}

static int fill_half(struct cw_bridge_row *row, const struct cw_bridge_half *half, uint64_t from,
                     uint64_t bytes)
{
    void *stream = row->near.stream;
    int pushed, code = enter(&row->near, &pushed);

    if (code != 0)
        return code;
    code = cw_bridge_transfers->event_order(half->empty, stream);
    if (code == 0)
        code = cw_bridge_transfers->download(half->data, from, bytes, stream);
    if (code == 0)
        code = cw_bridge_transfers->event_record(half->full, stream);
    leave(&row->near, pushed);
    return code;
}

/* The far side's context is current. */
static int empty_half(struct cw_bridge_row *row, const struct cw_bridge_half *half, uint64_t to,
                      uint64_t bytes)
{
    void *stream = row->far.stream;
    int code = cw_bridge_transfers->event_order(half->full, stream);

    if (code == 0)
        code = cw_bridge_driver->upload(to, half->data, bytes, stream);
    return code != 0 ? code : cw_bridge_transfers->event_record(half->empty, stream);
}

static int carry_staged(struct cw_bridge_row *row, const struct wanted *wanted)
{
    int code = 0;

    for (uint64_t at = 0; at < wanted->bytes && code == 0; at += row->chunk_bytes) {
        const struct cw_bridge_half *half = &row->half[row->turn++ % CW_BRIDGE_HALVES];
        uint64_t left = wanted->bytes - at;
        uint64_t bytes = left < row->chunk_bytes ? left : row->chunk_bytes;

        code = fill_half(row, half, wanted->from + at, bytes);
        if (code == 0)
            code = empty_half(row, half, wanted->to + at, bytes);
    }
    return code;
}

static int carry(struct cw_bridge_row *row, const struct wanted *wanted)
{
    if (wanted->way == CW_WAY_STAGED)
        return carry_staged(row, wanted);
    if (wanted->way == CW_WAY_PEER)
        return cw_bridge_driver->copy_peer(wanted->to, row->far.place.context.handle, wanted->from,
                                           row->near.place.context.handle, wanted->bytes,
                                           row->far.stream);
    return cw_bridge_driver->copy(wanted->to, wanted->from, wanted->bytes, row->far.stream);
}

/* What the stream does later begins after the copy; the near side's own stream, too. */
static int hold_back(struct cw_bridge_row *row, const struct wanted *wanted, void *done)
{
    int pushed, code = enter(&row->near, &pushed);

    if (code != 0)
        return code;
    code = cw_bridge_transfers->event_order(done, row->near.stream);
    leave(&row->near, pushed);
    if (code == 0 && wanted->side != NULL)
        code = enter(wanted->side, &pushed);
    if (code != 0 || wanted->side == NULL)
        return code;
    code = cw_bridge_transfers->event_order(done, wanted->stream);
    leave(wanted->side, pushed);
    return code;
}

static int submit(struct cw_bridge_row *row, const struct cw_bridge_copy *copy,
                  const struct wanted *wanted)
{
    int pushed, code = wanted->side != NULL ? follow(row, wanted) : 0;

    if (code == 0 && wanted->way == CW_WAY_STAGED) {
        code = enter(&row->near, &pushed);
        if (code == 0) {
            code = cw_bridge_get_halves(row);
            leave(&row->near, pushed);
        }
    }
    if (code == 0)
        code = cw_bridge_transfers->event_record(copy->begin, row->far.stream);
    if (code == 0)
        code = carry(row, wanted);
    if (code == 0)
        code = cw_bridge_transfers->event_record(copy->done, row->far.stream);
    return code != 0 ? code : hold_back(row, wanted, copy->done);
}

/* ---- starting ---- */

/* A place in the ring; NULL: all are on their way. */
static struct cw_bridge_copy *begin_copy(struct cw_bridge_row *row, const struct wanted *wanted)
{
    struct cw_bridge_copy *copy = NULL;

    cw_bridge_settle(row);
    cw_lock_acquire(&cw_bridges.lock);
    for (unsigned i = 0; i < CW_BRIDGE_COPIES && copy == NULL; i++)
        copy = row->copy[i].number == 0 ? &row->copy[i] : NULL;
    if (copy == NULL) {
        row->refused++;
    } else {
        copy->number = ++row->last;
        copy->bytes = wanted->bytes;
        copy->way = wanted->way;
        copy->tag = cw_tag_here();
        copy->waits = (struct cw_waits){0};
        copy->is_submitted = 0;
    }
    cw_lock_release(&cw_bridges.lock);
    return copy;
}

static void end_submission(struct cw_bridge_copy *copy, int is_submitted)
{
    cw_lock_acquire(&cw_bridges.lock);
    copy->is_submitted = is_submitted;
    if (!is_submitted)
        copy->number = 0;
    cw_lock_release(&cw_bridges.lock);
}

static int start(struct cw_bridge_row *row, const struct wanted *wanted, uint64_t *out_number)
{
    struct cw_bridge_copy *copy = begin_copy(row, wanted);
    uint64_t number;
    int code;

    if (copy == NULL)
        return cw_api_fail(CUWARDEN_BUSY,
                           "bridge '%s' has %u copies on their way, as many as can be: "
                           "cuwarden_bridge_wait() first",
                           row->own.name, CW_BRIDGE_COPIES);
    number = copy->number;
    code = submit(row, copy, wanted);
    end_submission(copy, code == 0);
    if (code == 0)
        *out_number = number;
    return code == CW_BUFFER_NO_MEMORY
               ? cw_api_fail(CUWARDEN_OUT_OF_HOST,
                             "bridge '%s' cannot have two chunks of %ju bytes of pinned memory",
                             row->own.name, (uintmax_t)row->chunk_bytes)
               : refused(row, code, "copy");
}

/* ---- waiting ---- */

/* The first copy up to this number that is on its way; waited for from now on. NULL: none is. */
static struct cw_bridge_copy *first_before(struct cw_bridge_row *row, uint64_t number,
                                           uint64_t *out_number)
{
    struct cw_bridge_copy *first = NULL;

    cw_lock_acquire(&cw_bridges.lock);
    for (struct cw_bridge_copy *copy = row->copy; copy < row->copy + CW_BRIDGE_COPIES; copy++)
        if (copy->is_submitted && copy->number != 0 && copy->number <= number &&
            (first == NULL || copy->number < first->number))
            first = copy;
    if (first != NULL) {
        *out_number = first->number;
        cw_waits_begin(&first->waits);
    }
    cw_lock_release(&cw_bridges.lock);
    return first;
}

static void end_wait(struct cw_bridge_copy *copy, uint64_t number)
{
    cw_lock_acquire(&cw_bridges.lock);
    if (copy->number == number) /* else it is done */
        cw_waits_end(&copy->waits);
    cw_lock_release(&cw_bridges.lock);
}

/* Until no copy up to this number is on its way. */
static int wait_until(struct cw_bridge_row *row, uint64_t number)
{
    for (;;) {
        int code, is_known = cw_bridge_settle(row);
        uint64_t awaited = 0;
        struct cw_bridge_copy *copy = first_before(row, number, &awaited);

        if (copy == NULL)
            return CUWARDEN_OK;
        code = is_known ? cw_arrival_wait(cw_bridge_transfers, copy->done) : CW_ARRIVAL_NOT_NOW;
        end_wait(copy, awaited);
        if (code == CW_ARRIVAL_NOT_NOW)
            return cw_api_busy();
        if (code != 0)
            return refused(row, code, "be waited for");
    }
}

static int wait_copy(struct cw_bridge_row *row, uint64_t number)
{
    uint64_t last, failed;
    int code, error;

    cw_lock_acquire(&cw_bridges.lock);
    last = row->last;
    cw_lock_release(&cw_bridges.lock);
    if (number > last)
        return cw_api_fail(CUWARDEN_NOT_FOUND,
                           "bridge '%s' has started no copy %ju: the last is %ju", row->own.name,
                           (uintmax_t)number, (uintmax_t)last);
    number = number != 0 ? number : last;
    error = wait_until(row, number);
    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_bridges.lock);
    failed = row->failed;
    code = row->code;
    cw_lock_release(&cw_bridges.lock);
    return failed != 0 && failed <= number ? refused(row, code, "complete a copy") : CUWARDEN_OK;
}

/* ---- what programs call ---- */

/* *out_number is written once the copy has started. */
static int start_and_wait(struct cw_row_visit *visit, struct wanted *wanted, uint64_t *out_number)
{
    struct cw_bridge_row *row = cw_bridge_of(visit);
    int error = check_copy(row, wanted);

    if (error == CUWARDEN_OK)
        error = start(row, wanted, out_number);
    if (error != CUWARDEN_OK || wanted->stream != CUWARDEN_NO_STREAM)
        return error;
    cw_rows_end_submitting(&cw_bridges, visit);
    return wait_copy(row, *out_number);
}

int cw_api_bridge_copy(uint64_t bridge, void *to, const void *from, uint64_t bytes, void *stream,
                       uint64_t *out_number, int32_t *out_way)
{
    struct wanted wanted = {.to = (uint64_t)(uintptr_t)to,
                            .from = (uint64_t)(uintptr_t)from,
                            .bytes = bytes,
                            .stream = stream};
    struct cw_row_visit visit;
    uint64_t number = 0;
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = cw_rows_take(&cw_bridges, bridge, 1, &visit);
    if (error != CUWARDEN_OK)
        return error;
    error = check_stream(cw_bridge_of(&visit), stream, &wanted);
    if (error == CUWARDEN_OK)
        error = cw_rows_enter(&cw_bridges, &visit);
    if (error == CUWARDEN_OK) {
        error = start_and_wait(&visit, &wanted, &number);
        cw_rows_leave(&cw_bridges, &visit);
    }
    cw_rows_give_up(&cw_bridges, &visit);
    if (number == 0)
        return error;
    if (out_number != NULL)
        *out_number = number;
    if (out_way != NULL)
        *out_way = (int32_t)wanted.way;
    return error;
}

int cw_api_bridge_wait(uint64_t bridge, uint64_t number)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_bridges, bridge, 0, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = wait_copy(cw_bridge_of(&visit), number);
    cw_rows_end_call(&cw_bridges, &visit);
    return error;
}
