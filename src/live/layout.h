/* SPDX-License-Identifier: MIT */
/*
 * The live layout: all that is known of one process, in the form in which it lies in memory, and in
 * which a file can back it.
 *
 * Glossary
 *   arena    one contiguous range that starts with struct cw_live_header; grows at its end only.
 *   table    records of one type, named by index. A table lies in up to CW_CHUNKS chunks: chunk k
 *            holds (first << k) records, so a record never moves and an index finds its chunk by
 *            counting leading zeros. Index 0 of every table is never used: 0 means "none".
 *   text     a table of bytes: NUL-terminated strings, named by the index of their first byte.
 *   block    one allocation: a range of memory, a handle, an imported object.
 *   site     the place that allocates: call stack, API, kind, device, tag. All counters of
 *            allocations live in sites; per device and per kind they are sums over sites.
 *   frame    a node of the append-only tree of call stacks: a return address and its caller's
 *            node. A stack is named by its innermost frame.
 *   code     a line of a program that an interpreter runs.
 *   tag      a name that the program gives to what it does (an NVTX range or mark). What a thread
 *            allocates has the tag of the innermost range that the thread is in.
 *   step     one pass through a range, or one mark, of the same name.
 *   sample   a moment at which what all sites hold was written down; the samples are thinned as
 *            they become too many, so that they always span the whole life of the process.
 *   series   what one site held at each sample.
 *   timeline what one device held over time; the same, with moments of its own.
 *   owner    what tells one allocation from all others that had the same block record.
 *   regrowth a block is replaced by a larger one from the same site, and its bytes are copied.
 *   module   one mapping of a shared object: the same file at two addresses is two modules.
 *   bucket   the idle blocks of one size, kind and context, and what passed through.
 *   idle     of a block: the program has freed it, the pool keeps it.
 *   held     of bytes: taken from the driver, whether the program uses them or they lie idle.
 *   level    how scarce memory is on a device, see CW_LEVELS.
 *   rung     a step that is tried when memory has run out, in the order of CW_RUNGS.
 *
 * Rules that always hold
 *   - Records refer to each other by index, never by pointer.
 *   - A record is complete before its table's count, or another record, names it (release stores).
 *   - Frames, modules, sites, contexts and text are append-only; blocks are recycled through
 * `state`.
 *   - Every field may be read at any moment by another thread or process, without a lock; a reader
 *     checks each index against the table's count and takes a torn record for what it is: one block
 *     that was changing hands.
 *   - Bytes are bytes; times are nanoseconds since header.start_ns (CLOCK_MONOTONIC), 0 = never.
 *   - Fields are only ever appended; a change of meaning changes CW_LIVE_VERSION.
 */
#ifndef CW_LIVE_LAYOUT_H
#define CW_LIVE_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/device_properties.h"
#include "live/layout_audit.h"
#include "live/layout_control.h"
#include "live/layout_pool.h"
#include "live/layout_shortage.h"
#include "live/layout_time.h"

#define CW_LIVE_MAGIC   0x314556494c575543ull
#define CW_LIVE_VERSION 13

#define CW_CHUNKS      26
#define CW_ELEM_MAX    32768 /* bytes of a record at most */
#define CW_MAX_DEVICES 64
#define CW_DEVICE_HOST 64 /* the pseudo device that owns pinned and registered host memory */
#define CW_DEVICES     65
#define CW_DEPTH_MAX   128
#define CW_SLOTS       64 /* threads that have counters of their own; slot 0 is shared by the others */

enum cw_table {
    CW_TABLE_TEXT,
    CW_TABLE_MODULE,
    CW_TABLE_FRAME,
    CW_TABLE_SITE,
    CW_TABLE_BLOCK,
    CW_TABLE_CONTEXT,
    CW_TABLE_EVENT,
    CW_TABLE_BUCKET,
    CW_TABLE_OOM,
    CW_TABLE_CODE,
    CW_TABLE_TAG,
    CW_TABLE_SERIES,
    CW_TABLE_TIMELINE,
    CW_TABLE_REGROWTH,
    CW_TABLE_OWNER,
    CW_TABLE_COUNT
};

