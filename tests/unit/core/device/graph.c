/* SPDX-License-Identifier: MIT */
/* Memory of graphs, from node to launch to free, and captures, which keep the gate closed. */
#include "core/device/graph.h"

#include <criterion/criterion.h>

#include <pthread.h>

#include "core/process/gate.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

#define EXEC       0xe000u
#define STREAM     0x5000u
#define PER_THREAD 2u /* CU_STREAM_PER_THREAD */

static uint32_t site;

static void setup(void)
{
    core_start();
    site = core_site("cuGraphAddMemAllocNode", CW_KIND_GRAPH, 0);
}

TestSuite(graph, .init = setup);

static void add_node(uint64_t address, uint64_t bytes)
{
    struct cw_request request = core_request(CW_KIND_GRAPH, 0, address, bytes);

    cw_graph_node_added(&request, site);
}

static void instantiate(uint64_t exec, uint64_t alloc, uint64_t freed)
{
    cw_graph_instantiated(exec, &alloc, alloc != 0, &freed, freed != 0);
}

static int is_live(uint64_t address)
{
    return cw_tracker_find(CW_SPACE_ADDRESS, address) != 0;
}

static void expect_live(uint64_t blocks, uint64_t bytes)
{
    struct cw_site_sums sums = core_sums(cw_site_shared(site));

    cr_expect_eq(sums.live_blocks, blocks);
    cr_expect_eq(sums.live_bytes, bytes);
    cr_expect_eq(core_check(), 0);
}

CoreTest(graph, memory_nodes_are_noticed)
{
    cr_expect_eq(cw_graph_has_memory_nodes(), 0);
    cr_expect_eq(cw_graph_node_site(0x1000), 0u);
    add_node(0x1000, 64);
    cr_expect_eq(cw_graph_has_memory_nodes(), 1);
    cr_expect_neq(cw_graph_node_site(0x1000), 0u);
    cr_expect_eq(cw_graph_node_site(0x1001), 0u);
    cw_graph_reset();
    cr_expect_eq(cw_graph_has_memory_nodes(), 0);
    cr_expect_eq(cw_graph_node_site(0x1000), 0u);
    cw_graph_free_node_added();
    cr_expect_eq(cw_graph_has_memory_nodes(), 1);
}

CoreTest(graph, memory_is_there_from_the_launch_on)
{
    add_node(0x1000, 64);
    expect_live(0, 0);
    instantiate(EXEC, 0x1000, 0);
    expect_live(0, 0);
    cw_graph_launched(EXEC, 5);
    cr_expect(is_live(0x1000));
    expect_live(1, 64);
}

CoreTest(graph, a_second_launch_does_not_double_it)
{
    add_node(0x1000, 64);
    instantiate(EXEC, 0x1000, 0);
    cw_graph_launched(EXEC, 5);
    cw_graph_launched(EXEC, 6);
    expect_live(1, 64);
    cr_expect_eq(core_sums(cw_site_shared(site)).allocs, 1u);
}

CoreTest(graph, after_a_free_the_next_launch_brings_it_back)
{
    add_node(0x1000, 64);
    instantiate(EXEC, 0x1000, 0);
    for (uint64_t i = 1; i <= 5; i++) {
        cw_graph_launched(EXEC, i);
        expect_live(1, 64);
        cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, 0x1000), CW_FREE_DONE);
        expect_live(0, 0);
        cr_expect_eq(core_sums(cw_site_shared(site)).allocs, i);
    }
}

CoreTest(graph, a_free_node_of_another_graph_frees_it)
{
    add_node(0x1000, 64);
    cw_graph_free_node_added();
    instantiate(EXEC, 0x1000, 0);
    instantiate(EXEC + 1, 0, 0x1000);
    cw_graph_launched(EXEC + 1, 4); /* nothing there yet */
    cw_graph_launched(EXEC, 5);
    expect_live(1, 64);
    cw_graph_launched(EXEC + 1, 6);
    cr_expect_not(is_live(0x1000));
    expect_live(0, 0);
    cw_graph_launched(EXEC, 7);
    expect_live(1, 64);
}

CoreTest(graph, a_free_node_may_free_what_no_graph_allocated)
{
    core_put(site, 0x9000, 32);
    cw_graph_free_node_added();
    instantiate(EXEC, 0, 0x9000);
    cw_graph_launched(EXEC, 5);
    cr_expect_not(is_live(0x9000));
}

CoreTest(graph, a_graph_may_have_many_memory_nodes)
{
    uint64_t allocs[100], frees[50];

    for (unsigned i = 0; i < 100; i++) {
        allocs[i] = 0x1000 + i;
        add_node(allocs[i], 8);
    }
    for (unsigned i = 0; i < 50; i++) {
        frees[i] = 0x9000 + i;
        core_put(site, frees[i], 8);
    }
    cw_graph_instantiated(EXEC, allocs, 100, frees, 50);
    cw_graph_launched(EXEC, 5);
    expect_live(100, 800);
    for (unsigned i = 0; i < 50; i++)
        cr_expect_not(is_live(frees[i]));
}

