/* SPDX-License-Identifier: MIT */
/* What an allocation on a device of the library's choice needs (api/device_ops.h), over the driver.
 */
#ifndef CW_HOOK_DEVICE_DRIVER_H
#define CW_HOOK_DEVICE_DRIVER_H

#include "api/device_ops.h"
#include "base/compiler.h"

extern CW_HIDDEN const struct cw_device_ops cw_device_driver;

#endif
