/* SPDX-License-Identifier: MIT */
/*
 * Bridges: copies from one device to another, by peers or through two halves of pinned memory.
 *
 * Owns a table of rows (api/rows.h), whose lock guards what in them changes. A bridge has a stream
 * on each side, and the one on the far side keeps the order of its copies: each begins after the
 * program's stream, whatever its way, and has its place in a ring of timed events. Staged, a half
 * is filled by the near side's stream and emptied by the far side's; each waits for the other by
 * an event of that half and for nothing else, so two copies in a row never wait in a circle. The
 * near side's stream waits for the end of a copy, too, so that whoever waits for the context of a
 * block, as a free does, waits for who reads it.
 */
#ifndef CW_API_BRIDGES_H
#define CW_API_BRIDGES_H

#include "api/api.h"
#include "api/bridge_ops.h"
#include "api/buffer_ops.h"
#include "api/transfer_ops.h"

#define CW_BRIDGES       64u /* a power of two */
#define CW_BRIDGE_COPIES 16u /* on their way at a time */

/* When the library is loaded. Of the first, place, enter and leave are used. */
void cw_api_bridges_init(const struct cw_buffer_ops *places, const struct cw_transfer_ops *ops,
                         const struct cw_bridge_ops *bridge_ops);

int cw_api_bridge_make(const char *name, int from_device, int to_device, uint64_t chunk_bytes,
                       int way, uint64_t *out);
int cw_api_bridge_copy(uint64_t bridge, void *to, const void *from, uint64_t bytes, void *stream,
                       uint64_t *out_number, int32_t *out_way);
int cw_api_bridge_wait(uint64_t bridge, uint64_t number);
int cw_api_bridge_now(uint64_t bridge, struct cuwarden_bridge *out, size_t size);
int cw_api_bridge_end(uint64_t bridge);

/* In a forked child. */
void cw_api_bridges_reset(void);

#endif