CoreTest(graph, a_destroyed_one_does_nothing_and_leaves_its_memory)
{
    add_node(0x1000, 64);
    instantiate(EXEC, 0x1000, 0);
    cw_graph_launched(EXEC, 5);
    cw_graph_exec_destroyed(EXEC);
    cw_graph_exec_destroyed(EXEC);
    expect_live(1, 64);
    cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, 0x1000), CW_FREE_DONE);
    cw_graph_launched(EXEC, 6);
    expect_live(0, 0);
}

CoreTest(graph, a_handle_instantiated_again_is_the_new_graph)
{
    add_node(0x1000, 64);
    add_node(0x2000, 32);
    instantiate(EXEC, 0x1000, 0);
    instantiate(EXEC, 0x2000, 0);
    cw_graph_launched(EXEC, 5);
    cr_expect_not(is_live(0x1000));
    cr_expect(is_live(0x2000));
    instantiate(EXEC, 0, 0); /* without memory: nothing to know of it */
    cw_graph_launched(EXEC, 6);
    cw_graph_exec_destroyed(EXEC); /* and nothing of the older ones comes back */
    cw_graph_launched(EXEC, 7);
    expect_live(1, 32);
}

CoreTest(graph, an_address_that_comes_again_is_the_new_node)
{
    add_node(0x1000, 64);
    add_node(0x1000, 32);
    instantiate(EXEC, 0x1000, 0);
    cw_graph_launched(EXEC, 5);
    expect_live(1, 32);
}

CoreTest(graph, an_unknown_one_is_let_be)
{
    cw_graph_launched(EXEC, 5);
    cw_graph_free_node_added();
    cw_graph_launched(EXEC, 5);
    instantiate(EXEC, 0x1000, 0x2000); /* of nodes that were never told of */
    cw_graph_launched(EXEC, 5);
    expect_live(0, 0);
}

static void launch_often(unsigned id)
{
    for (int i = 0; i < 3000; i++) {
        instantiate(EXEC + 16 + id, 0x1000 + id, 0);
        cw_graph_launched(EXEC + 16 + id, 5);
        cw_graph_launched(EXEC, 5);
        cw_graph_exec_destroyed(EXEC + 16 + id);
    }
}

CoreTest(graph, blocks_of_launches_by_eight_threads_are_counted_once)
{
    for (unsigned i = 0; i < 8; i++)
        add_node(0x1000 + i, 64);
    instantiate(EXEC, 0, 0x1000);
    run_threads(8, launch_often);
    cw_graph_launched(EXEC, 5);
    expect_live(7, 7 * 64);
}

/* ---- captures ---- */

static int is_gate_open(void)
{
    int open = cw_gate_enter();

    if (open)
        cw_gate_leave();
    return open;
}

static void begin_capture(uint64_t stream)
{
    cw_capture_begin();
    cr_expect_not(is_gate_open());
    cw_capture_started(stream, 1, 1);
}

static void end_capture(uint64_t stream)
{
    cw_capture_ended(stream, cw_capture_find(stream));
}

Test(capture, keeps_the_gate_closed_until_it_has_ended)
{
    cr_expect_eq(cw_gate_is_capturing(), 0);
    begin_capture(STREAM);
    cr_expect_eq(cw_gate_is_capturing(), 1);
    cr_expect_not(is_gate_open());
    end_capture(STREAM);
    cr_expect_eq(cw_gate_is_capturing(), 0);
    cr_expect(is_gate_open());
}

Test(capture, one_that_did_not_start_opens_it_at_once)
{
    cw_capture_begin();
    cw_capture_started(STREAM, 1, 0);
    cr_expect_eq(cw_gate_is_capturing(), 0);
    cr_expect(is_gate_open());
    end_capture(STREAM);
    cr_expect(is_gate_open());
}

Test(capture, captures_nest)
{
    begin_capture(STREAM);
    begin_capture(STREAM + 64);
    end_capture(STREAM);
    cr_expect_eq(cw_gate_is_capturing(), 1);
    cr_expect_not(is_gate_open());
    end_capture(STREAM + 64);
    cr_expect(is_gate_open());
}

Test(capture, a_second_start_and_a_second_end_are_nothing)
{
    begin_capture(STREAM);
    begin_capture(STREAM);
    end_capture(STREAM);
    cr_expect(is_gate_open());
    end_capture(STREAM);
    cr_expect(is_gate_open());
    cr_expect_eq(cw_gate_is_capturing(), 0);
}

Test(capture, the_end_of_another_stream_is_not_its_end)
{
    begin_capture(STREAM);
    end_capture(STREAM + 64);
    cr_expect_not(is_gate_open());
    end_capture(STREAM);
    cr_expect(is_gate_open());
}

/* The stream is destroyed, and the driver gives its handle to another, before the end is noted. */
Test(capture, a_late_end_is_not_that_of_the_next_under_the_same_handle)
{
    uint64_t first;

    begin_capture(STREAM);
    first = cw_capture_find(STREAM);
    begin_capture(STREAM);
    cw_capture_ended(STREAM, first);
    cr_expect_eq(cw_gate_is_capturing(), 1);
    cr_expect_not(is_gate_open());
    cr_expect_neq(cw_capture_find(STREAM), first);
    end_capture(STREAM);
    cr_expect_eq(cw_gate_is_capturing(), 0);
    cr_expect(is_gate_open());
}

