/* SPDX-License-Identifier: MIT */
/* Allocation nodes, executable graphs, captures. See graph.h. */
#include "core/device/graph.h"

#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/process/gate.h"
#include "core/account/freed.h"
#include "core/account/site.h"
#include "core/process/thread.h"
#include "core/account/tracker.h"

struct node {
    struct cw_map_entry map; /* by address */
    struct cw_request request;
    uint32_t site;
};

struct exec {
    struct cw_map_entry map; /* by handle */
    uint32_t alloc_count, free_count;
    uint64_t addresses[]; /* allocs, then frees */
};

struct capture {
    struct cw_map_entry map; /* by stream, see capture_key */
    uint64_t number;
    uint32_t context;
    uint32_t tid; /* of the thread that began it */
    int is_global;
};

/* CU_STREAM_PER_THREAD: one handle that means another stream on each thread. */
#define STREAM_PER_THREAD 2

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_GRAPH); /* guards the maps */
static struct cw_map nodes, execs, captures;
static uint64_t begun; /* captures ever, guarded too */
static _Atomic int memory_nodes_seen;

void cw_graph_reset(void)
{
    cw_lock_reset(&lock);
    nodes = execs = captures = (struct cw_map){0};
    atomic_store(&memory_nodes_seen, 0);
    atomic_store(&cw_gate_captures, 0);
    atomic_store(&cw_gate_global_captures, 0);
}

void cw_graph_node_added(const struct cw_request *request, uint32_t site)
{
    uint32_t shared = cw_site_shared(site);
    struct node *node;

    atomic_store(&memory_nodes_seen, 1);
    cw_freed_forget(request->key);
    cw_lock_acquire(&lock);
    node = (struct node *)cw_map_find(&nodes, request->key);
    if (node == NULL) {
        node = cw_mem_alloc(sizeof(*node));
        if (node != NULL && cw_map_insert(&nodes, &node->map, request->key) != 0) {
            cw_mem_free(node, sizeof(*node));
            node = NULL;
        }
    }
    if (node != NULL) {
        node->request = *request;
        node->site = shared;
    }
    cw_lock_release(&lock);
}

uint32_t cw_graph_node_site(uint64_t address)
{
    const struct node *node;
    uint32_t site;

    cw_lock_acquire(&lock);
    node = (struct node *)cw_map_find(&nodes, address);
    site = node != NULL ? node->site : 0;
    cw_lock_release(&lock);
    return site;
}

void cw_graph_free_node_added(void)
{
    atomic_store(&memory_nodes_seen, 1);
}

int cw_graph_has_memory_nodes(void)
{
    return atomic_load_explicit(&memory_nodes_seen, memory_order_relaxed);
}

static size_t exec_size(uint32_t allocs, uint32_t frees)
{
    return sizeof(struct exec) + ((size_t)allocs + frees) * sizeof(uint64_t);
}

static void forget_exec_locked(uint64_t handle)
{
    struct exec *exec = (struct exec *)cw_map_find(&execs, handle);

    if (exec == NULL)
        return;
    cw_map_remove(&execs, &exec->map);
    cw_mem_free(exec, exec_size(exec->alloc_count, exec->free_count));
}

void cw_graph_instantiated(uint64_t handle, const uint64_t *allocs, uint32_t alloc_count,
                           const uint64_t *frees, uint32_t free_count)
{
    struct exec *exec;

    cw_lock_acquire(&lock);
    forget_exec_locked(handle);
    exec = alloc_count + free_count ? cw_mem_alloc(exec_size(alloc_count, free_count)) : NULL;
    if (exec != NULL) {
        exec->alloc_count = alloc_count;
        exec->free_count = free_count;
        /* Not memcpy: an empty list may be a null pointer. */
        for (uint32_t i = 0; i < alloc_count; i++)
            exec->addresses[i] = allocs[i];
        for (uint32_t i = 0; i < free_count; i++)
            exec->addresses[alloc_count + i] = frees[i];
        if (cw_map_insert(&execs, &exec->map, handle) != 0)
            cw_mem_free(exec, exec_size(alloc_count, free_count));
    }
    cw_lock_release(&lock);
}

void cw_graph_exec_destroyed(uint64_t handle)
{
    cw_lock_acquire(&lock);
    forget_exec_locked(handle);
    cw_lock_release(&lock);
}

static void launch_alloc_locked(uint64_t address, uint64_t now_ns)
{
    const struct node *node = (struct node *)cw_map_find(&nodes, address);

    /* Live already: an earlier launch brought it, and this one freed and took it again. */
    if (node != NULL && cw_tracker_find(CW_SPACE_ADDRESS, address) == 0)
        cw_tracker_insert(&node->request, node->site, now_ns);
}

static void launch_free_locked(uint64_t address)
{
    uint32_t block = cw_tracker_take(CW_SPACE_ADDRESS, address);

    if (block == 0)
        return;
    cw_freed_remember(address, 0, cw_tracker_at(block)->site);
    cw_tracker_finish(block, CW_FREE_DONE);
}

