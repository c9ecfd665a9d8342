/* SPDX-License-Identifier: MIT */
/* What growable buffers need of the driver (api/buffer_ops.h), over it. */
#ifndef CW_HOOK_BUFFER_DRIVER_H
#define CW_HOOK_BUFFER_DRIVER_H

#include "api/buffer_ops.h"
#include "base/compiler.h"

extern CW_HIDDEN const struct cw_buffer_ops cw_buffer_driver;

#endif
