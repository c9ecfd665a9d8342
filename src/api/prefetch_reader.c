/* SPDX-License-Identifier: MIT */
/* The reader of prefetches: a thread of ours that reads files and hands their bytes to the driver.
 * See prefetches.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "api/arrivals.h"
#include "api/prefetch_table.h"
#include "api/place.h"
#include "base/alarm.h"
#include "base/sys.h"
#include "core/cache/pool_context.h"
#include "core/process/gate.h"
#include "core/process/guard.h"

#define REST_NS    UINT64_C(1000000000) /* without work, until it ends */
#define STOP_TURNS 20000u

static int is_running; /* guarded by the table's lock */
/* No lock: a signal handler may end the process. The reader says that it calls the driver before it
 * looks whether it may. */
static _Atomic int is_handing, is_stopping;
static struct cw_alarm bell;

/* What a look at a row came to; of several rows the largest counts. */
enum outcome { NOTHING, HELD_UP, WORKED };

/* ---- the state of a request ---- */

void cw_prefetch_cut_locked(struct cw_prefetch_request *request, int error)
{
    if (request->stage != CUWARDEN_READING || request->is_cut)
        return;
    request->is_cut = 1;
    request->error = error;
}

int cw_prefetch_is_stopped(void)
{
    return atomic_load(&is_stopping) || !cw_session_is_armed();
}

static int has_work_locked(const struct cw_prefetch_row *row)
{
    return row->own.id != 0 && row->next <= row->last;
}

/* Also of a row that is to end: the reader may be at work on it, and it may go on. */
static int is_anything_locked(void)
{
    for (unsigned i = 0; i < CW_PREFETCHES; i++)
        if (has_work_locked(cw_prefetch_row_at(i)))
            return 1;
    return 0;
}

void cw_prefetch_guard_locked(void)
{
    cw_guard_set(CW_GUARD_PREFETCH, is_anything_locked());
}

/* The number goes first: a child that is forked in between must not close another's file. */
void cw_prefetch_close(struct cw_prefetch_request *request)
{
    int fd;

    cw_lock_acquire(&cw_prefetches.lock);
    fd = request->fd;
    request->fd = -1;
    cw_lock_release(&cw_prefetches.lock);
    if (fd >= 0)
        cw_sys_close(fd);
}

static int is_cut(const struct cw_prefetch_request *request)
{
    int is;

    cw_lock_acquire(&cw_prefetches.lock);
    is = request->is_cut;
    cw_lock_release(&cw_prefetches.lock);
    return is;
}

static void fail(struct cw_prefetch_request *request, int error, int code)
{
    cw_lock_acquire(&cw_prefetches.lock);
    if (!request->is_cut)
        request->code = code;
    cw_prefetch_cut_locked(request, error);
    cw_lock_release(&cw_prefetches.lock);
}

/* ---- the file ---- */

static int open_file(struct cw_prefetch_request *request)
{
    int fd;

    if (request->fd >= 0)
        return 0;
    /* A FIFO's open would wait for a writer, and all prefetches with it; its read is refused. */
    fd = cw_sys_open(request->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return errno;
    cw_lock_acquire(&cw_prefetches.lock);
    request->fd = fd;
    cw_lock_release(&cw_prefetches.lock);
    return 0;
}

/* Reads the next chunk; fewer bytes than were asked for are the end of the file. */
static void fill(const struct cw_prefetch_row *row, struct cw_prefetch_half *half,
                 struct cw_prefetch_request *request)
{
    uint64_t left = request->bytes - request->handed;
    uint64_t wanted = left < row->chunk_bytes ? left : row->chunk_bytes;
    int code = open_file(request);

    if (code == 0 && wanted != 0) {
        errno = 0;
        half->bytes =
            cw_sys_read_at(request->fd, half->data, wanted, request->offset + request->handed);
        code = half->bytes < wanted ? errno : 0;
    }
    if (code != 0) {
        half->bytes = 0;
        fail(request, CUWARDEN_SYSTEM, code);
    } else if (half->bytes < wanted) {
        cw_lock_acquire(&cw_prefetches.lock);
        request->bytes = request->handed + half->bytes;
        cw_lock_release(&cw_prefetches.lock);
    }
}

/* ---- the driver ---- */

static void end_handing(void)
{
    atomic_store(&is_handing, 0);
    cw_gate_leave();
}

/* What is submitted beside a free by the driver waits with it, perhaps for a kernel: not inside the
 * gate (cw_pool_context_enter_driver). As long as frees come back, none of them does. */
static int is_beside_free(struct cw_prefetch_row *row)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(row->context);
    uint32_t before = row->frees_ended;

    if (pool_context == NULL || !cw_pool_context_is_in_free(pool_context))
        return 0;
    row->frees_ended = atomic_load(&pool_context->passed);
    return row->frees_ended == before;
}

