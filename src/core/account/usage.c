/* SPDX-License-Identifier: MIT */
/* Shared sums, slack and peaks. See usage.h. */
#include "core/account/usage.h"

#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "core/process/slot.h"
#include "core/process/thread.h"

/* After a thread was stopped for its slack, it counts so many frees in the shared sums at once: a
 * thread that only frees what others allocate is stopped once in so many frees. */
#define NO_SLACK_FREES 1024

CW_HOT_DATA struct cw_usage_slack cw_usage_slack[CW_SLOTS];
CW_HOT_DATA struct cw_usage_sums cw_usage_sums[CW_DEVICES];
_Atomic uint64_t cw_usage_peak[CW_DEVICES];
_Atomic uint64_t cw_usage_most_excess[CW_DEVICES];

static struct cw_arena *arena;
static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_PEAK); /* held while a peak is settled */

_Atomic uint64_t cw_usage_flight[CW_DEVICES];
static _Atomic uint64_t used[CW_DEVICES]; /* 1: something was held there */
static _Atomic uint64_t paddings[CW_DEVICES];

void cw_usage_init(struct cw_arena *in)
{
    arena = in;
    memset(cw_usage_slack, 0, sizeof(cw_usage_slack));
    for (int i = 0; i < CW_SLOTS; i++)
        cw_usage_slack[i].shown = &in->header->slot[i];
    memset(cw_usage_sums, 0, sizeof(cw_usage_sums));
    memset(cw_usage_peak, 0, sizeof(cw_usage_peak));
    memset(paddings, 0, sizeof(paddings));
    memset(cw_usage_most_excess, 0, sizeof(cw_usage_most_excess));
    memset(used, 0, sizeof(used));
}

void cw_usage_reset(void)
{
    cw_lock_reset(&lock);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void store(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Blocks in the slack of a thread: it alone writes them, or whoever has stopped it. */
static uint32_t blocks_in(const struct cw_usage_slack *slack)
{
    return atomic_load_explicit(&slack->blocks, memory_order_relaxed);
}

static void put_blocks(struct cw_usage_slack *slack, uint32_t blocks)
{
    atomic_store_explicit(&slack->blocks, blocks, memory_order_relaxed);
}

static uint64_t add(_Atomic uint64_t *counter, uint64_t value)
{
    return atomic_fetch_add_explicit(counter, value, memory_order_relaxed) + value;
}

/* ---- the sums ---- */

int cw_usage_is_used(uint8_t device)
{
    return load(&used[device]) != 0;
}

int cw_usage_is_any_used(void)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++)
        if (cw_usage_is_used((uint8_t)i))
            return 1;
    return 0;
}

static uint8_t checked(uint8_t device)
{
    return device < CW_DEVICES ? device : 0;
}

static struct cw_live_device *shown(uint8_t device)
{
    return &arena->header->device[device];
}

static uint64_t add_live(uint8_t device, uint64_t bytes)
{
    add(&shown(device)->live_bytes, bytes);
    return add(&cw_usage_sums[device].live, bytes);
}

static void note_use(uint8_t device)
{
    if (CW_UNLIKELY(!load(&used[device])))
        store(&used[device], 1);
}

static uint64_t add_held(uint8_t device, uint64_t bytes)
{
    add(&shown(device)->held_bytes, bytes);
    return add(&cw_usage_sums[device].held, bytes);
}

/* ---- slack ---- */

/* Shows readers the bytes, after a change. */
static void show(const struct cw_usage_slack *slack)
{
    store(&slack->shown->slack_live, load(&slack->live));
    store(&slack->shown->slack_held, load(&slack->held));
}

/* Moves slack to the shared sums. The caller is inside the slot, has stopped it, or owns it and
 * holds the lock. */
