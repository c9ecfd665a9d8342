/* SPDX-License-Identifier: MIT */
/* See pitch.h. */
#include "core/device/pitch.h"

#include "base/lock.h"
#include "base/map.h"
#include "base/mem.h"

struct entry {
    struct cw_map_entry map; /* by key_of */
    uint64_t pitch;
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_POOL); /* guards pitches */
static struct cw_map pitches;

void cw_pitch_reset(void)
{
    cw_lock_reset(&lock);
    pitches = (struct cw_map){0};
}

/* 0: not to be remembered. Element sizes are 4, 8 or 16; widths of a device's rows fit easily. */
static uint64_t key_of(uint8_t device, uint64_t width, unsigned element)
{
    if (width >= (uint64_t)1 << 48 || element > 255)
        return 0;
    return width << 16 | (uint64_t)element << 8 | device;
}

uint64_t cw_pitch_find(uint8_t device, uint64_t width, unsigned element)
{
    uint64_t key = key_of(device, width, element), pitch = 0;
    const struct entry *entry;

    if (key == 0)
        return 0;
    cw_lock_acquire(&lock);
    entry = (const struct entry *)cw_map_find(&pitches, key);
    if (entry != NULL)
        pitch = entry->pitch;
    cw_lock_release(&lock);
    return pitch;
}

void cw_pitch_learn(uint8_t device, uint64_t width, unsigned element, uint64_t pitch)
{
    uint64_t key = key_of(device, width, element);
    struct entry *entry;

    if (key == 0)
        return;
    cw_lock_acquire(&lock);
    entry = (struct entry *)cw_map_find(&pitches, key);
    if (entry == NULL) {
        entry = cw_mem_alloc(sizeof(*entry));
        if (entry != NULL && cw_map_insert(&pitches, &entry->map, key) != 0) {
            cw_mem_free(entry, sizeof(*entry));
            entry = NULL;
        }
    }
    if (entry != NULL)
        entry->pitch = pitch;
    cw_lock_release(&lock);
}
