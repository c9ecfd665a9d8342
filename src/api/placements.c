/* SPDX-License-Identifier: MIT */
/* See placements.h. */
#include "api/placements.h"

#include <stdatomic.h>
#include <string.h>

#include "base/device_reserve.h"
#include "base/lock.h"
#include "core/account/idle.h"
#include "core/account/usage.h"
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/process/gate.h"

#define NAMES                                                                                      \
    256 /* remembered; a new one takes the place of the one that was asked for longest ago */
#define NAME_MAX      48
#define ASK_PERIOD_NS UINT64_C(100000000)

struct room {
    uint8_t device;
    uint8_t is_scarce; /* at level HIGH or more */
    uint8_t is_limit;  /* a limit leaves less than there is */
    uint64_t bytes;
};

struct rooms {
    unsigned count;
    struct room of[CW_MAX_DEVICES]; /* the best first */
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_PLACEMENT);
static struct {
    char name[NAME_MAX]; /* "": unused */
    uint8_t device;
    uint64_t turn; /* when it was asked for last */
} names[NAMES];
static uint64_t turns;
static _Atomic uint64_t ask_again_ns[CW_MAX_DEVICES];
static const struct cw_buffer_ops *memory;
static const struct cw_device_ops *driver;

void cw_api_placements_init(const struct cw_buffer_ops *its_memory, const struct cw_device_ops *ops)
{
    memory = its_memory;
    driver = ops;
}

void cw_api_placements_reset(void)
{
    cw_lock_reset(&lock);
    memset(names, 0, sizeof(names));
    memset(ask_again_ns, 0, sizeof(ask_again_ns));
}

/* ---- names ---- */

