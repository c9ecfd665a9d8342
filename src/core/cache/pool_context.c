/* SPDX-License-Identifier: MIT */
/* Contexts as the pool sees them. See pool_context.h. */
#include "core/cache/pool_context.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/account/freed.h"
#include "core/account/tracker.h"

#define EVENTS_FIRST 16u
/* How long the end of a context waits for frees in it: longer than a thread ever waits for a
 * processor, but bounded, because a thread may have been cancelled inside. */
#define FREES_NS UINT64_C(1000000000)

struct cw_lock cw_pool_context_lock = CW_LOCK_INIT(CW_RANK_POOL);
_Atomic(cw_pool_context_slot *) cw_pool_context_chunks[CW_POOL_CONTEXT_CHUNKS];
CW_HOT_DATA _Atomic uint32_t cw_pool_contexts_live;

static struct cw_pool_context *live; /* guarded by cw_pool_context_lock; newest first */

void cw_pool_context_reset(void)
{
    cw_lock_reset(&cw_pool_context_lock);
    for (uint32_t i = 0; i < CW_POOL_CONTEXT_CHUNKS; i++)
        atomic_store_explicit(&cw_pool_context_chunks[i], NULL, memory_order_relaxed);
    atomic_store(&cw_pool_contexts_live, 0);
    live = NULL;
}

/* ---- which are live ---- */

static void list_insert_locked(struct cw_pool_context *pool_context)
{
    pool_context->next_live = live;
    if (live != NULL)
        live->previous_live = pool_context;
    live = pool_context;
    atomic_fetch_add(&cw_pool_contexts_live, 1);
}

static void list_remove_locked(struct cw_pool_context *pool_context)
{
    if (pool_context->previous_live != NULL)
        pool_context->previous_live->next_live = pool_context->next_live;
    else
        live = pool_context->next_live;
    if (pool_context->next_live != NULL)
        pool_context->next_live->previous_live = pool_context->previous_live;
    atomic_fetch_sub(&cw_pool_contexts_live, 1);
}

uint32_t cw_pool_context_list(struct cw_pool_context **out, uint32_t max)
{
    struct cw_pool_context *pool_context;
    uint32_t count;

    cw_lock_acquire(&cw_pool_context_lock);
    count = atomic_load(&cw_pool_contexts_live);
    pool_context = live;
    for (uint32_t i = 0; i < max; i++) {
        out[i] = pool_context;
        pool_context = pool_context != NULL ? pool_context->next_live : NULL;
    }
    cw_lock_release(&cw_pool_context_lock);
    return count;
}

/* ---- the life of a context ---- */

/* The place of a context's pool_context, made at need; NULL without memory. */
static cw_pool_context_slot *place_locked(uint32_t context)
{
    cw_pool_context_slot *chunk;

    if (context >= CW_POOL_CONTEXT_CHUNK * CW_POOL_CONTEXT_CHUNKS)
        return NULL;
    chunk = atomic_load(&cw_pool_context_chunks[context / CW_POOL_CONTEXT_CHUNK]);
    if (chunk == NULL) {
        chunk = cw_mem_alloc(CW_POOL_CONTEXT_CHUNK * sizeof(*chunk));
        if (chunk == NULL)
            return NULL;
        atomic_store_explicit(&cw_pool_context_chunks[context / CW_POOL_CONTEXT_CHUNK], chunk,
                              memory_order_release);
    }
    return &chunk[context % CW_POOL_CONTEXT_CHUNK];
}

void cw_pool_context_make(uint32_t context, struct cw_live_context *record)
{
    cw_pool_context_slot *place;
    struct cw_pool_context *pool_context;

    cw_lock_acquire(&cw_pool_context_lock);
    place = place_locked(context);
    if (place == NULL || atomic_load(place) == NULL) {
        pool_context = place != NULL ? cw_mem_alloc(sizeof(*pool_context)) : NULL;
        if (pool_context != NULL) {
            pool_context->context = context;
            pool_context->device = (uint8_t)record->device;
            pool_context->record = record;
            list_insert_locked(pool_context);
            atomic_store_explicit(place, pool_context, memory_order_release);
        } else {
            atomic_fetch_add(&cw_pool_contexts_live, CW_POOL_CONTEXTS_LIVE + 1);
        }
    }
    cw_lock_release(&cw_pool_context_lock);
}

