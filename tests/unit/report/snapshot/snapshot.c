/* SPDX-License-Identifier: MIT */
/* Merging, classes, sums, the order of leaks, what was held at the peak, stable ids. */
#include "report/snapshot/snapshot.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#include "base/compiler.h"
#include "base/out.h"
#include "report_fixture.h"
#include "base/sort.h"
#include "report/leaks/leak_class.h"

static struct cw_view view;

static void take(void)
{
    view = fixture_view();
    cr_assert_eq(cw_snapshot_init(&snapshot, &view, 0), 0);
    cw_leak_classify(&snapshot, NULL, NULL);
}

TestSuite(snapshot, .init = fixture_create, .fini = report_teardown);

static int is_u32_before(const void *a, const void *b, const void *arg)
{
    (void)arg;
    return *(const uint32_t *)a < *(const uint32_t *)b;
}

Test(snapshot, sort_orders_every_length)
{
    static uint32_t values[600];

    srand(1);
    for (size_t count = 0; count < 600; count += 1 + count / 8) {
        for (size_t i = 0; i < count; i++)
            values[i] = (uint32_t)rand() % 97;
        cw_sort(values, count, sizeof(*values), is_u32_before, NULL);
        for (size_t i = 1; i < count; i++)
            cr_assert_leq(values[i - 1], values[i]);
    }
}

Test(snapshot, of_an_empty_layout_is_empty)
{
    take();
    cr_expect_eq(snapshot.sites, 0);
    cr_expect_eq(snapshot.devices, 0);
    cr_expect_eq(snapshot.summary.leak_sites, 0);
    cr_expect_eq(snapshot.duration_ns, 400 * FIXTURE_MS);
}

Test(snapshot, of_a_process_that_runs_lasts_until_now)
{
    fixture.arena.header->end_ns = 0;
    view = fixture_view();
    cr_assert_eq(cw_snapshot_init(&snapshot, &view, 900 * FIXTURE_MS), 0);
    cr_expect_eq(snapshot.duration_ns, 900 * FIXTURE_MS);
}

Test(snapshot, of_a_killed_process_lasts_up_to_what_is_known)
{
    fixture.arena.header->end_ns = 0;
    fixture.arena.header->growth.worked_ns = 700 * FIXTURE_MS;
    view = fixture_view();
    cr_assert_eq(cw_snapshot_init(&snapshot, &view, 0), 0);
    cr_expect_eq(snapshot.duration_ns, 700 * FIXTURE_MS);
}

Test(snapshot, merges_sites_of_equal_stack_api_kind_and_device)
{
    uint32_t module = fixture_module("/opt/libapp.so", 0x1000, CW_MODULE_PROGRAM);
    uint32_t stack = fixture_frame(0, module, 0x10);
    uint32_t a = fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t other_api = fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, 0);
    uint32_t b = fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t other_device = fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 1);
    const struct cw_snapshot_site *site;

    fixture_alloc(a, 100, 2, 50);
    fixture_alloc(b, 1000, 3, 20);
    fixture_free(b, 1000, 1);
    fixture_site_at(a)->extra_bytes = 7;
    fixture_site_at(a)->far_frees = 1;
    fixture_site_at(a)->far_bytes = 100;
    take();

    cr_expect_eq(snapshot.sites, 3);
    site = cw_snapshot_find(&snapshot, a);
    cr_assert_not_null(site);
    cr_expect_eq(site, cw_snapshot_find(&snapshot, b));
    cr_expect_neq(site, cw_snapshot_find(&snapshot, other_api));
    cr_expect_neq(site, cw_snapshot_find(&snapshot, other_device));
    cr_expect_eq(site->live_bytes, 2100);
    cr_expect_eq(site->live_held, 2107);
    cr_expect_eq(site->live_blocks, 3);
    cr_expect_eq(site->allocs, 5);
    cr_expect_eq(site->frees, 2);
    cr_expect_eq(site->first_ns, 20);
    cr_expect_eq(site->last_ns, 50);
    cr_expect_null(cw_snapshot_find(&snapshot, 0));
    cr_expect_null(cw_snapshot_find(&snapshot, 99));
}