/* Kinds of allocations. Rows: X(ID, "json name", counted, label). counted: DEVICE bytes are added
 * to the device's live, HOST bytes to the host's; NONE: listed but not in any sum, because the
 * memory is not this process's own (imports) or there is none (reservations, handles). */
#define CW_KINDS(X)                                                                                \
    X(DEVICE, "device", DEVICE, "device memory")                                                   \
    X(PITCHED, "pitched", DEVICE, "pitched memory")                                                \
    X(MANAGED, "managed", DEVICE, "managed memory")                                                \
    X(ARRAY, "array", DEVICE, "array")                                                             \
    X(MIPMAP, "mipmap", DEVICE, "mipmapped array")                                                 \
    X(ASYNC, "async", DEVICE, "stream-ordered memory")                                             \
    X(GRAPH, "graph", DEVICE, "graph memory")                                                      \
    X(VMM, "vmm", DEVICE, "virtual memory allocation")                                             \
    X(PINNED, "pinned", HOST, "pinned host memory")                                                \
    X(REGISTERED, "registered", HOST, "registered host memory")                                    \
    X(VMM_HOST, "vmm-host", HOST, "virtual memory allocation on the host")                         \
    X(IPC, "ipc", NONE, "memory imported by IPC")                                                  \
    X(IMPORTED, "imported", NONE, "virtual memory imported from a handle")                         \
    X(EXTERNAL, "external", NONE, "external memory")                                               \
    X(EXTERNAL_MAP, "external-map", NONE, "mapping of external memory")                            \
    X(GRAPHICS, "graphics", NONE, "mapping of a graphics resource")                                \
    X(RESERVATION, "reservation", NONE, "reserved addresses")                                      \
    X(MULTICAST, "multicast", NONE, "multicast object")                                            \
    X(POOL, "pool", NONE, "memory pool")                                                           \
    X(MODULE, "module", NONE, "loaded module")

#define CW_COUNTED_NONE   0
#define CW_COUNTED_DEVICE 1
#define CW_COUNTED_HOST   2

enum cw_kind {
#define X(id, name, counted, label) CW_KIND_##id,
    CW_KINDS(X)
#undef X
        CW_KIND_COUNT
};

enum cw_block_state {
    CW_BLOCK_FREE,    /* on the free list */
    CW_BLOCK_LIVE,    /* the program holds it */
    CW_BLOCK_LEAVING, /* being freed, or its context has ended */
    CW_BLOCK_IDLE,    /* the program has freed it, the pool keeps it */
};

enum cw_block_flags {
    CW_BLOCK_EXPORTED = 1 << 0, /* IPC handle, dma-buf, shareable handle: never to be cached */
    CW_BLOCK_RUNTIME =
        1 << 1, /* seen at the runtime only: a cudart that does not stand on libcuda */
    CW_BLOCK_POOLED = 1 << 2,   /* the pool took it from the driver and gives it back */
    CW_BLOCK_FALLBACK = 1 << 3, /* managed memory in place of device memory (FALLBACK) */
    CW_BLOCK_PAIRED = 1 << 4,   /* copied from or to, and maybe replaced or replacing */
    CW_BLOCK_REGROWN = 1 << 5,  /* it has replaced a smaller one */
};

struct cw_live_table {
    _Atomic uint32_t count; /* records in use + 1: valid indexes are 1 .. count-1 */
    uint32_t elem_size;
    uint32_t first;                    /* records in chunk 0; a power of two */
    uint32_t chunks;                   /* chunks present */
    _Atomic uint64_t chunk[CW_CHUNKS]; /* offset from the arena's start, 0 = absent */
};

/* One mapped object file. text_* fields are indexes into CW_TABLE_TEXT. */
struct cw_live_module {
    uint64_t base; /* first mapped byte */
    uint64_t end;  /* one past the last */
    uint64_t bias; /* address in memory minus address in the file (l_addr) */
    uint32_t path; /* text */
    uint32_t generation;
    uint8_t build_id[20];
    uint8_t build_id_len;
    uint8_t role; /* enum cw_module_role */
    uint8_t unused[2];
};

/* A frame that is not machine code: its pc is the index of a code. */
#define CW_MODULE_PYTHON UINT32_MAX

