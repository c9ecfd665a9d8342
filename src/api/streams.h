/* SPDX-License-Identifier: MIT */
/*
 * Stream sets: three streams of a device, for computing and for what comes in and goes out, and how
 * much of the time each has work.
 *
 * Owns a table of rows (api/rows.h). A piece of work lies between two timed events of its stream;
 * whoever submits looks which have passed, and never waits for one. The submitter has all of a row
 * to himself but the times, which the table's lock guards. Events of a set are compared with the
 * one that was seen to pass before, never with one from long ago: a driver tells the time between
 * two as a float.
 */
#ifndef CW_API_STREAMS_H
#define CW_API_STREAMS_H

#include "api/api.h"
#include "api/buffer_ops.h"
#include "api/transfer_ops.h"

#define CW_STREAM_SETS  16u /* a power of two */
#define CW_STREAM_LANES 3
#define CW_STREAM_WORKS 32u /* of a stream, on their way at a time */

/* When the library is loaded. Of the first, place, enter and leave are used. */
void cw_api_streams_init(const struct cw_buffer_ops *places, const struct cw_transfer_ops *ops);

int cw_api_streams_make(const char *name, int device, uint64_t *out);
int cw_api_streams_order(uint64_t streams, int later, int earlier);
int cw_api_streams_reset(uint64_t streams);
int cw_api_streams_now(uint64_t streams, struct cuwarden_streams *out, size_t size);
int cw_api_streams_end(uint64_t streams);
int cw_api_work_begin(uint64_t streams, int which);
int cw_api_work_end(uint64_t streams, int which);

/* In a forked child. */
void cw_api_streams_forked(void);

#endif
