/* SPDX-License-Identifier: MIT */
/* The table of contexts. See context.h. */
#include "core/device/context.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/process/gate.h"
#include "core/device/graph.h"
#include "core/device/living.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/account/tracker.h"

struct entry {
    struct cw_map_entry map; /* by handle */
    uint32_t context;
    uint64_t identity; /* of what has the handle: a green context has its own; 0: not known yet */
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_CONTEXT); /* guards everything below */
static struct cw_map handles;
static uint32_t primary[CW_MAX_DEVICES];
static uint32_t numbers[CW_MAX_DEVICES]; /* taken, as bits */
static uint64_t own_ids;                 /* the driver's own count up from 1 */
static int has_ids;                      /* of the driver */

static struct cw_arena *arena;
static const struct cw_context_listener *listener;
CW_HOT_DATA const struct cw_driver_ops *cw_context_ops;

void cw_context_init(struct cw_arena *in, const struct cw_driver_ops *driver)
{
    arena = in;
    cw_context_ops = driver;
    has_ids = driver->has_context_ids();
}

void cw_context_set_listener(const struct cw_context_listener *to)
{
    listener = to;
}

void cw_context_reset(void)
{
    cw_lock_reset(&lock);
    cw_living_reset();
    handles = (struct cw_map){0};
    for (int i = 0; i < CW_MAX_DEVICES; i++)
        primary[i] = numbers[i] = 0;
}

static struct cw_live_context *context_at(uint32_t context)
{
    return cw_arena_at(arena, CW_TABLE_CONTEXT, context);
}

static struct entry *find_locked(uint64_t handle)
{
    return (struct entry *)cw_map_find(&handles, handle);
}

static void bind_locked(uint64_t handle, uint32_t context, uint64_t identity)
{
    struct entry *entry = find_locked(handle);

    if (entry != NULL) {
        entry->context = context;
        entry->identity = identity;
        return;
    }
    entry = cw_mem_alloc(sizeof(*entry));
    if (entry == NULL)
        return;
    entry->context = context;
    entry->identity = identity;
    if (cw_map_insert(&handles, &entry->map, handle) != 0)
        cw_mem_free(entry, sizeof(*entry));
}

static void unbind_locked(uint64_t handle)
{
    struct entry *entry = find_locked(handle);

    if (entry == NULL)
        return;
    cw_map_remove(&handles, &entry->map);
    cw_mem_free(entry, sizeof(*entry));
}

/* Read before the lock is taken: the clock is the driver's too (core/process/driver_ops.h). */
static uint64_t now_ns(void)
{
    return cw_context_ops->now_ns() - cw_session.start_ns;
}

static void show_locked(uint32_t context)
{
    cw_arena_show(arena, context_at(context), sizeof(struct cw_live_context));
}

static void show(uint32_t context)
{
    cw_lock_acquire(&lock);
    show_locked(context);
    cw_lock_release(&lock);
}

static uint8_t take_number_locked(unsigned device)
{
    unsigned number = (unsigned)__builtin_ctz(~numbers[device]);

    if (number >= CW_CONTEXT_NUMBERS - 1)
        return CW_CONTEXT_NUMBERS - 1;
    numbers[device] |= 1u << number;
    return (uint8_t)number;
}

static void give_number_locked(const struct cw_live_context *context)
{
    if (context->number < CW_CONTEXT_NUMBERS - 1)
        numbers[context->device] &= ~(1u << context->number);
}

/* identity 0: not known yet. */
static uint32_t make_locked(uint64_t handle, uint64_t identity, unsigned device, uint64_t born_ns)
{
    uint32_t index = device < CW_MAX_DEVICES && cw_living_reserve() == 0
                         ? cw_arena_append(arena, CW_TABLE_CONTEXT)
                         : 0;
    struct cw_live_context *context;

    if (index == 0)
        return 0;
    context = context_at(index);
    context->handle = handle;
    atomic_store(&context->id, has_ids && identity != 0 ? identity : CW_CONTEXT_OWN_ID | ++own_ids);
    context->device = device;
    context->number = take_number_locked(device);
    context->born_ns = born_ns;
    cw_living_add(index); /* last, since those who walk take no lock of ours */
    show_locked(index);
    if (handle != 0)
        bind_locked(handle, index, identity);
    return index;
}

static int is_alive(uint32_t context)
{
    return context != 0 && atomic_load(&context_at(context)->state) != CW_CONTEXT_DEAD;
}

/* ---- what a handle means ---- */

