/* SPDX-License-Identifier: MIT */
/* See buffer_memory.h. */
#include "api/buffer_memory.h"

#include <string.h>

#include "api/api.h"
#include "api/blocks.h"
#include "api/place.h"
#include "base/mem.h"
#include "base/round.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"
#include "core/device/vmm.h"
#include "core/pool/free_batch.h"
#include "core/pool/pool.h"

static const struct cw_buffer_ops *driver;

void cw_buffer_memory_init(const struct cw_buffer_ops *ops)
{
    driver = ops;
}

/* ---- in the account ---- */

static void name_at(const struct cw_buffer_memory *memory, enum cw_space space, uint64_t key)
{
    if (cw_session_is_armed())
        cw_api_block_own(cw_tracker_find(space, key), memory->name);
}

/* The larger block has taken the place of one of so many bytes. */
static void count_replaced(const struct cw_buffer_memory *memory, uint64_t address, uint64_t before,
                           uint64_t copied)
{
    if (cw_session_is_armed())
        cw_regrowth_replaced(cw_tracker_find(CW_SPACE_ADDRESS, address), before, copied,
                             !memory->has_block_grown);
}

/* ---- its beginning ---- */

int cw_buffer_memory_begin(struct cw_buffer_memory *memory, uint64_t most_bytes, int may_map)
{
    struct cw_buffer_place *place = &memory->place;
    int rc = cw_place_here(driver, place);
    uint64_t addresses;

    if (rc != 0 || !may_map || place->granule == 0)
        return rc;
    addresses = cw_round_up(
        most_bytes != 0 && most_bytes < place->total ? most_bytes : place->total, place->granule);
    /* Without addresses it is a block that grows by being copied. */
    if (driver->reserve(addresses, &memory->address) != 0)
        return 0;
    memory->reserved = addresses;
    name_at(memory, CW_SPACE_RESERVATION, memory->address);
    return 0;
}

uint64_t cw_buffer_memory_rounded(const struct cw_buffer_memory *memory, uint64_t bytes)
{
    return memory->reserved != 0 ? cw_round_up(bytes, memory->place.granule) : bytes;
}

uint64_t cw_buffer_memory_needs(const struct cw_buffer_memory *memory, uint64_t bytes)
{
    uint64_t rounded = cw_buffer_memory_rounded(memory, bytes);

    if (memory->reserved == 0)
        return rounded;
    return rounded > memory->bytes ? rounded - memory->bytes : 0;
}

uint64_t cw_buffer_memory_room(const struct cw_buffer_memory *memory)
{
    uint64_t room = UINT64_MAX;
    int pushed;

    if (cw_place_enter(driver, &memory->place, &pushed) != 0)
        return room;
    if (driver->room(&room) != 0)
        room = UINT64_MAX;
    driver->leave(memory->place.context, pushed);
    return room;
}

/* ---- pieces ---- */

static int make_piece_room(struct cw_buffer_memory *memory)
{
    uint32_t room = memory->piece_room != 0 ? memory->piece_room * 2 : 16;
    uint64_t *more;

    if (memory->pieces < memory->piece_room)
        return 0;
    more = cw_mem_alloc(room * sizeof(*more));
    if (more == NULL)
        return CW_BUFFER_NO_MEMORY;
    if (memory->piece != NULL) {
        memcpy(more, memory->piece, memory->pieces * sizeof(*more));
        cw_mem_free(memory->piece, memory->piece_room * sizeof(*more));
    }
    memory->piece = more;
    memory->piece_room = room;
    return 0;
}

static int add_piece(struct cw_buffer_memory *memory, uint64_t bytes)
{
    uint64_t address = memory->address + memory->bytes;
    int rc = make_piece_room(memory);

    if (rc == 0)
        rc = driver->map(memory->place.device, address, bytes);
    if (rc != 0)
        return rc;
    if (cw_session_is_armed())
        cw_api_block_own(cw_vmm_block_at(address), memory->name);
    memory->piece[memory->pieces++] = bytes;
    memory->bytes += bytes;
    return 0;
}

/* Takes pieces away as long as so many bytes remain. */
static int drop_pieces(struct cw_buffer_memory *memory, uint64_t bytes)
{
    while (memory->pieces != 0 && memory->bytes - memory->piece[memory->pieces - 1] >= bytes) {
        uint64_t last = memory->piece[memory->pieces - 1];
        int rc = driver->unmap(memory->address + memory->bytes - last, last);

        if (rc != 0)
            return rc;
        memory->pieces--;
        memory->bytes -= last;
    }
    return 0;
}

/* Nothing waits when it grows: the device has never seen these addresses. */
static int grow_in_place(struct cw_buffer_memory *memory, uint64_t bytes)
{
    uint64_t before = memory->bytes, wanted = cw_buffer_memory_rounded(memory, bytes);
    uint64_t unit = CW_BUFFER_PIECE_MAX / memory->place.granule * memory->place.granule;
    int rc = 0;

    if (unit == 0)
        unit = memory->place.granule;
    while (rc == 0 && memory->bytes < wanted)
        rc = add_piece(memory, wanted - memory->bytes < unit ? wanted - memory->bytes : unit);
    if (rc != 0)
        drop_pieces(memory, before);
    return rc;
}

