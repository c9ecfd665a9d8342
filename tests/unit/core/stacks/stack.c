/* SPDX-License-Identifier: MIT */
/* Stacks that are known again without a walk: always the one that a walk would find. */
#include "core/stacks/stack.h"

#include <criterion/criterion.h>

#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/compiler.h"
#include "call_trees.h"
#include "core/account/site.h"
#include "core/process/thread.h"
#include "core/stacks/unwind.h"
#include "core_file.h"
#include "fake_driver.h"

#define PAGE  ((size_t)4096)
#define STACK ((size_t)256 * 1024)

/* Tells calls of one function apart that are otherwise the same. */
#define PLACE(number) __asm__ volatile("# " #number ::: "memory")

static _Atomic unsigned walks, taken, wrong;

static _Unwind_Reason_Code counting_backtrace(_Unwind_Trace_Fn visit, void *arg)
{
    walks++;
    return _Unwind_Backtrace(visit, arg);
}

static const struct cw_unwinder unwinder = {.backtrace = counting_backtrace,
                                            .ip_info = _Unwind_GetIPInfo,
                                            .cfa = _Unwind_GetCFA,
                                            .gr = _Unwind_GetGR};

static unsigned limit; /* of the depth */

static void start(enum cw_stacks stacks, unsigned depth)
{
    limit = depth;
    core_start();
    cr_assert_eq(cw_site_init(core_arena, stacks, depth), 0);
    cw_unwind_set(&unwinder);
}

static void start_full(void)
{
    start(CW_STACKS_FULL, 32);
}

TestSuite(stack, .init = start_full);

static const struct cw_live_frame *frame_at(uint32_t frame)
{
    return core_at(CW_TABLE_FRAME, frame);
}

/* ---- taking, below a frame of libc, for what is ours does not count ---- */

static _Thread_local uint32_t found;
static _Thread_local const void *found_at;

/* The stack as a walk finds it, whatever is known. */
static uint32_t walk_anew(void)
{
    struct cw_walk walk = {0};

    cw_unwind_walk(&walk, limit);
    walks--;
    return cw_stack_intern(&walk.pc[walk.own], walk.count - walk.own);
}

static void take(void)
{

    found_at = __builtin_frame_address(0);
    found = cw_stack_here();
    taken++;
    if (found == 0 || found != walk_anew())
        wrong++;
}

static int take_from_libc(const void *a, const void *b)
{
    (void)a;
    (void)b;
    take();
    return 0;
}

static CW_NOINLINE uint32_t take_below_libc(void)
{
    int two[2] = {1, 2};

    qsort(two, 2, sizeof(*two), take_from_libc);
    return found;
}

static CW_NOINLINE uint32_t descend(volatile unsigned levels)
{
    uint32_t stack = levels > 0 ? descend(levels - 1) : take_below_libc();

    levels = 0; /* something to come back for: no tail call */
    return stack;
}

static CW_NOINLINE uint32_t take_from_place(unsigned place, unsigned levels)
{
    uint32_t stack = 0;

    switch (place) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        stack = descend(levels);                                                                   \
        PLACE(n);                                                                                  \
        break;
#define CASES(n) CASE(n##0) CASE(n##1) CASE(n##2) CASE(n##3) CASE(n##4)
        CASES(1) CASES(2) CASES(3) CASES(4) CASES(5) CASES(6) CASES(7) CASES(8) default : break;
    }
    return stack;
}

/* The places of take_from_place. */
static unsigned place(unsigned i)
{
    return (1 + i / 5) * 10 + i % 5;
}
#define PLACES 40

/* ---- the same, and others ---- */

Test(stack, is_walked_once)
{
    uint32_t same[100];

    for (unsigned i = 0; i < 100; i++)
        same[i] = descend(5);
    cr_expect_eq(walks, 1u);
    cr_expect_eq(taken, 100u);
    cr_expect_eq(wrong, 0u);
    for (unsigned i = 1; i < 100; i++)
        cr_assert_eq(same[i], same[0]);
    cr_expect_gt(frame_at(same[0])->depth, 8u);
}

