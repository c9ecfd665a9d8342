/* SPDX-License-Identifier: MIT */
/* Waiting, within bounds. See patience.h. */
#include "core/pending/patience.h"

#include <stddef.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "core/account/event.h"
#include "core/pending/batch.h"
#include "core/process/gate.h"
#include "core/process/session.h"

/* How often frees in a busy context stand back, for as long as their patience. */
#define STAND_BACK_EVERY_NS (20 * CW_PATIENCE_NS)

/* Of a pool context's `busy`. */
enum { NOT_BUSY, BUSY, BUSY_AND_SAID };

_Atomic uint32_t cw_patience_busy;

/* An event that a thread's last wait has left, and the context that it is of: the owner of the slot
 * alone reads and writes it, so that threads that free beside each other write to no common line.
 * That of a context that has ended went with it, and is dropped when it is put aside. */
static struct CW_ALIGNED_LINE kept_event {
    struct cw_pool_context *of;
    uint64_t event; /* 0: none */
} kept[CW_SLOTS];

void cw_patience_reset(void)
{
    atomic_store(&cw_patience_busy, 0);
    memset(kept, 0, sizeof(kept));
}

static struct cw_live_pool *counters(const struct cw_pool_context *pool_context)
{
    return &cw_session.arena.header->device[pool_context->device].pool;
}

/* ---- the state ---- */

void cw_patience_end(struct cw_pool_context *pool_context)
{
    uint8_t not_busy = NOT_BUSY;

    if (cw_patience_is_over(pool_context))
        return;
    atomic_store(&pool_context->busy_since, cw_batch_sync_begin());
    if (atomic_compare_exchange_strong(&pool_context->busy, &not_busy, BUSY))
        atomic_fetch_add(&cw_patience_busy, 1);
    /* It may have ended meanwhile, and nobody would renew it (cw_pool_context_die comes first). */
    if (atomic_load(&pool_context->state) == CW_POOL_CONTEXT_DEAD)
        cw_patience_renew(pool_context);
}

void cw_patience_renew(struct cw_pool_context *pool_context)
{
    if (atomic_exchange(&pool_context->busy, NOT_BUSY) != NOT_BUSY)
        atomic_fetch_sub(&cw_patience_busy, 1);
}

void cw_patience_passed(struct cw_pool_context *pool_context, uint64_t stamp)
{
    if (cw_patience_is_over(pool_context) && stamp >= atomic_load(&pool_context->busy_since))
        cw_patience_renew(pool_context);
}

int cw_patience_is_put_off(const struct cw_pool_context *pool_context, int is_host, uint64_t held)
{
    return cw_patience_is_over(pool_context) &&
           held <= atomic_load_explicit(&pool_context->unwaited[is_host], memory_order_relaxed);
}

void cw_patience_put_off(struct cw_pool_context *pool_context)
{
    uint8_t busy = BUSY;

    atomic_fetch_add_explicit(&counters(pool_context)->put_off, 1, memory_order_relaxed);
    if (atomic_compare_exchange_strong(&pool_context->busy, &busy, BUSY_AND_SAID))
        cw_event_add(
            &(struct cw_live_event){.type = CW_EVENT_PUT_OFF, .device = pool_context->device});
}

void cw_patience_refused(const struct cw_pool_context *pool_context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    atomic_fetch_add_explicit(&counters(pool_context)->events_refused, 1, memory_order_relaxed);
    cw_log_once(
        &said, CW_LOG_WARN,
        "the driver refuses events of a whole context, so the pool keeps fewer blocks than it "
        "could; cuwarden doctor --gpu says more");
}

/* ---- waiting ---- */

/* Inside the gate, as the next. */
static CW_INLINE uint64_t take_event(struct cw_pool_context *pool_context, struct kept_event *own)
{
    uint64_t event = own->event;

    if (CW_UNLIKELY(own->of != pool_context || event == 0))
        return cw_pool_context_acquire_event(pool_context);
    own->event = 0;
    return event;
}

/* Slot 0 is of many threads: nothing is kept there. */
static CW_NOINLINE void put_event(struct cw_pool_context *pool_context, uint64_t event)
{
    struct kept_event *own = &kept[cw_thread_slot()];

    if (own == kept) {
        cw_pool_context_release_event(pool_context, event);
        return;
    }
    if (own->event != 0)
        cw_pool_context_release_event(own->of, own->event);
    *own = (struct kept_event){.of = pool_context, .event = event};
}

/* Past the gate, once: the event was recorded outside of a capture. */
static enum cw_patience ask(struct cw_pool_context *pool_context, uint64_t event)
{
    unsigned way = cw_gate_enter_beside(CW_GATE_ALL);
    int passed = -1;