static struct cw_pool *pool_at(struct cw_pool_context *pool_context, unsigned class)
{
    return atomic_load_explicit(&pool_context->pool[class], memory_order_acquire);
}

uint32_t cw_pool_context_to_limbo(struct cw_pool_context *pool_context, uint32_t list)
{
    cw_lock_acquire(&cw_pool_context_lock);
    if (atomic_load(&pool_context->state) != CW_POOL_CONTEXT_DEAD) {
        pool_context->limbo = cw_tracker_join(pool_context->limbo, list);
        list = 0;
    }
    cw_lock_release(&cw_pool_context_lock);
    return list;
}

void cw_pool_context_enter_driver(struct cw_pool_context *pool_context)
{
    cw_thread.freeing = pool_context;
    atomic_fetch_add(&pool_context->inside, 1);
    cw_gate_let_pass();
}

void cw_pool_context_leave_driver(struct cw_pool_context *pool_context, int has_freed)
{
    if (has_freed)
        atomic_fetch_add(&pool_context->passed, 1);
    atomic_fetch_sub(&pool_context->inside, 1);
    cw_thread.freeing = NULL;
}

void cw_pool_context_thread_ends(void)
{
    if (CW_UNLIKELY(cw_thread.freeing != NULL))
        cw_pool_context_leave_driver(cw_thread.freeing, 0);
}

unsigned cw_pool_context_enter_free(struct cw_pool_context *pool_context, int is_owed)
{
    uint32_t beside = is_owed ? CW_GATE_ALL : 0;
    unsigned passed;

    atomic_fetch_add(&pool_context->freeing, 1);
    passed = cw_gate_enter_wait_beside(beside);
    if (passed != 0 && atomic_load(&pool_context->state) == CW_POOL_CONTEXT_OPEN) {
        cw_pool_context_enter_driver(pool_context);
        return passed;
    }
    if (passed != 0)
        cw_gate_leave_wait_beside(passed);
    atomic_fetch_sub(&pool_context->freeing, 1);
    return 0;
}

void cw_pool_context_leave_free(struct cw_pool_context *pool_context, unsigned passed)
{
    cw_pool_context_leave_driver(pool_context, 1);
    cw_gate_leave_wait_beside(passed);
    atomic_fetch_sub(&pool_context->freeing, 1);
}

/* The gate, which is closed, waits only some milliseconds for calls that wait for the device. A
 * free after the end would hit whatever has the address or the handle by then. */
void cw_pool_context_await_frees(const struct cw_pool_context *pool_context)
{
    uint64_t deadline;
    unsigned turns = 0;

    if (atomic_load(&pool_context->freeing) == 0)
        return;
    deadline = cw_clock_ns() + FREES_NS;
    while (atomic_load(&pool_context->freeing) != 0 && cw_clock_ns() < deadline)
        cw_lock_relax(&turns);
}

void cw_pool_context_close(struct cw_pool_context *pool_context)
{
    uint32_t open = CW_POOL_CONTEXT_OPEN; /* else it is closing, or dead and out of the list */

    atomic_compare_exchange_strong(&pool_context->state, &open, CW_POOL_CONTEXT_CLOSING);
}

uint32_t cw_pool_context_reopen(struct cw_pool_context *pool_context)
{
    uint32_t closing = CW_POOL_CONTEXT_CLOSING, list;

    cw_lock_acquire(&cw_pool_context_lock);
    /* Another thread may have ended it meanwhile. */
    if (!atomic_compare_exchange_strong(&pool_context->state, &closing, CW_POOL_CONTEXT_OPEN)) {
        cw_lock_release(&cw_pool_context_lock);
        return 0;
    }
    list = pool_context->limbo;
    pool_context->limbo = 0;
    cw_lock_release(&cw_pool_context_lock);
    return list;
}

static void drop_events_locked(struct cw_pool_context *pool_context)
{
    if (pool_context->event != NULL)
        cw_mem_free(pool_context->event, pool_context->event_room * sizeof(*pool_context->event));
    pool_context->event = NULL;
    pool_context->events = pool_context->event_room = 0;
}