Test(capture, the_end_of_a_stream_that_did_not_capture_ends_nothing)
{
    uint64_t none;

    begin_capture(STREAM + 64);
    none = cw_capture_find(STREAM);
    begin_capture(STREAM);
    cw_capture_ended(STREAM, none);
    cr_expect_eq(cw_gate_is_capturing(), 1);
    end_capture(STREAM + 64);
    cr_expect_not(is_gate_open());
    end_capture(STREAM);
    cr_expect(is_gate_open());
}

Test(capture, those_of_a_context_end_with_it)
{
    for (uint64_t i = 0; i < 10; i++) {
        cw_capture_begin();
        cw_capture_started(STREAM + 64 * i, 1 + i % 2, 1);
    }
    cw_capture_context_ended(7);
    cw_capture_context_ended(1);
    cr_expect_eq(cw_gate_is_capturing(), 1);
    end_capture(STREAM); /* gone already */
    cr_expect_not(is_gate_open());
    cw_capture_context_ended(2);
    cr_expect_eq(cw_gate_is_capturing(), 0);
    cr_expect(is_gate_open());
    cw_capture_context_ended(2);
    cr_expect(is_gate_open());
}

Test(capture, a_reset_forgets_them)
{
    begin_capture(STREAM);
    cw_graph_reset();
    cw_gate_reset();
    cr_expect_eq(cw_gate_is_capturing(), 0);
    end_capture(STREAM);
    cr_expect(is_gate_open());
}

static pthread_barrier_t step;
static _Atomic int open_too_early;

static void capture_own_stream(unsigned id)
{
    cw_capture_begin();
    cw_capture_started(PER_THREAD, 1, 1);
    pthread_barrier_wait(&step);
    if (id == 0)
        end_capture(PER_THREAD);
    pthread_barrier_wait(&step);
    open_too_early += is_gate_open();
    pthread_barrier_wait(&step);
    if (id == 1)
        end_capture(PER_THREAD);
}

Test(capture, the_per_thread_stream_is_another_on_each_thread)
{
    pthread_barrier_init(&step, NULL, 2);
    run_threads(2, capture_own_stream);
    cr_expect_eq(open_too_early, 0);
    cr_expect(is_gate_open());
    cr_expect_eq(cw_gate_is_capturing(), 0);
}

/* ---- threads that end with a capture ---- */

static void leave_own_stream(unsigned id)
{
    (void)id;
    begin_capture(PER_THREAD);
    cr_expect_not(is_gate_open());
}

static void leave_named_stream(unsigned id)
{
    begin_capture(STREAM + 64 * id);
}

Test(capture, of_a_per_thread_stream_ends_with_its_thread, .init = core_arm)
{
    run_threads(1, leave_own_stream);
    cr_expect_eq(cw_gate_is_capturing(), 0);
    cr_expect(is_gate_open());
    run_threads(8, leave_own_stream);
    cr_expect_eq(cw_gate_is_capturing(), 0);
    cr_expect(is_gate_open());
}

Test(capture, of_the_per_thread_stream_of_a_thread_that_lives_goes_on, .init = core_arm)
{
    begin_capture(PER_THREAD);
    run_threads(1, leave_own_stream);
    cr_expect_eq(cw_gate_is_capturing(), 1);
    cr_expect_not(is_gate_open());
    end_capture(PER_THREAD);
    cr_expect(is_gate_open());
}

Test(capture, of_a_named_stream_goes_on_when_its_thread_ends, .init = core_arm)
{
    run_threads(1, leave_named_stream);
    cr_expect_not(is_gate_open());
    end_capture(STREAM);
    cr_expect_eq(cw_gate_is_capturing(), 0);
    cr_expect(is_gate_open());
}

/* ---- requests beside a capture ---- */

static _Atomic int helped;

static void ask_for_help(unsigned id)
{
    (void)id;
    helped = cw_capture_allows_help();
}

static int is_helped(int by_another)
{
    if (by_another)
        run_threads(1, ask_for_help);
    else
        ask_for_help(0);
    return helped;
}

static void begin_as(uint64_t stream, enum cw_capture_start start)
{
    cw_capture_begin();
    cw_capture_started(stream, 0, start);
}

Test(capture, keeps_help_from_its_own_thread_and_a_global_one_from_all)
{
    cr_expect(is_helped(0));
    begin_as(STREAM, CW_CAPTURE_APART);
    cr_expect_not(is_helped(0));
    cr_expect(is_helped(1));
    begin_as(STREAM + 64, CW_CAPTURE_GLOBAL);
    cr_expect_not(is_helped(1));
    begin_as(STREAM + 64, CW_CAPTURE_APART); /* that one's end was not seen */
    cr_expect(is_helped(1));
    end_capture(STREAM);
    end_capture(STREAM + 64);
    cr_expect(is_helped(0));
    begin_as(STREAM, CW_CAPTURE_GLOBAL);
    end_capture(STREAM);
    cr_expect(is_helped(1));
}
