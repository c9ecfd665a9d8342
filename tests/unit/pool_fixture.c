/* SPDX-License-Identifier: MIT */
/* See pool_fixture.h. */
#include "pool_fixture.h"

#include <sched.h>
#include <stdio.h>

#include "core/excess.h"
#include "core/relief.h"
#include "core/request.h"
#include "core/session.h"
#include "core/site.h"
#include "core/tally.h"
#include "core/tracker.h"

void pool_start(enum cw_free_sync free_sync)
{
    core_options()->free_sync = free_sync;
    core_arm_pool();
    fake_set_current(pool_context(0, 0));
}

uint64_t pool_context(unsigned slot, unsigned device)
{
    uint64_t handle = FIRST_CONTEXT + slot;

    fake_context(slot, handle, 0, device);
    cw_context_created(handle, device);
    return handle;
}

uint32_t pool_index(uint64_t handle)
{
    uint8_t device;

    return cw_context_of(handle, &device);
}

void pool_end_context(uint64_t handle, enum cw_context_outcome outcome)
{
    struct cw_context_ending ending;
    struct fake_context *context = fake_context_of(handle);

    cw_context_end_begin(pool_index(handle), &ending);
    if (outcome != CW_CONTEXT_KEPT)
        fake_context_end(handle);
    if (outcome == CW_CONTEXT_RENEWED)
        fake_context((unsigned)(context - fake_driver.context), handle, 0, context->device);
    cw_context_end_finish(&ending, outcome);
}

/* One text, also for threads that are the first at the same time: two would be two sites. */
static uint32_t api(void)
{
    static _Atomic uint32_t text;
    uint32_t known = text;

    if (known == 0 || cw_session.arena.header->table[CW_TABLE_TEXT].count <= known) {
        uint32_t made = cw_site_text("cuMemAlloc");

        if (atomic_compare_exchange_strong(&text, &known, made))
            known = made;
    }
    return known;
}

static enum cw_kind kind_of(enum cw_pool_class class)
{
    return class == CW_POOL_DEVICE    ? CW_KIND_DEVICE
           : class == CW_POOL_PITCHED ? CW_KIND_PITCHED
                                      : CW_KIND_PINNED;
}

uint64_t pool_alloc(enum cw_pool_class class, uint64_t bytes, int *out_served)
{
    struct cw_pool_request pool = {.class = class, .bytes = bytes};
    struct cw_request request = {.space = CW_SPACE_ADDRESS, .kind = kind_of(class), .bytes = bytes};
    uint64_t key = cw_pool_serve(&pool, api()), handle = 0, given;
    uint8_t device;

    if (out_served != NULL)
        *out_served = key != 0;
    if (key != 0)
        return key;
    given = pool.ask ? pool.ask : bytes;
    fake_driver_ops.context_current(&handle);
    request.key = fake_take(handle, request.kind, given);
    cw_pool_granted(&pool, given, 0, &request);
    request.context = cw_context_current(&device);
    request.device = request.kind == CW_KIND_PINNED ? CW_DEVICE_HOST : device;
    if (request.held < bytes)
        request.held = bytes;
    cw_request_granted(&request, api());
    return request.key;
}

uint64_t pool_get(uint64_t bytes)
{
    return pool_alloc(CW_POOL_DEVICE, bytes, NULL);
}

int pool_hits(enum cw_pool_class class, uint64_t bytes, uint64_t *out_key)
{
    struct cw_pool_request pool = {.class = class, .bytes = bytes};
    uint64_t key = cw_pool_serve(&pool, api());

    if (out_key != NULL && key != 0)
        *out_key = key;
    if (key == 0)
        cw_pool_cancel(&pool);
    return key != 0;
}

enum cw_pool_free pool_free(enum cw_pool_class class, uint64_t key, int *out_wait)
{
    struct cw_request_free freed;
    int unused;
    enum cw_pool_free how =
        cw_pool_free(class >= CW_POOL_HOST ? CW_POOL_FREES_HOST : CW_POOL_FREES_DEVICE, key, api(),
                     &freed, out_wait ? out_wait : &unused);

