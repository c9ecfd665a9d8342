/* SPDX-License-Identifier: MIT */
/*
 * Frees blocks while kernels that were submitted before are still to read and write them, and takes
 * others of the same sizes at once. The driver's free waits for these kernels, so whoever gets the
 * memory next may write it in any stream; a pool that hands it out too early is caught by the
 * contents. `reuse [SEED]`; built with a C compiler alone.
 */
#include "cu.h"

#define STREAMS 8
#define ROUNDS  400
#define DELAY   200 /* microseconds */

static struct cu_kernels kernels;
static void *streams[STREAMS + 1]; /* the last is the legacy default stream */
static cu_block wrong;
static uint32_t state = 1;

static uint32_t dice(uint32_t sides)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % sides;
}

static void *any_stream(void)
{
    return streams[dice(STREAMS + 1)];
}

/* Written, read again after a while, and freed before any of it has run. */
static void use_in_one_stream(uint32_t value, uint64_t words)
{
    void *stream = any_stream();
    cu_block block;

    MUST(cu.alloc(&block, words * 4));
    MUST(cu_fill(&kernels, block, value, words, stream));
    MUST(cu_spin(&kernels, DELAY, stream));
    MUST(cu_check(&kernels, block, value, words, wrong, stream));
    MUST(cu.free_block(block));
}

/* The last write comes late: it must not fall into another's hands. */
static void write_late(uint32_t value, uint64_t words)
{
    void *stream = any_stream();
    cu_block block;

    MUST(cu.alloc(&block, words * 4));
    MUST(cu_spin(&kernels, DELAY, stream));
    MUST(cu_fill(&kernels, block, value, words, stream));
    MUST(cu.free_block(block));
}

/* Written in one stream, read in another that waits for it. */
static void hand_over(uint32_t value, uint64_t words)
{
    void *from = any_stream(), *to = any_stream(), *event;
    cu_block block;

    MUST(cu.event(&event, 2));
    MUST(cu.alloc(&block, words * 4));
    MUST(cu_spin(&kernels, DELAY, from));
    MUST(cu_fill(&kernels, block, value, words, from));
    MUST(cu.record(event, from));
    MUST(cu.wait_event(to, event, 0));
    MUST(cu_spin(&kernels, DELAY, to));
    MUST(cu_check(&kernels, block, value, words, wrong, to));
    MUST(cu.free_block(block));
}

/* In stream order, beside the others. */
static void use_async(uint32_t value, uint64_t words)
{
    void *stream = streams[dice(STREAMS)];
    cu_block block;

    MUST(cu.alloc_async(&block, words * 4, stream));
    MUST(cu_fill(&kernels, block, value, words, stream));
    MUST(cu_spin(&kernels, DELAY, stream));
    MUST(cu_check(&kernels, block, value, words, wrong, stream));
    MUST(cu.free_async(block, stream));
}

int main(int argc, char **argv)
{
    static void (*const ways[])(uint32_t, uint64_t) = {use_in_one_stream, write_late, hand_over,
                                                       use_async};
    uint32_t found = 0;

    state = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    cu_begin();
    kernels = cu_load_kernels();
    for (int i = 0; i < STREAMS; i++)
        MUST(cu.stream(&streams[i], 1));
    MUST(cu.alloc(&wrong, sizeof(found)));
    MUST(cu.set_bytes(wrong, 0, sizeof(found)));
    MUST(cu.synchronize());
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        ways[dice(4)](round, (uint64_t)1024 << dice(5));
        if (dice(16) == 0) /* deferred frees are served from here on */
            MUST(cu.wait_stream(any_stream()));
        if (dice(32) == 0)
            MUST(cu.synchronize());
    }
    MUST(cu.synchronize());
    MUST(cu.to_host(&found, wrong, sizeof(found)));
    MUST(cu.free_block(wrong));
    say("%u elements are wrong", found);
    say("expect leaked_bytes=0 leaked_blocks=0 failed=0");
    return found != 0;
}
