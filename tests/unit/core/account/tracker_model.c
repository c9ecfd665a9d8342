/* SPDX-License-Identifier: MIT */
/* The tracker against a naive model, and from many threads; tracker.c has the cases. */
#include "core/account/tracker.h"

#include <criterion/criterion.h>

#include <stdio.h>

#include "core/account/index.h"
#include "core/account/site.h"
#include "core/process/thread.h"
#include "fake_driver.h"

TestSuite(tracker_model, .init = core_start);

/* ---- against a naive model ---- */

#define SITES      12
#define MODEL_KEYS 400
#define DEVICES    3 /* two devices and the host, see device_of */

static struct model {
    struct model_site {
        uint32_t site;
        unsigned device;
        int counted;
        uint64_t allocs, frees, reclaimed, blocks, bytes, peak_blocks, peak_bytes;
        uint64_t at_peak_blocks, at_peak_bytes;
    } site[SITES];
    struct model_block {
        int live;
        unsigned site;
        uint64_t bytes;
    } block[MODEL_KEYS];
    uint64_t live[DEVICES], peak[DEVICES], total, total_peak;
} model;

static uint64_t seed;

static uint8_t device_of(unsigned device)
{
    return device == 2 ? CW_DEVICE_HOST : (uint8_t)device;
}

/* Half of the sites belong to this thread, half to none. */
static void make_model(void)
{
    static const enum cw_kind kinds[] = {CW_KIND_DEVICE, CW_KIND_ASYNC, CW_KIND_EXTERNAL};
    char api[16];

    for (unsigned i = 0; i < SITES; i++) {
        struct model_site *site = &model.site[i];
        enum cw_kind kind = kinds[i / DEVICES % 3];

        site->device = i % DEVICES;
        site->counted = kind != CW_KIND_EXTERNAL;
        snprintf(api, sizeof(api), "api %u", i);
        site->site = core_site(api, kind, device_of(site->device));
        if (i % 2)
            site->site = cw_site_shared(site->site);
    }
}

static void model_peaks(unsigned device)
{
    if (model.total > model.total_peak)
        model.total_peak = model.total;
    if (model.live[device] <= model.peak[device])
        return;
    model.peak[device] = model.live[device];
    for (unsigned i = 0; i < SITES; i++)
        if (model.site[i].device == device) {
            model.site[i].at_peak_blocks = model.site[i].blocks;
            model.site[i].at_peak_bytes = model.site[i].bytes;
        }
}

static void model_insert(unsigned key, unsigned site_index, uint64_t bytes)
{
    struct model_site *site = &model.site[site_index];

    model.block[key] = (struct model_block){.live = 1, .site = site_index, .bytes = bytes};
    site->allocs++;
    site->blocks++;
    site->bytes += bytes;
    if (site->blocks > site->peak_blocks)
        site->peak_blocks = site->blocks;
    if (site->bytes > site->peak_bytes)
        site->peak_bytes = site->bytes;
    if (!site->counted)
        return;
    model.live[site->device] += bytes;
    model.total += bytes;
    model_peaks(site->device);
}

static void model_drop(unsigned key, enum cw_free_result result)
{
    struct model_block *block = &model.block[key];
    struct model_site *site = &model.site[block->site];

    if (result == CW_FREE_REFUSED)
        return;
    block->live = 0;
    site->blocks--;
    site->bytes -= block->bytes;
    if (result == CW_FREE_RECLAIMED)
        site->reclaimed++;
    else
        site->frees++;
    if (!site->counted)
        return;
    model.live[site->device] -= block->bytes;
    model.total -= block->bytes;
}

static void expect_site_as_in_model(const struct model_site *site)
{
    struct cw_site_sums sums = core_sums(site->site);
    uint64_t blocks, bytes;
    struct cw_view view;

    cr_assert_eq(sums.allocs, site->allocs);
    cr_assert_eq(sums.frees, site->frees);
    cr_assert_eq(sums.reclaimed, site->reclaimed);
    cr_assert_eq(sums.live_blocks, site->blocks);
    cr_assert_eq(sums.live_bytes, site->bytes);
    cr_assert_eq(sums.peak_blocks, site->peak_blocks);
    cr_assert_eq(sums.peak_bytes, site->peak_bytes);
    if (!site->counted)
        return;
    cw_arena_view(core_arena, &view);
    cw_view_site_at_peak(&view, cw_site_at(site->site), &blocks, &bytes);
    cr_assert_eq(blocks, site->at_peak_blocks);
    cr_assert_eq(bytes, site->at_peak_bytes);
}

