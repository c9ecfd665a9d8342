/* SPDX-License-Identifier: MIT */
/*
 * Reading live files repeatedly: sums match the report, rates are those between two refreshes, and
 * files that change, disappear or are damaged do no harm.
 */
#include "cli/fleet/fleet.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdint.h>

#include "cli/fleet/fleet_sites.h"
#include "live_fixture.h"
#include "report/snapshot/snapshot.h"

static char directory[] = "/tmp/cuwarden-fleet.XXXXXX", path[64];
static const char *const there[] = {directory};
static struct cw_fleet_choice choice = {.directory = (const char **)there, .directories = 1};
static struct cw_fleet fleet;
static uint32_t site, other;
static int locked = -1;
static uint64_t live; /* on device 1 */

static void store(size_t len)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    cr_assert(fd >= 0);
    cr_assert_eq(pwrite(fd, fixture.arena.header, len, 0), (ssize_t)len);
    cr_assert_eq(ftruncate(fd, (off_t)len), 0);
    close(fd);
}

static void store_all(void)
{
    store(fixture.arena.header->size);
}

/* The process counts as running while `locked` is open. */
static void lock(void)
{
    struct flock how = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    locked = open(path, O_RDWR);
    cr_assert_eq(fcntl(locked, F_OFD_SETLK, &how), 0);
}

static void setup(void)
{
    uint32_t module, outer, inner;

    fixture_create();
    fixture.arena.header->exit_kind = CW_EXIT_RUNNING;
    module = fixture_own_module();
    outer = fixture_frame(0, module, 16);
    inner = fixture_frame(outer, module, 32);
    site = fixture_site(inner, "cudaMalloc", CW_KIND_DEVICE, 1);
    other = fixture_site(outer, "cudaHostAlloc", CW_KIND_PINNED, 1);
    fixture_alloc(site, 1000, 10, FIXTURE_MS);
    fixture_free(site, 1000, 4);
    fixture_alloc(other, 500, 1, FIXTURE_MS);
    fixture_device(1, "Fake");
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->hits = 3;
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->misses = 1;
    fixture_scarce(1, site);
    live = fixture.arena.header->device[1].live_bytes;
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/4711-1795000000-00ff.live", directory);
    store_all();
    lock();
}

static void teardown(void)
{
    cw_fleet_free(&fleet);
    close(locked);
    unlink(path);
    rmdir(directory);
    fixture_destroy();
}

TestSuite(fleet, .init = setup, .fini = teardown);

static void look(void)
{
    cr_assert_eq(cw_fleet_look(&fleet, &choice), 0);
}

static const struct cw_fleet_device *on(uint32_t ordinal)
{
    for (uint32_t i = 0; fleet.count == 1 && i < fleet.process[0]->devices; i++) {
        if (fleet.process[0]->device[i].ordinal == ordinal)
            return &fleet.process[0]->device[i];
    }
    cr_assert_fail("no device %u", ordinal);
    return NULL;
}

Test(fleet, sums_up_as_the_report_does)
{
    struct cw_view view = fixture_view();
    struct cw_snapshot *snapshot = calloc(1, sizeof(*snapshot));

    look();
    cr_assert_eq(fleet.count, 1);
    cr_assert_eq(fleet.unreadable, 0);
    cr_assert_eq(fleet.process[0]->pid, 4711);
    cr_assert_eq(fleet.process[0]->state, CW_FLEET_RUNNING);
    cr_assert_str_eq(fleet.process[0]->command, "./victim --size 3");
    cr_assert_eq(cw_snapshot_init(snapshot, &view, 0), 0);
    for (unsigned i = 1; i < CW_DEVICES; i += CW_DEVICE_HOST - 1) {
        const struct cw_fleet_device *device = on(i);

        cr_assert_eq(device->live, cw_view_device_live(&view, i).live);
        cr_assert_eq(device->allocs, snapshot->device[i].sums.allocs);
        cr_assert_eq(device->frees, snapshot->device[i].sums.frees);
        cr_assert_eq(device->failed, snapshot->device[i].sums.failed);
        cr_assert_eq(device->peak, snapshot->device[i].peak_bytes);
        cr_assert_eq(device->hits, snapshot->pool.device[i].sums.hits);
        cr_assert_eq(device->misses, snapshot->pool.device[i].sums.misses);
        cr_assert_eq(device->idle, snapshot->pool.device[i].sums.idle_bytes);
        cr_assert_eq(device->limit, snapshot->pressure.device[i].limit);
        cr_assert_eq(device->level, snapshot->pressure.device[i].level);
        for (unsigned k = 0; k < CW_CAUSE_COUNT; k++)
            cr_assert_eq(device->ooms[k], snapshot->pressure.device[i].refused[k]);
    }
    cr_assert_eq(on(1)->kind[CW_KIND_DEVICE].live_bytes, 6000);
    cr_assert_eq(on(CW_DEVICE_HOST)->kind[CW_KIND_PINNED].live_bytes, 500);
    cr_assert_str_eq(on(1)->name, "Fake");
    cr_assert_gt(on(1)->limit, 0);
    cw_snapshot_fini(snapshot);
    free(snapshot);
}

