/* SPDX-License-Identifier: MIT */
/* How large a growable buffer becomes, and what is refused. See buffers.h. */
#include "api/buffer_table.h"
#include "api/budgets.h"
#include "base/float_env.h"
#include "core/account/budget.h"
#include "core/account/usage.h"
#include "core/limits/limit.h"

/* ---- what is refused ---- */

static int no_memory(const struct cw_buffer_row *row, uint64_t wanted)
{
    uint8_t device = row->memory.place.device;
    uint64_t needs = cw_buffer_memory_needs(&row->memory, wanted);
    uint64_t limit = cw_session_is_armed() ? cw_limit_of(device) : 0;
    uint64_t held = limit != 0 ? cw_usage_device(device).held : 0;
    struct cw_budget_view budget;

    if (needs > cw_api_budget_room(&budget))
        return cw_api_fail(CUWARDEN_OUT_OF_BUDGET,
                           "buffer '%s' of %ju bytes cannot have %ju bytes: the budget of its tag "
                           "is %ju, and %ju are used",
                           row->name, (uintmax_t)row->memory.bytes, (uintmax_t)wanted,
                           (uintmax_t)budget.rule.bytes, (uintmax_t)budget.used_bytes);
    if (limit != 0 && (wanted > limit || needs > limit || held > limit - needs))
        return cw_api_fail(CUWARDEN_OUT_OF_LIMIT,
                           "buffer '%s' of %ju bytes on device %u cannot have %ju bytes: the limit "
                           "is %ju, and %ju are held",
                           row->name, (uintmax_t)row->memory.bytes, device, (uintmax_t)wanted,
                           (uintmax_t)limit, (uintmax_t)held);
    return cw_api_fail(
        CUWARDEN_OUT_OF_DEVICE,
        "buffer '%s' of %ju bytes on device %u cannot have %ju bytes: the device has no more",
        row->name, (uintmax_t)row->memory.bytes, device, (uintmax_t)wanted);
}

int cw_buffer_refused(const struct cw_buffer_row *row, int code, uint64_t wanted, const char *what)
{
    switch (code) {
    case 0:
        return CUWARDEN_OK;
    case CW_BUFFER_NO_MEMORY:
        return no_memory(row, wanted);
    case CW_BUFFER_CONTEXT_ENDED:
        return cw_api_fail(CUWARDEN_DRIVER, "buffer '%s' cannot %s: its context has ended (%d)",
                           row->name, what, code);
    default:
        return cw_api_fail(CUWARDEN_DRIVER, "buffer '%s' cannot %s: the driver's code is %d",
                           row->name, what, code);
    }
}

/* Before anything changes: what can never be had. */
static int check(const struct cw_buffer_row *row, uint64_t count)
{
    const struct cw_buffer_place *place = &row->memory.place;
    uint64_t limit = cw_session_is_armed() ? cw_limit_of(place->device) : 0, bytes;

    if (count > row->most_bytes / row->element_bytes)
        return cw_api_fail(
            CUWARDEN_TOO_LARGE,
            "buffer '%s' cannot have room for %ju elements of %ju bytes: its maximum is %ju bytes",
            row->name, (uintmax_t)count, (uintmax_t)row->element_bytes, (uintmax_t)row->most_bytes);
    bytes = count * row->element_bytes;
    if (bytes <= place->total) /* what is more may be too much to be rounded up */
        bytes = cw_buffer_memory_rounded(&row->memory, bytes);
    if (bytes > place->total || (limit != 0 && bytes > limit))
        return no_memory(row, bytes);
    return CUWARDEN_OK;
}

/* ---- how large ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* By its factor, as far as the device is large enough, and if that may be had; the device is asked
 * only then. */
static uint64_t choose(const struct cw_buffer_row *row, uint64_t needed)
{
    uint64_t wanted = cw_float_times(row->growth, row->memory.bytes), room;
    struct cw_budget_view budget;

    wanted = smaller(larger(larger(wanted, needed), row->least_bytes),
                     smaller(row->most_bytes, row->memory.place.total));
    if (wanted == needed)
        return needed;
    room = smaller(cw_buffer_memory_room(&row->memory), cw_api_budget_room(&budget));
    return cw_buffer_memory_needs(&row->memory, wanted) <= room ? wanted : needed;
}

static uint64_t kept_bytes(const struct cw_buffer_row *row)
{
    return smaller(cw_buffer_load(&row->used) * row->element_bytes, row->memory.bytes);
}

/* The factor was a hope: a neighbour may have been quicker, what is idle may not be released, or
 * the room is not known. */
static int is_less_worth_a_try(const struct cw_buffer_row *row, uint64_t wanted, uint64_t needed)
{
    return needed > row->memory.bytes && cw_buffer_memory_rounded(&row->memory, wanted) >
                                             cw_buffer_memory_rounded(&row->memory, needed);
}

int cw_buffer_grow(struct cw_buffer_row *row, uint64_t count, void *stream)
{
    struct cw_buffer_keep keep = {
        .bytes = kept_bytes(row),
        .stream = stream,
        .waits = (row->flags & CUWARDEN_ASYNCHRONOUS) == 0,
    };
    int code, error = check(row, count);
    uint64_t wanted, needed = count * row->element_bytes;

    if (error != CUWARDEN_OK)
        return error;
    wanted = choose(row, needed);
    if (wanted <= row->memory.bytes)
        return CUWARDEN_OK;
    code = cw_buffer_memory_resize(&row->memory, wanted, &keep);
    if (code == CW_BUFFER_NO_MEMORY && is_less_worth_a_try(row, wanted, needed)) {
        wanted = needed;
        code = cw_buffer_memory_resize(&row->memory, wanted, &keep);
    }
    return cw_buffer_refused(row, code, wanted, "grow");
}

int cw_buffer_shrink(struct cw_buffer_row *row, uint64_t *out_bytes)
{
    struct cw_buffer_keep keep = {.bytes = kept_bytes(row), .waits = 1};
    uint64_t before = row->memory.bytes;
    int code = 0;

    if (keep.bytes < before)
        code = cw_buffer_memory_resize(&row->memory, keep.bytes, &keep);
    *out_bytes += before - row->memory.bytes;
    return cw_buffer_refused(row, code, keep.bytes, "shrink");
}
