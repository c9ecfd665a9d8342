/* SPDX-License-Identifier: MIT */
/*
 * DUMP_SIGNAL: our handler for one signal, only if the user asks for it. It survives a fork, and
 * does nothing in the child until that is armed.
 */
#ifndef CW_HOOK_DUMP_SIGNAL_H
#define CW_HOOK_DUMP_SIGNAL_H

#include "base/options/options.h"

/* Once the session is armed; once per process. */
void cw_dump_signal_install(const struct cw_options *options);
/* In a forked child, before anything else is taken down. */
void cw_dump_signal_reset(void);

#endif
