/* SPDX-License-Identifier: MIT */
/*
 * Lines of Python code as records of the arena (CW_TABLE_CODE): one for each file, function and
 * line, however often the code is compiled anew.
 *
 * All of it is guarded by cw_intern_lock, which is not held while a code object is read.
 */
#ifndef CW_CORE_SOURCE_LINE_H
#define CW_CORE_SOURCE_LINE_H

#include <stdint.h>

#include "core/python/python.h"
#include "live/arena.h"

void cw_source_line_init(struct cw_arena *arena);
/* In a forked child. */
void cw_source_line_reset(void);

/* The record of each frame, 0 where it shows nothing or there is no memory. The frames are those of
 * the thread's current call. No lock held. */
void cw_source_line_find(const struct cw_python_frame *frames, unsigned count, uint32_t *out);

#endif
