/* SPDX-License-Identifier: MIT */
/* Whether what lies at an address is there to be copied from or to by a bridge or a prefetch. */
#ifndef CW_API_ROW_MEMORY_H
#define CW_API_ROW_MEMORY_H

#include "api/bridge_ops.h"
#include "api/rows.h"

/* So many bytes from `at` on are memory of the place's device, of a block or of what is mapped
 * behind it piece by piece; *out is the first of it. NOT_FOUND, INVALID, TOO_LARGE. Inside. */
int cw_rows_check_memory(const struct cw_rows *rows, const struct cw_row *row,
                         const struct cw_bridge_ops *ops, const struct cw_buffer_place *place,
                         const void *at, uint64_t bytes, struct cw_bridge_memory *out);

#endif
