/* SPDX-License-Identifier: MIT */
/*
 * Growable buffers: who is there, how each stands, and the program's functions.
 *
 * Owns a table of rows. A row's state says who may do what: it is taken under a lock
 * (CW_RANK_BUFFER), which guards states on the way from and to FREE and the names, so that no two
 * buffers have the same; from READY to BUSY and back it is changed by one thread at a time, without
 * the lock and by compare and exchange, around calls of the driver. What finds room changes nothing
 * but two counters. An id is never used again, and names row and owner, so one that is out of date
 * finds nothing. A forked child has no buffers: CUDA does not come with it.
 */
#ifndef CW_API_BUFFERS_H
#define CW_API_BUFFERS_H

#include "api/api.h"
#include "api/buffer_ops.h"

#define CW_BUFFERS         1024u /* a power of two */
#define CW_BUFFER_NAME_MAX 48u
#define CW_BUFFER_LEAST    ((uint64_t)4 << 10)

int cw_api_buffer_make(const struct cuwarden_buffer_spec *spec, size_t size, uint64_t *out);
int cw_api_buffer_find(const char *name, uint64_t element_bytes, uint64_t *out);
int cw_api_buffer_ensure(uint64_t buffer, uint64_t count, void *stream, void **out_address);
int cw_api_buffer_use(uint64_t buffer, uint64_t count);
int cw_api_buffer_now(uint64_t buffer, struct cuwarden_buffer *out, size_t size);
int cw_api_buffer_visit(cuwarden_buffer_fn fn, void *arg);
int cw_api_buffer_shrink(uint64_t buffer, uint64_t *out_bytes);
int cw_api_buffer_clean(uint64_t unused_ns, double below, uint64_t *out_bytes);
int cw_api_buffer_end(uint64_t buffer);

/* In a forked child. */
void cw_api_buffers_reset(void);

#endif
