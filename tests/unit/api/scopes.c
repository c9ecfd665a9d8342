/* SPDX-License-Identifier: MIT */
/* Scopes and batches: what the end of a scope frees and what it leaves, and what is refused. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/blocks.h"
#include "api/scopes.h"
#include "api/tags.h"
#include "api_fixture.h"
#include "core_file.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"
#include "core/process/host.h"
#include "core/process/thread.h"

static unsigned frees, depth_of_free;
static int code_of_free;

static int free_block(enum cw_kind kind, uint64_t address)
{
    frees++;
    depth_of_free = cw_thread.depth;
    cr_expect_eq(kind, CW_KIND_DEVICE);
    if (code_of_free == 0)
        pool_put(address);
    return code_of_free;
}

static void setup(void)
{
    static struct cw_host_ops host;

    host = *cw_host;
    host.free_block = free_block;
    cw_host_set(&host);
    api_setup();
}

TestSuite(scopes, .init = setup);

static struct cuwarden_freed end(void)
{
    struct cuwarden_freed freed = {.blocks = 99};

    API_WORKS(cw_api_scope_end(&freed, sizeof(freed)));
    return freed;
}

static const void *at(uint64_t key)
{
    return (const void *)(uintptr_t)key;
}

Test(scopes, free_what_their_thread_has_left_and_nobody_keeps)
{
    struct cuwarden_freed freed;
    uint64_t kept;

    pool_get(1000);
    API_WORKS(cw_api_scope_begin("outer"));
    kept = pool_get(2000);
    API_WORKS(cw_api_keep(at(kept)));
    pool_get(3000);
    API_WORKS(cw_api_scope_begin(NULL));
    pool_put(pool_get(100000));
    pool_get(5000);
    freed = end();
    cr_expect(freed.blocks == 1 && freed.bytes == 5000 && depth_of_free == 0);
    freed = end();
    cr_expect(freed.blocks == 1 && freed.bytes == 3000 && freed.left_blocks == 0);
    cr_expect_eq(frees, 2);
    API_FAILS(CUWARDEN_UNBALANCED, "no scope to end", cw_api_scope_end(NULL, 0));
    cr_expect_eq(core_live(0), 3000);
}

Test(scopes, leave_what_the_driver_does_not_free)
{
    struct cuwarden_freed freed;

    API_WORKS(cw_api_scope_begin("refused"));
    pool_get(3000);
    code_of_free = 1;
    freed = end();
    cr_expect(freed.blocks == 0 && freed.left_blocks == 1 && freed.left_bytes == 3000);
}

static void leave_open(unsigned id)
{
    static unsigned slot = 2;

    (void)id;
    fake_set_current(pooled_context(slot++, 0));
    API_FAILS(CUWARDEN_UNBALANCED, "no scope to end", cw_api_scope_end(NULL, 0));
    API_WORKS(cw_api_scope_begin("forgotten"));
    pool_get(4000);
}

Test(scopes, of_a_thread_that_ends_go_with_it_and_free_nothing)
{
    API_WORKS(cw_api_scope_begin("main"));
    for (int i = 0; i < 2; i++)
        run_threads(1, leave_open);
    cr_expect(end().blocks == 0 && frees == 0);
    cr_expect_eq(core_live(0), 8000);
}

Test(scopes, are_16_deep_at_most)
{
    for (int i = 0; i < 16; i++)
        API_WORKS(cw_api_scope_begin("deep"));
    API_FAILS(CUWARDEN_INVALID, "in 16 scopes already", cw_api_scope_begin("deeper"));
    for (int i = 0; i < 16; i++)
        API_WORKS(cw_api_scope_end(NULL, 0));
    API_FAILS(CUWARDEN_UNBALANCED, "no scope to end", cw_api_scope_end(NULL, 0));
}

Test(scopes, keep_live_blocks_alone)
{
    uint64_t key = pool_get(3000);

    API_FAILS(CUWARDEN_NOT_FOUND, "no live block begins at 0x0", cw_api_keep(NULL));
    API_FAILS(CUWARDEN_NOT_FOUND, "no live block", cw_api_keep(at(key + 1)));
    pool_put(key);
    API_FAILS(CUWARDEN_NOT_FOUND, "no live block", cw_api_keep(at(key)));
}

Test(scopes, and_batches_do_not_count_for_each_other)
{
    API_WORKS(cw_api_batch_begin());
    API_FAILS(CUWARDEN_UNBALANCED, "no scope to end", cw_api_scope_end(NULL, 0));
    API_WORKS(cw_api_batch_begin());
    API_WORKS(cw_api_batch_end());
    API_WORKS(cw_api_batch_end());
    API_FAILS(CUWARDEN_UNBALANCED, "no batch to end", cw_api_batch_end());
}

static void setup_file(void)
{
    core_on_file();
    setup();
}

TestSuite(scopes_in_file, .init = setup_file, .fini = core_remove_file);

Test(scopes_in_file, free_the_same_when_owners_are_written_over)
{
    static const int bytes[] = {0, 0x41, 0xff}; /* no id, none kept; a large id; all kept */
    struct cuwarden_freed freed;

    pool_get(1000);
    for (unsigned i = 0; i < 3; i++) {
        API_WORKS(cw_api_scope_begin("written over"));
        API_WORKS(cw_api_keep(at(pool_get(2000))));
        cw_api_block_own(cw_tracker_find(CW_SPACE_ADDRESS, pool_get(4000)),
                         cw_owner_text("the library's"));
        pool_get(3000);
        core_scribble(CW_TABLE_OWNER, bytes[i]);
        freed = end();
        cr_expect(freed.blocks == 1 && freed.bytes == 3000 && freed.left_blocks == 0,
                  "0x%02x: freed %ju bytes", (unsigned)bytes[i], (uintmax_t)freed.bytes);
    }
}

