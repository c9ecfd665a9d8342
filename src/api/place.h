/* SPDX-License-Identifier: MIT */
/*
 * The context that a thing of the interface is in: where it was made, and whether that is still
 * there. Drivers before CUDA 12.0 number no contexts, and the one after a reset has the handle of
 * the one before, so that only the account tells them apart. Owns nothing; no lock.
 */
#ifndef CW_API_PLACE_H
#define CW_API_PLACE_H

#include "api/buffer_ops.h"

/* Of the calling thread's current context; the driver's code, or CW_BUFFER_NO_CONTEXT. ops: NULL
 * as long as the driver is not there. */
int cw_place_here(const struct cw_buffer_ops *ops, struct cw_buffer_place *out);

/* As ops->enter; CW_BUFFER_CONTEXT_ENDED also where another one has its name. */
int cw_place_enter(const struct cw_buffer_ops *ops, const struct cw_buffer_place *place,
                   int *out_pushed);

#endif
