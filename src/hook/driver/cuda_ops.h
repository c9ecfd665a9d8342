/* SPDX-License-Identifier: MIT */
/* The real driver, as the core sees it (core/process/driver_ops.h). */
#ifndef CW_HOOK_CUDA_OPS_H
#define CW_HOOK_CUDA_OPS_H

#include "base/compiler.h"
#include "core/process/driver_ops.h"
#include "hook/resolve/cuda_compat.h"

extern CW_HIDDEN const struct cw_driver_ops cw_cuda_ops;

/* The session's times are exact from now on, as they were at first: the process ends. */
void cw_cuda_ops_end_exactly(void);
/* In a forked child, whose session begins anew. */
void cw_cuda_ops_forked(void);

/* Makes the context current if it is not, unless it has ended. *out_pushed: leave must undo it. */
CUresult cw_cuda_enter_context(struct cw_context_name context, int *out_pushed);
void cw_cuda_leave_context(struct cw_context_name context, int pushed);

/* cuDriverGetVersion, 0 where it fails. */
unsigned cw_cuda_driver_version(void);

#endif
