/* SPDX-License-Identifier: MIT */
/* See bridges.h. */
#include "api/bridges.h"

#include "api/blocks.h"
#include "api/bridge_table.h"
#include "api/place.h"
#include "base/round.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"

#define ALIGNMENT   ((uint64_t)4096)
#define CHUNK_BYTES ((uint64_t)4 << 20)
#define CHUNK_MOST  ((uint64_t)1 << 30)

static struct cw_bridge_row rows[CW_BRIDGES];
struct cw_rows cw_bridges = CW_ROWS_INIT("bridge", rows);
const struct cw_transfer_ops *cw_bridge_transfers;
const struct cw_bridge_ops *cw_bridge_driver;

void cw_api_bridges_init(const struct cw_buffer_ops *places, const struct cw_transfer_ops *ops,
                         const struct cw_bridge_ops *bridge_ops)
{
    cw_bridges.places = places;
    cw_bridge_transfers = ops;
    cw_bridge_driver = bridge_ops;
}

void cw_api_bridges_reset(void)
{
    cw_rows_reset(&cw_bridges);
}

/* ---- what a bridge is made of ---- */

int cw_bridge_get_halves(struct cw_bridge_row *row)
{
    void *data = NULL;
    int code;

    if (row->half[0].data != NULL)
        return 0;
    code = cw_bridge_transfers->host_alloc(CW_BRIDGE_HALVES * row->chunk_bytes, &data);
    if (code != 0)
        return code;
    if (cw_session_is_armed())
        cw_api_block_own(cw_tracker_find(CW_SPACE_ADDRESS, (uint64_t)(uintptr_t)data),
                         cw_owner_text(row->own.name));
    for (uint64_t i = 0; i < CW_BRIDGE_HALVES; i++)
        row->half[i].data = (char *)data + i * row->chunk_bytes;
    return 0;
}

static int destroy_event(void *event)
{
    return event != NULL ? cw_bridge_transfers->event_destroy(event) : 0;
}

static void keep_first(int *code, int other)
{
    *code = *code != 0 ? *code : other;
}

/* The near side's: its context is current. */
static int drop_near(struct cw_bridge_row *row)
{
    struct cw_bridge_side *near = &row->near;
    int code = near->stream != NULL ? cw_bridge_transfers->stream_wait(near->stream) : 0;

    keep_first(&code, destroy_event(near->ready));
    for (int i = 0; i < CW_BRIDGE_HALVES; i++)
        keep_first(&code, destroy_event(row->half[i].full));
    if (near->stream != NULL)
        keep_first(&code, cw_bridge_transfers->stream_destroy(near->stream));
    if (row->half[0].data != NULL)
        keep_first(&code, cw_bridge_transfers->host_free(row->half[0].data));
    return code;
}

/* The far side's, first: it waits for all that uses the halves. Its context is current. */
static int drop_far(struct cw_bridge_row *row)
{
    struct cw_bridge_side *far = &row->far;
    int code = far->stream != NULL ? cw_bridge_transfers->stream_wait(far->stream) : 0;

    cw_bridge_settle(row);
    keep_first(&code, destroy_event(far->ready));
    for (int i = 0; i < CW_BRIDGE_HALVES; i++)
        keep_first(&code, destroy_event(row->half[i].empty));
    for (unsigned i = 0; i < CW_BRIDGE_COPIES; i++) {
        keep_first(&code, destroy_event(row->copy[i].begin));
        keep_first(&code, destroy_event(row->copy[i].done));
    }
    if (far->stream != NULL)
        keep_first(&code, cw_bridge_transfers->stream_destroy(far->stream));
    return code;
}

static int fill_side(struct cw_bridge_side *side)
{
    int code = cw_bridge_transfers->stream_create(&side->stream);

    return code != 0 ? code : cw_bridge_transfers->event_create(0, &side->ready);
}

static int fill_near(struct cw_bridge_row *row)
{
    int code = fill_side(&row->near);

    for (int i = 0; i < CW_BRIDGE_HALVES && code == 0; i++)
        code = cw_bridge_transfers->event_create(0, &row->half[i].full);
    return code != 0 || row->way != CW_WAY_STAGED ? code : cw_bridge_get_halves(row);
}

static int fill_far(struct cw_bridge_row *row)
{
    const struct cw_buffer_place *near = &row->near.place;
    int code = fill_side(&row->far);

    /* Whatever it is that keeps them from each other, the host's memory does not need them. */
    if (code == 0 && row->way == CW_WAY_PEER &&
        cw_bridge_driver->reach(row->far.place.device, near->device, near->context.handle) != 0)
        row->way = CW_WAY_STAGED;
    for (int i = 0; i < CW_BRIDGE_HALVES && code == 0; i++)
        code = cw_bridge_transfers->event_create(0, &row->half[i].empty);
    for (unsigned i = 0; i < CW_BRIDGE_COPIES && code == 0; i++) {
        code = cw_bridge_transfers->event_create(1, &row->copy[i].begin);
        if (code == 0)
            code = cw_bridge_transfers->event_create(1, &row->copy[i].done);
    }
    return code;
}

