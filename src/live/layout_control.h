/* SPDX-License-Identifier: MIT */
/*
 * The part of the live layout (live/layout.h) for requests of other processes.
 *
 * A request. One asker at a time: it holds a lock on the file's byte CW_LIVE_LOCK_ASKER, which goes
 * with its process. It writes (pwrite) `asker`, `device`, `is_share`, `argument` and `subject`,
 * then `asked`, one more than before, then `what`, then 1 to `is_due`, by which the next thread
 * that leaves a call finds it (or the background thread), and rings `bell`, on which the background
 * thread waits, if there is one. The process takes the request by putting `what` back to NONE, says
 * so in `taken`, and answers by setting `result` and `answer`, then answered = asked. To stop
 * waiting, the asker sets withdrawn = asked and then looks at `taken`: if that is not its number
 * yet, the process will find it withdrawn; if it is, an answer is on its way, which may be that it
 * was withdrawn (ECANCELED).
 */
#ifndef CW_LIVE_LAYOUT_CONTROL_H
#define CW_LIVE_LAYOUT_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/alarm.h"

/* X(ID, "name"): what another process of the user may ask for. */
#define CW_CONTROLS(X)                                                                             \
    X(NONE, "none")                                                                                \
    X(TRIM, "trim")         /* idle blocks; argument 1: also those that are young or busy */       \
    X(DUMP, "dump")         /* a report; answer: its name */                                       \
    X(LIMIT, "limit")       /* argument: bytes, 0: none; device in `device` */                     \
    X(POOL_MAX, "pool-max") /* the same */                                                         \
    X(SHRINK, "shrink")     /* half of the idle blocks */                                          \
    X(CLEAR, "clear")       /* all idle blocks that are ready */                                   \
    X(BUDGET, "budget")     /* what a tag may have; `subject` as CUWARDEN_BUDGET has one item */   \
    X(LEND, "lend")         /* idle blocks, of `argument` bytes; 0: as pressure demands; asked by  \
                               the library in another process (core/request/neighbours.h) */

enum cw_control {
#define X(id, name) CW_CONTROL_##id,
    CW_CONTROLS(X)
#undef X
        CW_CONTROL_COUNT
};

#define CW_CONTROL_ALL_DEVICES UINT32_MAX

struct cw_live_control {
    _Alignas(64) _Atomic uint32_t is_due; /* a cache line of its own, rarely written */
    struct cw_alarm bell;                 /* of the background thread */
    uint32_t unused[14];
    _Atomic uint32_t asker;    /* its process id */
    _Atomic uint32_t what;     /* enum cw_control */
    _Atomic uint32_t device;   /* ordinal or CW_CONTROL_ALL_DEVICES */
    _Atomic uint32_t is_share; /* 1: argument is in 1/10000 of the device */
    _Atomic uint64_t argument;
    _Atomic uint32_t asked, taken, withdrawn, answered; /* numbers of requests */
    _Atomic uint64_t result_bytes, result_blocks;       /* given back; the limit in force; ... */
    _Atomic int32_t result;                             /* 0, or an errno */
    _Atomic uint32_t dumps;                             /* reports written while the process ran */
    char answer[512];                                   /* a file's name, or why not */
    char subject[256];                                  /* of BUDGET; written by the asker */
};

#endif
