/* SPDX-License-Identifier: MIT */
/* A thread that ends contexts or captures. See edges_bystander.h. */
#include "edges_bystander.h"

#include <sched.h>
#include <stdatomic.h>

enum { LINGER_MOST = 40 };

static struct {
    enum bystander what;
    int device;
    CUcontext context;
    bool is_own; /* the context */
    CUstream stream;
    struct rng dice;
    pthread_t thread;
    _Atomic bool is_over;
} self;

static void linger(void)
{
    for (unsigned n = roll_below(&self.dice, LINGER_MOST); n > 0; n--)
        sched_yield();
}

static void end_one(void)
{
    CUcontext context;

    WORKS(cuCtxCreate_v2(&context, 0, self.device));
    linger();
    WORKS(cuCtxDestroy(context));
}

static void capture_one(void)
{
    bool is_relaxed = roll_chance(&self.dice, 60);
    CUgraph graph = NULL;

    WORKS(cuStreamBeginCapture(self.stream, is_relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED
                                                       : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    linger();
    WORKS(cuStreamEndCapture(self.stream, &graph));
    if (!graph)
        violated("the capture has no graph");
    WORKS(cuGraphDestroy(graph));
}

static void *stand_by(void *unused)
{
    (void)unused;
    WORKS(cuCtxSetCurrent(self.context));
    while (!atomic_load(&self.is_over)) {
        if (self.what == ENDS)
            end_one();
        else
            capture_one();
        linger();
    }
    return NULL;
}

void bystander_begin(enum bystander what, int device, CUcontext context)
{
    CUcontext current;

    self.what = what;
    self.device = device;
    self.context = context;
    self.is_own = what == CAPTURES && !context;
    atomic_store(&self.is_over, false);
    seed_dice(&self.dice, edges.seed + 77);
    WORKS(cuCtxGetCurrent(&current));
    if (self.is_own) {
        WORKS(cuCtxCreate_v2(&self.context, 0, device));
        WORKS(cuCtxPopCurrent(NULL));
    }
    if (what == CAPTURES) {
        WORKS(cuCtxSetCurrent(self.context));
        WORKS(cuStreamCreate(&self.stream, CU_STREAM_NON_BLOCKING));
    }
    WORKS(cuCtxSetCurrent(current));
    if (pthread_create(&self.thread, NULL, stand_by, NULL) != 0)
        violated("no thread");
}

void bystander_end(void)
{
    CUcontext current;

    atomic_store(&self.is_over, true);
    pthread_join(self.thread, NULL);
    WORKS(cuCtxGetCurrent(&current));
    if (self.what == CAPTURES) {
        WORKS(cuCtxSetCurrent(self.context));
        WORKS(cuStreamDestroy(self.stream));
        WORKS(cuCtxSetCurrent(current));
    }
    if (self.is_own)
        WORKS(cuCtxDestroy(self.context));
}
