/* SPDX-License-Identifier: MIT */
/*
 * The part of the live layout (live/layout.h) for what the pool did: by bucket, and on each device.
 */
#ifndef CW_LIVE_LAYOUT_POOL_H
#define CW_LIVE_LAYOUT_POOL_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A bucket has one writer for its counters, like a site: the thread in slot `owner`, for the blocks
 * that it keeps to itself; the record of owner 0 is the bucket that all threads share and is
 * written under that bucket's lock. A report adds up the records that are equal in device, kind and
 * size.
 */
struct __attribute__((aligned(64))) cw_live_bucket {
    /* The least that its blocks may have; all are smaller than the next bucket's. 0: it is not
     * complete yet. */
    _Atomic uint64_t size;
    uint32_t context; /* whose blocks it counted first; those of later ones follow */
    uint8_t device;   /* ordinal or CW_DEVICE_HOST */
    uint8_t kind;     /* enum cw_kind: DEVICE, PITCHED or PINNED */
    uint8_t owner;    /* slot of the thread that writes, 0: shared */
    uint8_t unused;
    /* A cache line for what each pair of calls changes. */
    _Atomic uint64_t hits;                     /* requests served by an idle block */
    _Atomic uint64_t kept;                     /* frees after which the pool kept the block */
    _Atomic uint64_t asked_bytes, given_bytes; /* of hits and misses: what was asked, the blocks' */
    _Atomic uint64_t idle_blocks, idle_bytes;  /* kept now, ready or not; of all records together:
                                                  a block may come in by one and leave by another */
    _Atomic uint64_t misses;                   /* requests for which the driver was asked */
    _Atomic uint64_t released, released_bytes; /* blocks given back to the driver */
    uint64_t reserved[3];
};

/* Why the pool did not serve or keep: X(ID, "json name", label). */
#define CW_BYPASSES(X)                                                                             \
    X(CAPTURE, "capture", "a stream capture was running")                                          \
    X(EXPORTED, "exported", "the block was exported, its attributes set, or changed behind us")    \
    X(NO_CONTEXT, "no_context", "no context was current")                                          \
    X(BROKEN, "broken_context", "the context had failed or was ending")                            \
    X(CONTEXTS, "contexts", "several contexts, and a driver without context events")               \
    X(FULL, "full", "the bucket or the cache was full")                                            \
    X(WANTED, "wanted", "another request had found no memory")                                     \
    X(KIND, "kind", "flags or a size that the pool does not serve")                                \
    X(BUSY, "busy", "the device was at work for 20 ms: waiting is the driver's affair")            \
    X(EVENTS, "events", "a small block, and a driver without context events")

enum cw_bypass {
#define X(id, name, label) CW_BYPASS_##id,
    CW_BYPASSES(X)
#undef X
        CW_BYPASS_COUNT
};

/* Why idle blocks went back to the driver: X(ID, "json name", label). PRESSURE is reported with the
 * levels. */
#define CW_RELEASES(X)                                                                             \
    X(FULL, "full", "above CUWARDEN_POOL_MAX or CUWARDEN_POOL_BUCKET_MAX")                         \
    X(IDLE, "idle", "idle for longer than CUWARDEN_POOL_IDLE")                                     \
    X(OOM, "oom", "to make room for a request that ran out of memory")                             \
    X(PRESSURE, "pressure", "memory on the device was scarce")                                     \
    X(ASKED, "asked", "as the program or another process asked")                                   \
    X(NEIGHBOUR, "neighbour", "for another process that had run out of memory")                    \
    X(CONTEXT, "context", "with a context that ended, while others could still use them")

enum cw_release {
#define X(id, name, label) CW_RELEASE_##id,
    CW_RELEASES(X)
#undef X
        CW_RELEASE_COUNT
};

struct cw_live_released {
    _Atomic uint64_t blocks, bytes;
};

/* The pool's work on one device besides serving; nothing here changes on a hit. */
struct cw_live_pool {
    _Atomic uint64_t bypassed[CW_BYPASS_COUNT];
    _Atomic uint64_t harvested_by_sync;  /* blocks that a synchronisation of the program freed */
    _Atomic uint64_t harvested_by_event; /* blocks that an event of the context freed */
    _Atomic uint64_t event_records, event_queries;
    _Atomic uint64_t exact_retries; /* out of memory at the rounded size, asked again exactly */
    _Atomic uint64_t oom_retries;   /* out of memory, asked again after idle blocks were released */
    struct cw_live_released released[CW_RELEASE_COUNT];
    _Atomic uint64_t prewarmed; /* blocks taken ahead of any request */
    /* Freed blocks that went with their context although another one may still have used them: a
     * capture ran, so they could not be waited for. */
    _Atomic uint64_t abandoned;
    _Atomic uint64_t put_off, events_refused; /* core/pending/patience.h */
    uint64_t reserved[1];
};

#endif