Test(snapshot, tells_contexts_apart_where_a_device_had_several_at_a_time)
{
    uint32_t first = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t second = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t async = fixture_site(0, "cudaMallocAsync", CW_KIND_ASYNC, 0);
    uint32_t async_too = fixture_site(0, "cudaMallocAsync", CW_KIND_ASYNC, 0);
    uint32_t alone = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 1);
    uint32_t host = fixture_site(0, "cudaHostAlloc", CW_KIND_PINNED, CW_DEVICE_HOST);

    fixture_context(0, 0)->primary = 1;
    fixture_context(0, 1);
    fixture_context(0, 1);
    fixture_context(1, 0);
    fixture_site_at(second)->context = fixture_site_at(async_too)->context = 1;
    fixture_site_at(host)->context = 1;
    fixture_alloc(first, 100, 1, 1);
    fixture_alloc(second, 10, 2, 2);
    fixture_alloc(async, 1, 1, 3);
    fixture_alloc(async_too, 1, 1, 4);
    take();

    cr_expect_eq(cw_snapshot_find(&snapshot, first)->context, 1);
    cr_expect_eq(cw_snapshot_find(&snapshot, second)->context, 2);
    cr_expect_eq(cw_snapshot_find(&snapshot, first)->id, cw_snapshot_find(&snapshot, second)->id);
    cr_expect_eq(cw_snapshot_find(&snapshot, async), cw_snapshot_find(&snapshot, async_too));
    cr_expect_eq(cw_snapshot_find(&snapshot, async)->context, 0);
    cr_expect_eq(cw_snapshot_find(&snapshot, alone)->context, 0);
    cr_expect_eq(cw_snapshot_find(&snapshot, host)->context, 0);
    cr_expect_eq(snapshot.device[1].contexts, 0);
    cr_assert_eq(snapshot.device[0].contexts, 2);
    cr_expect_eq(snapshot.device[0].context[0].sums.live_bytes, 100);
    cr_expect_eq(snapshot.device[0].context[0].is_primary, 1);
    cr_expect_eq(snapshot.device[0].context[1].number, 2);
    cr_expect_eq(snapshot.device[0].context[1].made, 2);
    cr_expect_eq(snapshot.device[0].context[1].sums.allocs, 2);
}

Test(snapshot, id_depends_neither_on_the_address_nor_on_the_device)
{
    uint32_t low = fixture_module("/opt/libapp.so", 0x1000, CW_MODULE_PROGRAM);
    uint32_t high = fixture_module("/usr/lib/libapp.so", 0x7f0000, CW_MODULE_PROGRAM);
    uint32_t a = fixture_frame(fixture_frame(0, low, 0x20), low, 0x10);
    uint32_t b = fixture_frame(fixture_frame(0, high, 0x20), high, 0x10);
    uint32_t c = fixture_frame(fixture_frame(0, high, 0x21), high, 0x10);
    uint32_t sites[] = {
        fixture_site(a, "cudaMalloc", CW_KIND_DEVICE, 0),
        fixture_site(b, "cudaMalloc", CW_KIND_DEVICE, 1),
        fixture_site(c, "cudaMalloc", CW_KIND_DEVICE, 0),
        fixture_site(a, "cuMemAlloc", CW_KIND_DEVICE, 0),
        fixture_site(a, "cudaMalloc", CW_KIND_MANAGED, 0),
    };
    uint32_t id[5];

    take();
    for (int i = 0; i < 5; i++)
        id[i] = cw_snapshot_find(&snapshot, sites[i])->id;
    cr_expect_eq(id[0], id[1]);
    for (int i = 0; i < 5; i++)
        for (int k = i + 1; k < 5; k++)
            cr_expect((i == 0 && k == 1) || id[i] != id[k], "sites %d and %d", i, k);
}

