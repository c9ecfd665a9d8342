/* SPDX-License-Identifier: MIT */
/* See placements.h. */
#include "api/placements.h"

#include <stdatomic.h>
#include <string.h>

#include "api/budgets.h"
#include "base/device_reserve.h"
#include "base/lock.h"
#include "core/account/idle.h"
#include "core/account/usage.h"
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/process/gate.h"
#include "core/process/slot.h"

#define NAMES                                                                                      \
    256 /* remembered; a new one takes the place of the one that was asked for longest ago */
#define NAME_MAX      48
#define ASK_PERIOD_NS UINT64_C(100000000)
#define SHUT_NS       UINT64_C(1000000000) /* a device that gave no context is last */
#define ANSWER_MOST   8                    /* devices of an answer that is kept */
#define ANSWER_BYTES  (UINT64_C(64) << 20) /* the largest request that it may be given for */
#define CLOSING       (UINT32_C(1) << 31)

struct room {
    uint8_t device;
    uint8_t is_last;  /* at level HIGH or more, or it gave no context lately */
    uint8_t is_limit; /* a limit leaves less than there is */
    uint64_t bytes;
};

struct rooms {
    unsigned count;
    struct room of[CW_MAX_DEVICES]; /* the best first */
};

/* The thread's last answer, and what it followed from. It is kept only if it chose a device that is
 * not among the last, and which had the room. */
struct answer {
    _Alignas(64) uint64_t life; /* of `life`; 0: none is kept */
    uint64_t now_ns;
    uint64_t lead; /* bytes that the first has more than any other that is not among the last */
    struct {
        uint64_t live, held, moved;
    } slack; /* of the slot */
    unsigned count;
    struct room of[ANSWER_MOST];
    /* The name that the thread gave last, and what it stands for while `renamed` is the same. */
    char name[NAME_MAX];
    uint64_t renamed;
    unsigned name_at;
};

/* By slot, whose thread alone reads and writes it: thread-local room is scarce (api/thread.h). */
static struct answer answers[CW_SLOTS];
static _Atomic uint64_t life = 1; /* grows when what answers follow from begins anew */
static _Atomic unsigned devices;  /* as the driver has said; 0: it was not asked */
static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_PLACEMENT);
static struct {
    char name[NAME_MAX]; /* "": unused */
    _Atomic uint8_t device;
    _Atomic uint64_t turn; /* when it was asked for last */
} names[NAMES];
static _Atomic uint64_t turns;
static unsigned recent;              /* of names: the one that was found last */
static _Atomic uint64_t renamed = 1; /* grows when a name takes a place */
static _Atomic uint64_t ask_again_ns[CW_MAX_DEVICES];
static _Atomic uint64_t shut_until_ns[CW_MAX_DEVICES];
static _Atomic uint32_t stays[CW_MAX_DEVICES]; /* allocations under way there, and CLOSING */
static const struct cw_buffer_ops *memory;
static const struct cw_device_ops *driver;

void cw_api_placements_init(const struct cw_buffer_ops *its_memory, const struct cw_device_ops *ops)
{
    memory = its_memory;
    driver = ops;
    atomic_fetch_add(&life, 1);
}

void cw_api_placements_reset(void)
{
    cw_lock_reset(&lock);
    memset(names, 0, sizeof(names));
    atomic_fetch_add(&renamed, 1);
    atomic_fetch_add(&life, 1);
    atomic_store(&devices, 0);
    memset(ask_again_ns, 0, sizeof(ask_again_ns));
    memset(shut_until_ns, 0, sizeof(shut_until_ns));
    memset(stays, 0, sizeof(stays));
}

/* ---- names ---- */

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* NULL: the thread has none. */
static struct answer *own_answer(void)
{
    unsigned slot = cw_thread_slot();

    return slot != 0 ? &answers[slot] : NULL;
}

/* The one of this name, else the one to be given up. */
static unsigned find_locked(const char *name)
{
    unsigned oldest = 0;

    if (strcmp(names[recent].name, name) == 0)
        return recent;
    for (unsigned i = 0; i < NAMES; i++) {
        if (strcmp(names[i].name, name) == 0)
            return recent = i;
        if (load(&names[i].turn) < load(&names[oldest].turn))
            oldest = i;
    }
    return oldest;
}

