/* SPDX-License-Identifier: MIT */
/* Batches of freed blocks, tickets, events. See pending.h. */
#include "core/pending.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/gate.h"
#include "core/hoard.h"
#include "core/keep.h"
#include "core/session.h"
#include "core/slot.h"
#include "core/tracker.h"

/* A batch is closed when it holds so much: later frees would hold it back. */
#define BATCH_BLOCKS 64u
#define BATCH_BYTES  ((uint64_t)64 << 20)

struct mark {
    struct cw_realm *realm;
    uint64_t event; /* 0: passed */
};

struct cw_batch {
    struct cw_batch *next;
    struct cw_realm *realm; /* of all its blocks */
    uint32_t head, count;
    uint64_t bytes, host_bytes; /* on the device, and pinned */
    uint64_t stamp;             /* the last ticket drawn before the last free */
    int recorded;
    uint32_t marks; /* events, one for each context that had not passed when it was recorded */
    struct mark mark[CW_REALMS_LIVE];
};

static _Atomic uint64_t tickets;
_Atomic uint32_t cw_pending_batches; /* open ones included */
_Atomic uint64_t cw_pending_bytes_on[CW_DEVICES];

void cw_pending_reset(void)
{
    atomic_store(&cw_pending_batches, 0);
    for (int i = 0; i < CW_DEVICES; i++)
        atomic_store_explicit(&cw_pending_bytes_on[i], 0, memory_order_relaxed);
}

/* ---- tickets -----------------------------------------------------------------------------------
 */

uint64_t cw_pending_stamp(void)
{
    /* After the work that the program has submitted, in every thread's eyes. */
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(&tickets);
}

uint64_t cw_pending_sync_begin(void)
{
    return atomic_fetch_add(&tickets, 1) + 1;
}

void cw_pending_sync_end(struct cw_realm *realm, uint64_t ticket)
{
    uint64_t seen = atomic_load(&realm->synced);

    while (seen < ticket && !atomic_compare_exchange_weak(&realm->synced, &seen, ticket))
        ;
}

int cw_pending_is_passed(uint64_t stamp)
{
    struct cw_realm *realm[CW_REALMS_LIVE];
    uint32_t count = cw_realm_list(realm, CW_REALMS_LIVE);

    if (count > CW_REALMS_LIVE)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load(&realm[i]->synced) <= stamp)
            return 0;
    return 1;
}

int cw_pending_is_possible(void)
{
    struct cw_realm *realm[CW_REALMS_LIVE];
    uint32_t count = cw_realm_list(realm, CW_REALMS_LIVE);

    if (count > CW_REALMS_LIVE || !cw_session.ops->has_context_events())
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (realm[i]->record->handle == 0 || atomic_load(&realm[i]->record->fatal) != 0)
            return 0;
    return 1;
}

/* ---- one batch ---------------------------------------------------------------------------------
 */

static struct cw_batch *make_batch(struct cw_realm *realm)
{
    struct cw_batch *batch = cw_mem_alloc(sizeof(*batch));

    if (batch == NULL)
        return NULL;
    batch->realm = realm;
    atomic_fetch_add(&cw_pending_batches, 1);
    return batch;
}

static void append(struct cw_batch *batch, uint32_t block, uint64_t stamp)
{
    struct cw_live_block *record = cw_tracker_at(block);
    uint64_t held = atomic_load_explicit(&record->held, memory_order_relaxed);

    atomic_store_explicit(&record->link, batch->head, memory_order_relaxed);
    batch->head = block;
    batch->count++;
    if (record->class >= CW_POOL_HOST) {
        batch->host_bytes += held;
        atomic_fetch_add_explicit(&cw_pending_bytes_on[CW_DEVICE_HOST], held, memory_order_relaxed);
    } else {
        batch->bytes += held;
        atomic_fetch_add_explicit(&cw_pending_bytes_on[batch->realm->device], held,
                                  memory_order_relaxed);
    }
    if (batch->stamp < stamp)
        batch->stamp = stamp;
}

