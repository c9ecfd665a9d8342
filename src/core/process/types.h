/* SPDX-License-Identifier: MIT */
/*
 * The nouns of the core. See live/layout.h for the glossary of what is kept.
 *
 *   call     one call of the program into a hooked function.
 *   request  what an allocating call asked for and got, in words that know nothing of CUDA.
 *   key      the name under which the program knows a block: an address or a handle.
 *   space    the set in which a key is unique; equal numbers in different spaces are different
 * blocks.
 */
#ifndef CW_CORE_TYPES_H
#define CW_CORE_TYPES_H

#include <stdint.h>

#include "live/layout.h"

enum cw_space {
    CW_SPACE_ADDRESS,     /* device, managed, pinned, registered and imported pointers: one address
                             space */
    CW_SPACE_ARRAY,       /* arrays and mipmapped arrays */
    CW_SPACE_HANDLE,      /* virtual memory handles: kept by vmm.c, not by the index */
    CW_SPACE_RESERVATION, /* reserved address ranges */
    CW_SPACE_EXTERNAL,    /* external memory objects */
    CW_SPACE_GRAPHICS,    /* graphics resources, while they are mapped */
    CW_SPACE_POOL,        /* memory pools */
    CW_SPACE_MODULE,      /* loaded modules and libraries */
};

/* Blocks of one class can stand in for each other. Pinned memory is divided by the flags of
 * cuMemHostAlloc; cuMemAllocHost has its own class, because only the driver knows the flags that it
 * implies. */
enum cw_pool_class {
    CW_POOL_DEVICE,
    CW_POOL_PITCHED,
    CW_POOL_HOST,
    CW_POOL_HOST_FLAGS, /* + flags 0..7 */
    CW_POOL_CLASSES = CW_POOL_HOST_FLAGS + 8,
};

/* What a call has claimed of a budget (core/account/budget.h). */
struct cw_budget_claim {
    uint64_t bytes;
    uint16_t tag;   /* of the request */
    uint8_t budget; /* the number when it was claimed; 0: none, and nothing is pending */
};

struct cw_request {
    enum cw_space space;
    enum cw_kind kind;
    uint8_t device;   /* ordinal or CW_DEVICE_HOST */
    uint8_t flags;    /* enum cw_block_flags */
    uint8_t class;    /* of a pooled block: enum cw_pool_class */
    uint8_t unserved; /* of one that failed: enum cw_unserved, as far as known */
    uint32_t context; /* 0 when the block does not go with a context */
    uint64_t key;
    uint64_t bytes;    /* asked for */
    uint64_t held;     /* taken from the driver as far as known, else bytes */
    uint64_t reserved; /* of held: counted as such already (core/limits/limit.h) */
};

/* What is asked after the driver's own free: whether the context's work of before goes on
 * (core/pending/patience.h). */
struct cw_free_probe {
    uint32_t context; /* 0: nothing is asked */
    int is_host;
    uint64_t event, bytes;
};

/* Which blocks of CW_SPACE_ADDRESS a free by the program frees. */
enum cw_freeing {
    CW_FREES_DEVICE,
    CW_FREES_HOST,
    CW_FREES_ORDERED,    /* in the order of a stream */
    CW_FREES_REGISTERED, /* host memory of the program's own */
    CW_FREES_IMPORTED,
};

/* A free by the program that goes to the driver, from before the call until after it. */
struct cw_request_free {
    enum cw_space space;
    enum cw_freeing how;
    uint64_t key;
    uint32_t block; /* 0: not known to us */
    int is_late;    /* it has waited: a capture may have begun since the program made it */
    struct cw_free_probe probe;
};

/* How a free ended, as the tracker needs to know it. */
enum cw_free_result {
    CW_FREE_DONE,      /* the memory is gone by the program's own call */
    CW_FREE_REFUSED,   /* the driver denies the block: it stays live; an event */
    CW_FREE_STREAM,    /* the driver denies the stream, not the block: it stays live; an event */
    CW_FREE_FAILED,    /* the driver could not, whatever the pointer: as live as before */
    CW_FREE_RECLAIMED, /* the memory went with its context */
};

#endif
