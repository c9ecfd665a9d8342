/* SPDX-License-Identifier: MIT */
/* Ranges of ids, and names. See owner.h. */
#include "core/account/owner.h"

#include <string.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/utf8.h"

#define RANGE  256u                 /* ids that a thread takes at a time */
#define PLACES (CW_OWNER_NAMES * 2) /* of the table of names, which stays half empty */

CW_HOT_DATA struct cw_arena *cw_owner_arena;
CW_HOT_DATA _Atomic uint32_t cw_owner_epoch;

static _Atomic uint64_t next_range;

static struct {
    struct cw_lock lock;
    uint32_t count;
    uint32_t text[PLACES]; /* 0: free; pages are touched as names come */
} names = {.lock = CW_LOCK_INIT(CW_RANK_TAG)};

void cw_owner_init(struct cw_arena *arena)
{
    cw_owner_arena = arena;
    atomic_store(&next_range, 1);
    atomic_fetch_add(&cw_owner_epoch, 1); /* what threads have left is of an earlier session */
}

void cw_owner_reset(void)
{
    cw_lock_reset(&names.lock);
    if (names.count != 0)
        memset(names.text, 0, sizeof(names.text));
    names.count = 0;
}

/* ---- ids ---- */

int cw_owner_make(uint32_t block)
{
    while (cw_arena_count(cw_owner_arena, CW_TABLE_OWNER) <= block)
        if (cw_arena_append(cw_owner_arena, CW_TABLE_OWNER) == 0)
            return -1;
    return 0;
}

/* The epoch first: a mark that comes between makes the range be dropped, not used. */
void cw_owner_take_range(void)
{
    cw_thread.id_epoch = atomic_load(&cw_owner_epoch);
    cw_thread.next_id = atomic_fetch_add(&next_range, RANGE);
    cw_thread.ids_end = cw_thread.next_id + RANGE;
}

uint64_t cw_owner_mark(void)
{
    atomic_fetch_add(&cw_owner_epoch, 1);
    return atomic_load(&next_range);
}

/* ---- names ---- */

/* Another thread may change it meanwhile: the last one to look shows what there is. */
static void show_name(const struct cw_live_owner *owner)
{
    ptrdiff_t own = cw_owner_arena->own;
    uint32_t name = atomic_load(&owner->name), shown;

    if (own == 0)
        return;
    do {
        shown = name;
        atomic_store(&cw_owner_shown(owner, own)->name, shown);
        name = atomic_load(&owner->name);
    } while (name != shown);
}

void cw_owner_call(uint32_t block, uint32_t text)
{
    struct cw_live_owner *owner = cw_owner_at(block);
    uint32_t before = atomic_load(&owner->name);

    while (!atomic_compare_exchange_weak(&owner->name, &before, text | (before & CW_OWNER_KEPT)))
        ;
    show_name(owner);
}

void cw_owner_keep(uint32_t block)
{
    struct cw_live_owner *owner = cw_owner_at(block);

    atomic_fetch_or(&owner->name, CW_OWNER_KEPT);
    show_name(owner);
}

static int is_text(uint32_t text, const char *name, size_t len)
{
    const char *known = cw_arena_text_at(cw_owner_arena, text);

    return strncmp(known, name, len) == 0 && known[len] == '\0';
}

static uint32_t find_or_add_locked(const char *name, size_t len, uint64_t hash)
{
    uint32_t place = (uint32_t)hash % PLACES;

    while (names.text[place] != 0) {
        if (is_text(names.text[place], name, len))
            return names.text[place];
        place = (place + 1) % PLACES;
    }
    if (names.count == CW_OWNER_NAMES)
        return 0;
    names.text[place] = cw_arena_text(cw_owner_arena, name, len);
    names.count += names.text[place] != 0;
    return names.text[place];
}

uint32_t cw_owner_text(const char *name)
{
    size_t len = cw_utf8_cut(name, CW_OWNER_NAME_MAX);
    uint64_t hash = CW_HASH_SEED;
    uint32_t text;

    for (size_t i = 0; i < len; i++)
        hash = cw_hash_mix(hash, (unsigned char)name[i]);
    cw_lock_acquire(&names.lock);
    text = find_or_add_locked(name, len, hash);
    cw_lock_release(&names.lock);
    return text;
}