/* Calls work with the context of a side current; the driver's code. */
static int at_side(struct cw_bridge_row *row, const struct cw_bridge_side *side,
                   int (*work)(struct cw_bridge_row *row))
{
    unsigned depth = cw_api_enter();
    int pushed, code = cw_place_enter(cw_bridges.places, &side->place, &pushed);

    if (code == 0) {
        code = work(row);
        cw_bridges.places->leave(side->place.context, pushed);
    }
    cw_api_leave(depth);
    return code;
}

static int drop(struct cw_bridge_row *row)
{
    int code = at_side(row, &row->far, drop_far);

    keep_first(&code, at_side(row, &row->near, drop_near));
    return code;
}

/* ---- making and ending ---- */

static int check_make(const char *name, uint64_t chunk_bytes, int way, const uint64_t *out)
{
    int error = cw_rows_check_make(&cw_bridges, name, out);

    if (error != CUWARDEN_OK)
        return error;
    if (chunk_bytes > CHUNK_MOST)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a chunk of bridge '%s' would have %ju bytes: at most %ju can be", name,
                           (uintmax_t)chunk_bytes, (uintmax_t)CHUNK_MOST);
    if (way != CUWARDEN_PEER && way != CUWARDEN_STAGED)
        return cw_api_fail(CUWARDEN_INVALID,
                           "bridge '%s' cannot go way %d: CUWARDEN_PEER where peers can, or "
                           "CUWARDEN_STAGED",
                           name, way);
    return cw_api_check_driver();
}

static int make(struct cw_bridge_row *row, int from_device, int to_device, int way)
{
    int code, error = cw_rows_place_on(&cw_bridges, &row->own, from_device, &row->near.place);

    if (error == CUWARDEN_OK)
        error = cw_rows_place_on(&cw_bridges, &row->own, to_device, &row->far.place);
    if (error != CUWARDEN_OK)
        return error;
    row->own.place = row->far.place;
    row->way = way == CUWARDEN_STAGED     ? CW_WAY_STAGED
               : from_device == to_device ? CW_WAY_LOCAL
                                          : CW_WAY_PEER;
    code = at_side(row, &row->far, fill_far);
    if (code == 0)
        code = at_side(row, &row->near, fill_near);
    if (code == 0)
        return CUWARDEN_OK;
    drop(row);
    if (code == CW_BUFFER_NO_MEMORY)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST,
                           "bridge '%s' cannot have two chunks of %ju bytes of pinned memory",
                           row->own.name, (uintmax_t)row->chunk_bytes);
    return cw_rows_refused(&cw_bridges, &row->own, code, "begin");
}

int cw_api_bridge_make(const char *name, int from_device, int to_device, uint64_t chunk_bytes,
                       int way, uint64_t *out)
{
    struct cw_row *row = NULL;
    uint64_t id = 0;
    int error = check_make(name, chunk_bytes, way, out);

    if (error == CUWARDEN_OK)
        error = cw_rows_claim(&cw_bridges, name, &row, &id);
    if (error != CUWARDEN_OK)
        return error;
    ((struct cw_bridge_row *)row)->chunk_bytes =
        cw_round_up(chunk_bytes != 0 ? chunk_bytes : CHUNK_BYTES, ALIGNMENT);
    error = make((struct cw_bridge_row *)row, from_device, to_device, way);
    return cw_rows_settle(&cw_bridges, row, id, error, out);
}

int cw_api_bridge_end(uint64_t bridge)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_end(&cw_bridges, bridge, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = cw_rows_refused(&cw_bridges, visit.row, drop(cw_bridge_of(&visit)), "end");
    cw_rows_drop(&cw_bridges, visit.row);
    return error;
}

/* ---- how it stands ---- */

int cw_api_bridge_now(uint64_t bridge, struct cuwarden_bridge *out, size_t size)
{
    struct cuwarden_bridge now = {.id = bridge};
    struct cw_row_visit visit;
    int error = cw_rows_take(&cw_bridges, bridge, 0, &visit);
    const struct cw_bridge_row *row = cw_bridge_of(&visit);

    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_bridges.lock);
    now.name = row->own.name;
    now.chunk_bytes = row->chunk_bytes;
    now.started = row->last;
    now.refused = row->refused;
    now.bytes = row->done.bytes;
    now.transfer_ns = row->done.ns;
    now.waited_ns = row->done.waited_ns;
    now.overlap = cw_transfers_overlap(&row->done);
    now.peer_copies = row->carried.count[CW_WAY_PEER];
    now.staged_copies = row->carried.count[CW_WAY_STAGED];
    now.from_device = row->near.place.device;
    now.to_device = row->far.place.device;
    now.way = (int32_t)row->way;
    cw_lock_release(&cw_bridges.lock);
    cw_rows_give_up(&cw_bridges, &visit);
    cw_api_give(out, size, &now, sizeof(now));
    return CUWARDEN_OK;
}