/* CW_MAX_DEVICES: none is remembered. */
static unsigned recall(const char *name)
{
    unsigned i, device = CW_MAX_DEVICES;

    if (name[0] == '\0')
        return device;
    cw_lock_acquire(&lock);
    i = find_locked(name);
    if (strcmp(names[i].name, name) == 0)
        device = names[i].device;
    cw_lock_release(&lock);
    return device;
}

/* The same without the lock, if it is the one that the thread gave last. It counts as asked for, as
 * late as the last one that took the lock. */
static unsigned recall_own(const struct answer *own, const char *name)
{
    if (own->renamed != load(&renamed) || strcmp(own->name, name) != 0)
        return CW_MAX_DEVICES;
    atomic_store_explicit(&names[own->name_at].turn, load(&turns), memory_order_relaxed);
    return atomic_load_explicit(&names[own->name_at].device, memory_order_relaxed);
}

static void remember(const char *name, uint8_t device)
{
    struct answer *own = own_answer();
    unsigned i;

    if (name[0] == '\0')
        return;
    cw_lock_acquire(&lock);
    i = find_locked(name);
    if (strcmp(names[i].name, name) != 0)
        atomic_fetch_add(&renamed, 1);
    memcpy(names[i].name, name, strlen(name) + 1);
    names[i].device = device;
    names[i].turn = ++turns;
    if (own) {
        memcpy(own->name, name, strlen(name) + 1);
        own->renamed = load(&renamed);
        own->name_at = i;
    }
    cw_lock_release(&lock);
}

/* ---- room ---- */

/* Where no context of the process is, asking fails, and the sample stays old. */
static int is_asking_due(uint8_t device)
{
    uint64_t now;

    if (!cw_device_is_sample_old(device))
        return 0;
    now = cw_session_now();
    if (now < atomic_load_explicit(&ask_again_ns[device], memory_order_relaxed))
        return 0;
    atomic_store_explicit(&ask_again_ns[device], now + ASK_PERIOD_NS, memory_order_relaxed);
    return 1;
}

/* As the driver has it; without a limit. */
static uint64_t room_of_driver(uint8_t device)
{
    const struct cw_device_state *state = cw_device_state(device);
    uint64_t free_bytes;
    int64_t left;

    if (is_asking_due(device) && cw_device_ask_free(device, &free_bytes) == 0)
        return free_bytes + cw_idle_bytes(device);
    left = cw_device_free_when(device, cw_usage_device(device).held);
    if (left != INT64_MAX)
        return (left > 0 ? (uint64_t)left : 0) + cw_idle_bytes(device);
    return cw_device_describe(device) ? state->total - cw_device_reserve(state->total) : 0;
}

/* It gave no context: another process has it for itself, say. That may change. */
static int is_shut(uint8_t device)
{
    uint64_t until_ns = load(&shut_until_ns[device]);

    return until_ns != 0 && cw_session_now() < until_ns;
}

static void note_entered(uint8_t device, int is_entered)
{
    if (is_entered && load(&shut_until_ns[device]) == 0)
        return;
    atomic_store(&shut_until_ns[device], is_entered ? 0 : cw_session_now() + SHUT_NS);
    atomic_fetch_add(&life, 1);
}

static struct room room_of(uint8_t device)
{
    uint64_t there = room_of_driver(device), limit = cw_limit_room(device);

    return (struct room){.device = device,
                         .is_last = cw_pressure_level(device) >= CW_LEVEL_HIGH || is_shut(device),
                         .is_limit = limit < there,
                         .bytes = limit < there ? limit : there};
}

static int is_better(const struct room *room, const struct room *than, uint64_t bytes)
{
    int fits = room->bytes >= bytes, its = than->bytes >= bytes;

    if (fits != its)
        return fits;
    if (room->is_last != than->is_last)
        return than->is_last;
    return room->bytes > than->bytes;
}

