/* SPDX-License-Identifier: MIT */
/*
 * The pool's part in the beginning and the end of a context.
 *
 * Before a context ends, with the gate still open, blocks that other contexts may still use go
 * through the driver's own free. Then, with the gate closed, its pool_context closes, and all its
 * idle blocks move to limbo; whatever comes in meanwhile follows them. If the context stays after
 * all, they wait once more like fresh frees; if not, they are forgotten. No state of its own.
 */
#ifndef CW_CORE_CONTEXT_LIFE_H
#define CW_CORE_CONTEXT_LIFE_H

#include "base/compiler.h"
#include "core/device/context.h"

extern CW_HIDDEN const struct cw_context_listener cw_context_life_listener;

#endif
