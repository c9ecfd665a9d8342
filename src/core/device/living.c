/* SPDX-License-Identifier: MIT */
/* Contexts that have not ended. See living.h. */
#include "core/device/living.h"

#include <stddef.h>
#include <string.h>

#include "base/lock.h"
#include "base/mem.h"

#define FIRST_ROOM 16u

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_LIVING); /* guards the following */
static uint32_t *living;
static uint32_t count, room;

void cw_living_reset(void)
{
    cw_lock_reset(&lock);
    living = NULL;
    count = room = 0;
}

static int make_room_locked(void)
{
    uint32_t more = room != 0 ? room * 2 : FIRST_ROOM;
    uint32_t *larger;

    if (count < room)
        return 0;
    larger = cw_mem_alloc(more * sizeof(*larger));
    if (larger == NULL)
        return -1;
    if (living != NULL) {
        memcpy(larger, living, count * sizeof(*larger));
        cw_mem_free(living, room * sizeof(*living));
    }
    living = larger;
    room = more;
    return 0;
}

int cw_living_reserve(void)
{
    int rc;

    cw_lock_acquire(&lock);
    rc = make_room_locked();
    cw_lock_release(&lock);
    return rc;
}

void cw_living_add(uint32_t context)
{
    cw_lock_acquire(&lock);
    living[count++] = context;
    cw_lock_release(&lock);
}

/* The place of the first one after `context`. */
static uint32_t after_locked(uint32_t context)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (living[middle] > context)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void cw_living_remove(uint32_t context)
{
    uint32_t at;

    cw_lock_acquire(&lock);
    at = after_locked(context);
    if (at > 0 && living[at - 1] == context) {
        memmove(&living[at - 1], &living[at], (count - at) * sizeof(*living));
        count--;
    }
    cw_lock_release(&lock);
}

uint32_t cw_living_next(uint32_t context)
{
    uint32_t at, next;

    cw_lock_acquire(&lock);
    at = after_locked(context);
    next = at < count ? living[at] : 0;
    cw_lock_release(&lock);
    return next;
}