    if (way == 0)
        return CW_PATIENCE_CUT;
    if (cw_pool_context_is_usable(pool_context))
        passed = cw_session.ops->event_query(cw_context_name(pool_context->record), event);
    cw_gate_leave_beside(way);
    return passed == 1 ? CW_PATIENCE_PASSED : passed == 0 ? CW_PATIENCE_BUSY : CW_PATIENCE_REFUSED;
}

/* Other contexts may end, or pools. */
#define BESIDE (CW_GATE_ENDS | CW_GATE_POOLS)

/* BUSY without an event: a thread is in the driver's free of a block of the context; is_moving: a
 * short one. */
static CW_INLINE enum cw_patience begin(struct cw_pool_context *pool_context, int is_moving,
                                        uint32_t beside, uint64_t *out_event, int *out_code)
{
    struct kept_event *own = &kept[cw_thread_slot()];
    int passed = CW_EVENT_REFUSED, is_refused = 0;

    *out_event = 0;
    *out_code = 0;
    if (CW_UNLIKELY(beside == 0 ? !cw_gate_enter() : cw_gate_enter_beside(beside) == 0))
        return CW_PATIENCE_SHUT;
    if (CW_UNLIKELY(!cw_pool_context_is_usable(pool_context))) {
        cw_gate_leave();
        return CW_PATIENCE_SHUT;
    }
    if (cw_pool_context_is_in_free(pool_context) && !is_moving) {
        cw_gate_leave();
        return CW_PATIENCE_BUSY;
    }
    *out_event = take_event(pool_context, own);
    if (CW_LIKELY(*out_event != 0))
        *out_code = cw_session.ops->context_poll(cw_context_name(pool_context->record), *out_event,
                                                 &passed);
    if (CW_LIKELY(*out_event != 0 && passed != 0)) {
        if (CW_LIKELY(own->of == pool_context && own->event == 0))
            own->event = *out_event;
        else
            put_event(pool_context, *out_event);
        is_refused = passed == CW_EVENT_REFUSED && *out_code == 0;
        *out_event = 0;
    }
    cw_gate_leave();
    if (CW_LIKELY(passed == 1))
        return CW_PATIENCE_PASSED;
    if (is_refused)
        cw_patience_refused(pool_context);
    return passed == 0 && *out_code == 0 ? CW_PATIENCE_BUSY : CW_PATIENCE_REFUSED;
}

/* As long as frees come back from the driver, none of them waits for a kernel. *passed: how many
 * had when it was looked at last. */
static enum cw_patience begin_again(struct cw_pool_context *pool_context, uint32_t *passed,
                                    uint64_t *out_event, int *out_code)
{
    uint32_t before = *passed;
    enum cw_patience found;

    *passed = atomic_load(&pool_context->passed);
    found = begin(pool_context, *passed != before && !cw_patience_is_over(pool_context), BESIDE,
                  out_event, out_code);
    return found == CW_PATIENCE_SHUT ? CW_PATIENCE_CUT : found;
}

/*
 * Until when a free in a busy context asks on: not at all if it has an event. Without one it learns
 * nothing in the driver's free, and there keeps the next from having one: threads that free beside
 * each other would call the context busy until it is synchronised. So they all stand back at the
 * same time, now and then, until nobody is in a free. That takes as long as those inside, one after
 * the other: 64 threads with frees of more than 0.3 ms are too many.
 */
static uint64_t stands_back_until(struct cw_pool_context *pool_context, uint64_t event)
{
    uint64_t began = atomic_load(&pool_context->stood_back), now = cw_session_now();

    if (event != 0)
        return 0;
    if (now - began >= STAND_BACK_EVERY_NS &&
        atomic_compare_exchange_strong(&pool_context->stood_back, &began, now))
        began = now;
    return began + CW_PATIENCE_NS;
}

static CW_NOINLINE enum cw_patience keep_asking(struct cw_pool_context *pool_context,
                                                uint64_t *event, int *out_code)
{
    int was_over = cw_patience_is_over(pool_context);
    uint64_t end =
        was_over ? stands_back_until(pool_context, *event) : cw_session_now() + CW_PATIENCE_NS;
    enum cw_patience found = CW_PATIENCE_BUSY;
    uint32_t passed = atomic_load(&pool_context->passed);
    unsigned turns = 0;

    while (found == CW_PATIENCE_BUSY && cw_session_now() < end) {
        cw_lock_doze(&turns);
        found = *event != 0 ? ask(pool_context, *event)
                            : begin_again(pool_context, &passed, event, out_code);
    }
    if (found == CW_PATIENCE_BUSY && !was_over)
        cw_patience_end(pool_context);
    return found;
}

