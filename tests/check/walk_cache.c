/* SPDX-License-Identifier: MIT */
/*
 * The walk cache of walks against walks, in random chains of calls. walk_cache.test compiles this,
 * the walk cache and the chains with the options that programs are compiled with.
 *
 *   walk cache CALLS DEPTH
 */
#include "core/stacks/walk_cache.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "call_trees.h"
#include "core/stacks/module.h"

#define NOINLINE __attribute__((noinline))
#define EPOCH    1

static struct cw_walk_cache walk_cache;
static struct cw_walk walk;
static unsigned depth, known, walked, not_noted, wrong;

/* Nothing is ours here: all frames count. */
int cw_loader_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg)
{
    return dl_iterate_phdr(visit, arg);
}

int cw_module_is_self(uint64_t pc)
{
    (void)pc;
    return 0;
}

/* What a walk found above the frame, as a number. */
static NOINLINE uint32_t name_walk(const void *frame)
{
    uint64_t name = 1;

    cw_unwind_walk(&walk, depth);
    for (unsigned i = 0; i < walk.count; i++)
        if (walk.sp[i] > (uint64_t)(uintptr_t)frame)
            name = (name ^ walk.pc[i]) * 0x9e3779b97f4a7c15ull + (name >> 32);
    return (uint32_t)(name >> 32) | 1;
}

/* The walks of the two begin equally deep, so that the limit of depth means the same. */
static NOINLINE uint32_t check(uint32_t stack, const void *frame)
{
    wrong += stack != name_walk(frame);
    known++;
    return stack;
}

static NOINLINE uint32_t note(struct cw_walk_cache_entry *entry, const void *frame)
{
    uint32_t name = name_walk(frame);

    cw_walk_cache_note(&walk_cache, entry, frame, &walk, name, EPOCH);
    walked++;
    not_noted += entry->stack == 0;
    return name;
}

/* As cw_stack_here. */
static NOINLINE uint32_t stack_here(void)
{
    const void *frame = __builtin_frame_address(0);
    struct cw_walk_cache_entry *entry = cw_walk_cache_find(&walk_cache, frame, 0, EPOCH);
    uint32_t stack = entry->stack != 0 ? check(entry->stack, frame) : note(entry, frame);

    __asm__ volatile("" ::: "memory");
    return stack;
}

static void leaf(void)
{
    volatile uint32_t stack = stack_here();

    (void)stack;
}

int main(int argc, char **argv)
{
    static const struct cw_unwinder unwinder = {.backtrace = _Unwind_Backtrace,
                                                .ip_info = _Unwind_GetIPInfo,
                                                .cfa = _Unwind_GetCFA,
                                                .gr = _Unwind_GetGR};

    if (argc != 3)
        return 2;
    depth = (unsigned)atoi(argv[2]);
    cw_unwind_set(&unwinder);
    for (uint64_t seed = 1; seed <= 5; seed++)
        call_trees_run(seed, (unsigned)atoi(argv[1]) / 5, leaf);
    printf("known=%u walked=%u not_noted=%u wrong=%u\n", known, walked, not_noted, wrong);
    return wrong != 0;
}
