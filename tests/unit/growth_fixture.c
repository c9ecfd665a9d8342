/* SPDX-License-Identifier: MIT */
/* See growth_fixture.h. */
#include "growth_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/growth.h"
#include "core/session.h"
#include "core/site.h"

const struct cw_live_growth *live;

void growth_start(void)
{
    pool_start(CW_FREE_STRICT);
    live = &cw_session.arena.header->growth;
    fake_driver.now_ns += FAKE_MS;
}

void pass(uint64_t ns)
{
    fake_driver.now_ns += ns;
}

uint32_t new_site(enum cw_kind kind)
{
    return core_site("cuMemAlloc", kind, 0); /* its text is new each time */
}

/* As if the program had done that. */
void set_live(uint32_t site, uint64_t bytes)
{
    atomic_store_explicit(&cw_site_at(site)->total_bytes, bytes, memory_order_relaxed);
}

/* One more sample, however long that takes. */
void sample(void)
{
    uint64_t taken = live->taken;

    pass(live->period_ns);
    cw_growth_serve();
    if (live->taken != taken + 1) {
        fprintf(stderr, "no sample was taken, or several\n");
        abort();
    }
}

uint32_t series_of(uint32_t site)
{
    return cw_site_at(site)->series;
}

const struct cw_live_series *series_at(uint32_t series)
{
    return cw_arena_at(&cw_session.arena, CW_TABLE_SERIES, series);
}

uint32_t series_count(void)
{
    return cw_session.arena.header->table[CW_TABLE_SERIES].count - 1;
}

/* The slot of the newest sample. */
unsigned newest(void)
{
    unsigned slot = 0;

    for (unsigned i = 1; i < CW_SAMPLES; i++)
        if (live->t_ns[i] > live->t_ns[slot])
            slot = i;
    return slot;
}

unsigned slots_in_use(void)
{
    unsigned used = 0;

    for (unsigned i = 0; i < CW_SAMPLES; i++)
        used += live->t_ns[i] != 0;
    return used;
}

uint32_t site_with(uint64_t bytes)
{
    uint32_t site = new_site(CW_KIND_DEVICE);

    set_live(site, bytes);
    return site;
}

/* In a child. */
static int starts_anew(void)
{
    cw_session_reset();
    if (cw_deadlines.growth_ns != UINT64_MAX)
        return 1;
    core_arm_pool();
    live = &cw_session.arena.header->growth;
    if (live->taken != 0 || slots_in_use() != 0 || !live->is_on)
        return 2;
    site_with(3);
    pass(FAKE_MS);
    cw_growth_serve();
    if (live->taken != 1 || slots_in_use() != 1 || series_count() != 1)
        return 3;
    return live->period_ns == FAKE_MS ? 0 : 4;
}

int fork_and_start_anew(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(starts_anew());
    waitpid(child, &status, 0);
    return status;
}