Test(snapshot, counts_lost_and_context_destroyed_blocks_as_leaked)
{
    uint32_t lost = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t context = fixture_site(0, "cuMemAlloc", CW_KIND_DEVICE, 0);
    uint32_t both = fixture_site(0, "cudaMallocManaged", CW_KIND_MANAGED, 0);
    uint32_t clean = fixture_site(0, "cudaMallocPitch", CW_KIND_PITCHED, 0);
    uint32_t pinned = fixture_site(0, "cudaMallocHost", CW_KIND_PINNED, CW_DEVICE_HOST);

    fixture_alloc(lost, 512, 2, 1);
    fixture_alloc(context, 4096, 3, 1);
    fixture_reclaim(context, 4096, 3);
    fixture_alloc(both, 1000, 2, 1);
    fixture_reclaim(both, 1000, 1);
    fixture_alloc(clean, 8192, 4, 1);
    fixture_free(clean, 8192, 4);
    fixture_alloc(pinned, 64, 1, 1);
    take();

    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, lost)), "lost");
    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, context)), "context-destroyed");
    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, both)), "lost");
    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, clean)), "");
    cr_expect_eq(snapshot.summary.leaked_bytes, 1024 + 12288 + 2000 + 64);
    cr_expect_eq(snapshot.summary.leaked_blocks, 2 + 3 + 2 + 1);
    cr_expect_eq(snapshot.summary.leak_sites, 4);
    cr_expect_eq(snapshot.summary.allocs, 2 + 3 + 2 + 4 + 1);
    cr_expect_eq(snapshot.summary.frees, 4);
    cr_expect_eq(snapshot.device[CW_DEVICE_HOST].sums.live_bytes, 64);
    cr_expect_eq(snapshot.devices, 1);
}

Test(snapshot, leaks_are_sorted_by_bytes)
{
    static const uint64_t sizes[] = {5, 900, 30, 7000, 31};

    for (unsigned i = 0; i < 5; i++)
        fixture_alloc(fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, i), sizes[i], 1, 1);
    take();
    cr_assert_eq(snapshot.leaks.count, 5);
    for (unsigned i = 1; i < 5; i++)
        cr_expect_geq(cw_leaked_bytes(&snapshot.site[snapshot.leaks.site[i - 1]]),
                      cw_leaked_bytes(&snapshot.site[snapshot.leaks.site[i]]));
}

Test(snapshot, memory_of_libraries_is_apart_and_not_counted)
{
    uint32_t cudart = fixture_module("/opt/libcudart.so.12", 1 << 20, CW_MODULE_RUNTIME);
    uint32_t blas = fixture_module("/opt/libcublasLt.so.12", 2 << 20, CW_MODULE_PROGRAM);
    uint32_t app = fixture_module("/opt/libapp.so", 3 << 20, CW_MODULE_PROGRAM);
    uint32_t main_frame = fixture_frame(0, app, 0x10);
    uint32_t in_blas = fixture_frame(main_frame, blas, 0x20);
    uint32_t owned =
        fixture_site(fixture_frame(in_blas, cudart, 0x30), "cudaMalloc", CW_KIND_DEVICE, 0);
    /* A callback from the library into the program: the program asked. */
    uint32_t ours =
        fixture_site(fixture_frame(in_blas, app, 0x40), "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_alloc(owned, 1 << 20, 2, 1);
    fixture_alloc(ours, 512, 1, 1);
    take();
    cr_expect_eq(cw_snapshot_find(&snapshot, owned)->leak, CW_LEAK_LIBRARY);
    cr_expect_eq(cw_snapshot_find(&snapshot, ours)->leak, CW_LEAK_LOST);
    cr_expect_eq(cw_snapshot_find(&snapshot, owned)->owner, blas);
    cr_expect_eq(snapshot.summary.leaked_bytes, 512);
    cr_expect_eq(snapshot.library.bytes, 2 << 20);
    cr_expect_eq(snapshot.summary.allocs, 3);
}

Test(snapshot, imports_and_handles_are_in_no_sum)
{
    uint32_t ipc = fixture_site(0, "cuIpcOpenMemHandle", CW_KIND_IPC, 0);
    uint32_t imported = fixture_site(0, "cuMemImport", CW_KIND_IMPORTED, 0);
    uint32_t range = fixture_site(0, "cuMemAddressReserve", CW_KIND_RESERVATION, 0);

    fixture_alloc(ipc, 1 << 20, 1, 1);
    fixture_alloc(imported, 1 << 20, 1, 1);
    fixture_alloc(range, 1 << 30, 1, 1);
    fixture_site_at(range)->failed = 2;
    take();
    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, ipc)), "ipc-imported");
    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, imported)), "imported");
    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, range)), "handle");
    cr_expect_eq(snapshot.imports.count, 2);
    cr_expect_eq(snapshot.summary.leaked_blocks, 0);
    cr_expect_eq(snapshot.summary.allocs, 0);
    cr_expect_eq(snapshot.summary.failed, 0);
    cr_expect_eq(snapshot.device[0].sums.live_bytes, 0);
}

