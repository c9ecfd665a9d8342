/* SPDX-License-Identifier: MIT */
/* Contexts come and go for days: what stays of each that has ended is small, and nothing that is
 * walked becomes longer. */
#include "core/cache/pool_context.h"

#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "pool_fixture.h"

#define WARM     100u
#define CONTEXTS 2000u
/* Of memory, for each context: its pool context, the heads of its pools, its record in the live
 * layout, which grows in steps of 1 MiB. */
#define STAYS 1024u

TestSuite(context_churn, .init = pool_setup);

static uint64_t data_bytes(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    cr_assert_not_null(statm);
    cr_assert_eq(fscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages), 1);
    fclose(statm);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A block that the pool keeps, one that waits for the other context, one that is never freed. */
static void use(enum cw_pool_class class)
{
    uint64_t handle = 0, kept, waits;

    fake_driver_ops.context_current(&handle);
    for (uint64_t bytes = 4 * KIB; bytes <= 4 * MIB; bytes *= 16) {
        kept = pool_alloc(class, bytes, NULL);
        waits = pool_alloc(class, bytes, NULL);
        pool_alloc(class, bytes, NULL);
        pool_free(class, kept, NULL);
        pool_sync(handle);
        pool_free(class, waits, NULL);
    }
}

static void use_all(void)
{
    use(CW_POOL_DEVICE);
    use(CW_POOL_PITCHED);
    use(CW_POOL_HOST);
}

/* Beside the first one. */
static void make_and_destroy(void)
{
    uint64_t handle = pooled_context(1, 0);

    fake_set_current(handle);
    use_all();
    pool_end_context(handle, CW_CONTEXT_DESTROYED);
    fake_set_current(FIRST_CONTEXT);
}

static void reset(void)
{
    use_all();
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_RENEWED);
}

static void churn(void (*once)(void))
{
    uint64_t bytes;
    uint32_t buckets;

    for (unsigned i = 0; i < WARM; i++)
        once();
    bytes = data_bytes();
    buckets = core_count(CW_TABLE_BUCKET);
    for (unsigned i = WARM; i < CONTEXTS; i++)
        once();
    cr_expect_eq(core_count(CW_TABLE_BUCKET), buckets,
                 "%u records of buckets, %u after %u contexts", core_count(CW_TABLE_BUCKET),
                 buckets, WARM);
    bytes = (data_bytes() - bytes) / (CONTEXTS - WARM);
    cr_expect_leq(bytes, STAYS, "%ju bytes stay of each context", (uintmax_t)bytes);
    cr_expect_eq(cw_pool_contexts_live, 1u);
    cr_expect_eq(pool_check(), 0);
}

Test(context_churn, of_contexts_that_are_destroyed_little_stays)
{
    churn(make_and_destroy);
}

Test(context_churn, of_contexts_that_are_reset_little_stays)
{
    churn(reset);
}