static void insert(struct rooms *rooms, struct room room, uint64_t bytes)
{
    unsigned at = rooms->count++;

    for (; at > 0 && is_better(&room, &rooms->of[at - 1], bytes); at--)
        rooms->of[at] = rooms->of[at - 1];
    rooms->of[at] = room;
}

/* The one of the name comes first if it has the room, and is not among the last. */
static void prefer(struct rooms *rooms, unsigned device, uint64_t bytes)
{
    for (unsigned i = 1; i < rooms->count; i++) {
        struct room room = rooms->of[i];

        if (room.device != device)
            continue;
        if (room.bytes < bytes || room.is_last)
            return;
        memmove(&rooms->of[1], &rooms->of[0], i * sizeof(rooms->of[0]));
        rooms->of[0] = room;
    }
}

/* It does not change while the process lives. */
static unsigned count_devices(void)
{
    unsigned count = atomic_load_explicit(&devices, memory_order_relaxed);

    if (CW_LIKELY(count != 0) || !cw_gate_enter())
        return count;
    if (cw_session.ops->device_count(&count) != 0)
        count = 0;
    cw_gate_leave();
    if (count > CW_MAX_DEVICES)
        count = CW_MAX_DEVICES;
    atomic_store_explicit(&devices, count, memory_order_relaxed);
    return count;
}

/* ---- the last answer ---- */

static inline uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static unsigned slot_of(const struct answer *own)
{
    return (unsigned)(own - answers);
}

/* Before the rooms are looked at: if somebody takes the thread's slack back meanwhile, it is seen
 * as a change. */
static void note(struct answer *own, unsigned count)
{
    const struct cw_usage_slack *slack = &cw_usage_slack[slot_of(own)];

    own->life = 0;
    own->now_ns = cw_session_now();
    own->count = count;
    own->slack.live = load(&slack->live);
    own->slack.held = load(&slack->held);
    own->slack.moved = load(&slack->moved);
}

/* bytes: for which they are the best first. */
static void keep(struct answer *own, const struct rooms *rooms, uint64_t bytes)
{
    const struct room *best = &rooms->of[0];

    if (rooms->count > ANSWER_MOST || best->is_last || best->bytes < bytes || cw_limit_is_on())
        return;
    own->lead = UINT64_MAX;
    for (unsigned i = 0; i < rooms->count; i++) {
        const struct room *room = &rooms->of[i];

        own->of[i] = *room;
        if (i > 0 && !room->is_last && best->bytes - room->bytes < own->lead)
            own->lead = best->bytes - room->bytes;
    }
    own->life = atomic_load_explicit(&life, memory_order_relaxed);
}

/* By how many bytes the thread itself has changed rooms since the answer, at most. What others have
 * is seen at the clock's next tick. */
static CW_INLINE uint64_t drift(const struct answer *own)
{
    const struct cw_usage_slack *slack = &cw_usage_slack[slot_of(own)];

    return distance(load(&slack->live), own->slack.live) +
           distance(load(&slack->held), own->slack.held) + load(&slack->moved) - own->slack.moved;
}

/* 1: the last answer still holds, for so many bytes, with *out_least of room asked for: twice what
 * has changed is its lead at most, since blocks of the pool may be larger than what they hold.
 * Large requests, and limits, which may not be passed by a byte, are looked at each time. */
static CW_INLINE int still_holds(const struct answer *own, uint64_t bytes, uint64_t *out_least)
{
    uint64_t changed;

    if (own->life != load(&life) || bytes > ANSWER_BYTES || cw_limit_is_on() ||
        own->now_ns != cw_session_now())
        return 0;
    changed = drift(own);
    if (changed > own->lead / 2 || changed > own->of[0].bytes / 2 ||
        bytes > own->of[0].bytes - 2 * changed)
        return 0;
    *out_least = bytes + 2 * changed;
    return 1;
}

static void work_out(struct answer *own, uint64_t bytes, struct rooms *out)
{
    unsigned depth = cw_api_enter(), count = count_devices();

    if (own)
        note(own, count);
    out->count = 0;
    for (unsigned i = 0; i < count; i++)
        insert(out, room_of((uint8_t)i), bytes);
    cw_api_leave(depth);
    if (own && out->count != 0)
        keep(own, out, bytes);
}