static void expect_as_in_model(void)
{
    for (unsigned i = 0; i < SITES; i++)
        expect_site_as_in_model(&model.site[i]);
    for (unsigned i = 0; i < DEVICES; i++) {
        cr_assert_eq(core_live(device_of(i)), model.live[i]);
        cr_assert_eq(core_header()->device[device_of(i)].peak_bytes, model.peak[i]);
    }
    cr_assert_eq(core_live_total(), model.total);
    cr_assert_eq(core_header()->peak_bytes, model.total_peak);
    cr_assert_eq(core_check(), 0);
}

static void drop_random(unsigned key)
{
    uint64_t random = next_random(&seed) % 8;
    enum cw_free_result result = random == 0   ? CW_FREE_REFUSED
                                 : random == 1 ? CW_FREE_RECLAIMED
                                               : CW_FREE_DONE;
    uint32_t block = cw_tracker_take(CW_SPACE_ADDRESS, key + 1);

    if (block == 0)
        return; /* the model says so at the next comparison */
    cw_tracker_finish(block, result);
    model_drop(key, result);
}

static void operate(unsigned insert_percent)
{
    uint64_t random = next_random(&seed);
    unsigned key = random % MODEL_KEYS, site = (random >> 16) % SITES;
    uint64_t bytes = (random >> 32) % 5000;

    if (model.block[key].live) {
        if ((random >> 48) % 100 >= insert_percent)
            drop_random(key);
    } else if ((random >> 48) % 100 < insert_percent) {
        core_put(model.site[site].site, key + 1, bytes);
        model_insert(key, site, bytes);
    }
}

/* All of these frees are another thread's than the allocations. */
static void drop_some(unsigned id)
{
    (void)id;
    for (unsigned i = 0; i < 60; i++) {
        unsigned key = next_random(&seed) % MODEL_KEYS;

        if (model.block[key].live)
            drop_random(key);
    }
}

CoreTest(tracker_model, agrees_with_a_naive_one_over_200000_random_operations)
{
    static const unsigned insert_percent[] = {90, 50, 15, 70, 40, 95, 5};

    make_model();
    for (unsigned i = 0; i < 200000; i++) {
        operate(insert_percent[i / 5000 % 7]);
        if (i % 5000 == 0)
            run_threads(1, drop_some);
        if (i % 97 == 0)
            expect_as_in_model();
    }
    expect_as_in_model();
    cr_expect_eq(core_header()->lost_blocks, 0u);
}

/* ---- many threads ---- */

#define THREADS    8
#define ROUNDS     20000
#define OWN_KEYS   64
#define MAIL_SLOTS 256

static _Atomic uint64_t mail[MAIL_SLOTS]; /* keys that anybody may free */
static _Atomic uint64_t inserted, finished, wrong;

static void free_key(uint64_t key, enum cw_free_result result)
{
    uint32_t block = cw_tracker_take(CW_SPACE_ADDRESS, key);

    if (block == 0 || cw_tracker_at(block)->key != key) {
        wrong++;
        return;
    }
    cw_tracker_finish(block, result);
    finished += result != CW_FREE_REFUSED;
}

static void hammer_once(uint64_t random, uint64_t key, uint8_t *live)
{
    static const char *const apis[] = {"a", "b", "c", "d"};

    if (*live) {
        enum cw_free_result result = random % 16 == 0   ? CW_FREE_REFUSED
                                     : random % 16 == 1 ? CW_FREE_RECLAIMED
                                                        : CW_FREE_DONE;
        uint64_t theirs;

        *live = result == CW_FREE_REFUSED;
        if (*live || random % 3) {
            free_key(key, result);
            return;
        }
        theirs = atomic_exchange(&mail[random / 64 % MAIL_SLOTS], key);
        if (theirs != 0)
            free_key(theirs, CW_FREE_DONE);
        *live = 2; /* not ours any more: a new key from now on */
        return;
    }
    if (core_put(core_site(apis[random / 16 % 4], CW_KIND_DEVICE, random / 4 % 2), key,
                 random / 256 % 4096) == 0)
        wrong++;
    inserted++;
    *live = 1;
}

