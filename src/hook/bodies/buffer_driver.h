/* SPDX-License-Identifier: MIT */
/* What growable buffers need of the driver (api/buffer_ops.h), over it. */
#ifndef CW_HOOK_BUFFER_DRIVER_H
#define CW_HOOK_BUFFER_DRIVER_H

#include "api/api.h"
#include "api/buffer_ops.h"
#include "base/compiler.h"

/* Our own body, called as the program would: *out_code. */
#define CW_AS_PROGRAM(out_code, call)                                                              \
    do {                                                                                           \
        struct cw_api_outside outside = cw_api_pause();                                            \
                                                                                                   \
        (out_code) = (call);                                                                       \
        cw_api_resume(&outside);                                                                   \
    } while (0)

extern CW_HIDDEN const struct cw_buffer_ops cw_buffer_driver;

#endif