/* By the last answer, if it still holds, and by the name if it is the last one's; CW_MAX_DEVICES:
 * to be worked out. */
static CW_HOT CW_NOINLINE unsigned look_at_last(const struct answer *own, const char *name,
                                                uint64_t bytes)
{
    unsigned device;
    uint64_t least;

    if (own == NULL || !still_holds(own, bytes, &least))
        return CW_MAX_DEVICES;
    if (name[0] == '\0')
        return own->of[0].device;
    device = recall_own(own, name);
    for (unsigned i = 0; i < own->count; i++)
        if (own->of[i].device == device && own->of[i].bytes >= least && !own->of[i].is_last)
            return device;
    return CW_MAX_DEVICES;
}

static int look(const char *name, uint64_t bytes, struct rooms *out)
{
    work_out(own_answer(), bytes, out);
    if (out->count == 0)
        return cw_api_fail(CUWARDEN_NO_DEVICE, "the driver has no device");
    if (name[0] != '\0')
        prefer(out, recall(name), bytes);
    return CUWARDEN_OK;
}

/* ---- failing ---- */

static int fail_short(const struct rooms *rooms, uint64_t bytes)
{
    char text[160], size[24];
    size_t len = 0;
    int is_limit = 0;

    for (unsigned i = 0; i < rooms->count && len < sizeof(text); i++) {
        const struct room *room = &rooms->of[i];

        len +=
            cw_format(text + len, sizeof(text) - len, "%s device %u has %s%s%s", i == 0 ? "" : ",",
                      room->device, cw_format_size(size, sizeof(size), room->bytes),
                      room->is_limit ? " by its limit" : "",
                      is_shut(room->device) ? ", and gives no context" : "");
        is_limit |= room->is_limit;
    }
    return cw_api_fail(is_limit ? CUWARDEN_OUT_OF_LIMIT : CUWARDEN_OUT_OF_DEVICE,
                       "no device has room for %s:%s", cw_format_size(size, sizeof(size), bytes),
                       text);
}

static int fail_budget(const struct cw_budget_view *budget, uint64_t bytes)
{
    char size[24];

    return cw_api_fail(CUWARDEN_OUT_OF_BUDGET,
                       "%s cannot be had: the tag's budget is %ju bytes, and %ju are used",
                       cw_format_size(size, sizeof(size), bytes), (uintmax_t)budget->rule.bytes,
                       (uintmax_t)budget->used_bytes);
}

static CW_INLINE int check(const char *name, const void *out)
{
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (out == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "there is no place for the answer");
    if (name[0] != '\0' && strlen(name) >= NAME_MAX)
        return cw_api_fail(CUWARDEN_INVALID, "the name '%.20s...' has %zu bytes, and may have %u",
                           name, strlen(name), NAME_MAX - 1);
    return cw_api_check_driver();
}

/* ---- what programs call ---- */

CW_HOT int cw_api_device_pick(const char *name, uint64_t bytes, int32_t *out_device)
{
    struct rooms rooms;
    unsigned device;
    int error;

    name = name != NULL ? name : "";
    error = check(name, out_device);
    if (error != CUWARDEN_OK)
        return error;
    device = look_at_last(own_answer(), name, bytes);
    if (device != CW_MAX_DEVICES) {
        *out_device = (int32_t)device;
        return CUWARDEN_OK;
    }
    error = look(name, bytes, &rooms);
    if (error != CUWARDEN_OK)
        return error;
    if (rooms.of[0].bytes < bytes)
        return fail_short(&rooms, bytes);
    remember(name, rooms.of[0].device);
    *out_device = rooms.of[0].device;
    return CUWARDEN_OK;
}

/* A failed allocation gives back the context that it made only while no other is under way there:
 * that one may have found the context active, and would give back its own reference, too. Whoever
 * comes meanwhile waits for that one call. */
static void come(uint8_t device)
{
    uint32_t others = atomic_load(&stays[device]) & ~CLOSING;
    unsigned turns = 0;

    while (!atomic_compare_exchange_weak(&stays[device], &others, others + 1)) {
        others &= ~CLOSING;
        cw_lock_relax(&turns);
    }
}

