/* SPDX-License-Identifier: MIT */
/*
 * Blocks: looked at one by one, named, counted from a mark. See api.h.
 *
 * A record changes hands without a lock, so it is read between two looks at its state and at the
 * owner's id: equal ones are one owner's. The owner's record comes after the block's, so the id
 * is read only of a block that is live.
 */
#include "api/blocks.h"

#include <stdatomic.h>

#include "api/thread.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"
#include "core/tags/tag_name.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static int is_live(const struct cw_live_block *block)
{
    return atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE;
}

static void read_site(const struct cw_live_site *site, struct cw_api_block *out)
{
    out->block.device =
        site->device == CW_DEVICE_HOST || cw_kind_counted(site->kind) == CW_COUNTED_HOST
            ? CUWARDEN_HOST
            : site->device;
    out->block.kind = cw_kind_name(site->kind);
    out->block.function = cw_arena_text_at(&cw_session.arena, site->api);
    out->block.tag = cw_tag_name_label(site->tag, out->tag, sizeof(out->tag));
}

static uint64_t age_of(const struct cw_live_block *block)
{
    uint64_t now = cw_session_now(), born = LOAD(block->born_ns);

    return now > born ? now - born : 0;
}

int cw_api_block_read(uint32_t index, struct cw_api_block *out)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    const struct cw_live_site *site;
    uint64_t id;

    if (!is_live(block))
        return -1;
    id = cw_owner_id(index);
    if (!is_live(block)) /* as it was when the owner of this id was there already */
        return -1;
    out->site = LOAD(block->site);
    site = cw_site_own(cw_site_at(out->site));
    if (cw_kind_counted(site->kind) == CW_COUNTED_NONE)
        return -1;
    out->block = (struct cuwarden_block){.id = id,
                                         .address = LOAD(block->key),
                                         .bytes = LOAD(block->bytes),
                                         .held_bytes = LOAD(block->held),
                                         .age_ns = age_of(block),
                                         .name = cw_owner_name(index),
                                         .thread = block->tid};
    read_site(site, out);
    atomic_thread_fence(memory_order_acquire);
    return is_live(block) && cw_owner_id(index) == id ? 0 : -1;
}

int cw_api_block_tell(const struct cw_api_block *read, cuwarden_block_fn fn, void *arg)
{
    struct cw_api_outside outside = cw_api_pause();
    int is_over = fn(&read->block, arg) != 0;

    return cw_api_resume(&outside) || is_over;
}

/* ---- one ---- */

/* The index of the live block at the address; 0, after failing: there is none. */
static uint32_t find(const void *address)
{
    uint32_t index = cw_tracker_find(CW_SPACE_ADDRESS, (uint64_t)(uintptr_t)address);

    if (index != 0 && is_live(cw_tracker_at(index)))
        return index;
    cw_api_fail(CUWARDEN_NOT_FOUND, "no live block begins at 0x%llx",
                (unsigned long long)(uintptr_t)address);
    return 0;
}

int cw_api_block_find(const void *address, struct cuwarden_block *out, size_t size)
{
    int error = cw_api_check_started();
    struct cw_api_thread *thread;
    uint32_t index;

    if (error != CUWARDEN_OK)
        return error;
    thread = cw_api_thread();
    if (thread == NULL)
        return CUWARDEN_OUT_OF_HOST;
    index = find(address);
    if (index == 0)
        return CUWARDEN_NOT_FOUND;
    if (cw_api_block_read(index, &thread->found) != 0)
        return cw_api_fail(CUWARDEN_NOT_FOUND, "the block at 0x%llx is being freed",
                           (unsigned long long)(uintptr_t)address);
    cw_api_give(out, size, &thread->found.block, sizeof(thread->found.block));
    return CUWARDEN_OK;
}

int cw_api_block_name(const void *address, const char *name)
{
    int error = cw_api_check_started();
    uint32_t index, text = 0;

    if (error != CUWARDEN_OK)
        return error;
    if (name == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "the name of a block is NULL; \"\" takes one away");
    index = find(address);
    if (index == 0)
        return CUWARDEN_NOT_FOUND;
    if (name[0] != '\0' && (text = cw_owner_text(name)) == 0)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST, "no room for the name '%s': there are %u already",
                           name, CW_OWNER_NAMES);
    cw_owner_call(index, text);
    return CUWARDEN_OK;
}

void cw_api_block_own(uint32_t block, uint32_t name)
{
    if (block == 0)
        return;
    cw_owner_keep(block);
    cw_owner_call(block, name);
}

/* ---- all ---- */

int cw_api_mark(uint64_t *out)
{
    int error = cw_api_check_active();

    if (error == CUWARDEN_OK)
        *out = cw_session_is_armed() ? cw_owner_mark() : 1;
    return error;
}

struct wanted {
    struct cuwarden_filter filter;
    uint16_t tag;
};

static int is_wanted(const struct wanted *wanted, const struct cw_api_block *read)
{
    const struct cuwarden_filter *filter = &wanted->filter;

    return read->block.id >= filter->since && read->block.age_ns >= filter->older_than_ns &&
           (filter->device == CUWARDEN_ALL_DEVICES || filter->device == read->block.device) &&
           (filter->tag == NULL || cw_site_own(cw_site_at(read->site))->tag == wanted->tag);
}

static int prepare(struct wanted *wanted)
{
    const struct cuwarden_filter *filter = &wanted->filter;
    uint8_t first, end;

    if (filter->tag != NULL && filter->tag[0] != '\0' &&
        (wanted->tag = cw_tag_name_find(0, filter->tag)) == 0)
        return cw_api_fail(CUWARDEN_NOT_FOUND, "nobody has used a tag '%s'", filter->tag);
    return cw_api_check_device(filter->device, &first, &end);
}

static void visit(const struct wanted *wanted, cuwarden_block_fn fn, void *arg)
{
    uint32_t count = cw_arena_count(&cw_session.arena, CW_TABLE_BLOCK);
    struct cw_api_block read;

    for (uint32_t i = 1; i < count; i++)
        if (cw_api_block_read(i, &read) == 0 && is_wanted(wanted, &read) &&
            cw_api_block_tell(&read, fn, arg) != 0)
            return;
}

int cw_api_visit(const struct cuwarden_filter *filter, size_t size, cuwarden_block_fn fn, void *arg)
{
    struct wanted wanted = {.filter = {.device = CUWARDEN_ALL_DEVICES}};
    int error = cw_api_check_active();

    if (error != CUWARDEN_OK)
        return error;
    if (fn == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "a visit needs a function to call; this one is NULL");
    if (filter != NULL)
        cw_api_give(&wanted.filter, sizeof(wanted.filter), filter, size);
    error = prepare(&wanted);
    if (error == CUWARDEN_OK && cw_session_is_armed())
        visit(&wanted, fn, arg);
    return error;
}