Test(fleet, rates_are_between_two_looks)
{
    look();
    cr_assert_float_eq(on(1)->hit_share, 0.75, 1e-9);
    fleet.process[0]->looked_ns -= 10000 * FIXTURE_MS;
    fixture_alloc(site, 1000, 5, FIXTURE_MS);
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->misses = 9;
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->hits = 1;
    store_all();
    look();
    cr_assert_eq(on(1)->live, live + 5000);
    /* Five in ten seconds, plus the duration of the test. */
    cr_assert_gt(on(1)->alloc_rate, 0.05);
    cr_assert_leq(on(1)->alloc_rate, 0.5);
    cr_assert_eq(on(CW_DEVICE_HOST)->alloc_rate, 0);
    cr_assert_float_eq(on(1)->hit_share, 0.1, 1e-9);
    look();
    cr_assert_eq(on(1)->alloc_rate, 0);
    cr_assert_lt(on(1)->hit_share, 0); /* no requests to the pool */
}

/* More sites than were reserved at the first refresh. */
Test(fleet, follows_a_file_that_grows)
{
    size_t before = fixture.arena.header->size;

    look();
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t stack = fixture_frame(0, 1, 4096 + i * 16);

        fixture_alloc(fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 1), 100, 1, FIXTURE_MS);
    }
    cr_assert_gt(fixture.arena.header->size, 2 * before);
    store_all();
    look();
    cr_assert_eq(on(1)->live, live + 20000 * 100);
    cr_assert_eq(on(1)->kind[CW_KIND_DEVICE].live_bytes, 6000 + 20000 * 100);
}

Test(fleet, tells_the_dead_and_forgets_those_that_went)
{
    look();
    cr_assert_gt(on(1)->alloc_rate, 0);
    close(locked);
    fixture_alloc(site, 1000, 5, FIXTURE_MS);
    store_all();
    look();
    cr_assert_eq(fleet.process[0]->state, CW_FLEET_DIED);
    cr_assert_eq(on(1)->live, live + 5000);
    cr_assert_eq(on(1)->alloc_rate, 0);
    unlink(path);
    look();
    cr_assert_eq(fleet.count, 0);
    fixture.arena.header->exit_kind = CW_EXIT_EXIT;
    store_all();
    look();
    cr_assert_eq(fleet.process[0]->state, CW_FLEET_ENDED);
}

Test(fleet, chooses_by_process)
{
    uint32_t nobody[] = {4712}, both[] = {4712, 4711};
    struct cw_fleet_choice by_pid = choice;

    by_pid.pid = nobody;
    by_pid.pids = 1;
    cr_assert_eq(cw_fleet_look(&fleet, &by_pid), 0);
    cr_assert_eq(fleet.count, 0);
    by_pid.pid = both;
    by_pid.pids = 2;
    cr_assert_eq(cw_fleet_look(&fleet, &by_pid), 0);
    cr_assert_eq(fleet.count, 1);
}

static uint32_t random_state = 12345;

static uint32_t any(uint32_t below)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)random_state * below) >> 32);
}

/* Whatever the file contains, it is read, or skipped with a reason. */
Test(fleet, survives_files_that_are_damaged)
{
    size_t size = fixture.arena.header->size;
    char *whole = malloc(size), *bytes = (char *)fixture.arena.header;
    unsigned read = 0, refused = 0;

    memcpy(whole, bytes, size);
    for (int round = 0; round < 1500; round++) {
        struct cw_fleet_sites sites = {.count = 0};
        char why[256];

        for (int i = 0; i < 8; i++) /* mostly in the descriptions of tables and chunks */
            bytes[any(i % 2 ? 4096 : (uint32_t)size)] = (char)any(256);
        store(round % 3 ? size : any((uint32_t)size + 1));
        memcpy(bytes, whole, size);
        look();
        if (fleet.count == 1)
            read++;
        else
            refused++;
        cr_assert_eq(fleet.count + fleet.unreadable, 1);
        (void)cw_fleet_sites_look(&sites, path, 1, 10, why, sizeof(why));
        cw_fleet_sites_free(&sites);
        if (round % 5 == 0) /* otherwise the next refresh uses this one's copy */
            cw_fleet_free(&fleet);
    }
    cr_assert_gt(read, 100);
    cr_assert_gt(refused, 100);
    free(whole);
}