static void give_back_slack(struct cw_usage_slack *slack)
{
    uint8_t device = (uint8_t)slack->device;

    add(&slack->moved, load(&slack->live) + load(&slack->held));
    add_live(device, -load(&slack->live));
    add(&arena->header->live_bytes, -load(&slack->live));
    add_held(device, -load(&slack->held));
    add(&cw_usage_sums[device].excess, -load(&slack->excess));
    add(&cw_usage_sums[device].blocks, -(uint64_t)blocks_in(slack));
    put_blocks(slack, 0);
    store(&slack->live, 0);
    store(&slack->held, 0);
    store(&slack->excess, 0);
    show(slack);
}

static int has_slack(const struct cw_usage_slack *slack)
{
    return (load(&slack->live) | load(&slack->held) | load(&slack->excess) | blocks_in(slack)) != 0;
}

/* Takes up to `bytes` from the slack. Returns the rest, to be taken elsewhere. */
static uint64_t use_up(_Atomic uint64_t *slack, uint64_t bytes)
{
    uint64_t there = load(slack);

    if (CW_LIKELY(there >= bytes)) {
        store(slack, there - bytes);
        return 0;
    }
    store(slack, 0);
    return bytes - there;
}

/* The same of one block. */
static uint64_t use_up_block(struct cw_usage_slack *slack)
{
    uint32_t there = blocks_in(slack);

    put_blocks(slack, there - (there != 0));
    return there == 0;
}

/* Other threads' slack first comes to light when their slots are stopped. */
static void take_back_all_slack(void)
{
    uint64_t others = 0;

    for (uint64_t rest = cw_slot_used(); rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        if (!has_slack(&cw_usage_slack[i]))
            continue;
        if (i == cw_thread.slot) /* ours, and only we write to it while the lock is held */
            give_back_slack(&cw_usage_slack[i]);
        else
            others |= (uint64_t)1 << i;
    }
    if (others == 0)
        return;
    cw_slot_stop(others);
    for (uint64_t rest = others; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        give_back_slack(&cw_usage_slack[i]);
        cw_slots[i].no_slack = NO_SLACK_FREES;
    }
    cw_slot_resume(others);
}

/* ---- peaks ---- */

/* The end of a context may subtract a block before it is added: the sum is negative for a
 * moment. */
static int is_above(uint64_t value, const _Atomic uint64_t *peak)
{
    return (int64_t)value > (int64_t)load(peak);
}

/* The slot rule of live/layout_time.h. */
static void put_extreme(struct cw_live_extreme *extreme, uint64_t live, uint64_t held,
                        uint64_t excess, uint64_t now_ns)
{
    store(&extreme->t_ns, 0);
    atomic_thread_fence(memory_order_release);
    store(&extreme->live, live);
    store(&extreme->held, held > live ? held : live);
    store(&extreme->idle, held > live + excess ? held - live - excess : 0);
    atomic_store_explicit(&extreme->t_ns, now_ns, memory_order_release);
}

/* All slack is taken back, and the lock held. Before the latest allocation, asked bytes of the live
 * ones were not. */
static void note_extremes(uint8_t ordinal, uint64_t asked, uint64_t held, uint64_t now_ns)
{
    struct cw_live_device *device = shown(ordinal);
    uint64_t live = cw_usage_live_sum(ordinal), all = cw_usage_held_sum(ordinal);
    uint64_t excess = load(&cw_usage_sums[ordinal].excess);

    if ((int64_t)(live - asked) >= 0 &&
        (load(&device->least.t_ns) == 0 || live - asked < load(&device->least.live)))
        put_extreme(&device->least, live - asked, all - held, excess, now_ns);
    if (is_above(live, &device->recent_peak)) {
        put_extreme(&device->most, live, all, excess, now_ns);
        store(&device->recent_peak, live);
    }
}