/* The driver may be called until end_handing. 0: not now. */
static int begin_handing(struct cw_prefetch_row *row)
{
    if (!cw_gate_enter())
        return 0;
    atomic_store(&is_handing, 1);
    if (!atomic_load(&is_stopping) && !is_beside_free(row))
        return 1;
    end_handing();
    return 0;
}

static int enter(const struct cw_prefetch_row *row, int *out_pushed)
{
    int code = cw_prefetch_lost_code(row);

    return code != 0 ? code : cw_place_enter(cw_prefetches.places, &row->own.place, out_pushed);
}

static void leave(const struct cw_prefetch_row *row, int pushed)
{
    cw_prefetches.places->leave(row->own.place.context, pushed);
}

/* After the last copy out of the half. */
static int mark(const struct cw_prefetch_row *row, struct cw_prefetch_half *half)
{
    int code = cw_prefetch_driver->event_record(half->empty, row->stream);

    half->is_unmarked = code != 0;
    return code;
}

/* 0: the device has read the half. An event that is recorded late stands for more than the last
 * copy, which is as good. */
static int ask(const struct cw_prefetch_row *row, struct cw_prefetch_half *half)
{
    int code = half->is_unmarked ? mark(row, half) : 0;

    if (code == 0 && half->is_busy)
        code = cw_prefetch_driver->event_query(half->empty);
    return code;
}

/* The thread that captures past us may wait for one that waits for the request. */
static void note_capture(struct cw_prefetch_request *request, int is_captured)
{
    cw_lock_acquire(&cw_prefetches.lock);
    request->is_captured = is_captured;
    cw_lock_release(&cw_prefetches.lock);
}

/* The half can be filled, or the request has failed; HELD_UP: not yet. Also an empty half goes with
 * its context: it is there, and its end waits for what is read now. */
static enum outcome look_at_half(struct cw_prefetch_row *row, struct cw_prefetch_half *half,
                                 struct cw_prefetch_request *request)
{
    int pushed, code;

    if (!begin_handing(row))
        return HELD_UP;
    code = enter(row, &pushed);
    if (code == 0) {
        code = ask(row, half);
        leave(row, pushed);
    }
    end_handing();
    note_capture(request, cw_arrival_is_captured(code));
    if (code == CW_TRANSFER_NOT_READY || cw_arrival_is_captured(code))
        return HELD_UP;
    if (code == 0)
        half->is_busy = 0;
    else
        fail(request, CUWARDEN_DRIVER, code);
    return WORKED;
}

/* What a request begins with: its stream comes after the program's. */
static int begin(const struct cw_prefetch_row *row, struct cw_prefetch_request *request)
{
    const struct cw_prefetch_events *events = cw_prefetch_events_at(row, request->number);
    int code = request->is_after ? cw_prefetch_driver->event_order(events->ready, row->stream) : 0;

    if (code == 0)
        code = cw_prefetch_driver->event_record(events->begin, row->stream);
    cw_lock_acquire(&cw_prefetches.lock);
    request->has_begun = code == 0;
    cw_lock_release(&cw_prefetches.lock);
    return code;
}

/* bytes: of the half; 0: none, and the request ends. */
static int submit(struct cw_prefetch_row *row, struct cw_prefetch_request *request,
                  struct cw_prefetch_half *half, uint64_t bytes, int is_last)
{
    int marked, code = request->has_begun ? 0 : begin(row, request);

    if (code == 0 && bytes != 0) {
        code = cw_prefetch_memory->upload(request->to + request->handed, half->data, bytes,
                                          row->stream);
        /* Also after a failure: what was submitted before is still to be waited for. */
        half->is_busy = 1;
        marked = mark(row, half);
        code = code != 0 ? code : marked;
        row->turn = (row->turn + 1) % CW_PREFETCH_HALVES;
    }
    if (code == 0 && is_last)
        code = cw_prefetch_driver->event_record(cw_prefetch_events_at(row, request->number)->done,
                                                row->stream);
    return code;
}