/* Two threads may find out at once. */
uint32_t cw_pool_context_die(struct cw_pool_context *pool_context)
{
    uint32_t list;

    cw_lock_acquire(&cw_pool_context_lock);
    if (atomic_exchange(&pool_context->state, CW_POOL_CONTEXT_DEAD) != CW_POOL_CONTEXT_DEAD)
        list_remove_locked(pool_context);
    list = pool_context->limbo;
    pool_context->limbo = 0;
    drop_events_locked(pool_context);
    cw_lock_release(&cw_pool_context_lock);
    return list;
}

enum cw_pool_context_state cw_pool_context_park(struct cw_pool_context *pool_context, uint32_t list)
{
    enum cw_pool_context_state state;

    cw_lock_acquire(&cw_pool_context_lock);
    state = (enum cw_pool_context_state)atomic_load(&pool_context->state);
    if (state == CW_POOL_CONTEXT_CLOSING)
        pool_context->limbo = cw_tracker_join(pool_context->limbo, list);
    cw_lock_release(&cw_pool_context_lock);
    return state;
}

void cw_pool_context_forget(struct cw_pool_context *pool_context, uint32_t list)
{
    while (list != 0) {
        const struct cw_live_block *block = cw_tracker_at(list);
        uint32_t next = cw_tracker_next(list);

        cw_bucket_dropped(cw_pool_context_pool(pool_context, block->class), list, 0);
        if (cw_tracker_take_idle(list)) /* the program freed it before its context ended */
            cw_freed_remember(atomic_load_explicit(&block->key, memory_order_relaxed),
                              atomic_load_explicit(&block->maps, memory_order_relaxed),
                              atomic_load_explicit(&block->site, memory_order_relaxed));
        cw_tracker_finish_idle(list);
        list = next;
    }
}

/* ---- pools and events ---- */

struct cw_pool *cw_pool_context_make_pool(struct cw_pool_context *pool_context,
                                          enum cw_pool_class class)
{
    struct cw_pool *pool = cw_bucket_make_pool(pool_context, class, pool_context->device);
    int is_used;

    if (pool == NULL)
        return NULL;
    cw_lock_acquire(&cw_pool_context_lock);
    /* Another thread may have been faster; and nobody would retire the pool of a dead context. */
    is_used = pool_at(pool_context, class) == NULL &&
              atomic_load(&pool_context->state) != CW_POOL_CONTEXT_DEAD;
    if (is_used)
        atomic_store_explicit(&pool_context->pool[class], pool, memory_order_release);
    cw_lock_release(&cw_pool_context_lock);
    if (!is_used)
        cw_bucket_unmake_pool(pool);
    return pool_at(pool_context, class);
}

uint64_t cw_pool_context_acquire_event(struct cw_pool_context *pool_context)
{
    uint64_t event = 0;

    cw_lock_acquire(&cw_pool_context_lock);
    if (pool_context->events > 0)
        event = pool_context->event[--pool_context->events];
    cw_lock_release(&cw_pool_context_lock);
    if (event == 0 &&
        cw_session.ops->event_create(cw_context_name(pool_context->record), &event) != 0)
        event = 0;
    return event;
}

static int make_room_locked(struct cw_pool_context *pool_context)
{
    uint32_t room = pool_context->event_room ? pool_context->event_room * 2 : EVENTS_FIRST;
    uint64_t *event;

    if (pool_context->events < pool_context->event_room)
        return 0;
    event = cw_mem_alloc(room * sizeof(*event));
    if (event == NULL)
        return -1;
    for (uint32_t i = 0; i < pool_context->events; i++)
        event[i] = pool_context->event[i];
    if (pool_context->event != NULL)
        cw_mem_free(pool_context->event, pool_context->event_room * sizeof(*event));
    pool_context->event = event;
    pool_context->event_room = room;
    return 0;
}

void cw_pool_context_release_event(struct cw_pool_context *pool_context, uint64_t event)
{
    cw_lock_acquire(&cw_pool_context_lock);
    /* Events of a dead context went with it; without memory one is lost until the context ends. */
    if (atomic_load(&pool_context->state) != CW_POOL_CONTEXT_DEAD &&
        make_room_locked(pool_context) == 0)
        pool_context->event[pool_context->events++] = event;
    cw_lock_release(&cw_pool_context_lock);
}
