/* SPDX-License-Identifier: MIT */
/* Contexts as the pool sees them. See realm.h. */
#include "core/cache/realm.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/account/tracker.h"

#define EVENTS_FIRST 16u
/* So long the end of a context waits for frees in it: longer than a thread is ever without a
 * processor, and not for good, should one have been cancelled inside. */
#define FREES_NS UINT64_C(1000000000)

struct cw_lock cw_realm_lock = CW_LOCK_INIT(CW_RANK_POOL);
_Atomic(cw_realm_slot *) cw_realm_chunks[CW_REALM_CHUNKS];
CW_HOT_DATA _Atomic uint32_t cw_realms_live;

static struct cw_realm *live; /* guarded by cw_realm_lock; newest first */

void cw_realm_reset(void)
{
    cw_lock_reset(&cw_realm_lock);
    for (uint32_t i = 0; i < CW_REALM_CHUNKS; i++)
        atomic_store_explicit(&cw_realm_chunks[i], NULL, memory_order_relaxed);
    atomic_store(&cw_realms_live, 0);
    live = NULL;
}

/* ---- which are live ----------------------------------------------------------------------------
 */

static void list_insert_locked(struct cw_realm *realm)
{
    realm->next_live = live;
    if (live != NULL)
        live->previous_live = realm;
    live = realm;
    atomic_fetch_add(&cw_realms_live, 1);
}

static void list_remove_locked(struct cw_realm *realm)
{
    if (realm->previous_live != NULL)
        realm->previous_live->next_live = realm->next_live;
    else
        live = realm->next_live;
    if (realm->next_live != NULL)
        realm->next_live->previous_live = realm->previous_live;
    atomic_fetch_sub(&cw_realms_live, 1);
}

uint32_t cw_realm_list(struct cw_realm **out, uint32_t max)
{
    struct cw_realm *realm;
    uint32_t count;

    cw_lock_acquire(&cw_realm_lock);
    count = atomic_load(&cw_realms_live);
    realm = live;
    for (uint32_t i = 0; i < max; i++) {
        out[i] = realm;
        realm = realm != NULL ? realm->next_live : NULL;
    }
    cw_lock_release(&cw_realm_lock);
    return count;
}

/* ---- the life of a context ---------------------------------------------------------------------
 */

/* The place of a context's realm, made at need; NULL without memory. */
static cw_realm_slot *place_locked(uint32_t context)
{
    cw_realm_slot *chunk;

    if (context >= CW_REALM_CHUNK * CW_REALM_CHUNKS)
        return NULL;
    chunk = atomic_load(&cw_realm_chunks[context / CW_REALM_CHUNK]);
    if (chunk == NULL) {
        chunk = cw_mem_alloc(CW_REALM_CHUNK * sizeof(*chunk));
        if (chunk == NULL)
            return NULL;
        atomic_store_explicit(&cw_realm_chunks[context / CW_REALM_CHUNK], chunk,
                              memory_order_release);
    }
    return &chunk[context % CW_REALM_CHUNK];
}

void cw_realm_make(uint32_t context, struct cw_live_context *record)
{
    cw_realm_slot *place;
    struct cw_realm *realm;

    cw_lock_acquire(&cw_realm_lock);
    place = place_locked(context);
    if (place == NULL || atomic_load(place) == NULL) {
        realm = place != NULL ? cw_mem_alloc(sizeof(*realm)) : NULL;
        if (realm != NULL) {
            realm->context = context;
            realm->device = (uint8_t)record->device;
            realm->record = record;
            list_insert_locked(realm);
            atomic_store_explicit(place, realm, memory_order_release);
        } else {
            atomic_fetch_add(&cw_realms_live, CW_REALMS_LIVE + 1);
        }
    }
    cw_lock_release(&cw_realm_lock);
}

static struct cw_pool *pool_at(struct cw_realm *realm, unsigned class)
{
    return atomic_load_explicit(&realm->pool[class], memory_order_acquire);
}

void cw_realm_to_limbo(struct cw_realm *realm, uint32_t list)
{
    cw_lock_acquire(&cw_realm_lock);
    realm->limbo = cw_tracker_join(realm->limbo, list);
    cw_lock_release(&cw_realm_lock);
}

int cw_realm_enter_free(struct cw_realm *realm)
{
    atomic_fetch_add(&realm->freeing, 1);
    if (cw_gate_enter_wait())
        return 1;
    atomic_fetch_sub(&realm->freeing, 1);
    return 0;
}

void cw_realm_leave_free(struct cw_realm *realm)
{
    cw_gate_leave_wait();
    atomic_fetch_sub(&realm->freeing, 1);
}