/* How a request goes on after a call of the driver. */
static void note(struct cw_prefetch_row *row, struct cw_prefetch_request *request, uint64_t bytes,
                 int code, int is_last)
{
    cw_lock_acquire(&cw_prefetches.lock);
    if (code == 0)
        request->handed += bytes;
    if (code != 0 && request->error == CUWARDEN_OK) {
        request->error = CUWARDEN_DRIVER;
        request->code = code;
    }
    if (code != 0 || is_last) {
        request->stage = code == 0 ? CUWARDEN_ARRIVING : CUWARDEN_ARRIVED;
        row->failed += code != 0;
        row->next++;
        cw_prefetch_guard_locked();
    }
    cw_lock_release(&cw_prefetches.lock);
}

/* Hands over what was read, or the end. */
static enum outcome hand_over(struct cw_prefetch_row *row, struct cw_prefetch_request *request,
                              struct cw_prefetch_half *half)
{
    int pushed, is_last, code;
    uint64_t bytes;

    if (!begin_handing(row))
        return HELD_UP;
    /* After is_handing: who cuts it from now on waits for what is submitted here. */
    bytes = is_cut(request) ? 0 : half->bytes;
    is_last = bytes == 0 || request->handed + bytes == request->bytes;
    half->bytes = 0;
    code = enter(row, &pushed);
    if (code == 0) {
        code = submit(row, request, half, bytes, is_last);
        leave(row, pushed);
    }
    if (code != 0 || is_last)
        cw_prefetch_close(request);
    note(row, request, bytes, code, is_last);
    end_handing();
    return WORKED;
}

/* ---- the thread ---- */

static enum outcome step(struct cw_prefetch_row *row, struct cw_prefetch_request *request)
{
    struct cw_prefetch_half *half = &row->half[row->turn];

    if (half->bytes == 0 && !is_cut(request)) {
        if (look_at_half(row, half, request) == HELD_UP)
            return HELD_UP;
        if (!is_cut(request))
            fill(row, half, request);
    }
    return hand_over(row, request, half);
}

/* One chunk of one request. */
static enum outcome visit(struct cw_prefetch_row *row)
{
    struct cw_prefetch_request *request = NULL;
    enum outcome outcome;

    cw_lock_acquire(&cw_prefetches.lock);
    if (has_work_locked(row) && row->enders == 0) {
        request = cw_prefetch_at(row, row->next);
        row->is_read = 1;
    }
    cw_lock_release(&cw_prefetches.lock);
    if (request == NULL)
        return NOTHING;
    outcome = step(row, request);
    cw_lock_acquire(&cw_prefetches.lock);
    row->is_read = 0;
    cw_lock_release(&cw_prefetches.lock);
    return outcome;
}

static enum outcome visit_all(void)
{
    enum outcome most = NOTHING;

    for (unsigned i = 0; i < CW_PREFETCHES; i++) {
        enum outcome outcome = visit(cw_prefetch_row_at(i));

        most = outcome > most ? outcome : most;
    }
    return most;
}

/* 1: the reader is to end, and is not there any more. */
static int is_over(int has_rested)
{
    int is;

    cw_lock_acquire(&cw_prefetches.lock);
    is = cw_prefetch_is_stopped() || (has_rested && !is_anything_locked());
    if (is)
        is_running = 0;
    cw_lock_release(&cw_prefetches.lock);
    return is;
}

static void read_files(void)
{
    unsigned turns = 0;
    int has_rested = 0;

    while (!is_over(has_rested)) {
        enum outcome outcome = visit_all();

        has_rested = 0;
        if (outcome == WORKED) {
            turns = 0;
        } else if (outcome == HELD_UP) {
            cw_lock_doze(&turns);
        } else {
            has_rested = !cw_alarm_wait(&bell, REST_NS);
            cw_alarm_reset(&bell);
        }
    }
}

/* There is no reader: what waits for it fails. The files stay the requests', as of all that end. */
static void fail_all_locked(int error)
{
    for (unsigned i = 0; i < CW_PREFETCHES; i++) {
        struct cw_prefetch_row *row = cw_prefetch_row_at(i);

        for (; has_work_locked(row); row->next++) {
            struct cw_prefetch_request *request = cw_prefetch_at(row, row->next);

            cw_prefetch_cut_locked(request, error);
            request->stage = CUWARDEN_ARRIVED;
            row->failed += request->error != CUWARDEN_OK;
        }
    }
    cw_prefetch_guard_locked();
}