/* There is one for each file, function and line. */
struct cw_live_code {
    uint32_t file, function; /* text, UTF-8 */
    uint32_t line;           /* 0: not known */
    uint32_t hash_next;      /* writer's own */
};

enum cw_module_role { CW_MODULE_PROGRAM, CW_MODULE_SELF, CW_MODULE_DRIVER, CW_MODULE_RUNTIME };

struct cw_live_frame {
    uint64_t pc;        /* return address: the call is at pc - 1; of Python: a code */
    uint32_t parent;    /* the caller's frame, 0 at the outermost */
    uint32_t module;    /* 0: in no known module; CW_MODULE_PYTHON */
    uint32_t depth;     /* 1 at the outermost */
    uint32_t hash_next; /* writer's own */
};

/*
 * A site has one writer for its hot counters: the thread in slot `owner` adds to them with plain
 * loads and stores, so that threads which allocate from the same place do not fight over a cache
 * line. Each of them has a site record of its own; a report adds up the records that are equal in
 * stack, api, kind and device. Slot 0 is shared by the threads that found no free slot, which add
 * atomically. Changes by other threads to the blocks of a site are counted apart (`far_`),
 * atomically. cw_view_site_sums() says once what follows: live = total - freed - far - reclaimed.
 * Records of two threads share no cache line.
 */
struct __attribute__((aligned(64))) cw_live_site {
    uint32_t stack;     /* innermost frame, 0: no stack */
    uint32_t api;       /* text: the name that the program called, "cudaMalloc" */
    uint8_t kind;       /* enum cw_kind */
    uint8_t device;     /* ordinal or CW_DEVICE_HOST */
    uint8_t owner;      /* slot of the thread that writes, 0: any */
    uint8_t context;    /* number of the context that was current (struct cw_live_context) */
    uint32_t hash_next; /* writer's own */
    _Atomic uint64_t first_ns, last_ns;       /* of allocations */
    _Atomic uint64_t allocs, total_bytes;     /* successful; bytes asked for */
    _Atomic uint64_t frees, freed_bytes;      /* by the owner */
    _Atomic uint64_t peak_blocks, peak_bytes; /* of this record alone */
    /* What the site held when its device peaked: at_peak_* if at_peak_version is the device's
     * peak_version (the site changed since that peak and saved what it held), else the live values.
     * cw_view_site_at_peak() says it once. */
    _Atomic uint64_t at_peak_version, at_peak_blocks, at_peak_bytes;
    _Atomic uint64_t failed;                     /* allocating calls that returned an error */
    _Atomic uint64_t oom;                        /* those of them that were out of memory */
    _Atomic uint64_t far_frees, far_bytes;       /* by other threads */
    _Atomic uint64_t reclaimed, reclaimed_bytes; /* blocks that went with their context */
    /* What the driver took beyond the requested bytes (mip levels, rounding): for all allocations,
     * for those freed by the owner, and for those freed by others or gone with their context. */
    _Atomic uint64_t extra_bytes, freed_extra, far_extra;
    _Atomic uint32_t series; /* what it held over time, 0: none */
    uint16_t tag;            /* of the thread when it allocated, 0: none; part of what a site is */
    uint16_t was_dropped;    /* 1: it found no room for a series; writer's own */
    _Atomic uint64_t ended_bytes; /* freed while the Python interpreter was ending */
};

struct cw_live_block {
    _Atomic uint64_t key;   /* address or handle, as the program knows it */
    _Atomic uint64_t bytes; /* asked for */
    _Atomic uint64_t held;  /* taken from the driver, >= bytes where known */
    _Atomic uint64_t born_ns;
    _Atomic uint32_t state; /* enum cw_block_state */
    _Atomic uint32_t site;
    _Atomic uint32_t context; /* 0: belongs to none (virtual memory, stream-ordered) */
    uint32_t tid;             /* kernel thread id of the allocating thread */
    _Atomic uint8_t space;    /* enum cw_space (core): which keys it is compared with */
    _Atomic uint8_t flags;    /* enum cw_block_flags */
    uint8_t class;            /* of a pooled block: what it can serve (core/pool/pool.h) */
    uint8_t cell; /* and where a thread keeps it (core/cache/thread_cache.h); writer's own */
    /* Handle references, or opens of an IPC handle; of a pooled block how often it served again. */
    _Atomic uint32_t refs;
    /* Mappings of a virtual memory handle; known variables of a module; of an idle block the site
     * of its free. */
    _Atomic uint32_t maps;
    _Atomic uint32_t link; /* next in a list of the owner (free list, closing list, bucket) */
};

