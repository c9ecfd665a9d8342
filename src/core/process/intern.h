/* SPDX-License-Identifier: MIT */
/*
 * The lock of what is interned: modules, frames, lines of Python code and sites (CW_RANK_SITE).
 *
 * One for all of them, because adding a site may add a stack, its frames and their modules. A
 * look-up needs no lock.
 */
#ifndef CW_CORE_INTERN_H
#define CW_CORE_INTERN_H

#include "base/compiler.h"
#include "base/lock.h"

extern CW_HIDDEN struct cw_lock cw_intern_lock;

/* In a forked child. */
void cw_intern_reset(void);

#endif