static void give_events_back(struct cw_batch *batch)
{
    for (uint32_t i = 0; i < batch->marks; i++)
        if (batch->mark[i].event != 0)
            cw_realm_release_event(batch->mark[i].realm, batch->mark[i].event);
    batch->marks = 0;
}

/* The batch is no more; its blocks, linked. Its events are free for others. */
static uint32_t dissolve(struct cw_batch *batch)
{
    uint32_t list = batch->head;

    give_events_back(batch);
    atomic_fetch_sub_explicit(&cw_pending_bytes_on[batch->realm->device], batch->bytes,
                              memory_order_relaxed);
    atomic_fetch_sub_explicit(&cw_pending_bytes_on[CW_DEVICE_HOST], batch->host_bytes,
                              memory_order_relaxed);
    cw_mem_free(batch, sizeof(*batch));
    atomic_fetch_sub(&cw_pending_batches, 1);
    return list;
}

static void count_on(const struct cw_realm *realm, int queries)
{
    struct cw_live_pool *pool = &cw_session.arena.header->device[realm->device].pool;

    atomic_fetch_add_explicit(queries ? &pool->event_queries : &pool->event_records, 1,
                              memory_order_relaxed);
}

/* Inside the gate. 0, or -1 when a context gave no event. */
static int record(struct cw_batch *batch)
{
    struct cw_realm *realm[CW_REALMS_LIVE];
    uint32_t count = cw_realm_list(realm, CW_REALMS_LIVE);

    if (count > CW_REALMS_LIVE)
        return -1;
    give_events_back(batch); /* of an attempt that failed half-way */
    for (uint32_t i = 0; i < count; i++) {
        uint64_t event;

        if (atomic_load(&realm[i]->synced) > batch->stamp)
            continue;
        event = cw_realm_acquire_event(realm[i]);
        if (event == 0)
            return -1;
        batch->mark[batch->marks++] = (struct mark){.realm = realm[i], .event = event};
        if (cw_session.ops->event_record(realm[i]->record->handle, event) != 0)
            return -1;
        count_on(realm[i], 0);
    }
    batch->recorded = 1;
    return 0;
}

/* Inside the gate. 1: every context has passed; 0: not yet; -1: an event has failed. */
static int query(struct cw_batch *batch)
{
    for (uint32_t i = 0; i < batch->marks; i++) {
        struct mark *mark = &batch->mark[i];
        int passed;

        /* A dead context has no work left, and took its events with it. */
        if (mark->event == 0 || atomic_load(&mark->realm->state) == CW_REALM_DEAD ||
            atomic_load(&mark->realm->synced) > batch->stamp)
            continue;
        passed = cw_session.ops->event_query(mark->event);
        count_on(mark->realm, 1);
        if (passed != 1)
            return passed;
        cw_realm_release_event(mark->realm, mark->event);
        mark->event = 0;
    }
    return 1;
}

/* ---- the list of a realm -----------------------------------------------------------------------
 */

/* 1, or 0 when the realm is not open: the caller keeps the batch. */
static int push(struct cw_batch *batch, int front)
{
    struct cw_realm *realm = batch->realm;
    int open;

    cw_lock_acquire(&cw_realm_lock);
    open = atomic_load(&realm->state) == CW_REALM_OPEN;
    if (open && (front || realm->first == NULL)) {
        batch->next = realm->first;
        if (realm->first == NULL)
            realm->last = batch;
        realm->first = batch;
    } else if (open) {
        batch->next = NULL;
        realm->last->next = batch;
        realm->last = batch;
    }
    cw_lock_release(&cw_realm_lock);
    return open;
}

static void push_or_defer(struct cw_batch *batch, int front)
{
    struct cw_realm *realm = batch->realm;

    if (!push(batch, front))
        cw_realm_defer(realm, dissolve(batch));
}

