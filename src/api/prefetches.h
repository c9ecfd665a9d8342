/* SPDX-License-Identifier: MIT */
/*
 * Prefetches: files come to the device through two halves of pinned memory.
 *
 * Owns a table of rows (api/rows.h), whose lock guards everything in them that changes, and the
 * reader, a thread of ours that is there while files are read and for a second after. A request is
 *
 *   READING -> ARRIVING -> ARRIVED
 *
 * The program's thread makes a request; the reader alone opens and reads its file and gives the
 * driver what was read, all of it in the row's stream, one request after the other. The reader
 * never waits for the device and makes each call of the driver inside the gate. Who frees the block
 * of a request that is READING says so before: nothing more is given to the driver for it once
 * cw_api_prefetch_leaving has returned, and what was is waited for as all work is. The end of a
 * context takes the halves, too: the reader asks for the context inside the gate before each read,
 * and the end, which keeps the gate closed, waits for the read that is under way.
 */
#ifndef CW_API_PREFETCHES_H
#define CW_API_PREFETCHES_H

#include "api/api.h"
#include "api/bridge_ops.h"
#include "api/buffer_ops.h"
#include "api/transfer_ops.h"

#define CW_PREFETCHES        16u /* powers of two */
#define CW_PREFETCH_REQUESTS 16u /* of a prefetch, whose answers are kept */

/* What is needed of the host beside the driver: a thread that takes no signals and calls work, and
 * counts as inside a hook. 0: it runs. */
typedef int (*cw_prefetch_thread_fn)(void (*work)(void));

/* When the library is loaded. Of the first, place, enter and leave are used. */
void cw_api_prefetches_init(const struct cw_buffer_ops *places, const struct cw_transfer_ops *ops,
                            const struct cw_bridge_ops *bridge_ops, cw_prefetch_thread_fn thread);

int cw_api_prefetch_make(const char *name, uint64_t chunk_bytes, uint64_t *out);
int cw_api_prefetch_start(uint64_t prefetch, const char *path, int fd, uint64_t offset,
                          uint64_t bytes, void *to, void *stream, uint64_t *out_number);
int cw_api_prefetch_before(uint64_t prefetch, uint64_t number, void *stream);
int cw_api_prefetch_stage(uint64_t prefetch, uint64_t number, int32_t *out);
int cw_api_prefetch_wait(uint64_t prefetch, uint64_t number, uint64_t *out_bytes);
int cw_api_prefetch_cancel(uint64_t prefetch, uint64_t number);
int cw_api_prefetch_now(uint64_t prefetch, struct cuwarden_prefetch *out, size_t size);
int cw_api_prefetch_end(uint64_t prefetch);

/* Before a free of what lies there, or an end of its mapping; under no lock. For nothing unless
 * CW_GUARD_PREFETCH is on. */
void cw_api_prefetch_leaving(uint64_t address, uint64_t bytes);
/* Around the end of a context (core/device/context.h), while the gate is closed. Before the driver
 * is called: once this returns, nothing is read into memory of the context until the gate opens. */
void cw_api_prefetch_context_ending(uint32_t context);
/* After it: the context has ended, also if another has its name now, and so have its prefetches. */
void cw_api_prefetch_context_ended(uint32_t context);
/* At the end of the process: once this returns, the reader calls the driver no more. */
void cw_api_prefetches_stop(void);
/* In a forked child. */
void cw_api_prefetches_reset(void);

#endif
