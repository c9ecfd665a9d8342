/* SPDX-License-Identifier: MIT */
/* The part of the live layout (live/layout.h) for memory that ran out, and for budgets of tags. */
#ifndef CW_LIVE_LAYOUT_SHORTAGE_H
#define CW_LIVE_LAYOUT_SHORTAGE_H

#include <stdatomic.h>
#include <stdint.h>

/* An out of memory that the program has seen, and what held the memory then. The first of a
 * process, and later ones some seconds apart, have one beside their event. */
#define CW_OOM_HOLDERS 8

struct cw_live_oom {
    uint64_t t_ns;
    uint32_t site;
    int32_t code; /* the driver's */
    uint8_t device;
    uint8_t cause;            /* enum cw_cause */
    uint8_t unserved;         /* enum cw_unserved */
    uint8_t budget;           /* of cause BUDGET: its number, from 1 */
    uint32_t event;           /* its event, 0: it was dropped */
    uint64_t bytes;           /* asked for; 0: not known (a module, a context) */
    uint64_t fits;            /* the largest request that would have fit, as far as known */
    uint64_t limit, min_free; /* in force, 0: none */
    uint64_t scope_others;    /* counted for the limit by other processes: LIMIT=platform */
    uint64_t budget_bytes, budget_used; /* of `budget`: how much, and of it live */
    uint64_t live, held, idle;          /* of this process */
    uint64_t spare;                     /* held by the driver's stream-ordered pools, unused */
    uint64_t free_bytes, total_bytes;   /* of the device, asked at that moment; total 0: unknown */
    /* The sites that held most on this device, once added up. */
    uint64_t rest_bytes, rest_blocks; /* of all other places */
    struct {
        uint32_t site; /* any of those that are one in a report */
        uint32_t unused;
        uint64_t bytes, blocks;
    } holder[CW_OOM_HOLDERS];
    _Atomic uint32_t holders; /* filled, written last */
    uint32_t unused2;
};

#define CW_BUDGETS 16

/* What the tags whose names match may have; at least one use, if it has a pattern. */
struct cw_live_budget {
    _Atomic uint32_t pattern; /* text; 0: none, and none behind it */
    _Atomic uint8_t is_set;   /* 0: it was taken away */
    _Atomic uint8_t refuses;  /* else it warns */
    _Atomic uint16_t unused;
    _Atomic uint64_t bytes;
    _Atomic uint64_t peak_bytes, peak_ns; /* most of it that was live, exactly */
    _Atomic uint64_t refused;             /* calls that returned out of memory for it */
    _Atomic uint64_t exceeded;            /* times that live bytes went from within to beyond */
    uint64_t reserved[2];
};

#endif
