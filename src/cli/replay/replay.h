/* SPDX-License-Identifier: MIT */
/*
 * A replay: the events of a trace as calls of a program, answered by the pool's own code over a
 * simulated driver (cli/replay/replay_driver.h).
 *
 * Only these files of the command use src/core: the answer to "would it have fitted" is meaningful
 * only if it comes from the code that decides in the program. For comparison, a model of another
 * allocator can replace it (cli/replay/replay_engine.h). Everything runs on one thread, in the
 * order of the file. The core's state is global, so cw_replay_run may be called only once per
 * process.
 */
#ifndef CW_CLI_REPLAY_H
#define CW_CLI_REPLAY_H

#include <stdint.h>

#include "base/options/options.h"
#include "cli/replay/replay_driver.h"

/* The first request that failed. */
struct cw_replay_oom {
    uint64_t line, asked;
    uint64_t ns, event;     /* time since the first event; event number */
    uint64_t live, held;    /* by the program; by the process */
    uint64_t free, largest; /* of the device: free memory, and its largest piece */
    uint64_t limit;         /* 0: none */
    uint8_t device, cause;  /* enum cw_cause */
};

struct cw_replay_device {
    uint64_t peak_live, peak_held, peak_unused; /* unused: held and not live, idle or rounding */
    uint64_t limit;                             /* 0: none */
    uint64_t requests, hits;                    /* that a pool could serve; that it did serve */
    uint64_t asked, given;  /* bytes of all requests, and of the blocks for them */
    uint64_t least_largest; /* minimum of the largest free piece after an allocation */
    uint64_t free_then;     /* total free memory at that moment */
    uint8_t is_used;
};

#define CW_CURVE_POINTS 1024u

/* Live and held memory over time, in a bounded number of points: each has the maximum of its span.
 * When all are in use, pairs are merged and the span doubles. */
struct cw_curve {
    uint64_t span; /* of a point on the axis: ns, or events if the trace has no times */
    uint32_t count;
    struct {
        uint64_t live, held;
    } point[CW_CURVE_POINTS];
};

struct cw_replay_result {
    uint64_t events, allocs, frees,
        failures;            /* lines of the trace; failures: in the original program */
    uint64_t unknown_frees;  /* of blocks whose allocation is not in the trace */
    uint64_t doubled;        /* allocations of a pointer that was live: a free is missing */
    uint64_t span_ns;        /* from the first event to the last; 0: no times */
    uint64_t poolable, hits; /* requests that a pool could serve; that it did serve */
    uint64_t ooms;
    uint64_t given_back;              /* blocks that the pool returned to the driver */
    uint64_t left_blocks, left_bytes; /* live at the end */
    struct cw_replay_calls calls;
    struct cw_replay_oom oom;
    struct cw_replay_device device[CW_DEVICES];
    struct cw_curve curve; /* of all devices together */
    uint8_t is_cut, has_times;
};

struct cw_replay_engine;

/* The options must outlive the process. 0, or -1 after a message. */
int cw_replay_run(const char *path, const struct cw_replay_engine *engine,
                  const struct cw_options *options, uint64_t device_bytes,
                  struct cw_replay_result *out);

#endif