int cw_prefetch_wake(void)
{
    int is_first, rc = 0;

    cw_lock_acquire(&cw_prefetches.lock);
    is_first = !is_running && !cw_prefetch_is_stopped();
    is_running |= is_first;
    cw_lock_release(&cw_prefetches.lock);
    cw_alarm_ring(&bell);
    if (is_first && cw_prefetch_thread(read_files) != 0) {
        cw_lock_acquire(&cw_prefetches.lock);
        is_running = 0;
        fail_all_locked(CUWARDEN_OUT_OF_HOST);
        cw_lock_release(&cw_prefetches.lock);
        rc = -1;
    }
    return rc;
}

/* ---- others that must come between ---- */

/* Cuts what is read for memory from address on. 1: there was something. */
static int cut_those_at(uint64_t address, uint64_t bytes)
{
    int is_any = 0;

    cw_lock_acquire(&cw_prefetches.lock);
    for (unsigned i = 0; i < CW_PREFETCHES * CW_PREFETCH_REQUESTS; i++) {
        struct cw_prefetch_request *request =
            &cw_prefetch_row_at(i / CW_PREFETCH_REQUESTS)->request[i % CW_PREFETCH_REQUESTS];

        if (request->number == 0 || request->stage != CUWARDEN_READING || request->bytes == 0 ||
            address >= request->to + request->bytes || request->base >= address + bytes)
            continue;
        cw_prefetch_cut_locked(request, CUWARDEN_NOT_FOUND);
        is_any = 1;
    }
    cw_lock_release(&cw_prefetches.lock);
    return is_any;
}

void cw_api_prefetch_leaving(uint64_t address, uint64_t bytes)
{
    unsigned turns = 0;

    if (!cut_those_at(address, bytes))
        return;
    while (atomic_load(&is_handing))
        cw_lock_relax(&turns);
}

void cw_prefetch_await_reader(const struct cw_prefetch_row *row)
{
    unsigned turns = 0;
    int is_read;

    for (;;) {
        cw_lock_acquire(&cw_prefetches.lock);
        is_read = row->is_read;
        cw_lock_release(&cw_prefetches.lock);
        if (!is_read)
            return;
        cw_lock_doze(&turns);
    }
}

static int is_of(const struct cw_prefetch_row *row, uint32_t context)
{
    int is;

    cw_lock_acquire(&cw_prefetches.lock);
    is = context != 0 && row->context == context;
    cw_lock_release(&cw_prefetches.lock);
    return is;
}

void cw_api_prefetch_context_ending(uint32_t context)
{
    for (unsigned i = 0; i < CW_PREFETCHES; i++)
        if (is_of(cw_prefetch_row_at(i), context))
            cw_prefetch_await_reader(cw_prefetch_row_at(i));
}

void cw_api_prefetch_context_ended(uint32_t context)
{
    cw_lock_acquire(&cw_prefetches.lock);
    for (unsigned i = 0; i < CW_PREFETCHES && context != 0; i++)
        cw_prefetch_row_at(i)->is_lost |= cw_prefetch_row_at(i)->context == context;
    cw_lock_release(&cw_prefetches.lock);
}

void cw_api_prefetches_stop(void)
{
    atomic_store(&is_stopping, 1);
    cw_alarm_ring(&bell);
    /* Not for ever: a thread may end the process inside a call of the driver. */
    for (unsigned turns = 0; atomic_load(&is_handing) && turns < STOP_TURNS;)
        cw_lock_relax(&turns);
}

static void close_files(struct cw_prefetch_row *row)
{
    for (unsigned i = 0; i < CW_PREFETCH_REQUESTS; i++)
        if (row->request[i].number != 0 && row->request[i].fd >= 0)
            cw_sys_close(row->request[i].fd);
}

void cw_api_prefetches_reset(void)
{
    for (unsigned i = 0; i < CW_PREFETCHES; i++)
        close_files(cw_prefetch_row_at(i));
    cw_rows_reset(&cw_prefetches);
    cw_guard_set(CW_GUARD_PREFETCH, 0);
    is_running = 0;
    atomic_store(&is_handing, 0);
    atomic_store(&is_stopping, 0);
    cw_alarm_reset(&bell);
}