Test(snapshot, knows_what_each_site_held_when_its_device_peaked)
{
    uint32_t early = fixture_site(0, "early", CW_KIND_DEVICE, 0);
    uint32_t big = fixture_site(0, "big", CW_KIND_DEVICE, 0);
    uint32_t late = fixture_site(0, "late", CW_KIND_DEVICE, 0);
    const struct cw_snapshot_device *device = &snapshot.device[0];

    fixture_alloc(early, 100, 3, 1);
    fixture_free(early, 100, 1);
    fixture_alloc(big, 1000, 1, 7); /* the peak: 200 + 1000 */
    fixture_free(big, 1000, 1);
    fixture_alloc(late, 500, 1, 9);
    take();
    cr_expect_eq(device->peak_bytes, 1200);
    cr_expect_eq(device->peak_ns, 7);
    cr_assert_eq(device->peak_sites, 2);
    cr_expect_eq(&snapshot.site[device->peak[0]], cw_snapshot_find(&snapshot, big));
    cr_expect_eq(&snapshot.site[device->peak[1]], cw_snapshot_find(&snapshot, early));
    cr_expect_eq(snapshot.site[device->peak[1]].at_peak_blocks, 2);
    cr_expect_eq(snapshot.site[device->peak[1]].at_peak_bytes, 200);
    cr_expect_eq(cw_snapshot_find(&snapshot, late)->at_peak_bytes, 0);
}

Test(snapshot, keeps_the_ten_largest_of_a_peak_and_sums_the_rest)
{
    const struct cw_snapshot_device *device = &snapshot.device[0];
    uint64_t sum = 0;
    char api[16];

    for (unsigned i = 0; i < 25; i++) {
        cw_format(api, sizeof(api), "api%u", i);
        fixture_leak(0, api, 1 + (i * 7) % 25, 1);
    }
    take();
    cr_expect_eq(device->peak_sites, 25);
    for (unsigned i = 0; i < CW_PEAK_SITES; i++) {
        cr_expect_eq(snapshot.site[device->peak[i]].at_peak_bytes, 25 - i);
        sum += snapshot.site[device->peak[i]].at_peak_bytes;
    }
    cr_expect_eq(sum + device->peak_rest, device->peak_bytes);
}

Test(snapshot, unattributed_is_known_only_after_a_sample_and_never_negative)
{
    struct cw_live_device *device = fixture_device(0, "NVIDIA H200");

    fixture_device(1, "NVIDIA H200");
    fixture_device(2, "NVIDIA H200")->driver_total = 1000;
    device->driver_total = 1000;
    device->driver_used = 700;
    device->sample_held = 450;
    fixture.arena.header->device[2].driver_used = 10;
    fixture.arena.header->device[2].sample_held = 20;
    take();
    cr_expect_eq(snapshot.devices, 3);
    cr_expect(snapshot.device[0].sampled && !snapshot.device[1].sampled);
    cr_expect_eq(snapshot.device[0].unattributed, 250);
    cr_expect_eq(snapshot.device[2].unattributed, 0);
}