Test(stack, differs_when_only_an_outer_frame_does)
{
    uint32_t stack[PLACES];

    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < PLACES; i++) {
            static const void *where;
            uint32_t here = take_from_place(place(i), 12);

            if (round == 0 && i == 0)
                where = found_at;
            if (round == 0)
                stack[i] = here;
            cr_assert_eq(found_at, where);
            cr_assert_eq(here, stack[i]);
            for (unsigned j = 0; j < i; j++)
                cr_assert_neq(stack[i], stack[j]);
        }
    cr_expect_eq(walks, PLACES);
    cr_expect_eq(wrong, 0u);
}

Test(stack, does_not_differ_beyond_its_depth, .init = NULL)
{
    uint32_t stack;

    start(CW_STACKS_FULL, 8);
    stack = take_from_place(place(0), 12);
    for (unsigned i = 0; i < PLACES; i++)
        cr_assert_eq(take_from_place(place(i), 12), stack);
    cr_expect_eq(frame_at(stack)->depth, 8u);
    cr_expect_eq(walks, 1u);
    cr_expect_eq(wrong, 0u);
}

Test(stack, of_a_recursion_differs_by_its_depth)
{
    for (unsigned round = 0; round < 4; round++)
        for (unsigned levels = 0; levels < 60; levels++)
            descend(levels);
    cr_expect_eq(wrong, 0u);
    cr_expect_leq(walks, 120u);
}

static CW_NOINLINE uint32_t descend_with_room(size_t bytes, unsigned levels)
{
    char *room = alloca(bytes);
    uint32_t stack;

    __asm__ volatile("" : "+r"(room)::"memory");
    stack = descend(levels);
    __asm__ volatile("" ::"r"(room) : "memory");
    return stack;
}

static CW_NOINLINE uint32_t two_rooms(size_t outer, size_t inner)
{
    char *room = alloca(outer);
    uint32_t stack;

    __asm__ volatile("" : "+r"(room)::"memory");
    stack = descend_with_room(inner, 2);
    __asm__ volatile("" ::"r"(room) : "memory");
    return stack;
}

Test(stack, does_not_depend_on_the_size_of_its_frames)
{
    uint32_t stack = 0;

    for (unsigned round = 0; round < 2; round++)
        for (size_t bytes = 0; bytes <= 4096; bytes += 256) {
            uint32_t here = two_rooms(4096 + 16 - bytes, bytes + 16);

            if (stack == 0)
                stack = here;
            cr_assert_eq(here, stack);
        }
    cr_expect_eq(walks, 17u);
    cr_expect_eq(wrong, 0u);
}

Test(stack, is_walked_again_in_a_new_epoch)
{
    uint32_t stack[2];

    for (unsigned i = 0; i < 2; i++) {
        for (volatile unsigned j = 0; j < 3; j++) /* one place: not unrolled */
            stack[i] = descend(3);
        cr_expect_eq(walks, i + 1);
        cw_epoch_advance(); /* as after a dlclose */
    }
    cr_expect_eq(stack[0], stack[1]);
}

/* ---- all kinds of frames ---- */

Test(stack, is_what_a_walk_finds_in_random_chains_of_calls)
{
    call_trees_run(1, 100000, take);
    cr_expect_eq(taken, 100000u);
    cr_expect_eq(wrong, 0u);
    cr_expect_lt(walks, 60000u);
}

static void run_trees(unsigned id)
{
    call_trees_run(id + 2, 10000, take);
}

Test(stack, is_what_a_walk_finds_in_eight_threads)
{
    run_threads(8, run_trees);
    run_threads(8, run_trees);
    cr_expect_eq(taken, 160000u);
    cr_expect_eq(wrong, 0u);
}

/* ---- other stacks ---- */

static ucontext_t back;
static unsigned chosen;
static size_t room_bytes;

static void start_coroutine(void)
{
    if (room_bytes != 0)
        descend_with_room(room_bytes, 3);
    else
        take_from_place(place(chosen), chosen % 4);
}

static void run_coroutine(void *stack, size_t bytes)
{
    ucontext_t coroutine;

    cr_assert_eq(getcontext(&coroutine), 0);
    coroutine.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
    coroutine.uc_link = &back;
    makecontext(&coroutine, start_coroutine, 0);
    cr_assert_eq(swapcontext(&back, &coroutine), 0);
}

static void *map_stack(void)
{
    void *stack =
        mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

    cr_assert_neq(stack, MAP_FAILED);
    return stack;
}