static void settle(uint8_t ordinal, uint64_t asked, uint64_t held, uint64_t now_ns)
{
    struct cw_live_header *header = arena->header;
    struct cw_live_device *device = shown(ordinal);

    cw_lock_acquire(&lock);
    take_back_all_slack();
    note_extremes(ordinal, asked, held, now_ns);
    if (is_above(cw_usage_live_sum(ordinal), &cw_usage_peak[ordinal]))
        store(&cw_usage_peak[ordinal], cw_usage_live_sum(ordinal));
    if (is_above(cw_usage_live_sum(ordinal), &device->peak_bytes)) {
        store(&device->peak_bytes, cw_usage_live_sum(ordinal));
        store(&device->peak_ns, now_ns);
        add(&device->peak_version, 1);
    }
    if (is_above(cw_usage_held_sum(ordinal), &device->peak_held))
        store(&device->peak_held, cw_usage_held_sum(ordinal));
    if (is_above(load(&cw_usage_sums[ordinal].blocks), &device->peak_blocks))
        store(&device->peak_blocks, load(&cw_usage_sums[ordinal].blocks));
    if (is_above(load(&header->live_bytes), &header->peak_bytes)) {
        store(&header->peak_bytes, load(&header->live_bytes));
        store(&header->peak_ns, now_ns);
    }
    cw_lock_release(&lock);
}

/* Whether or not the thread may be in its slot. */
static void note_moved(uint64_t bytes)
{
    if (cw_thread.slot != 0)
        add(&cw_usage_slack[cw_thread.slot].moved, bytes);
}

/* What nobody has as slack. Returns whether it may make a peak. */
static int add_shared(uint8_t device, uint64_t live, uint64_t held, uint64_t blocks)
{
    struct cw_live_header *header = arena->header;
    int is_peak = 0;

    note_moved(live + held);
    if (live != 0) {
        is_peak |= is_above(add_live(device, live), &shown(device)->recent_peak);
        is_peak |= is_above(add(&header->live_bytes, live), &header->peak_bytes);
    }
    if (held != 0) {
        note_use(device);
        is_peak |= is_above(add_held(device, held), &shown(device)->peak_held);
    }
    if (blocks != 0)
        is_peak |=
            is_above(add(&cw_usage_sums[device].blocks, blocks), &shown(device)->peak_blocks);
    return is_peak;
}

void cw_usage_add(uint8_t device, uint64_t live, uint64_t held, uint64_t now_ns)
{
    uint64_t live_rest = live, held_rest = held, block_rest = live != 0; /* in no slack of ours */
    struct cw_slot *slot = cw_slot_enter();

    device = checked(device);
    if (CW_LIKELY(slot != NULL)) {
        struct cw_usage_slack *slack = &cw_usage_slack[slot - cw_slots];

        if (CW_LIKELY(slack->device == device)) {
            live_rest = use_up(&slack->live, live);
            if (held != 0)
                held_rest = use_up(&slack->held, held);
            if (live != 0)
                block_rest = use_up_block(slack);
            show(slack);
        }
        cw_slot_leave(slot);
    }
    if (CW_UNLIKELY((live_rest | held_rest | block_rest) != 0) &&
        add_shared(device, live_rest, held_rest, block_rest))
        settle(device, live, held, now_ns);
}

