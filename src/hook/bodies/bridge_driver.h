/* SPDX-License-Identifier: MIT */
/* What bridges need of the driver (api/bridge_ops.h), over it. */
#ifndef CW_HOOK_BRIDGE_DRIVER_H
#define CW_HOOK_BRIDGE_DRIVER_H

#include "api/bridge_ops.h"
#include "base/compiler.h"

extern CW_HIDDEN const struct cw_bridge_ops cw_bridge_over_driver;

#endif
