/* SPDX-License-Identifier: MIT */
/* The rows of growable buffers; see buffers.h. For buffers.c and buffer_resize.c alone. */
#ifndef CW_API_BUFFER_TABLE_H
#define CW_API_BUFFER_TABLE_H

#include <stdatomic.h>

#include "api/buffer_memory.h"
#include "api/buffers.h"

enum cw_buffer_state { CW_BUFFER_FREE, CW_BUFFER_MAKING, CW_BUFFER_READY, CW_BUFFER_BUSY };

struct cw_buffer_row {
    /* What ensure_capacity reads and writes, in one line of the cache. */
    _Atomic uint64_t id;   /* 0: nobody's */
    _Atomic uint64_t room; /* elements */
    _Atomic uint64_t used;
    _Atomic uint64_t address;
    _Atomic uint64_t used_ns;

    _Atomic int state; /* enum cw_buffer_state */
    /* Written while MAKING. */
    char name[CW_BUFFER_NAME_MAX];
    uint64_t element_bytes, least_bytes, most_bytes;
    double growth;
    uint32_t flags;
    uint64_t born_ns;
    /* The owner's alone while MAKING or BUSY; what others are told of it is in `shown`. */
    struct cw_buffer_memory memory;
    struct {
        _Atomic uint64_t bytes, resizes, copies, copied_bytes;
        _Atomic int device, is_in_place;
    } shown;
};

extern CW_HIDDEN struct cw_buffer_row cw_buffer_rows[CW_BUFFERS];

static inline struct cw_buffer_row *cw_buffer_row_of(uint64_t buffer)
{
    return &cw_buffer_rows[buffer & (CW_BUFFERS - 1)];
}

static inline uint64_t cw_buffer_load(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static inline void cw_buffer_store(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

/* What the buffer's maker has written is there. */
static inline int cw_buffer_is(const struct cw_buffer_row *row, uint64_t buffer)
{
    return buffer != 0 && atomic_load_explicit(&row->id, memory_order_acquire) == buffer;
}

/* OK: the row is the caller's until release; else the failure: NOT_FOUND, BUSY. */
int cw_buffer_claim(uint64_t buffer, struct cw_buffer_row **out);
void cw_buffer_release(struct cw_buffer_row *row);
int cw_buffer_not_found(uint64_t buffer);

/* Others see what the memory has become. */
void cw_buffer_show(struct cw_buffer_row *row);

/* Makes room for so many elements; the row is the caller's. */
int cw_buffer_grow(struct cw_buffer_row *row, uint64_t count, void *stream);
/* To what is used; what goes back is added to *out_bytes. */
int cw_buffer_shrink(struct cw_buffer_row *row, uint64_t *out_bytes);
/* Says what the driver has refused: `what` it was about to do for the buffer. */
int cw_buffer_refused(const struct cw_buffer_row *row, int code, uint64_t wanted, const char *what);

#endif