static struct cw_batch *pop(struct cw_realm *realm)
{
    struct cw_batch *batch;

    cw_lock_acquire(&cw_realm_lock);
    batch = realm->first;
    if (batch != NULL)
        realm->first = batch->next;
    cw_lock_release(&cw_realm_lock);
    return batch;
}

/* Takes the calling thread's open batch if it belongs to the realm (NULL: to any) and, with
 * `passed`, is ready. */
static struct cw_batch *detach_open(const struct cw_realm *realm, int passed)
{
    struct cw_slot *slot = cw_slot_enter();
    struct cw_batch **open, *batch;

    if (slot == NULL)
        return NULL;
    open = cw_hoard_batch((unsigned)(slot - cw_slots));
    batch = *open;
    if (batch != NULL && (realm == NULL || batch->realm == realm) &&
        (!passed || cw_pending_is_passed(batch->stamp)))
        *open = NULL;
    else
        batch = NULL;
    cw_slot_leave(slot);
    return batch;
}

/* Events, then the list. A batch whose events cannot be had goes to the driver's own free, which
 * waits by itself, or where that must not be joins the list without them. */
static void close_batch(struct cw_batch *batch, int may_release)
{
    struct cw_realm *realm = batch->realm;
    int failed = 0;

    if (!cw_gate_enter()) {
        push_or_defer(batch, 0);
        return;
    }
    failed = record(batch) != 0;
    if (!failed || !may_release)
        push_or_defer(batch, 0);
    cw_gate_leave();
    if (failed && may_release)
        cw_keep_release(realm, dissolve(batch), CW_RELEASE_FULL);
}

void cw_pending_close(int may_release)
{
    struct cw_batch *batch = detach_open(NULL, 0);

    if (batch != NULL)
        close_batch(batch, may_release);
}

/* ---- in ----------------------------------------------------------------------------------------
 */

static int is_full(const struct cw_batch *batch)
{
    return batch->count >= BATCH_BLOCKS || batch->bytes + batch->host_bytes >= BATCH_BYTES;
}

/* Inside the slot. What has to be closed to make room is in *out_full. -1: without memory. */
static int add_to_open(struct cw_batch **open, struct cw_realm *realm, uint32_t block,
                       uint64_t stamp, struct cw_batch **out_full)
{
    if (*open != NULL && ((*open)->realm != realm || is_full(*open))) {
        *out_full = *open;
        *open = NULL;
    }
    if (*open == NULL)
        *open = make_batch(realm);
    if (*open == NULL)
        return -1;
    append(*open, block, stamp);
    return 0;
}

int cw_pending_add(struct cw_pool *pool, uint32_t block, uint64_t stamp)
{
    struct cw_slot *slot = cw_slot_enter();
    struct cw_batch *full = NULL, *alone;
    int rc;

    if (CW_LIKELY(slot != NULL) &&
        atomic_load_explicit(&pool->realm->state, memory_order_acquire) == CW_REALM_OPEN) {
        rc = add_to_open(cw_hoard_batch((unsigned)(slot - cw_slots)), pool->realm, block, stamp,
                         &full);
        cw_slot_leave(slot);
        if (full != NULL)
            close_batch(full, 1);
        return rc;
    }
    if (slot != NULL)
        cw_slot_leave(slot);
    alone = make_batch(pool->realm);
    if (alone == NULL)
        return -1;
    append(alone, block, stamp);
    close_batch(alone, 1);
    return 0;
}

void cw_pending_add_list(struct cw_realm *realm, uint32_t list)
{
    uint64_t stamp = cw_pending_stamp();

    while (list != 0) {
        uint32_t next = atomic_load_explicit(&cw_tracker_at(list)->link, memory_order_relaxed);
        struct cw_batch *batch = make_batch(realm);

        /* Without memory the block is lost to the pool; it goes with its context. */
        for (; batch != NULL && list != 0 && !is_full(batch); list = next) {
            next = atomic_load_explicit(&cw_tracker_at(list)->link, memory_order_relaxed);
            append(batch, list, stamp);
        }
        if (batch == NULL)
            return;
        push_or_defer(batch, 0);
    }
}