static void hammer(unsigned id)
{
    uint64_t state = id, keys[OWN_KEYS], next = (uint64_t)(id + 1) << 40;
    uint8_t live[OWN_KEYS] = {0};

    for (unsigned i = 0; i < OWN_KEYS; i++)
        keys[i] = next++;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t random = next_random(&state);
        unsigned at = (random >> 56) % OWN_KEYS;

        hammer_once(random, keys[at], &live[at]);
        if (live[at] == 2) {
            live[at] = 0;
            keys[at] = next++;
        }
    }
}

static void add_up(uint64_t *out_live_blocks, uint64_t *out_allocs)
{
    uint32_t count = core_header()->table[CW_TABLE_SITE].count;

    *out_live_blocks = *out_allocs = 0;
    for (uint32_t i = 1; i < count; i++) {
        struct cw_site_sums sums = core_sums(i);

        *out_live_blocks += sums.live_blocks;
        *out_allocs += sums.allocs;
    }
}

CoreTest(tracker_model, sums_agree_after_eight_threads_were_at_work)
{
    uint64_t live_blocks, allocs;

    run_threads(THREADS, hammer);
    add_up(&live_blocks, &allocs);
    cr_expect_eq(wrong, 0u);
    cr_expect_eq(allocs, inserted);
    cr_expect_eq(live_blocks, inserted - finished);
    cr_expect_geq((uint64_t)core_header()->peak_bytes, (uint64_t)core_live_total());
}

CoreTest(tracker_model, sums_agree_with_more_threads_than_there_are_slots)
{
    uint64_t live_blocks, allocs;

    run_threads(CW_SLOTS + 16, hammer);
    add_up(&live_blocks, &allocs);
    cr_expect_eq(wrong, 0u);
    cr_expect_eq(allocs, inserted);
    cr_expect_eq(live_blocks, inserted - finished);
}

static void drop_all_or_context(unsigned id)
{
    if (id == 0)
        cw_tracker_finish_list(cw_tracker_take_context(1), CW_FREE_RECLAIMED);
    for (uint64_t i = 0; id != 0 && i < 4000; i++) {
        uint32_t block = cw_tracker_take(CW_SPACE_ADDRESS, 0x1000 + i);

        if (block != 0)
            cw_tracker_finish(block, CW_FREE_DONE);
    }
}

CoreTest(tracker_model, a_block_goes_once_by_its_free_or_with_its_context)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    for (int round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < 4000; i++)
            cw_tracker_at(core_put(site, 0x1000 + i, 8))->context = 1;
        run_threads(3, drop_all_or_context);
        cr_assert_eq(core_sums(site).live_blocks, 0u);
        cr_assert_eq(core_check(), 0);
    }
    cr_expect_eq(core_sums(site).frees + core_sums(site).reclaimed, 80000u);
}

/* As the pool frees what it does not keep: the claim comes first. */
static void claim_all_or_drop_context(unsigned id)
{
    if (id == 0)
        cw_tracker_finish_list(cw_tracker_take_context(1), CW_FREE_RECLAIMED);
    for (uint64_t i = 0; id != 0 && i < 4000; i++) {
        uint64_t key = 0x1000 + (id == 1 ? i : 3999 - i);
        uint32_t block = cw_tracker_find(CW_SPACE_ADDRESS, key);

        if (block == 0 || !cw_tracker_claim(cw_tracker_at(block), block, CW_SPACE_ADDRESS, key))
            continue;
        cw_index_remove_block(CW_SPACE_ADDRESS, key, block);
        cw_tracker_finish(block, CW_FREE_DONE);
    }
}

static void give_to_context(uint32_t block)
{
    cw_tracker_at(block)->context = 1;
    cw_tracker_at(block)->flags = CW_BLOCK_POOLED;
}

CoreTest(tracker_model, a_claimed_block_goes_once_by_its_free_or_with_its_context)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    for (int round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < 4000; i++)
            give_to_context(core_put(site, 0x1000 + i, 8));
        cr_assert_eq(core_sums(site).live_blocks, 4000u);
        cr_assert_eq(core_check(), 0); /* no record was given out twice */
        run_threads(3, claim_all_or_drop_context);
        cr_assert_eq(core_sums(site).live_blocks, 0u);
        cr_assert_eq(core_check(), 0);
    }
    cr_expect_eq(core_sums(site).frees + core_sums(site).reclaimed, 80000u);
}
