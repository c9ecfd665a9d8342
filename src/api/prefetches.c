/* SPDX-License-Identifier: MIT */
/* Prefetches are made, told about and ended; see prefetches.h. */
#include "api/prefetches.h"

#include <string.h>

#include "api/arrivals.h"
#include "api/blocks.h"
#include "api/prefetch_table.h"
#include "base/mem.h"
#include "base/round.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"
#include "core/device/context.h"

#define ALIGNMENT   ((uint64_t)4096)
#define CHUNK_BYTES ((uint64_t)4 << 20)
#define CHUNK_MOST  ((uint64_t)1 << 30)

static struct cw_prefetch_row rows[CW_PREFETCHES];
struct cw_rows cw_prefetches = CW_ROWS_INIT("prefetch", rows);
const struct cw_transfer_ops *cw_prefetch_driver;
const struct cw_bridge_ops *cw_prefetch_memory;
cw_prefetch_thread_fn cw_prefetch_thread;

void cw_api_prefetches_init(const struct cw_buffer_ops *places, const struct cw_transfer_ops *ops,
                            const struct cw_bridge_ops *bridge_ops, cw_prefetch_thread_fn thread)
{
    cw_prefetches.places = places;
    cw_prefetch_driver = ops;
    cw_prefetch_memory = bridge_ops;
    cw_prefetch_thread = thread;
}

struct cw_prefetch_row *cw_prefetch_row_at(unsigned index)
{
    return &rows[index];
}

int cw_prefetch_lost_code(const struct cw_prefetch_row *row)
{
    int is_lost;

    cw_lock_acquire(&cw_prefetches.lock);
    is_lost = row->is_lost;
    cw_lock_release(&cw_prefetches.lock);
    return is_lost ? CW_BUFFER_CONTEXT_ENDED : 0;
}

/* ---- what has arrived ---- */

static void complete_locked(struct cw_prefetch_row *row, struct cw_prefetch_request *request,
                            int code, uint64_t ns)
{
    request->stage = CUWARDEN_ARRIVED;
    if (code != 0 && request->error == CUWARDEN_OK) {
        request->error = CUWARDEN_DRIVER;
        request->code = code;
    }
    if (request->error != CUWARDEN_OK)
        row->failed++;
    else if (request->handed == request->bytes) /* else it was cancelled */
        cw_transfers_add(row->own.place.device, request->tag, &row->done, request->handed, ns,
                         cw_waits_ns(&request->waits));
}

/* Whether all of it has been copied; NOT_READY also where the driver may not be asked. */
static int ask(const struct cw_prefetch_row *row, const struct cw_prefetch_events *events,
               uint64_t *out_ns)
{
    int code;

    *out_ns = 0;
    if (!cw_gate_enter())
        return CW_TRANSFER_NOT_READY;
    code = cw_prefetch_lost_code(row);
    if (code == 0)
        code = cw_prefetch_driver->event_query(events->done);
    if (code == 0 && cw_prefetch_driver->event_elapsed(events->begin, events->done, out_ns) != 0)
        *out_ns = 0;
    cw_gate_leave();
    return cw_arrival_is_captured(code) ? CW_TRANSFER_NOT_READY : code;
}

static void settle_request(struct cw_prefetch_row *row, struct cw_prefetch_request *request,
                           const struct cw_prefetch_events *events)
{
    uint64_t number = 0, ns;
    int code;

    cw_lock_acquire(&cw_prefetches.lock);
    if (request->number != 0 && request->stage == CUWARDEN_ARRIVING)
        number = request->number;
    cw_lock_release(&cw_prefetches.lock);
    if (number == 0)
        return;
    code = ask(row, events, &ns);
    if (code == CW_TRANSFER_NOT_READY)
        return;
    cw_lock_acquire(&cw_prefetches.lock);
    if (request->number == number && request->stage == CUWARDEN_ARRIVING)
        complete_locked(row, request, code, ns);
    cw_lock_release(&cw_prefetches.lock);
}

void cw_prefetch_settle(struct cw_prefetch_row *row)
{
    for (unsigned i = 0; i < CW_PREFETCH_REQUESTS; i++)
        settle_request(row, &row->request[i], &row->events[i]);
}

/* ---- what a prefetch is made of ---- */

static void keep_first(int *code, int other)
{
    *code = *code != 0 ? *code : other;
}