Test(snapshot, buckets_of_equal_device_kind_and_size_are_one)
{
    static const struct {
        unsigned device;
        enum cw_kind kind;
        uint64_t size;
    } records[] = {{1, CW_KIND_DEVICE, 512}, {0, CW_KIND_DEVICE, 1024}, {0, CW_KIND_PITCHED, 512},
                   {0, CW_KIND_DEVICE, 512}, {0, CW_KIND_DEVICE, 1024}, {0, CW_KIND_DEVICE, 512}};
    const struct cw_snapshot_pool *pool = &snapshot.pool;

    for (unsigned i = 0; i < CW_ARRAY_LEN(records); i++) {
        struct cw_live_bucket *bucket =
            fixture_bucket(records[i].device, records[i].kind, records[i].size);

        bucket->context = i;
        bucket->owner = (uint8_t)i;
        bucket->hits = 1u << i;
        bucket->misses = 100;
        bucket->kept = i;
        bucket->released = 1;
    }
    take();
    cr_assert_eq(pool->buckets, 4);
    cr_expect(pool->device[0].first == 0 && pool->device[0].buckets == 3);
    cr_expect(pool->device[1].first == 3 && pool->device[1].buckets == 1);
    cr_expect_eq(pool->bucket[0].size, 512);
    cr_expect_eq(pool->bucket[0].sums.hits, 8 + 32);
    cr_expect_eq(pool->bucket[1].size, 1024);
    cr_expect_eq(pool->bucket[1].sums.hits, 2 + 16);
    cr_expect_eq(pool->bucket[2].kind, CW_KIND_PITCHED);
    cr_expect_eq(pool->bucket[2].sums.hits, 4);
    cr_expect_eq(pool->device[0].sums.hits, 62);
    cr_expect_eq(pool->device[0].saved_frees, 1 + 2 + 3 + 4 + 5 - 5);
    cr_expect_eq(pool->device[1].saved_frees, 0); /* kept 0, released 1 */
    cr_expect_eq(snapshot.summary.pool_hits, 63);
    cr_expect_eq(snapshot.summary.pool_misses, 600);
}

Test(snapshot, idle_is_what_all_records_say_together_and_never_negative)
{
    static const int idle[] = {5, -3, 0};
    const struct cw_snapshot_pool *pool = &snapshot.pool;

    for (unsigned i = 0; i < CW_ARRAY_LEN(idle); i++) {
        struct cw_live_bucket *bucket = fixture_bucket(0, CW_KIND_DEVICE, 512);

        bucket->idle_blocks = (uint64_t)(int64_t)idle[i];
        bucket->idle_bytes = (uint64_t)(int64_t)(idle[i] * 512);
    }
    fixture_bucket(1, CW_KIND_DEVICE, 512)->idle_blocks = (uint64_t)-1;
    fixture_bucket(1, CW_KIND_DEVICE, 512)->idle_bytes = 512;
    take();
    cr_expect_eq(pool->device[0].sums.idle_blocks, 2);
    cr_expect_eq(pool->device[0].sums.idle_bytes, 1024);
    cr_expect_eq(pool->bucket[0].sums.idle_blocks, 2);
    cr_expect_eq(pool->device[1].sums.idle_blocks, 0);
    cr_expect_eq(pool->device[1].sums.idle_bytes, 0);
}