/* 0: not to be had. Not under the lock. */
static uint64_t identity_of(uint64_t handle)
{
    uint64_t identity = 0;

    return handle != 0 && cw_context_ops->context_identity(handle, &identity) == 0 ? identity : 0;
}

static uint32_t alive_locked(uint64_t handle)
{
    const struct entry *entry = find_locked(handle);

    return entry != NULL && is_alive(entry->context) ? entry->context : 0;
}

static void adopt_locked(struct entry *entry, uint64_t handle, uint64_t identity)
{
    struct cw_live_context *context = context_at(entry->context);

    entry->identity = identity;
    if (has_ids && context->handle == handle && (context->id & CW_CONTEXT_OWN_ID) != 0)
        atomic_store(&context->id, identity);
    show_locked(entry->context);
}

/* The handle's context. 0: it has none, or belongs to another one now: then *out_gone is the former
 * context, for the caller to bury. */
static uint32_t meaning_locked(uint64_t handle, uint64_t identity, uint32_t *out_gone)
{
    struct entry *entry = find_locked(handle);

    if (entry == NULL || !is_alive(entry->context))
        return 0;
    if (identity != 0 && entry->identity == 0)
        adopt_locked(entry, handle, identity);
    if (identity == 0 || entry->identity == identity)
        return entry->context;
    if (context_at(entry->context)->handle == handle)
        *out_gone = entry->context;
    else /* a green context: its memory was the primary one's, and stays */
        unbind_locked(handle);
    return 0;
}

static void begin_to_close(uint32_t context)
{
    uint32_t live = CW_CONTEXT_LIVE; /* another thread may have ended it meanwhile */

    cw_gate_shut(CW_GATE_END);
    atomic_compare_exchange_strong(&context_at(context)->state, &live, CW_CONTEXT_CLOSING);
    show(context);
    if (listener != NULL)
        listener->closing(context);
    cw_gate_settle(); /* who comes later finds it closing */
    if (listener != NULL)
        listener->closed(context);
    cw_epoch_advance();
}

/* The context has ended unseen, and its memory is gone. */
static void bury(uint32_t context)
{
    struct cw_context_ending ending = {.context = context};

    if (context == 0)
        return;
    begin_to_close(context);
    cw_context_end_finish(&ending, CW_CONTEXT_DESTROYED);
}

static uint32_t meaning(uint64_t handle, uint64_t identity)
{
    uint32_t context, gone = 0;

    cw_lock_acquire(&lock);
    context = meaning_locked(handle, identity, &gone);
    cw_lock_release(&lock);
    bury(gone);
    return context;
}

uint32_t cw_context_of(uint64_t handle, uint8_t *out_device)
{
    uint32_t context = meaning(handle, identity_of(handle));

    if (context != 0)
        *out_device = (uint8_t)context_at(context)->device;
    return context;
}

uint32_t cw_context_of_green(uint64_t green, uint8_t *out_device)
{
    uint32_t context;

    cw_lock_acquire(&lock);
    context = alive_locked(green);
    cw_lock_release(&lock);
    if (context != 0)
        *out_device = (uint8_t)context_at(context)->device;
    return context;
}

uint32_t cw_context_of_own_handle(uint64_t handle, uint8_t *out_device)
{
    uint32_t context = cw_context_of(handle, out_device);

    return context != 0 && context_at(context)->handle == handle ? context : 0;
}

int cw_context_is_there(const struct cw_live_context *record)
{
    struct cw_context_name name = cw_context_name(record);
    uint64_t identity = 0;

    return name.id == 0 || (cw_context_ops->context_identity(name.handle, &identity) == 0 &&
                            (identity == 0 || identity == name.id));
}

void cw_context_check_all(void)
{
    for (uint32_t i = 0; (i = cw_living_next(i)) != 0;)
        if (!cw_context_is_there(context_at(i)))
            bury(i);
}

/* Not under the lock. */
static void tell_others(uint32_t context)
{
    if (context != 0 && listener != NULL)
        listener->made(context, context_at(context));
}

/* A context that was made unseen: asks the driver about it. */
static uint32_t discover(uint64_t handle)
{
    struct cw_context_facts facts;
    unsigned passed = cw_gate_enter_beside(CW_GATE_ALL);
    uint64_t now = now_ns();
    uint32_t context;
    int rc;

    if (passed == 0)
        return 0;
    rc = cw_context_ops->context_facts(handle, &facts);
    cw_gate_leave_beside(passed);
    if (rc != 0)
        return 0;
    cw_lock_acquire(&lock);
    /* Another thread may have met it at the same moment. */
    context = alive_locked(handle);
    if (context == 0)
        context = make_locked(handle, facts.id, facts.device, now);
    cw_lock_release(&lock);
    tell_others(context);
    return context;
}