static void destroy_event(void *event, int *code)
{
    if (event != NULL)
        keep_first(code, cw_prefetch_driver->event_destroy(event));
}

static void drop_events(const struct cw_prefetch_events *events, int *code)
{
    destroy_event(events->ready, code);
    destroy_event(events->begin, code);
    destroy_event(events->done, code);
}

/* What of the row is there goes; the first code that is none. The context is current. */
static int drop(struct cw_prefetch_row *row)
{
    int code = cw_prefetch_lost_code(row);

    if (code != 0)
        return code;
    if (row->stream != NULL)
        code = cw_prefetch_driver->stream_wait(row->stream);
    cw_prefetch_settle(row);
    for (unsigned i = 0; i < CW_PREFETCH_REQUESTS; i++)
        drop_events(&row->events[i], &code);
    for (int i = 0; i < CW_PREFETCH_HALVES; i++)
        destroy_event(row->half[i].empty, &code);
    if (row->stream != NULL)
        keep_first(&code, cw_prefetch_driver->stream_destroy(row->stream));
    if (row->half[0].data != NULL)
        keep_first(&code, cw_prefetch_driver->host_free(row->half[0].data));
    return code;
}

static int fill_events(struct cw_prefetch_events *events)
{
    int code = cw_prefetch_driver->event_create(0, &events->ready);

    if (code == 0)
        code = cw_prefetch_driver->event_create(1, &events->begin);
    return code != 0 ? code : cw_prefetch_driver->event_create(1, &events->done);
}

static int fill_halves(struct cw_prefetch_row *row)
{
    void *data = NULL;
    int code = cw_prefetch_driver->host_alloc(CW_PREFETCH_HALVES * row->chunk_bytes, &data);

    if (code != 0)
        return code;
    if (cw_session_is_armed())
        cw_api_block_own(cw_tracker_find(CW_SPACE_ADDRESS, (uint64_t)(uintptr_t)data),
                         cw_owner_text(row->own.name));
    for (uint64_t i = 0; i < CW_PREFETCH_HALVES; i++)
        row->half[i].data = (char *)data + i * row->chunk_bytes;
    return 0;
}

static int fill(struct cw_prefetch_row *row)
{
    int code = fill_halves(row);

    if (code == CW_BUFFER_NO_MEMORY)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST,
                           "prefetch '%s' cannot have two chunks of %ju bytes of pinned memory",
                           row->own.name, (uintmax_t)row->chunk_bytes);
    if (code == 0)
        code = cw_prefetch_driver->stream_create(&row->stream);
    for (int i = 0; i < CW_PREFETCH_HALVES && code == 0; i++)
        code = cw_prefetch_driver->event_create(0, &row->half[i].empty);
    for (unsigned i = 0; i < CW_PREFETCH_REQUESTS && code == 0; i++)
        code = fill_events(&row->events[i]);
    return cw_rows_refused(&cw_prefetches, &row->own, code, "begin");
}

/* ---- making and ending ---- */

static int check_make(const char *name, uint64_t chunk_bytes, const uint64_t *out)
{
    int error = cw_rows_check_make(&cw_prefetches, name, out);

    if (error != CUWARDEN_OK)
        return error;
    if (chunk_bytes > CHUNK_MOST)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a chunk of prefetch '%s' would have %ju bytes: at most %ju can be",
                           name, (uintmax_t)chunk_bytes, (uintmax_t)CHUNK_MOST);
    return cw_api_check_driver();
}

/* It is current. */
static void note_context(struct cw_prefetch_row *row)
{
    uint8_t device;
    uint32_t context = cw_context_current(&device);

    cw_lock_acquire(&cw_prefetches.lock);
    row->context = context;
    cw_lock_release(&cw_prefetches.lock);
}

static int make(struct cw_prefetch_row *row, uint64_t chunk_bytes)
{
    struct cw_row_visit visit = {.row = &row->own};
    int error = cw_rows_place_here(&cw_prefetches, &row->own);

    row->chunk_bytes = cw_round_up(chunk_bytes != 0 ? chunk_bytes : CHUNK_BYTES, ALIGNMENT);
    row->next = 1;
    if (error == CUWARDEN_OK)
        error = cw_rows_enter(&cw_prefetches, &visit);
    if (error != CUWARDEN_OK)
        return error;
    note_context(row);
    error = fill(row);
    if (error != CUWARDEN_OK)
        drop(row);
    cw_rows_leave(&cw_prefetches, &visit);
    return error;
}