Test(snapshot, idle_blocks_are_held_but_neither_live_nor_leaked_nor_at_the_peak)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t plain = fixture_site(0, "cudaMallocManaged", CW_KIND_MANAGED, 0);
    const struct cw_snapshot_device *device = &snapshot.device[0];
    const struct cw_snapshot_pool_device *pool = &snapshot.pool.device[0];

    fixture_bucket(0, CW_KIND_DEVICE, 1024)->kept = 3;
    fixture_pool_alloc(site, 900, 1024, 3, 1);
    fixture_keep(site, 900, 3);
    fixture_pool_alloc(site, 800, 1024, 2, 1);
    fixture_alloc(plain, 5000, 1, 2); /* the peak: 1600 + 5000 */
    fixture_keep(site, 800, 1);
    take();
    cr_expect_eq(device->sums.live_bytes, 5800);
    cr_expect_eq(device->sums.live_held, 5000 + 1024);
    cr_expect_eq(device->sums.frees, 4);
    cr_expect_eq(snapshot.summary.leaked_bytes, 5800);
    cr_expect_eq(snapshot.summary.leaked_blocks, 2);
    cr_expect_eq(device->peak_bytes, 6600);
    cr_expect_eq(cw_snapshot_find(&snapshot, site)->at_peak_blocks, 2);
    cr_expect_eq(cw_snapshot_find(&snapshot, site)->at_peak_bytes, 1600);
    cr_expect_eq(pool->requested_bytes, 800);
    cr_expect_eq(pool->allocated_bytes, 1024);
    cr_expect_eq(cw_pool_waste(pool), 224);
    cr_expect_eq(pool->held_bytes, 5 * 1024 + 5000);
    cr_expect_eq(pool->peak_held, 5 * 1024 + 5000);
    cr_expect_eq(pool->peak_spare, 5 * 1024 + 5000 - 6600);
}

Test(snapshot, managed_memory_in_the_place_of_a_devices_counts_as_the_hosts)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_MANAGED, CW_DEVICE_HOST);

    fixture_alloc(site, 4096, 2, 1);
    take();
    cr_expect_eq(snapshot.device[CW_DEVICE_HOST].sums.live_bytes, 8192);
    cr_expect_eq(snapshot.device[CW_DEVICE_HOST].peak_sites, 1);
    cr_expect_eq(snapshot.kind[CW_KIND_MANAGED].live_bytes, 8192);
    cr_expect_eq(snapshot.summary.allocs, 2);
}

Test(snapshot, bad_buckets_are_left_out)
{
    fixture_bucket(CW_DEVICES, CW_KIND_DEVICE, 512)->hits = 1;
    fixture_bucket(0, CW_KIND_COUNT, 512)->hits = 1;
    take();
    cr_expect_eq(snapshot.pool.buckets, 0);
    cr_expect_eq(snapshot.summary.pool_hits, 0);
}

Test(snapshot, bad_records_are_left_out)
{
    uint32_t good = fixture_site(77777, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t kind = fixture_site(0, "a", CW_KIND_DEVICE, 0);
    uint32_t device = fixture_site(0, "b", CW_KIND_DEVICE, 0);

    fixture_alloc(good, 10, 1, 1);
    fixture_site_at(kind)->kind = 200;
    fixture_site_at(device)->device = 66;
    fixture_site_at(good)->api = UINT32_MAX;
    take();
    cr_expect_eq(snapshot.sites, 1);
    cr_expect_str_eq(snapshot.site[0].api, "");
    cr_expect_null(cw_snapshot_find(&snapshot, kind));
    cr_expect_null(cw_snapshot_find(&snapshot, device));
}

/* Its process was killed while it made the record: it names no API, and counts nothing. */
Test(snapshot, leaves_out_a_site_that_is_not_complete)
{
    uint32_t whole = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t unnamed = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t incomplete = cw_arena_append(&fixture.arena, CW_TABLE_SITE);

    fixture_alloc(whole, 100, 1, FIXTURE_MS);
    fixture_alloc(unnamed, 100, 1, FIXTURE_MS);
    fixture_site_at(unnamed)->api = 0; /* no room for its text: it counts */
    take();
    cr_expect_eq(snapshot.sites, 2u);
    cr_expect_null(cw_snapshot_find(&snapshot, incomplete));
}