#define CW_OWNER_KEPT 0x80000000u /* the program keeps it beyond its scope */

/* Beside each block, under the same index: what its present owner, the allocation, is called. */
struct cw_live_owner {
    _Atomic uint64_t id;   /* no other allocation of this process has it; 0: never given out */
    _Atomic uint32_t name; /* text: what the program calls it, 0: nothing; and CW_OWNER_KEPT */
    uint32_t unused;
};

struct cw_live_context {
    uint64_t handle;     /* CUcontext */
    _Atomic uint64_t id; /* cuCtxGetId, or a number of our own with the top bit set */
    uint32_t device;
    _Atomic uint32_t state; /* enum cw_context_state */
    _Atomic uint32_t
        retains;           /* of a primary context, or attaches beyond the first, as far as seen */
    _Atomic int32_t fatal; /* the code after which the driver demands a restart, or 0 */
    uint8_t primary;
    uint8_t number; /* among those that lived on the device at the same time */
    uint8_t unused[6];
    uint64_t born_ns;
};

/* Contexts of a device are numbered from 0; a number is given again once its context has ended, and
 * the last one is shared. */
#define CW_CONTEXT_NUMBERS 8

enum cw_context_state { CW_CONTEXT_LIVE, CW_CONTEXT_CLOSING, CW_CONTEXT_DEAD };

/* How much of a device is in use, by anybody, or of its limit by this process, whichever is the
 * larger share: the option PRESSURE says where the levels begin. X(ID, "json name"). */
#define CW_LEVELS(X) X(LOW, "low") X(MEDIUM, "medium") X(HIGH, "high") X(CRITICAL, "critical")

enum cw_level {
#define X(id, name) CW_LEVEL_##id,
    CW_LEVELS(X)
#undef X
        CW_LEVEL_COUNT
};

/* Why a request found no memory: X(ID, "json name", label). */
#define CW_CAUSES(X)                                                                               \
    X(DRIVER, "driver", "the driver had none")                                                     \
    X(LIMIT, "limit", "beyond the memory limit")                                                   \
    X(MIN_FREE, "min_free", "less than CUWARDEN_MIN_FREE would have stayed free")                  \
    X(INJECTED, "injected", "injected by CUWARDEN_FAIL")                                           \
    X(BUDGET, "budget", "beyond the budget of its tag")                                            \
    X(PLATFORM, "platform", "beyond a limit of the platform")

enum cw_cause {
#define X(id, name, label) CW_CAUSE_##id,
    CW_CAUSES(X)
#undef X
        CW_CAUSE_COUNT
};

/* Why managed memory did not stand in for a request that found none, with FALLBACK=managed:
 * X(ID, "json name", label). */
#define CW_UNSERVEDS(X)                                                                            \
    X(UNASKED, "", "")                                                                             \
    X(KIND, "kind", "there is no managed memory of this kind")                                     \
    X(CAPTURE, "capture", "a stream captures")                                                     \
    X(DEVICE, "device", "the device, or the driver, does not do it")                               \
    X(HOST, "host", "the host has too little to spare")                                            \
    X(CONTEXT, "context", "it would end with a context, as stream-ordered memory does not")        \
    X(SHARED, "shared", "the memory pool is one for other processes, too")

enum cw_unserved {
#define X(id, name, label) CW_UNSERVED_##id,
    CW_UNSERVEDS(X)
#undef X
        CW_UNSERVED_COUNT
};

