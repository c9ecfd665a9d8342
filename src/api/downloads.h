/* SPDX-License-Identifier: MIT */
/*
 * Downloads: two halves of pinned memory, filled in turn by a stream of their own.
 *
 * Owns a table of rows (api/rows.h), whose lock guards everything in them that changes. A half goes
 *
 *   EMPTY -> STARTING -> IN_FLIGHT -> COMPLETE -> HELD -> EMPTY
 *
 * and its number is never used again, so who has looked at its event without the lock knows by the
 * number whether it is still the same frame. The stream keeps its order, so a half that a failed
 * start left behind may be filled again.
 */
#ifndef CW_API_DOWNLOADS_H
#define CW_API_DOWNLOADS_H

#include "api/api.h"
#include "api/buffer_ops.h"
#include "api/transfer_ops.h"

#define CW_DOWNLOADS 64u /* a power of two */

/* When the library is loaded. Of the first, place, enter and leave are used. */
void cw_api_downloads_init(const struct cw_buffer_ops *places, const struct cw_transfer_ops *ops);

int cw_api_download_make(const char *name, uint64_t most_bytes, uint64_t *out);
int cw_api_download_start(uint64_t download, const void *from, uint64_t bytes, void *stream,
                          uint64_t *out_number);
int cw_api_download_after(uint64_t download, void *stream, void *event);
int cw_api_download_before(uint64_t download, void *stream);
int cw_api_download_wait(uint64_t download, uint64_t least, struct cuwarden_frame *out,
                         size_t size);
int cw_api_download_release(uint64_t download);
int cw_api_download_now(uint64_t download, struct cuwarden_download *out, size_t size);
int cw_api_download_end(uint64_t download);

/* In a forked child. */
void cw_api_downloads_reset(void);

#endif