static int is_alone(uint8_t device)
{
    uint32_t one = 1;

    return atomic_compare_exchange_strong(&stays[device], &one, CLOSING);
}

static void go(uint8_t device)
{
    if (atomic_load(&stays[device]) == CLOSING)
        atomic_store(&stays[device], 0);
    else
        atomic_fetch_sub(&stays[device], 1);
}

static int alloc_on(uint8_t device, uint64_t bytes, int *out_is_entered, uint64_t *out)
{
    struct cw_device_stay stay;
    unsigned depth = cw_api_enter();
    int code;

    come(device);
    code = driver->enter(device, &stay);
    *out_is_entered = code == 0;
    if (code == 0) {
        code = memory->alloc(bytes, out);
        /* A context without memory that was made for this is not left behind. */
        if (code != 0 && !stay.is_borrowed && cw_usage_device(device).live == 0)
            stay.is_borrowed = (uint8_t)is_alone(device);
        driver->leave(&stay);
    }
    go(device);
    cw_api_leave(depth);
    return code;
}

/* Where there is room, and if there is none, where there is most: what has run out may be got back
 * (core/request/ladder.h), and if not, the report has it. What cannot be entered says nothing of
 * the others; its code is returned only if none could be. */
static int alloc_best(const struct rooms *rooms, uint64_t bytes, unsigned *out_at, uint64_t *out)
{
    int code = 0, has_entered = 0;
    struct cw_budget_view budget;

    for (unsigned i = 0; i < rooms->count; i++) {
        uint8_t device = rooms->of[i].device;
        int its_code, is_entered;

        if (has_entered && (rooms->of[i].bytes < bytes || cw_api_budget_room(&budget) < bytes))
            break;
        its_code = alloc_on(device, bytes, &is_entered, out);
        note_entered(device, is_entered);
        has_entered |= is_entered;
        if (has_entered && !is_entered)
            continue;
        *out_at = i;
        code = its_code;
        if (is_entered && code != CW_BUFFER_NO_MEMORY)
            break;
    }
    return code;
}

static int alloc_worked_out(const char *name, uint64_t bytes, unsigned *out_device, uint64_t *out)
{
    struct rooms rooms;
    unsigned at = 0;
    struct cw_budget_view budget;
    int code, error = look(name, bytes, &rooms);

    if (error != CUWARDEN_OK)
        return error;
    code = alloc_best(&rooms, bytes, &at, out);
    if (code == CW_BUFFER_NO_MEMORY)
        return cw_api_budget_room(&budget) < bytes ? fail_budget(&budget, bytes)
                                                   : fail_short(&rooms, bytes);
    if (code != 0)
        return cw_api_fail(CUWARDEN_DRIVER, "device %u cannot allocate: the driver's code is %d",
                           rooms.of[at].device, code);
    *out_device = rooms.of[at].device;
    remember(name, rooms.of[at].device);
    return CUWARDEN_OK;
}

/* The usual hit goes to the pool at once, on the device of the thread's last answer. */
CW_HOT int cw_api_device_alloc(const char *name, uint64_t bytes, int32_t *out_device, void **out)
{
    unsigned device;
    const struct answer *own;
    uint64_t address = 0;
    int error;

    name = name != NULL ? name : "";
    error = check(name, out);
    if (error == CUWARDEN_OK && bytes == 0)
        error = cw_api_fail(CUWARDEN_INVALID, "an allocation of no bytes");
    if (error != CUWARDEN_OK)
        return error;
    own = own_answer();
    device = look_at_last(own, name, bytes);
    if (CW_LIKELY(device != CW_MAX_DEVICES))
        address = driver->serve((uint8_t)device, bytes, own->now_ns, __builtin_return_address(0));
    if (address == 0)
        error = alloc_worked_out(name, bytes, &device, &address);
    if (error != CUWARDEN_OK)
        return error;
    if (out_device != NULL)
        *out_device = (int32_t)device;
    *out = (void *)(uintptr_t)address;
    return CUWARDEN_OK;
}