    if (how == CW_POOL_KEPT)
        return how;
    if (how == CW_POOL_DRIVER && fake_give(key) == 0)
        cw_request_free_end(&freed, api(), CW_FREE_DONE, 0);
    else
        cw_request_free_end(&freed, api(), CW_FREE_REFUSED, 1);
    return how;
}

enum cw_pool_free pool_put(uint64_t key)
{
    return pool_free(CW_POOL_DEVICE, key, NULL);
}

uint64_t pool_reclaim(uint8_t device)
{
    uint64_t bytes = cw_relief_all(device);

    return bytes + cw_relief_rest(device);
}

void pool_sync(uint64_t handle)
{
    uint64_t ticket = cw_pool_sync_begin();

    fake_finish(handle);
    sched_yield(); /* what others submit and free here is not waited for */
    cw_pool_sync_end(pool_index(handle), ticket);
}

/* ---- what happened ---- */

static uint32_t count_of(enum cw_table table)
{
    return cw_session.arena.header->table[table].count;
}

struct pool_sums pool_sums(void)
{
    struct pool_sums sums = {0};

    for (uint32_t i = 1; i < count_of(CW_TABLE_BUCKET); i++) {
        const struct cw_live_bucket *bucket = cw_arena_at(&cw_session.arena, CW_TABLE_BUCKET, i);

        sums.hits += bucket->hits;
        sums.misses += bucket->misses;
        sums.asked += bucket->asked_bytes;
        sums.given += bucket->given_bytes;
        sums.kept += bucket->kept;
        sums.released += bucket->released;
        sums.released_bytes += bucket->released_bytes;
        sums.idle_blocks += bucket->idle_blocks;
        sums.idle_bytes += bucket->idle_bytes;
    }
    return sums;
}

uint64_t pool_bypassed(enum cw_bypass why)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < CW_DEVICES; i++)
        sum += pool_counters((uint8_t)i)->bypassed[why];
    return sum;
}

const struct cw_live_pool *pool_counters(uint8_t device)
{
    return &cw_session.arena.header->device[device].pool;
}

uint64_t pool_count(enum cw_block_state state)
{
    uint64_t count = 0;

    for (uint32_t i = 1; i < count_of(CW_TABLE_BLOCK); i++)
        count += cw_tracker_at(i)->state == state;
    return count;
}

static int expect(const char *what, uint64_t is, uint64_t wanted)
{
    if (is == wanted)
        return 0;
    fprintf(stderr, "%s: %ju instead of %ju\n", what, (uintmax_t)is, (uintmax_t)wanted);
    return -1;
}

static uint64_t excess_of_live(uint8_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 1; i < count_of(CW_TABLE_BLOCK); i++) {
        const struct cw_live_block *block = cw_tracker_at(i);

        if (block->state == CW_BLOCK_LIVE && cw_site_at(block->site)->device == device)
            sum += cw_excess_of(block);
    }
    return sum;
}

int pool_check(void)
{
    struct pool_sums sums = pool_sums();
    uint64_t blocks = 0, bytes = 0;
    int wrong = 0;

    for (uint32_t i = 1; i < count_of(CW_TABLE_BLOCK); i++) {
        const struct cw_live_block *block = cw_tracker_at(i);

        blocks += block->state == CW_BLOCK_IDLE;
        bytes += block->state == CW_BLOCK_IDLE ? block->held : 0;
    }
    for (unsigned d = 0; d < CW_MAX_DEVICES; d++)
        wrong |= expect("excess", cw_tally_excess((uint8_t)d), excess_of_live((uint8_t)d));
    return wrong | expect("blocks on their way out", pool_count(CW_BLOCK_LEAVING), 0) |
           expect("check of the tracker", (uint64_t)cw_tracker_check(), 0) |
           expect("idle blocks of the buckets", sums.idle_blocks, blocks) |
           expect("idle bytes of the buckets", sums.idle_bytes, bytes) |
           expect("blocks of the driver", fake_taken(), blocks + pool_count(CW_BLOCK_LIVE));
}
