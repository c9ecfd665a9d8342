/* SPDX-License-Identifier: MIT */
/*
 * The part of the live layout (live/layout.h) that says how our account compares with that of a
 * tool of the driver's maker, which has watched the same process.
 *
 * All but `status`, `version` and `why` is written once, at the end, before status becomes DONE. A
 * process that did not get so far has RUNNING, and no figures.
 */
#ifndef CW_LIVE_LAYOUT_AUDIT_H
#define CW_LIVE_LAYOUT_AUDIT_H

#include <stdatomic.h>
#include <stdint.h>

/* X(ID, "json name", label, addressed). addressed 0: the tool names no address that we know, so
 * only numbers are compared, and bytes are shown. */
#define CW_AUDIT_CLASSES(X)                                                                        \
    X(DEVICE, "device", "device memory", 1)                                                        \
    X(MANAGED, "managed", "managed memory", 1)                                                     \
    X(PINNED, "pinned", "pinned host memory", 1)                                                   \
    X(ARRAY, "array", "arrays", 0)                                                                 \
    X(ASYNC, "async", "stream-ordered memory", 1)                                                  \
    X(POOL, "pool", "memory pools", 0)

enum cw_audit_class {
#define X(id, name, label, addressed) CW_AUDIT_##id,
    CW_AUDIT_CLASSES(X)
#undef X
        CW_AUDIT_CLASS_COUNT
};

enum cw_audit_op { CW_AUDIT_TAKEN, CW_AUDIT_GIVEN, CW_AUDIT_OP_COUNT };

enum cw_audit_status {
    CW_AUDIT_OFF,
    CW_AUDIT_RUNNING,
    CW_AUDIT_DONE,
    CW_AUDIT_REFUSED, /* asked for, and not possible: why */
    CW_AUDIT_CUT,     /* it ended before the account could be made: why */
};

struct cw_live_audit_amount {
    uint64_t count, bytes;
};

struct cw_live_audit_row {
    struct cw_live_audit_amount both; /* bytes as we count them */
    struct cw_live_audit_amount tool; /* by the tool alone */
    struct cw_live_audit_amount ours; /* by us alone */
    uint64_t tool_bytes;              /* of both, as the tool counts them */
    uint64_t differing;               /* addresses of both whose bytes are not equal */
};

enum cw_audit_side { CW_AUDIT_TOOL_ALONE, CW_AUDIT_OURS_ALONE, CW_AUDIT_SIZES };

struct cw_live_audit_finding {
    uint64_t address; /* 0: of a class without */
    uint64_t count;
    uint64_t bytes;      /* of SIZES as we count them */
    uint64_t tool_bytes; /* of SIZES */
    uint32_t source;     /* text: the object that asked, as far as the tool says */
    uint8_t side;        /* enum cw_audit_side */
    uint8_t class;       /* enum cw_audit_class */
    uint8_t op;          /* enum cw_audit_op */
    uint8_t unused;
};

/* A variable of a module, which no call allocates: only the tool sees it. */
struct cw_live_audit_variable {
    uint64_t bytes;
    uint32_t name; /* text, 0: not known */
    uint8_t is_managed;
    uint8_t unused[3];
};

#define CW_AUDIT_FINDINGS  16
#define CW_AUDIT_VARIABLES 16

struct cw_live_audit {
    _Atomic uint32_t status; /* enum cw_audit_status */
    uint32_t version;        /* of the tool */
    uint32_t why;            /* text */
    uint32_t findings;       /* in finding[] */
    uint64_t all_findings;   /* there may be more than have room */
    uint64_t dropped;        /* records that the tool has lost */
    uint64_t not_kept;       /* records for which we had no memory */
    uint64_t excused;        /* frees that only the tool has seen, of memory of an ended context */
    struct cw_live_audit_row row[CW_AUDIT_CLASS_COUNT][CW_AUDIT_OP_COUNT];
    struct cw_live_audit_finding finding[CW_AUDIT_FINDINGS];
    struct cw_live_audit_amount fixed; /* all variables that were loaded */
    uint32_t variables;                /* in variable[], the first ones */
    uint32_t unused;
    struct cw_live_audit_variable variable[CW_AUDIT_VARIABLES];
};

#endif