Test(stack, of_coroutines_that_use_the_same_memory_in_turn)
{
    void *stack = map_stack();

    for (unsigned round = 0; round < 20; round++)
        for (chosen = 0; chosen < PLACES; chosen++)
            run_coroutine(stack, STACK);
    cr_expect_eq(taken, 20u * PLACES);
    cr_expect_eq(walks, PLACES);
    cr_expect_eq(wrong, 0u);
}

/* The same place in memory, once in the middle of a stack and once right below its end: what lies
 * above must not be touched. */
Test(stack, that_ends_earlier_is_not_read_beyond_its_end)
{
    char *stack = map_stack();
    const void *where;

    room_bytes = 32 * PAGE;
    run_coroutine(stack, STACK);
    where = found_at;
    cr_assert_eq(mprotect(stack + STACK - 31 * PAGE, 31 * PAGE, PROT_NONE), 0);
    room_bytes = PAGE;
    run_coroutine(stack, STACK - 31 * PAGE);
    cr_expect_eq(found_at, where);
    cr_expect_eq(taken, 2u);
    cr_expect_eq(walks, 2u);
    cr_expect_eq(wrong, 0u);
}

static void handle(int signal)
{
    (void)signal;
    descend(4);
}

static CW_NOINLINE void raise_from(unsigned which)
{
    if (which == 0) {
        raise(SIGUSR1);
        PLACE(1);
    } else {
        raise(SIGUSR1);
        PLACE(2);
    }
}

static void take_in_a_handler(int flags)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
    stack_t other = {.ss_sp = map_stack(), .ss_size = STACK};

    cr_assert_eq(sigaltstack(&other, NULL), 0);
    cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
    for (unsigned i = 0; i < 20; i++)
        raise_from(i % 2);
    cr_expect_eq(taken, 20u);
    cr_expect_eq(wrong, 0u);
}

Test(stack, of_a_signal_handler)
{
    take_in_a_handler(0);
}

Test(stack, of_a_signal_handler_on_a_stack_of_its_own)
{
    take_in_a_handler(SA_ONSTACK);
}

Test(stack, of_a_signal_handler_is_known_again_where_only_its_inner_frames_count, .init = NULL)
{
    start(CW_STACKS_FULL, 4);
    take_in_a_handler(SA_ONSTACK);
    cr_expect_eq(walks, 1u);
}

/* ---- modes ---- */

Test(stack, in_caller_mode_is_the_hooks_caller_alone, .init = NULL)
{
    uint32_t stack;

    start(CW_STACKS_CALLER, 32);
    cr_expect_eq(cw_stack_here(), 0u);
    cw_thread.caller = (void *)0x1234;
    stack = cw_stack_here();
    cr_assert_neq(stack, 0u);
    cr_expect_eq(frame_at(stack)->pc, 0x1234u);
    cr_expect_eq(frame_at(stack)->depth, 1u);
    cr_expect_eq(walks, 0u);
}

Test(stack, in_off_mode_is_none, .init = NULL)
{
    start(CW_STACKS_OFF, 32);
    cw_thread.caller = (void *)0x1234;
    cr_expect_eq(cw_stack_here(), 0u);
    cr_expect_eq(walks, 0u);
}

/* ---- somebody writes over the live file ---- */

static void start_with_file(void)
{
    core_start_with_file();
    cr_assert_eq(cw_site_init(core_arena, CW_STACKS_FULL, 32), 0);
    cw_unwind_set(&unwinder);
}

Test(stack_file, has_each_stack_once_whatever_is_written_there, .init = start_with_file)
{
    uint64_t pcs[] = {(uint64_t)(uintptr_t)&take + 1, (uint64_t)(uintptr_t)&start_full + 1,
                      (uint64_t)(uintptr_t)&malloc + 1};
    uint32_t stack = cw_stack_intern(pcs, CW_ARRAY_LEN(pcs)), frames = core_count(CW_TABLE_FRAME);

    cr_assert_neq(stack, 0u);
    for (int byte = 0; byte < 256; byte += 17) {
        core_scribble(CW_TABLE_FRAME, byte);
        cw_epoch_advance(); /* no cache knows it */
        cr_expect_eq(cw_stack_intern(pcs, CW_ARRAY_LEN(pcs)), stack);
    }
    cr_expect_eq(core_count(CW_TABLE_FRAME), frames);
    cr_expect_eq(frame_at(stack)->pc, pcs[0]);
}