void cw_graph_launched(uint64_t handle, uint64_t now_ns)
{
    const struct exec *exec;

    if (!cw_graph_has_memory_nodes())
        return;
    cw_lock_acquire(&lock);
    exec = (struct exec *)cw_map_find(&execs, handle);
    for (uint32_t i = 0; exec != NULL && i < exec->alloc_count; i++)
        launch_alloc_locked(exec->addresses[i], now_ns);
    for (uint32_t i = 0; exec != NULL && i < exec->free_count; i++)
        launch_free_locked(exec->addresses[exec->alloc_count + i]);
    cw_lock_release(&lock);
}

static uint64_t capture_key(uint64_t stream)
{
    return stream == STREAM_PER_THREAD ? (uint64_t)cw_thread_tid() << 8 | STREAM_PER_THREAD
                                       : stream;
}

void cw_capture_begin(void)
{
    cw_gate_close(CW_GATE_CAPTURE);
}

static struct capture *find_capture_locked(uint64_t stream)
{
    return (struct capture *)cw_map_find(&captures, capture_key(stream));
}

/* NULL: no memory. */
static struct capture *add_capture_locked(uint64_t stream)
{
    struct capture *capture = cw_mem_alloc(sizeof(*capture));

    if (capture != NULL && cw_map_insert(&captures, &capture->map, capture_key(stream)) != 0) {
        cw_mem_free(capture, sizeof(*capture));
        capture = NULL;
    }
    if (capture != NULL)
        atomic_fetch_add(&cw_gate_captures, 1);
    return capture;
}

static void set_global_locked(struct capture *capture, int is_global)
{
    atomic_fetch_add(&cw_gate_global_captures, is_global - capture->is_global);
    capture->is_global = is_global;
}

static void remove_capture_locked(struct capture *capture)
{
    set_global_locked(capture, 0);
    cw_map_remove(&captures, &capture->map);
    cw_mem_free(capture, sizeof(*capture));
    atomic_fetch_sub(&cw_gate_captures, 1);
}

void cw_capture_started(uint64_t stream, uint32_t context, enum cw_capture_start start)
{
    uint32_t tid = cw_thread_tid();
    struct capture *capture = NULL;
    int started = start != CW_CAPTURE_FAILED, is_new = 0;

    if (started && stream == STREAM_PER_THREAD)
        cw_thread_slot(); /* asked for, so that the thread's end is told */
    cw_lock_acquire(&lock);
    if (started)
        capture = find_capture_locked(stream); /* over, and its end not noted yet */
    if (started && capture == NULL) {
        capture = add_capture_locked(stream);
        is_new = capture != NULL;
    }
    if (capture != NULL) {
        capture->context = context;
        capture->tid = tid;
        capture->number = ++begun;
        set_global_locked(capture, start == CW_CAPTURE_GLOBAL);
    }
    cw_lock_release(&lock);
    if (!is_new)
        cw_gate_open(CW_GATE_CAPTURE);
}

uint64_t cw_capture_find(uint64_t stream)
{
    const struct capture *capture;
    uint64_t number;

    if (!cw_gate_is_capturing())
        return 0;
    cw_lock_acquire(&lock);
    capture = find_capture_locked(stream);
    number = capture != NULL ? capture->number : 0;
    cw_lock_release(&lock);
    return number;
}

struct own_captures {
    uint32_t tid;
    int is_any;
};

static void look_for_own(struct cw_map_entry *entry, void *arg)
{
    struct own_captures *own = arg;

    own->is_any |= ((struct capture *)entry)->tid == own->tid;
}

int cw_capture_allows_help(void)
{
    struct own_captures own = {.tid = cw_thread_tid()};

    if (!cw_gate_is_capturing())
        return 1;
    if (atomic_load(&cw_gate_global_captures) > 0)
        return 0;
    cw_lock_acquire(&lock);
    cw_map_visit(&captures, look_for_own, &own);
    cw_lock_release(&lock);
    return !own.is_any;
}

void cw_capture_ended(uint64_t stream, uint64_t number)
{
    struct capture *capture;

    if (number == 0)
        return;
    cw_lock_acquire(&lock);
    capture = find_capture_locked(stream);
    if (capture != NULL && capture->number != number)
        capture = NULL;
    if (capture != NULL)
        remove_capture_locked(capture);
    cw_lock_release(&lock);
    if (capture != NULL)
        cw_gate_open(CW_GATE_CAPTURE);
}

void cw_capture_thread_ends(void)
{
    cw_capture_ended(STREAM_PER_THREAD, cw_capture_find(STREAM_PER_THREAD));
}

struct ended_context {
    uint32_t context;
    unsigned captures;
};

static void drop_capture(struct cw_map_entry *entry, void *arg)
{
    struct capture *capture = (struct capture *)entry;
    struct ended_context *ended = arg;

    if (capture->context != ended->context)
        return;
    remove_capture_locked(capture);
    ended->captures++;
}

void cw_capture_context_ended(uint32_t context)
{
    struct ended_context ended = {.context = context};

    if (!cw_gate_is_capturing())
        return;
    cw_lock_acquire(&lock);
    cw_map_visit(&captures, drop_capture, &ended);
    cw_lock_release(&lock);
    while (ended.captures-- > 0)
        cw_gate_open(CW_GATE_CAPTURE);
}