/* The rungs of the ladder, in this order, when memory has run out: X(ID, "json name", label). */
#define CW_RUNGS(X)                                                                                \
    X(HARVEST, "harvest", "take in what the device has finished with")                             \
    X(LARGER, "larger", "serve from a larger idle block")                                          \
    X(EXACT, "exact", "ask for the exact size, not the bucket's")                                  \
    X(SUFFICIENT, "sufficient", "give back the smallest idle blocks that suffice")                 \
    X(ALL, "all", "give back all idle blocks")                                                     \
    X(POLL, "poll", "wait a moment for blocks that are still in use")                              \
    X(SYNC, "sync", "wait for the device, then give back the rest")                                \
    X(NEIGHBOURS, "neighbours", "ask other processes for idle memory")                             \
    X(PROGRAM, "program", "ask the program to free something")                                     \
    X(FALLBACK, "fallback", "serve from managed memory")

enum cw_rung {
#define X(id, name, label) CW_RUNG_##id,
    CW_RUNGS(X)
#undef X
        CW_RUNG_COUNT
};

/*
 * X(ID, "json name")
 *   OOM           an allocating call failed with out of memory
 *   INVALID_FREE  a free that the driver refused
 *   FATAL         a context took an error that demands a restart of the process
 *   PRESSURE      the level of a device has changed
 *   TRIM          memory had run out, and giving idle blocks back helped
 *   LIMIT         the limit was changed while the process ran: to `bytes`
 *   PUT_OFF       a context was busy for 20 ms, and the driver's own free does not wait: strict
 *                 frees do not wait either (core/pending/patience.h)
 *   BUDGET        what a tag has went beyond its budget, which warns: to `bytes`
 */
#define CW_EVENTS(X)                                                                               \
    X(OOM, "oom")                                                                                  \
    X(INVALID_FREE, "invalid-free")                                                                \
    X(FATAL, "fatal")                                                                              \
    X(PRESSURE, "pressure")                                                                        \
    X(TRIM, "trim")                                                                                \
    X(LIMIT, "limit")                                                                              \
    X(PUT_OFF, "put-off")                                                                          \
    X(BUDGET, "budget")

enum cw_event_type {
#define X(id, name) CW_EVENT_##id,
    CW_EVENTS(X)
#undef X
        CW_EVENT_COUNT
};

/* Why a free was refused: X(ID, "json name", label). */
#define CW_MISUSES(X)                                                                              \
    X(UNKNOWN, "", "invalid free")                                                                 \
    X(DOUBLE, "double-free", "double free")                                                        \
    X(INSIDE, "inside", "free of a pointer inside a block")                                        \
    X(FOREIGN, "foreign", "free of a pointer that was never allocated")                            \
    X(FUNCTION, "wrong-function", "free by the wrong function")                                    \
    X(CONTEXT, "context-ended", "free of a block after its context had ended")                     \
    X(GRAPH, "graph-memory", "free of a graph's memory while it is not allocated")                 \
    X(STREAM, "invalid-stream", "free in an invalid stream")

enum cw_misuse {
#define X(id, name, label) CW_MISUSE_##id,
    CW_MISUSES(X)
#undef X
        CW_MISUSE_COUNT
};

struct cw_live_event {
    uint64_t t_ns;
    uint64_t key;   /* pointer or handle, if any */
    uint64_t bytes; /* asked for, if any; of a change of level: in use then, or held;
                       of FATAL: borrowed */
    uint64_t free_bytes, total_bytes; /* of the device when last sampled; total 0: not known */
    uint32_t site; /* stack, API, device of the call; 0: no call of the program's */
    int32_t code;  /* the driver's */
    uint8_t type;  /* enum cw_event_type */
    uint8_t device;
    uint8_t
        cause; /* enum cw_cause: of OOM and TRIM; of PRESSURE what decided: DRIVER is the device */
    uint8_t level, level_before; /* enum cw_level: of PRESSURE */
    uint8_t rung;                /* enum cw_rung: of TRIM the one that helped */
    uint16_t share;              /* of PRESSURE: in use, of what decided, in 1/10000 */
    uint32_t other_site;         /* of a second free: the site of the first, 0 if not known */
    _Atomic uint32_t count;      /* how often, where equal ones close together are one; >= 1 */
    _Atomic uint64_t released;   /* bytes given back to the driver in answer */
    uint32_t alloc_site;         /* of INVALID_FREE: of the block that was meant, 0: not known */
    uint8_t misuse;              /* enum cw_misuse, of INVALID_FREE */
    uint8_t bound; /* enum cw_bound: of PRESSURE of cause PLATFORM; of FATAL with bytes */
    uint8_t unused[2];
    uint64_t live, held, idle; /* of OOM: what this process had on the device */
};

