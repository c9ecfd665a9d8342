/* SPDX-License-Identifier: MIT */
/*
 * What the live layout's header says of the process: who it is, when it began, under which options.
 *
 * Written once, while the session is being armed; nothing else touches these fields.
 */
#ifndef CW_CORE_DESCRIBE_H
#define CW_CORE_DESCRIBE_H

#include "base/launcher.h"

/* Fills in the header of the session's arena, and sets the session's clock. launcher NULL: nothing
 * is known. */
void cw_describe_process(const struct cw_launcher *launcher, unsigned driver_version);

#endif