/* The epoch is read first: an end meanwhile moves it on. */
uint32_t cw_context_meet(uint64_t identity, uint8_t *out_device)
{
    uint32_t epoch = atomic_load_explicit(&cw_epoch, memory_order_relaxed);
    uint64_t handle = 0;
    uint32_t context;

    if (cw_context_ops->context_current(&handle) != 0 || handle == 0)
        return 0;
    context = meaning(handle, identity);
    if (context == 0)
        context = discover(handle);
    if (context == 0)
        return 0;
    *out_device = (uint8_t)context_at(context)->device;
    cw_thread.context_identity = identity;
    cw_thread.context_index = context;
    cw_thread.context_device = *out_device;
    cw_thread.context_epoch = epoch;
    cw_site_set_context(context_at(context)->number);
    return context;
}

static uint32_t primary_locked(uint64_t handle, uint64_t identity, unsigned device, uint64_t now)
{
    uint32_t context = primary[device];

    if (!is_alive(context) || (handle != 0 && context_at(context)->handle != 0 &&
                               context_at(context)->handle != handle)) {
        /* It may have been current before we saw anybody retain it. */
        context = handle ? alive_locked(handle) : 0;
        if (context == 0)
            context = make_locked(handle, identity, device, now);
        if (context == 0)
            return 0;
        context_at(context)->primary = 1;
        primary[device] = context;
    }
    if (handle != 0 && context_at(context)->handle == 0) {
        context_at(context)->handle = handle;
        bind_locked(handle, context, identity);
    }
    show_locked(context);
    return context;
}

void cw_context_retained(uint64_t handle, unsigned device)
{
    uint64_t now = now_ns(), identity = identity_of(handle);
    uint32_t context;

    if (device >= CW_MAX_DEVICES)
        return;
    meaning(handle, identity); /* buries the former one, if it was reset unseen */
    cw_lock_acquire(&lock);
    context = primary_locked(handle, identity, device, now);
    if (context != 0) {
        atomic_fetch_add(&context_at(context)->retains, 1);
        show_locked(context);
    }
    cw_lock_release(&lock);
    tell_others(context);
    cw_epoch_advance();
}

void cw_context_folded(uint64_t green_handle, unsigned device)
{
    uint64_t now = now_ns();
    uint32_t context;

    if (device >= CW_MAX_DEVICES)
        return;
    cw_lock_acquire(&lock);
    context = primary_locked(0, 0, device, now);
    if (context != 0)
        bind_locked(green_handle, context, 0);
    cw_lock_release(&lock);
    tell_others(context);
    cw_epoch_advance();
}

void cw_context_unfolded(uint64_t green_handle)
{
    cw_lock_acquire(&lock);
    unbind_locked(green_handle);
    cw_lock_release(&lock);
    cw_epoch_advance();
}

void cw_context_end_begin(uint32_t context, struct cw_context_ending *out)
{
    *out = (struct cw_context_ending){.context = context};
    if (context == 0)
        return;
    if (listener != NULL)
        out->parked = listener->drain(context);
    begin_to_close(context);
}

/* The context's heir, 0 for none. */
static uint32_t close_locked(uint32_t index, enum cw_context_outcome outcome, uint64_t now)
{
    struct cw_live_context *context = context_at(index);
    uint32_t heir = 0;

    if (atomic_exchange(&context->state, CW_CONTEXT_DEAD) != CW_CONTEXT_DEAD)
        give_number_locked(context);
    cw_living_remove(index);
    if (find_locked(context->handle) != NULL && find_locked(context->handle)->context == index)
        unbind_locked(context->handle); /* else it is a newer one's already */
    if (primary[context->device] == index)
        primary[context->device] = 0;
    if (outcome == CW_CONTEXT_RENEWED)
        heir = primary_locked(context->handle, 0, context->device, now);
    if (heir != 0) {
        atomic_store(&context_at(heir)->retains, atomic_load(&context->retains));
        show_locked(heir);
    }
    show_locked(index);
    return heir;
}

/* The driver could not be asked, so the message is all that we can do. */
static void report_parked(const struct cw_context_ending *ending)
{
    unsigned device = context_at(ending->context)->device;

    atomic_fetch_add(&arena->header->device[device].pool.abandoned, ending->parked);
    cw_log(CW_LOG_WARN,
           "a context of device %u ended, and with it %u blocks that the program had freed: the "
           "driver could not be asked for them, and another context may still have used them",
           device, ending->parked);
}

