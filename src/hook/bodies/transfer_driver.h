/* SPDX-License-Identifier: MIT */
/* What downloads need of the driver (api/transfer_ops.h), over it. */
#ifndef CW_HOOK_TRANSFER_DRIVER_H
#define CW_HOOK_TRANSFER_DRIVER_H

#include "api/transfer_ops.h"
#include "base/compiler.h"

extern CW_HIDDEN const struct cw_transfer_ops cw_transfer_driver;

#endif
