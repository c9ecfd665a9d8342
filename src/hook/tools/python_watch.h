/* SPDX-License-Identifier: MIT */
/* Watches the interpreter come and go, for the reader of its frames (core/python/python.h). */
#ifndef CW_HOOK_PYTHON_WATCH_H
#define CW_HOOK_PYTHON_WATCH_H

#include "base/options/options.h"

/* Before the session is armed: looks for an interpreter now, and again whenever objects have been
 * loaded. No lock of ours is held. */
void cw_python_watch(const struct cw_options *options);

/* Around an unloading, possibly of the interpreter. Those of several threads may overlap. */
void cw_python_unload_begin(void);
void cw_python_unload_end(void);

/* In a forked child. */
void cw_python_watch_reset(void);

#endif