void cw_context_end_finish(const struct cw_context_ending *ending, enum cw_context_outcome outcome)
{
    uint32_t heir = 0;

    if (ending->context == 0)
        return;
    if (CW_UNLIKELY(ending->parked != 0) && outcome != CW_CONTEXT_KEPT)
        report_parked(ending);
    if (outcome == CW_CONTEXT_KEPT) {
        uint32_t closing = CW_CONTEXT_CLOSING; /* another thread may have ended it */

        atomic_compare_exchange_strong(&context_at(ending->context)->state, &closing,
                                       CW_CONTEXT_LIVE);
        show(ending->context);
    } else {
        uint64_t now = now_ns();

        cw_lock_acquire(&lock);
        heir = close_locked(ending->context, outcome, now);
        cw_lock_release(&lock);
    }
    if (listener != NULL)
        listener->ended(ending->context, outcome != CW_CONTEXT_KEPT);
    tell_others(heir);
    if (outcome != CW_CONTEXT_KEPT) {
        cw_tracker_finish_list(cw_tracker_take_context(ending->context), CW_FREE_RECLAIMED);
        cw_capture_context_ended(ending->context);
    }
    cw_epoch_advance();
    cw_gate_open(CW_GATE_END);
}

/* Its handle is no other context's any more, even if the driver has no ids. */
void cw_context_created(uint64_t handle, unsigned device)
{
    uint64_t now = now_ns(), identity = identity_of(handle);
    uint32_t context, gone = 0;

    cw_lock_acquire(&lock);
    context = alive_locked(handle);
    if (context != 0 && context_at(context)->handle == handle)
        gone = context;
    cw_lock_release(&lock);
    bury(gone);
    cw_lock_acquire(&lock);
    context = make_locked(handle, identity, device, now);
    cw_lock_release(&lock);
    tell_others(context);
    cw_epoch_advance();
}

uint32_t cw_context_primary(unsigned device)
{
    uint32_t context;

    if (device >= CW_MAX_DEVICES)
        return 0;
    cw_lock_acquire(&lock);
    context = is_alive(primary[device]) ? primary[device] : 0;
    cw_lock_release(&lock);
    return context;
}

int cw_context_is_last_release(unsigned device)
{
    uint32_t context = cw_context_primary(device);

    return context != 0 && atomic_load(&context_at(context)->retains) <= 1;
}

void cw_context_released(unsigned device)
{
    cw_context_detached(cw_context_primary(device));
}

void cw_context_attached(uint32_t context)
{
    if (context == 0)
        return;
    atomic_fetch_add(&context_at(context)->retains, 1);
    show(context);
}

int cw_context_is_attached(uint32_t context)
{
    return context != 0 && atomic_load(&context_at(context)->retains) != 0;
}

void cw_context_detached(uint32_t context)
{
    if (!cw_context_is_attached(context))
        return;
    atomic_fetch_sub(&context_at(context)->retains, 1);
    show(context);
}

void cw_context_device(uint32_t context, uint8_t *out_device)
{
    if (context != 0)
        *out_device = (uint8_t)context_at(context)->device;
}

int cw_context_fatal(uint32_t context)
{
    return context != 0 ? atomic_load(&context_at(context)->fatal) : 0;
}

int cw_context_set_fatal(uint32_t context, int code)
{
    int32_t none = 0;

    if (context == 0 || !atomic_compare_exchange_strong(&context_at(context)->fatal, &none, code))
        return 0;
    show(context);
    return 1;
}

static int is_on(const struct cw_live_context *record, unsigned device)
{
    return record->device == device && atomic_load(&record->state) == CW_CONTEXT_LIVE &&
           record->handle != 0;
}

int cw_context_wait_on(unsigned device)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && (i = cw_living_next(i)) != 0;) {
        unsigned passed = cw_gate_enter_wait_beside(CW_GATE_ENDS | CW_GATE_POOLS);

        if (passed == 0)
            return -1;
        if (is_on(context_at(i), device)) /* inside, where its end waits for us */
            rc = cw_session.ops->context_wait(cw_context_name(context_at(i)));
        cw_gate_leave_wait_beside(passed);
        rc = rc != 0 && cw_context_is_there(context_at(i)) ? -1 : 0;
    }
    return rc;
}

struct cw_context_name cw_context_on(unsigned device)
{
    for (uint32_t i = 0; (i = cw_living_next(i)) != 0;) {
        const struct cw_live_context *record = context_at(i);

        if (is_on(record, device) && atomic_load(&record->fatal) == 0)
            return cw_context_name(record);
    }
    return (struct cw_context_name){0};
}