/* The event is the probe's, or is given back. */
static void settle(struct cw_pool_context *pool_context, enum cw_patience found, uint64_t event,
                   struct cw_free_probe *out_probe)
{
    if (found == CW_PATIENCE_BUSY && out_probe != NULL)
        *out_probe = (struct cw_free_probe){.context = pool_context->context, .event = event};
    else if (event != 0)
        put_event(pool_context, event);
}

static CW_INLINE uint64_t begin_ticket(void)
{
    return CW_UNLIKELY(cw_batch_is_any() || !cw_pool_context_is_alone()) ? cw_batch_sync_begin()
                                                                         : 0;
}

CW_HOT enum cw_patience cw_patience_wait(struct cw_pool_context *pool_context, int *out_code,
                                         struct cw_free_probe *out_probe)
{
    uint64_t ticket = begin_ticket(), event;
    enum cw_patience found = begin(pool_context, 0, 0, &event, out_code);

    if (CW_UNLIKELY(found == CW_PATIENCE_BUSY)) {
        uint64_t late = event; /* else the usual one would have to lie in memory */

        found = keep_asking(pool_context, &late, out_code);
        event = late;
    }
    if (CW_UNLIKELY(event != 0))
        settle(pool_context, found, event, out_probe);
    if (CW_UNLIKELY(found != CW_PATIENCE_PASSED))
        return found;
    if (CW_UNLIKELY(ticket != 0))
        cw_batch_sync_end(pool_context, ticket);
    if (cw_patience_is_over(pool_context))
        cw_patience_renew(pool_context);
    return found;
}

/* Those who free need not wait so long: to them the context is busy meanwhile. */
enum cw_patience cw_patience_wait_on(struct cw_pool_context *pool_context, int *out_code)
{
    uint64_t ticket = cw_batch_sync_begin(), event, end = cw_session_now() + CW_PATIENCE_NS;
    uint32_t passed = atomic_load(&pool_context->passed);
    enum cw_patience found = begin(pool_context, 0, BESIDE, &event, out_code);
    unsigned turns = 0;

    while (found == CW_PATIENCE_BUSY) {
        if (cw_session_now() >= end)
            cw_patience_end(pool_context);
        cw_lock_doze(&turns);
        found = event != 0 ? ask(pool_context, event)
                           : begin_again(pool_context, &passed, &event, out_code);
    }
    if (event != 0)
        put_event(pool_context, event);
    if (found == CW_PATIENCE_PASSED) {
        cw_batch_sync_end(pool_context, ticket);
        cw_patience_renew(pool_context);
    }
    return found;
}

enum cw_patience cw_patience_wait_inside(struct cw_pool_context *pool_context, int *out_code)
{
    uint64_t ticket;

    *out_code = 0;
    if (!cw_gate_enter_wait())
        return CW_PATIENCE_SHUT;
    if (!cw_pool_context_is_usable(pool_context)) {
        cw_gate_leave_wait();
        return CW_PATIENCE_SHUT;
    }
    ticket = begin_ticket();
    *out_code = cw_session.ops->context_wait(cw_context_name(pool_context->record));
    cw_gate_leave_wait();
    if (*out_code != 0)
        return CW_PATIENCE_REFUSED;
    if (ticket != 0)
        cw_batch_sync_end(pool_context, ticket);
    return CW_PATIENCE_PASSED;
}

/* ---- what the driver's own free does ---- */

void cw_patience_drop(struct cw_free_probe *probe)
{
    put_event(cw_pool_context_of(probe->context), probe->event);
    probe->context = 0;
}

/* Passed: the work that this free would not wait for is done, so the context gave way, and the next
 * free may wait for what came later. Were it still called busy, a program that never synchronises
 * would lose every block from its first long kernel on, because new work is always under way. */
void cw_patience_learn(const struct cw_free_probe *probe)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(probe->context);
    enum cw_patience found = ask(pool_context, probe->event);
    _Atomic uint64_t *unwaited = &pool_context->unwaited[probe->is_host];
    uint64_t known = atomic_load(unwaited);

    put_event(pool_context, probe->event);
    if (found == CW_PATIENCE_PASSED)
        cw_patience_renew(pool_context);
    while (found == CW_PATIENCE_BUSY && known < probe->bytes &&
           !atomic_compare_exchange_weak(unwaited, &known, probe->bytes))
        ;
}