/* The shared sum is at least the held bytes: a request that fits by it fits. */
static int try_reserve(uint8_t device, uint64_t bytes, uint64_t most)
{
    _Atomic uint64_t *held = &cw_usage_sums[device].held;
    uint64_t now = load(held);

    do
        if (bytes > most || (int64_t)now > (int64_t)(most - bytes))
            return -1;
    while (!atomic_compare_exchange_weak_explicit(held, &now, now + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
    add(&shown(device)->held_bytes, bytes);
    return 0;
}

/* The counters include the threads' slack, which is not held. With their slots stopped there is
 * none, and none can appear before the answer. A thread whose slot was not yet in use is not
 * stopped, and what it has may not be touched: it has freed since we were asked. */
static int reserve_without_slack(uint8_t device, uint64_t bytes, uint64_t most)
{
    uint64_t own = (uint64_t)1 << cw_thread.slot, others;
    int rc;

    cw_lock_acquire(&lock);
    others = cw_slot_used() & ~own;
    cw_slot_stop(others);
    for (uint64_t rest = (others | own) & ~UINT64_C(1); rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        if (!has_slack(&cw_usage_slack[i]))
            continue;
        give_back_slack(&cw_usage_slack[i]);
        if (i != cw_thread.slot)
            cw_slots[i].no_slack = NO_SLACK_FREES;
    }
    rc = try_reserve(device, bytes, most);
    cw_slot_resume(others);
    cw_lock_release(&lock);
    return rc;
}

int cw_usage_reserve(uint8_t device, uint64_t bytes, uint64_t most)
{
    if (most > INT64_MAX)
        most = INT64_MAX;
    if (CW_LIKELY(try_reserve(device, bytes, most) == 0))
        return 0;
    return bytes > most ? -1 : reserve_without_slack(device, bytes, most);
}

void cw_usage_committed(uint8_t device, uint64_t now_ns)
{
    uint64_t held = cw_usage_held_sum(device);

    if (held != 0)
        note_use(device);
    if (is_above(held, &shown(device)->peak_held))
        settle(device, 0, 0, now_ns);
}

static void sub_shared(uint8_t device, uint64_t live, uint64_t held)
{
    note_moved(live + held);
    add_live(device, -live);
    add(&arena->header->live_bytes, -live);
    if (held != 0)
        add_held(device, -held);
    if (live != 0)
        add(&cw_usage_sums[device].blocks, (uint64_t)-1);
}

void cw_usage_sub(uint8_t device, uint64_t live, uint64_t held)
{
    struct cw_slot *slot = cw_slot_enter();
    struct cw_usage_slack *slack;

    device = checked(device);
    if (CW_UNLIKELY(slot == NULL)) {
        sub_shared(device, live, held);
        return;
    }
    slack = &cw_usage_slack[slot - cw_slots];
    if (CW_UNLIKELY(slack->device != device)) {
        give_back_slack(slack);
        atomic_store_explicit(&slack->device, device, memory_order_relaxed);
        atomic_store_explicit(&slack->shown->device, device, memory_order_relaxed);
    }
    if (CW_UNLIKELY(slot->no_slack != 0)) {
        slot->no_slack--;
        sub_shared(device, live, held);
    } else {
        store(&slack->live, load(&slack->live) + live);
        store(&slack->held, load(&slack->held) + held);
        put_blocks(slack, blocks_in(slack) + (live != 0));
        show(slack);
    }
    cw_slot_leave(slot);
}

/* ---- pages ---- */

void cw_usage_take_padding(uint8_t device, uint64_t padding)
{
    if (padding != 0)
        add(&paddings[device], padding);
}

void cw_usage_give_padding(uint8_t device, uint64_t padding)
{
    if (padding != 0)
        add(&paddings[device], -padding);
}

uint64_t cw_usage_peak_taken(uint8_t device)
{
    uint64_t live = cw_usage_live_sum(device), held = cw_usage_held_sum(device);
    uint64_t padding = load(&paddings[device]);

    if (held > live)
        padding = (uint64_t)((unsigned __int128)padding * live / held);
    return load(&cw_usage_peak[device]) + padding;
}

/* ---- excess ---- */

/* Taking back other threads' slack costs all of them some microseconds: not worth it for less than
 * one part in so many of the bound. */
#define WORTH_SHARE 16

static uint64_t use_own_excess(uint8_t device, uint64_t bytes)
{
    struct cw_slot *slot = cw_slot_enter();
    uint64_t spare;

    if (slot == NULL)
        return 0;
    spare = cw_usage_spare_excess(slot, device);
    if (spare > bytes)
        spare = bytes;
    cw_usage_use_excess(slot, spare);
    cw_slot_leave(slot);
    return spare;
}

/* Up to `bytes` more, as far as there is room. */
static uint64_t add_excess(uint8_t device, uint64_t bytes, uint64_t most)
{
    _Atomic uint64_t *sum = &cw_usage_sums[device].excess;
    uint64_t now = load(sum), part;

    do {
        part = now >= most ? 0 : most - now < bytes ? most - now : bytes;
        if (part == 0)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(sum, &now, now + part, memory_order_relaxed,
                                                    memory_order_relaxed));
    return part;
}

static uint64_t all_spare_excess(uint8_t device)
{
    uint64_t sum = 0;

    for (uint64_t rest = cw_slot_used(); rest != 0; rest &= rest - 1) {
        const struct cw_usage_slack *slack = &cw_usage_slack[__builtin_ctzll(rest)];

        if (slack->device == device)
            sum += load(&slack->excess);
    }
    return sum;
}

uint64_t cw_usage_take_excess(uint8_t device, uint64_t bytes, uint64_t most)
{
    uint64_t taken = 0;

    store(&cw_usage_most_excess[device], most);
    if (CW_LIKELY(load(&cw_usage_sums[device].excess) <= most)) {
        taken = use_own_excess(device, bytes);
        taken += add_excess(device, bytes - taken, most);
    }
    if (CW_LIKELY(taken == bytes) || all_spare_excess(device) <= most / WORTH_SHARE)
        return taken;
    cw_usage_settle_slack();
    return taken + add_excess(device, bytes - taken, most);
}

void cw_usage_give_excess(uint8_t device, uint64_t bytes)
{
    struct cw_slot *slot;

    device = checked(device);
    if (bytes == 0 || device == CW_DEVICE_HOST) /* pinned memory has no bound of excess */
        return;
    slot = cw_slot_enter();
    if (slot == NULL || !cw_usage_leave_slack(slot, device, 0, bytes))
        add(&cw_usage_sums[device].excess, -bytes);
    if (slot != NULL)
        cw_slot_leave(slot);
}

uint64_t cw_usage_excess(uint8_t device)
{
    uint64_t sum = load(&cw_usage_sums[device].excess);
    uint64_t spare = all_spare_excess(device);

    return sum > spare ? sum - spare : 0;
}

void cw_usage_settle_slack(void)
{
    cw_lock_acquire(&lock);
    take_back_all_slack();
    cw_lock_release(&lock);
}

/* ---- between two points of the timeline ---- */

static void copy_extreme(const struct cw_live_extreme *from, struct cw_live_extreme *out)
{
    store(&out->t_ns, load(&from->t_ns));
    store(&out->live, load(&from->live));
    store(&out->held, load(&from->held));
    store(&out->idle, load(&from->idle));
}

void cw_usage_take_extremes(uint8_t ordinal, uint64_t now_ns, struct cw_live_extreme *out_least,
                            struct cw_live_extreme *out_most)
{
    struct cw_live_device *device = shown(ordinal);
    uint64_t live, held, excess;

    cw_lock_acquire(&lock);
    take_back_all_slack();
    live = cw_usage_live_sum(ordinal);
    held = cw_usage_held_sum(ordinal);
    excess = load(&cw_usage_sums[ordinal].excess);
    copy_extreme(&device->least, out_least);
    copy_extreme(&device->most, out_most);
    put_extreme(&device->least, live, held, excess, now_ns);
    put_extreme(&device->most, live, held, excess, now_ns);
    store(&device->recent_peak, live);
    cw_lock_release(&lock);
}

/* ---- sums ---- */

/* More may be subtracted than was added, for a moment: less than nothing is nothing. */
static uint64_t minus(uint64_t sum, uint64_t slack)
{
    return (int64_t)(sum - slack) > 0 ? sum - slack : 0;
}

struct cw_live_sums cw_usage_device(uint8_t device)
{
    uint64_t live = 0, held = 0;

    if (device >= CW_DEVICES)
        return (struct cw_live_sums){0};
    for (uint64_t rest = cw_slot_used(); rest != 0; rest &= rest - 1) {
        const struct cw_usage_slack *slack = &cw_usage_slack[__builtin_ctzll(rest)];

        if (slack->device != device)
            continue;
        live += load(&slack->live);
        held += load(&slack->held);
    }
    return (struct cw_live_sums){.live = minus(cw_usage_live_sum(device), live),
                                 .held = minus(cw_usage_held_sum(device), held)};
}

uint64_t cw_usage_total(void)
{
    struct cw_view view;

    cw_arena_view(arena, &view);
    return cw_view_live(&view);
}