Test(fleet, unreadable_directory_is_not_an_empty_one)
{
    const char *both[] = {path,
                          directory}; /* a file in place of a directory: root reads any other */
    struct cw_fleet_choice two = {.directory = both, .directories = 2};

    cr_assert_eq(cw_fleet_look(&fleet, &two), 0);
    cr_expect_eq(fleet.count, 1);
    cr_expect_eq(fleet.unreadable, 1);
    cr_expect(fleet.has_lost);
    cr_expect(strstr(fleet.why, "cannot read '") && strstr(fleet.why, "': Not a directory"), "%s",
              fleet.why);
    look();
    cr_expect_eq(fleet.unreadable, 0);
    cr_expect_not(fleet.has_lost);
}

Test(fleet, directory_that_has_gone_has_no_files)
{
    const char *gone = path;
    struct cw_fleet_choice none = {.directory = &gone, .directories = 1};

    snprintf(path, sizeof(path), "%s/gone", directory);
    cr_assert_eq(cw_fleet_look(&fleet, &none), 0);
    cr_expect_eq(fleet.count, 0);
    cr_expect_eq(fleet.unreadable, 0);
}

static long resident_kb(void)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    cr_assert_eq(fscanf(statm, "%*s %ld", &pages), 1);
    fclose(statm);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A table that seems to fill the file, and the file has nothing there. */
Test(fleet, holes_cost_nothing)
{
    struct cw_live_header *header = fixture.arena.header;
    struct cw_live_table *sites = &header->table[CW_TABLE_SITE];
    uint64_t size = header->size, first = 1 << 17;
    long before;

    sites->first = (uint32_t)first;
    sites->chunk[0] = size;
    sites->count = (uint32_t)first;
    header->size = size + first * sites->elem_size;
    store(size);
    cr_assert_eq(truncate(path, 60 << 20), 0);
    before = resident_kb();
    look();
    cr_assert_eq(fleet.count, 1, "%s", fleet.why);
    cr_expect_lt(resident_kb() - before, 8 << 10);
    cr_assert_eq(truncate(path, (off_t)15 << 30), 0);
    cw_fleet_free(&fleet);
    look();
    cr_assert_eq(fleet.count, 0);
    cr_expect(strstr(fleet.why, "is damaged: it is 15360 MiB long"), "%s", fleet.why);
}

Test(fleet, lists_the_sites_that_hold_most)
{
    struct cw_fleet_sites sites = {.count = 0};
    const char *name[CW_FLEET_FRAMES];
    char why[256];
    uint32_t twin;

    for (int round = 0; round < 2; round++) {
        cr_assert_eq(cw_fleet_sites_look(&sites, path, 1, 10, why, sizeof(why)), 0);
        cr_assert_geq(sites.count, 1);
        cr_assert_eq(sites.site[0].live_bytes, round == 0 ? 6000u : 6700u);
        cr_assert_eq(sites.site[0].live_blocks, round == 0 ? 6u : 7u);
        cr_assert_str_eq(cw_fleet_sites_api(&sites, &sites.site[0]), "cudaMalloc");
        cr_assert_eq(cw_fleet_sites_stack(&sites, &sites.site[0], name), 2);
        cr_assert_not_null(strstr(name[0], "+0x20"), "%s", name[0]);
        cr_assert_not_null(strstr(name[1], "+0x10"), "%s", name[1]);
        /* Another thread's record of the same call site. */
        twin = fixture_site(fixture_site_at(site)->stack, "cudaMalloc", CW_KIND_DEVICE, 1);
        fixture_site_at(twin)->api = fixture_site_at(site)->api;
        fixture_alloc(twin, 700, 1, FIXTURE_MS);
        store_all();
    }
    cr_assert_eq(cw_fleet_sites_look(&sites, path, CW_DEVICE_HOST, 10, why, sizeof(why)), 0);
    cr_assert_eq(sites.count, 1);
    cr_assert_eq(sites.site[0].live_bytes, 500);
    unlink(path);
    cr_assert_eq(cw_fleet_sites_look(&sites, path, 1, 10, why, sizeof(why)), -1);
    cr_assert_str_eq(why, "cannot be read: No such file or directory");
    cw_fleet_sites_free(&sites);
}