static int shrink_in_place(struct cw_buffer_memory *memory, uint64_t bytes)
{
    uint64_t before = memory->bytes;
    int rc = driver->wait_context();

    if (rc == 0)
        rc = drop_pieces(memory, bytes);
    return memory->bytes < before ? 0 : rc;
}

/* ---- blocks ---- */

static int copy(uint64_t to, const struct cw_buffer_memory *from, const struct cw_buffer_keep *keep)
{
    int rc = 0;

    if (keep->bytes != 0)
        rc = driver->copy(to, from->address, keep->bytes, keep->stream);
    /* The pool lets a freed block serve nobody before the copy is done, and what it does not keep
     * goes to the driver's free, which waits. Without it, that wait is made here. */
    if (rc == 0 && keep->bytes != 0 && (keep->waits || !cw_pool_is_on()))
        rc = driver->wait_stream(keep->stream);
    return rc;
}

/* The wait of a free would be for the copy, too: a batch puts it off. */
static void free_old(uint64_t old, const struct cw_buffer_keep *keep)
{
    if (!keep->waits)
        cw_free_batch_begin();
    driver->free(old);
    if (!keep->waits)
        cw_free_batch_leave();
}

/* The old block is freed only once the copy has been ordered; that it cannot be freed is no failure
 * of the resize, and shows as a leak. */
static int replace(struct cw_buffer_memory *memory, uint64_t bytes,
                   const struct cw_buffer_keep *keep)
{
    uint64_t larger = 0, old = memory->address;
    int rc = bytes != 0 ? driver->alloc(bytes, &larger) : 0;

    if (rc == 0 && larger != 0)
        name_at(memory, CW_SPACE_ADDRESS, larger);
    if (rc == 0 && old != 0 && larger != 0) {
        rc = copy(larger, memory, keep);
        if (rc != 0)
            driver->free(larger);
    }
    if (rc != 0)
        return rc;
    if (old != 0 && larger != 0) {
        memory->copies++;
        memory->copied_bytes += keep->bytes;
    }
    if (old != 0 && bytes > memory->bytes) {
        count_replaced(memory, larger, memory->bytes, keep->bytes);
        memory->has_block_grown = 1;
    }
    memory->address = larger;
    memory->bytes = bytes;
    if (old != 0)
        free_old(old, keep);
    return 0;
}

static int replace_by_smaller(struct cw_buffer_memory *memory, uint64_t bytes,
                              const struct cw_buffer_keep *keep)
{
    int rc = driver->wait_context();

    return rc != 0 ? rc : replace(memory, bytes, keep);
}

/* ---- both ---- */

static int resize(struct cw_buffer_memory *memory, uint64_t bytes,
                  const struct cw_buffer_keep *keep)
{
    if (memory->reserved != 0)
        return bytes > memory->bytes ? grow_in_place(memory, bytes)
                                     : shrink_in_place(memory, bytes);
    return bytes > memory->bytes ? replace(memory, bytes, keep)
                                 : replace_by_smaller(memory, bytes, keep);
}

int cw_buffer_memory_resize(struct cw_buffer_memory *memory, uint64_t bytes,
                            const struct cw_buffer_keep *keep)
{
    uint64_t before = memory->bytes;
    int pushed, rc;

    if (bytes == before)
        return 0;
    rc = cw_place_enter(driver, &memory->place, &pushed);
    if (rc != 0)
        return rc;
    rc = resize(memory, bytes, keep);
    driver->leave(memory->place.context, pushed);
    if (memory->bytes != before && before != 0)
        memory->resizes++;
    return rc;
}

static void note(int *first, int rc)
{
    if (*first == 0)
        *first = rc;
}

/* A context that has ended took its block with it; mapped memory is the process's. */
int cw_buffer_memory_end(struct cw_buffer_memory *memory)
{
    int pushed = 0, first = 0, rc = cw_place_enter(driver, &memory->place, &pushed);

    if (rc == 0)
        note(&first, driver->wait_context());
    else if (rc != CW_BUFFER_CONTEXT_ENDED)
        note(&first, rc);
    if (memory->reserved != 0) {
        note(&first, drop_pieces(memory, 0));
        if (memory->pieces == 0)
            note(&first, driver->unreserve(memory->address, memory->reserved));
    } else if (memory->address != 0 && rc == 0) {
        note(&first, driver->free(memory->address));
    }
    driver->leave(memory->place.context, pushed);
    if (memory->piece != NULL)
        cw_mem_free(memory->piece, memory->piece_room * sizeof(*memory->piece));
    *memory = (struct cw_buffer_memory){0};
    return first;
}