struct cw_live_rung {
    _Atomic uint64_t tried;    /* times that it had something to do */
    _Atomic uint64_t helped;   /* and the request was served after it */
    _Atomic uint64_t released; /* bytes given back to the driver by it */
};

/* Requests between processes for idle memory (core/request/neighbours.h). */
struct cw_live_neighbours {
    _Atomic uint64_t asked;   /* requests of this process, when memory had run out or was scarce */
    _Atomic uint64_t silent;  /* of these, when it had run out: nobody answered in time */
    _Atomic uint64_t wait_ns; /* spent on them by calls that had found no memory */
    _Atomic uint64_t served;  /* requests of others, carried out by this process */
};

/* Limits, pressure and what was done about them on one device; nothing here changes on a hit. */
struct cw_live_memory {
    _Atomic uint64_t limit;    /* that this process may hold; 0: none */
    _Atomic uint64_t min_free; /* that must stay free; 0: none */
    _Atomic uint64_t spare;    /* last sample: held by stream-ordered pools of the driver, unused */
    _Atomic uint64_t refused[CW_CAUSE_COUNT]; /* calls that returned out of memory */
    _Atomic uint64_t limited; /* requests that did not fit at first because of LIMIT or MIN_FREE */
    struct cw_live_rung rung[CW_RUNG_COUNT];
    _Atomic uint64_t fallbacks, fallback_bytes; /* requests served from managed memory */
    _Atomic uint32_t level;                     /* enum cw_level, now */
    _Atomic uint32_t last_change;               /* the event of the last change of level, 0: none */
    _Atomic uint32_t last_trim;                 /* the last event of type TRIM, 0: none */
    _Atomic uint32_t share;          /* in use when the level was last looked at, in 1/10000 */
    _Atomic uint64_t level_since_ns; /* 0: from the start */
    _Atomic uint64_t level_ns[CW_LEVEL_COUNT]; /* of all but the present stay */
    _Atomic uint64_t level_entered[CW_LEVEL_COUNT];
    _Atomic uint64_t highest_use;           /* largest share seen, in 1/10000 */
    _Atomic uint64_t bound[CW_BOUND_COUNT]; /* in force; 0: none */
    _Atomic uint64_t borrowed,
        peak_borrowed;            /* beyond the lowest soft bound: last looked at, most */
    _Atomic uint64_t is_platform; /* 1: LIMIT=platform, so that the hard ones refuse */
    struct cw_live_neighbours neighbours;
    /* When there will be no room left, as far as anybody can tell; 0: not foreseen. It is not
     * foreseen any more after `until`, and then grew by so many bytes a second. */
    _Atomic uint64_t full_ns, full_until_ns, full_slope;
    uint64_t reserved[6];
};

/*
 * Live and held bytes: what a thread frees it may keep as slack (struct cw_live_slot) and use up at
 * its next allocation, so that a steady program writes to nothing that threads share. The live
 * bytes are live_bytes minus all slack on this device; cw_view_device_live() says it once. An
 * allocation that would raise live_bytes above recent_peak first takes back all slack, so both
 * peaks are exact. The same holds for held_bytes and peak_held.
 */
struct cw_live_device {
    _Atomic uint64_t live_bytes; /* counted kinds, asked for; slack included */
    _Atomic uint64_t peak_bytes;
    _Atomic uint64_t peak_blocks;  /* that were live at one time; exact like the others */
    _Atomic uint64_t recent_peak;  /* since the timeline's last point; at most peak_bytes */
    _Atomic uint64_t peak_version; /* grows by one with every new peak */
    _Atomic uint64_t held_bytes;   /* taken from the driver and not given back; slack included */
    _Atomic uint64_t peak_held;
    _Atomic uint64_t peak_ns;
    struct cw_live_extreme least, most; /* since the timeline's last point */
    _Atomic uint64_t driver_total;      /* last sample: device size; 0 = never sampled */
    _Atomic uint64_t driver_used;       /* last sample: used on the whole device, by anybody */
    _Atomic uint64_t sample_held;       /* held_bytes at that sample */
    _Atomic uint64_t sample_ns;
    _Atomic uint32_t known; /* 1 once name, uuid and total are filled */
    _Atomic uint32_t asked; /* 1: a thread is about to fill them */
    uint64_t total;         /* bytes of memory, as the device says */
    uint64_t shares_host;   /* 1: its memory is the host's, or a NUMA node */
    uint8_t uuid[16];
    char name[96];
    struct cw_device_properties properties;
    uint32_t unused;
    struct cw_live_pool pool;
    struct cw_live_memory memory;
};