TestSuite(early_scopes, .init = api_setup_early);

Test(early_scopes, work_before_the_first_call_of_cuda)
{
    API_WORKS(cw_api_scope_begin("early"));
    cr_expect_eq(end().blocks, 0);
    API_FAILS(CUWARDEN_NOT_STARTED, "cudaFree(0) is enough", cw_api_keep(&frees));
    core_options()->mode = CW_MODE_OFF;
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_scope_begin("early"));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_scope_end(NULL, 0));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_batch_begin());
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_batch_end());
}

/* ---- somebody writes over the live file ---- */

static char rules[] = "/tmp/cuwarden-unit-XXXXXX";

static void setup_with_file(void)
{
    int fd = mkstemp(rules);

    cr_assert(fd >= 0 && write(fd, "tag:^cache$\n", 12) == 12 && close(fd) == 0);
    strcpy(core_options()->suppressions, rules);
    strcpy(core_options()->live, "/tmp");
    setup();
    cw_backing_remove(&core_arena->backing);
}

static void remove_rules(void)
{
    cr_assert_eq(unlink(rules), 0);
}

/* A scope with a block of a cache and one of the program, and what is written before it ends. */
static void expect_the_programs_freed(void (*scribble)(void))
{
    struct cuwarden_freed freed;

    API_WORKS(cw_api_scope_begin("first use"));
    API_WORKS(cw_api_tag_push("cache"));
    pool_get(3000);
    API_WORKS(cw_api_tag_pop());
    pool_get(5000);
    scribble();
    freed = end();
    cr_expect(freed.blocks == 1 && freed.bytes == 5000, "freed %ju blocks",
              (uintmax_t)freed.blocks);
    cr_expect(freed.left_blocks == 1 && freed.left_bytes == 3000);
}

static void scribble_nothing(void)
{
}

static void scribble_names(void)
{
    core_scribble(CW_TABLE_TAG, 0);
    core_scribble(CW_TABLE_TEXT, 0);
}

static void scribble_sites(void)
{
    core_scribble(CW_TABLE_SITE, 0);
}

Test(scopes_file, leave_what_a_rule_is_about, .init = setup_with_file, .fini = remove_rules)
{
    expect_the_programs_freed(scribble_nothing);
}

Test(scopes_file, free_the_same_when_names_are_written_over, .init = setup_with_file,
     .fini = remove_rules)
{
    expect_the_programs_freed(scribble_names);
}

Test(scopes_file, free_the_same_when_sites_are_written_over, .init = setup_with_file,
     .fini = remove_rules)
{
    expect_the_programs_freed(scribble_sites);
}

/* ---- without memory ---- */

static size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    cr_assert(file != NULL && fscanf(file, "%zu", &pages) == 1 && fclose(file) == 0);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Frees the program's 5000 bytes, or nothing: never what the rule is about. */
Test(scopes_file, without_memory_to_tell_whose_they_are_free_none, .init = setup_with_file,
     .fini = remove_rules)
{
    struct rlimit limit, none;
    unsigned tries = 0;
    uint64_t freed = 0;

    cr_assert_eq(getrlimit(RLIMIT_AS, &none), 0);
    for (size_t more = 0; freed == 0; more += 64 * KIB, tries++) {
        API_WORKS(cw_api_scope_begin("first use"));
        API_WORKS(cw_api_tag_push("cache"));
        pool_get(3000);
        API_WORKS(cw_api_tag_pop());
        pool_get(5000);
        limit = (struct rlimit){address_space() + more, none.rlim_max};
        cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
        freed = end().bytes;
        cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
        cr_assert(freed == 0 || freed == 5000, "with %zu KiB more it frees %ju bytes", more / KIB,
                  (uintmax_t)freed);
    }
    cr_expect_gt(tries, 10);
}
