/* SPDX-License-Identifier: MIT */
/*
 * A replay: the events of a trace as calls of a program, answered by the pool's own code over a
 * simulated driver (cli/replay/replay_driver.h).
 *
 * The only files of the command that know src/core are replay*: the answer to "would it have
 * fitted" is worth something only if the code that decides is the one that runs in the program.
 * For comparison a model of another allocator may take its place (cli/replay/replay_engine.h). All
 * is done on one thread, in the order of the file. State of the core is the process's, so
 * cw_replay_run may be called once in a process.
 */
#ifndef CW_CLI_REPLAY_H
#define CW_CLI_REPLAY_H

#include <stdint.h>

#include "base/options/options.h"
#include "cli/replay/replay_curve.h"
#include "cli/replay/replay_driver.h"

/* The first time that there was no memory. */
struct cw_replay_oom {
    uint64_t line, asked;
    uint64_t ns, event;     /* since the first event; its number */
    uint64_t live, held;    /* by the program; by the process */
    uint64_t free, largest; /* of the device: free, and the largest piece of that */
    uint64_t limit;         /* 0: none */
    uint8_t device, cause;  /* enum cw_cause */
};

struct cw_replay_device {
    uint64_t peak_live, peak_held, peak_unused; /* unused: held and not live, idle or rounding */
    uint64_t limit;                             /* 0: none */
    uint64_t requests, hits;                    /* that a pool could serve; that one has served */
    uint64_t asked, given;  /* bytes of all that a pool has served or asked the driver for */
    uint64_t least_largest; /* smallest that the largest free piece ever was after an allocation */
    uint64_t free_then;     /* what was free in all at that moment */
    uint8_t is_used;
};

struct cw_replay_result {
    uint64_t events, allocs, frees,
        failures;            /* lines of the trace; failures: of the program then */
    uint64_t unknown_frees;  /* of blocks that the trace has not seen allocated */
    uint64_t doubled;        /* allocations of a pointer that was live: a free is missing */
    uint64_t span_ns;        /* from the first event to the last; 0: no times */
    uint64_t poolable, hits; /* requests that a pool could serve; that one has served */
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

/* The options must live as long as the process. 0, or -1 after a message. */
int cw_replay_run(const char *path, const struct cw_replay_engine *engine,
                  const struct cw_options *options, uint64_t device_bytes,
                  struct cw_replay_result *out);

#endif