/* Written by the thread that has the slot; by others only while they have stopped it
 * (core/process/slot.h). */
struct cw_live_slot {
    _Alignas(64) _Atomic uint64_t slack_live; /* part of live_bytes of device and process */
    _Atomic uint64_t slack_held;              /* part of held_bytes of the device */
    _Atomic uint32_t device;                  /* of the slack: ordinal or CW_DEVICE_HOST */
    uint32_t unused;
    uint64_t reserved[5];
};

struct cw_live_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    _Atomic uint64_t size; /* bytes of the arena in use */
    uint32_t pid, ppid;
    uint64_t start_realtime_ns; /* CLOCK_REALTIME when the library was armed */
    uint64_t start_ns;          /* CLOCK_MONOTONIC at the same moment */
    _Atomic uint64_t end_ns;    /* since start_ns; 0 while the process runs */
    _Atomic uint32_t exit_kind; /* enum cw_exit_kind */
    _Atomic int32_t exit_code;
    uint32_t driver_version; /* 12040; 0 = not known */
    uint32_t exe, command, cwd,
        host;             /* text; command: the arguments, each NUL replaced by a space */
    uint32_t argc, argv;  /* text of argc strings, one after the other; see is_argv_cut */
    uint32_t stacks_mode; /* enum cw_stacks */
    _Atomic uint64_t untracked_frees; /* successful frees of what was never seen allocated */
    _Atomic uint64_t invalid_frees;   /* frees that the driver refused */
    _Atomic uint64_t lost_blocks;     /* allocations that found no room in the arena */
    _Atomic uint64_t events_dropped;
    _Atomic uint32_t disarmed; /* text: why accounting stopped, 0 = it did not */
    uint8_t pool_mode;         /* 1: MODE=pool */
    uint8_t free_sync;         /* enum cw_free_sync; what is in force, not what was asked for */
    _Atomic uint8_t cut; /* 1: the file could not grow, and some of what came later is not in it */
    uint8_t is_argv_cut; /* 1: the process has more arguments than there are here */
    _Atomic uint32_t python; /* text: why Python's frames cannot be read, 0 = they can */
    struct cw_live_table table[CW_TABLE_COUNT];
    /* Over all devices and the host. These and the hot fields of device 0 share one cache line:
     * what every allocation adds to is fetched from another core once, not twice. */
    _Alignas(64) _Atomic uint64_t live_bytes;
    _Atomic uint64_t peak_bytes;
    _Atomic uint64_t peak_ns;
    uint64_t reserved;
    struct cw_live_device device[CW_DEVICES];
    struct cw_live_slot slot[CW_SLOTS];
    struct cw_live_growth growth;
    struct cw_live_control control;
    uint32_t rank;      /* text: of a parallel job, digits; 0 = not known */
    uint32_t envc, env; /* text of envc strings "NAME=VALUE", one after the other */
    struct cw_live_audit audit;
    _Atomic int32_t init_error; /* the code with which the driver refused to start, 0: it did not */
    uint32_t pid_namespace;     /* inode of /proc/self/ns/pid, where `pid` counts; 0: not known */
    char unseen[95];     /* whose calls of CUDA did not come to us; NUL-terminated; "": nobody's */
    uint8_t is_uncalled; /* and nobody else's came */
    struct cw_live_budget budget[CW_BUDGETS];
};

enum cw_exit_kind {
    CW_EXIT_RUNNING,
    CW_EXIT_EXIT,       /* exit() or return from main */
    CW_EXIT_QUICK_EXIT, /* quick_exit() */
    CW_EXIT_UNDERSCORE, /* _exit(), _Exit() */
};

#endif