/* ---- out ---------------------------------------------------------------------------------------
 */

static uint32_t hand_over(struct cw_realm *realm, struct cw_batch *batch, int by_event,
                          int may_release)
{
    struct cw_live_pool *pool = &cw_session.arena.header->device[realm->device].pool;
    uint32_t count = batch->count;

    atomic_fetch_add_explicit(by_event ? &pool->harvested_by_event : &pool->harvested_by_sync,
                              count, memory_order_relaxed);
    cw_keep_ready(realm, dissolve(batch), may_release);
    return count;
}

/* Asks about a batch that is in no list. 1: passed; 0: it is back in the list; -1: it has gone to
 * the driver. */
static int ask(struct cw_batch *batch, int may_release)
{
    struct cw_realm *realm = batch->realm;
    int passed = -1;

    if (!cw_gate_enter()) {
        push_or_defer(batch, 1);
        return 0;
    }
    if (batch->recorded || record(batch) == 0)
        passed = query(batch);
    if (passed < 0 && !may_release)
        passed = 0;
    if (passed == 0)
        push_or_defer(batch, 1);
    cw_gate_leave();
    if (passed < 0)
        cw_keep_release(realm, dissolve(batch), CW_RELEASE_FULL);
    return passed;
}

uint32_t cw_pending_harvest(struct cw_realm *realm, unsigned most, int may_release)
{
    struct cw_batch *batch = detach_open(realm, 1);
    uint32_t count = 0;

    if (batch != NULL)
        count += hand_over(realm, batch, 0, may_release);
    while ((batch = pop(realm)) != NULL) {
        if (cw_pending_is_passed(batch->stamp)) {
            count += hand_over(realm, batch, 0, may_release);
            continue;
        }
        if (most == 0) {
            push_or_defer(batch, 1);
            break;
        }
        most--;
        switch (ask(batch, may_release)) {
        case 1:
            count += hand_over(realm, batch, 1, may_release);
            break;
        case 0:
            return count;
        default:
            break;
        }
    }
    return count;
}

static uint32_t join(uint32_t list, uint32_t more)
{
    while (more != 0) {
        struct cw_live_block *record = cw_tracker_at(more);
        uint32_t next = atomic_load_explicit(&record->link, memory_order_relaxed);

        atomic_store_explicit(&record->link, list, memory_order_relaxed);
        list = more;
        more = next;
    }
    return list;
}

/* Out of the slots, linked through `next`. */
static struct cw_batch *seize_open(const struct cw_realm *realm)
{
    uint64_t mask = cw_slot_used();
    struct cw_batch *all = NULL;

    cw_slot_stop(mask);
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        struct cw_batch **open = cw_hoard_batch((unsigned)__builtin_ctzll(rest));

        if (*open == NULL || (*open)->realm != realm)
            continue;
        (*open)->next = all;
        all = *open;
        *open = NULL;
    }
    cw_slot_resume(mask);
    return all;
}

uint32_t cw_pending_seize(struct cw_realm *realm)
{
    struct cw_batch *batch, *open;
    uint32_t list = 0;

    /* Not even a hint is good enough here: a thread may be at its first batch. */
    open = seize_open(realm);
    while (open != NULL) {
        batch = open;
        open = open->next;
        list = join(list, dissolve(batch));
    }
    while ((batch = pop(realm)) != NULL)
        list = join(list, dissolve(batch));
    return list;
}

void cw_pending_thread_ends(void)
{
    struct cw_batch *batch = detach_open(NULL, 0);

    if (batch != NULL)
        push_or_defer(batch, 0);
}
