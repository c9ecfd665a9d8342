/* SPDX-License-Identifier: MIT */
/*
 * Memory of graphs, and the captures in progress.
 *
 * An allocation node fixes its address when it is made, by a call or by a capture; memory stands
 * behind it from a launch of an executable graph that has the node until a free: by a node of that
 * or another graph, or by an ordinary free of the program. So the node remembers the site, and a
 * launch makes the block. What is allocated and freed inside one graph never outlives a launch and
 * is no block. Guarded by one lock (CW_RANK_GRAPH), never held across the driver.
 */
#ifndef CW_CORE_GRAPH_H
#define CW_CORE_GRAPH_H

#include <stdint.h>

#include "core/process/types.h"

void cw_graph_reset(void);

/* An allocation node was made; each launch, by any thread, makes a block. */
void cw_graph_node_added(const struct cw_request *request, uint32_t site);
/* The site of the known node with this address; 0: there is none. */
uint32_t cw_graph_node_site(uint64_t address);
/* A free node was made: executable graphs must be looked through. */
void cw_graph_free_node_added(void);
/* 1 once any memory node was made: only then is an instantiated graph looked through. */
int cw_graph_has_memory_nodes(void);

/* An executable graph: addresses that a launch brings to life, and those that it frees. */
void cw_graph_instantiated(uint64_t exec, const uint64_t *allocs, uint32_t alloc_count,
                           const uint64_t *frees, uint32_t free_count);
void cw_graph_exec_destroyed(uint64_t exec);
void cw_graph_launched(uint64_t exec, uint64_t now_ns);

/*
 * Captures. begin closes the gate (core/process/gate.h) before the driver is asked; started tells
 * how that ended; ended opens it again. Capturing streams are known by handle, and per thread where
 * the handle means "the calling thread's stream". Once the driver has ended a capture, and all the
 * more once it has destroyed the stream, another thread may begin one under the same handle before
 * we come to note the end: so captures are numbered, and the number is asked for first.
 *
 * Such a stream is "local to the thread and the context" (CUDA programming guide), so a capture of
 * it is over with its thread: nobody can name the stream any more, so nobody can end the capture,
 * and its graph is never launched. What the driver does with it is not documented. Should it let
 * it be, it refuses our events and looks at them as it refuses the program's, and such frees go to
 * the driver for its own answer.
 */
void cw_capture_begin(void);

/* What a capture prohibits other threads. */
enum cw_capture_start {
    CW_CAPTURE_FAILED, /* there is none */
    CW_CAPTURE_GLOBAL, /* what might be unsafe, unless they are in another mode themselves */
    CW_CAPTURE_APART,  /* nothing */
};
void cw_capture_started(uint64_t stream, uint32_t context, enum cw_capture_start start);
/* 1 if a request of the calling thread that has found no memory may be helped: none of the captures
 * that run is global, and it has begun none of them. */
int cw_capture_allows_help(void);
/* The number of the stream's capture; 0: none is known. */
uint64_t cw_capture_find(uint64_t stream);
/* The capture with this number; that of another, and 0: nothing. */
void cw_capture_ended(uint64_t stream, uint64_t number);
/* A context is gone, and the captures of its streams with it. */
void cw_capture_context_ended(uint32_t context);
/* The calling thread ends, and a capture of its own stream with it. Those of named streams go on:
 * another thread may end them. */
void cw_capture_thread_ends(void);

#endif