int cw_api_prefetch_make(const char *name, uint64_t chunk_bytes, uint64_t *out)
{
    uint64_t id = 0;
    struct cw_row *row = NULL;
    int error = check_make(name, chunk_bytes, out);

    if (error == CUWARDEN_OK)
        error = cw_rows_claim(&cw_prefetches, name, &row, &id);
    if (error != CUWARDEN_OK)
        return error;
    error = make((struct cw_prefetch_row *)row, chunk_bytes);
    return cw_rows_settle(&cw_prefetches, row, id, error, out);
}

/* ---- ending ---- */

static void count_ender(struct cw_prefetch_row *row, int by)
{
    cw_lock_acquire(&cw_prefetches.lock);
    row->enders += (unsigned)by;
    cw_lock_release(&cw_prefetches.lock);
}

/* The reader is not at work on the row, and does not come back until let_reader_on. */
static int keep_reader_off(uint64_t prefetch)
{
    struct cw_row_visit visit;
    int error = cw_rows_take(&cw_prefetches, prefetch, 1, &visit);

    if (error != CUWARDEN_OK)
        return error;
    count_ender(cw_prefetch_of(&visit), 1);
    cw_prefetch_await_reader(cw_prefetch_of(&visit));
    cw_rows_give_up(&cw_prefetches, &visit);
    return CUWARDEN_OK;
}

/* Others are at work on the row, and it goes on unless one of them ends it, too. */
static void let_reader_on(uint64_t prefetch)
{
    struct cw_row_visit visit;

    if (cw_rows_take(&cw_prefetches, prefetch, 0, &visit) != CUWARDEN_OK)
        return;
    count_ender(cw_prefetch_of(&visit), -1);
    cw_rows_give_up(&cw_prefetches, &visit);
    cw_prefetch_wake();
}

static void forget(struct cw_prefetch_row *row)
{
    for (unsigned i = 0; i < CW_PREFETCH_REQUESTS; i++) {
        struct cw_prefetch_request *request = &row->request[i];

        if (request->number != 0)
            cw_prefetch_close(request);
        if (request->path != NULL)
            cw_mem_free(request->path, strlen(request->path) + 1);
    }
    cw_rows_drop(&cw_prefetches, &row->own);
    cw_lock_acquire(&cw_prefetches.lock);
    cw_prefetch_guard_locked();
    cw_lock_release(&cw_prefetches.lock);
}

int cw_api_prefetch_end(uint64_t prefetch)
{
    struct cw_row_visit visit;
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = keep_reader_off(prefetch);
    if (error != CUWARDEN_OK)
        return error;
    error = cw_rows_begin_end(&cw_prefetches, prefetch, &visit);
    if (error != CUWARDEN_OK) {
        let_reader_on(prefetch);
        return error;
    }
    error = cw_rows_enter(&cw_prefetches, &visit);
    if (error == CUWARDEN_OK) {
        error = cw_rows_refused(&cw_prefetches, visit.row, drop(cw_prefetch_of(&visit)), "end");
        cw_rows_leave(&cw_prefetches, &visit);
    }
    forget(cw_prefetch_of(&visit));
    return error;
}

/* ---- how it stands ---- */

int cw_api_prefetch_now(uint64_t prefetch, struct cuwarden_prefetch *out, size_t size)
{
    struct cuwarden_prefetch now = {.id = prefetch};
    struct cw_row_visit visit;
    int error = cw_rows_take(&cw_prefetches, prefetch, 0, &visit);
    const struct cw_prefetch_row *row = cw_prefetch_of(&visit);

    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_prefetches.lock);
    now.name = row->own.name;
    now.chunk_bytes = row->chunk_bytes;
    now.started = row->last;
    now.arrived = row->done.count;
    now.failed = row->failed;
    now.refused = row->refused;
    now.bytes = row->done.bytes;
    now.transfer_ns = row->done.ns;
    now.waited_ns = row->done.waited_ns;
    now.overlap = cw_transfers_overlap(&row->done);
    now.device = row->own.place.device;
    cw_lock_release(&cw_prefetches.lock);
    cw_rows_give_up(&cw_prefetches, &visit);
    cw_api_give(out, size, &now, sizeof(now));
    return CUWARDEN_OK;
}