/* The one of this name, else the one to be given up. */
static unsigned find_locked(const char *name)
{
    unsigned oldest = 0;

    for (unsigned i = 0; i < NAMES; i++) {
        if (strcmp(names[i].name, name) == 0)
            return i;
        if (names[i].turn < names[oldest].turn)
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

static void remember(const char *name, uint8_t device)
{
    unsigned i;

    if (name[0] == '\0')
        return;
    cw_lock_acquire(&lock);
    i = find_locked(name);
    memcpy(names[i].name, name, strlen(name) + 1);
    names[i].device = device;
    names[i].turn = ++turns;
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

static struct room room_of(uint8_t device)
{
    uint64_t there = room_of_driver(device), limit = cw_limit_room(device);

    return (struct room){.device = device,
                         .is_scarce = cw_pressure_level(device) >= CW_LEVEL_HIGH,
                         .is_limit = limit < there,
                         .bytes = limit < there ? limit : there};
}

static int is_better(const struct room *room, const struct room *than, uint64_t bytes)
{
    int fits = room->bytes >= bytes, its = than->bytes >= bytes;

    if (fits != its)
        return fits;
    if (room->is_scarce != than->is_scarce)
        return than->is_scarce;
    return room->bytes > than->bytes;
}

static void insert(struct rooms *rooms, struct room room, uint64_t bytes)
{
    unsigned at = rooms->count++;

    for (; at > 0 && is_better(&room, &rooms->of[at - 1], bytes); at--)
        rooms->of[at] = rooms->of[at - 1];
    rooms->of[at] = room;
}

/* The one of the name comes first if it has the room, and the memory there is not scarce. */
static void prefer(struct rooms *rooms, unsigned device, uint64_t bytes)
{
    for (unsigned i = 1; i < rooms->count; i++) {
        struct room room = rooms->of[i];

        if (room.device != device)
            continue;
        if (room.bytes < bytes || room.is_scarce)
            return;
        memmove(&rooms->of[1], &rooms->of[0], i * sizeof(rooms->of[0]));
        rooms->of[0] = room;
    }
}

static int look(const char *name, uint64_t bytes, struct rooms *out)
{
    unsigned depth = cw_api_enter(), count = 0;
    int rc = -1;

    out->count = 0;
    if (cw_gate_enter()) {
        rc = cw_session.ops->device_count(&count);
        cw_gate_leave();
    }
    for (unsigned i = 0; rc == 0 && i < count && i < CW_MAX_DEVICES; i++)
        insert(out, room_of((uint8_t)i), bytes);
    cw_api_leave(depth);
    if (out->count == 0)
        return cw_api_fail(CUWARDEN_NO_DEVICE, "the driver has no device");
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

        len += cw_format(text + len, sizeof(text) - len, "%s device %u has %s%s", i == 0 ? "" : ",",
                         room->device, cw_format_size(size, sizeof(size), room->bytes),
                         room->is_limit ? " by its limit" : "");
        is_limit |= room->is_limit;
    }
    return cw_api_fail(is_limit ? CUWARDEN_OUT_OF_LIMIT : CUWARDEN_OUT_OF_DEVICE,
                       "no device has room for %s:%s", cw_format_size(size, sizeof(size), bytes),
                       text);
}

static int check(const char **name, const void *out)
{
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (*name == NULL)
        *name = "";
    if (out == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "there is no place for the answer");
    if (strlen(*name) >= NAME_MAX)
        return cw_api_fail(CUWARDEN_INVALID, "the name '%.20s...' has %zu bytes, and may have %u",
                           *name, strlen(*name), NAME_MAX - 1);
    return cw_api_check_driver();
}

/* ---- what programs call ---- */

int cw_api_device_pick(const char *name, uint64_t bytes, int32_t *out_device)
{
    struct rooms rooms;
    int error = check(&name, out_device);

    if (error == CUWARDEN_OK)
        error = look(name, bytes, &rooms);
    if (error != CUWARDEN_OK)
        return error;
    if (rooms.of[0].bytes < bytes)
        return fail_short(&rooms, bytes);
    remember(name, rooms.of[0].device);
    *out_device = rooms.of[0].device;
    return CUWARDEN_OK;
}

static int alloc_on(uint8_t device, uint64_t bytes, uint64_t *out)
{
    struct cw_device_stay stay;
    unsigned depth = cw_api_enter();
    int code = driver->enter(device, &stay);

    if (code == 0) {
        code = memory->alloc(bytes, out);
        driver->leave(&stay);
    }
    cw_api_leave(depth);
    return code;
}

/* Where there is room, and if there is none, where there is most: what has run out may be got back
 * (core/request/ladder.h), and if not, the report has it. */
static int alloc_best(const struct rooms *rooms, uint64_t bytes, unsigned *out_at, uint64_t *out)
{
    int code = CW_BUFFER_NO_MEMORY;

    for (unsigned i = 0; i < rooms->count && code == CW_BUFFER_NO_MEMORY; i++) {
        if (i > 0 && rooms->of[i].bytes < bytes)
            break;
        *out_at = i;
        code = alloc_on(rooms->of[i].device, bytes, out);
    }
    return code;
}

int cw_api_device_alloc(const char *name, uint64_t bytes, int32_t *out_device, void **out)
{
    struct rooms rooms;
    uint64_t address = 0;
    unsigned at = 0;
    int code, error = check(&name, out);

    if (error == CUWARDEN_OK && bytes == 0)
        error = cw_api_fail(CUWARDEN_INVALID, "an allocation of no bytes");
    if (error == CUWARDEN_OK)
        error = look(name, bytes, &rooms);
    if (error != CUWARDEN_OK)
        return error;
    code = alloc_best(&rooms, bytes, &at, &address);
    if (code == CW_BUFFER_NO_MEMORY)
        return fail_short(&rooms, bytes);
    if (code != 0)
        return cw_api_fail(CUWARDEN_DRIVER, "device %u cannot allocate: the driver's code is %d",
                           rooms.of[at].device, code);
    remember(name, rooms.of[at].device);
    if (out_device != NULL)
        *out_device = rooms.of[at].device;
    *out = (void *)(uintptr_t)address;
    return CUWARDEN_OK;
}