/* The gate, which is closed, gives calls that wait some milliseconds only. A free that comes later
 * than the end would be of whatever has the address, or the handle, by then. */
static void wait_for_frees(const struct cw_realm *realm)
{
    uint64_t deadline;
    unsigned turns = 0;

    if (atomic_load(&realm->freeing) == 0)
        return;
    deadline = cw_clock_ns() + FREES_NS;
    while (atomic_load(&realm->freeing) != 0 && cw_clock_ns() < deadline)
        cw_lock_relax(&turns);
}

void cw_realm_close(struct cw_realm *realm)
{
    wait_for_frees(realm);
    atomic_store(&realm->state, CW_REALM_CLOSING);
}

uint32_t cw_realm_reopen(struct cw_realm *realm)
{
    uint32_t closing = CW_REALM_CLOSING, list;

    cw_lock_acquire(&cw_realm_lock);
    /* Another thread may have ended it meanwhile. */
    if (!atomic_compare_exchange_strong(&realm->state, &closing, CW_REALM_OPEN)) {
        cw_lock_release(&cw_realm_lock);
        return 0;
    }
    list = realm->limbo;
    realm->limbo = 0;
    cw_lock_release(&cw_realm_lock);
    return list;
}

/* Two threads may find out at once. */
uint32_t cw_realm_die(struct cw_realm *realm)
{
    uint32_t list;

    cw_lock_acquire(&cw_realm_lock);
    if (atomic_exchange(&realm->state, CW_REALM_DEAD) != CW_REALM_DEAD)
        list_remove_locked(realm);
    list = realm->limbo;
    realm->limbo = 0;
    realm->events = 0;
    cw_lock_release(&cw_realm_lock);
    return list;
}

enum cw_realm_state cw_realm_park(struct cw_realm *realm, uint32_t list)
{
    enum cw_realm_state state;

    cw_lock_acquire(&cw_realm_lock);
    state = (enum cw_realm_state)atomic_load(&realm->state);
    if (state == CW_REALM_CLOSING)
        realm->limbo = cw_tracker_join(realm->limbo, list);
    cw_lock_release(&cw_realm_lock);
    return state;
}

void cw_realm_forget(struct cw_realm *realm, uint32_t list)
{
    while (list != 0) {
        uint32_t next = cw_tracker_next(list);

        cw_bucket_dropped(cw_realm_pool(realm, cw_tracker_at(list)->class), list, 0);
        cw_tracker_take_idle(list);
        cw_tracker_finish_idle(list);
        list = next;
    }
}

/* ---- pools and events --------------------------------------------------------------------------
 */

struct cw_pool *cw_realm_make_pool(struct cw_realm *realm, enum cw_pool_class class)
{
    struct cw_pool *pool = cw_bucket_make_pool(realm, class, realm->device);

    if (pool == NULL)
        return NULL;
    cw_lock_acquire(&cw_realm_lock);
    /* A second thread may have been faster: its pool counts, ours stays unused. */
    if (pool_at(realm, class) == NULL)
        atomic_store_explicit(&realm->pool[class], pool, memory_order_release);
    cw_lock_release(&cw_realm_lock);
    return pool_at(realm, class);
}

uint64_t cw_realm_acquire_event(struct cw_realm *realm)
{
    uint64_t event = 0;

    cw_lock_acquire(&cw_realm_lock);
    if (realm->events > 0)
        event = realm->event[--realm->events];
    cw_lock_release(&cw_realm_lock);
    if (event == 0 && cw_session.ops->event_create(cw_context_name(realm->record), &event) != 0)
        event = 0;
    return event;
}

static int make_room_locked(struct cw_realm *realm)
{
    uint32_t room = realm->event_room ? realm->event_room * 2 : EVENTS_FIRST;
    uint64_t *event;

    if (realm->events < realm->event_room)
        return 0;
    event = cw_mem_alloc(room * sizeof(*event));
    if (event == NULL)
        return -1;
    for (uint32_t i = 0; i < realm->events; i++)
        event[i] = realm->event[i];
    if (realm->event != NULL)
        cw_mem_free(realm->event, realm->event_room * sizeof(*event));
    realm->event = event;
    realm->event_room = room;
    return 0;
}

void cw_realm_release_event(struct cw_realm *realm, uint64_t event)
{
    cw_lock_acquire(&cw_realm_lock);
    /* Events of a dead context went with it; without memory one is lost until the context ends. */
    if (atomic_load(&realm->state) != CW_REALM_DEAD && make_room_locked(realm) == 0)
        realm->event[realm->events++] = event;
    cw_lock_release(&cw_realm_lock);
}
