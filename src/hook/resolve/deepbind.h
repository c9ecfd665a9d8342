/* SPDX-License-Identifier: MIT */
/*
 * Objects that were opened with RTLD_DEEPBIND: they bind to their own libraries first, and so past
 * us.
 *
 * Whether there are any is noted when they are opened; nothing else costs anything until then. What
 * is loaded from then on is looked at before its first constructor runs: with DEEPBIND=patch it is
 * bound to us, and where it is not, its use of CUDA is noted. The end looks once more.
 */
#ifndef CW_HOOK_DEEPBIND_H
#define CW_HOOK_DEEPBIND_H

#include <stdatomic.h>

#include "base/compiler.h"

/* An object is about to be opened so. */
void cw_deepbind_opening(int is_patched);

/* An object was loaded and relocated, and the loader is about to run its constructors, under its
 * lock. Cheap when there is nothing to do. */
void cw_deepbind_loaded(void);

/* The process, or an object of it, ends: looks for one that uses CUDA past us. */
void cw_deepbind_look(void);

/* Its name without its directory, if the driver was loaded; or NULL. */
const char *cw_deepbind_unseen(void);

extern CW_HIDDEN _Atomic int cw_deepbind_found;

/* 1: there is one, so the driver may know more of a block than we do. */
static inline int cw_deepbind_is_any(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_deepbind_found, memory_order_relaxed));
}

/* In a forked child. */
void cw_deepbind_reset(void);

#endif
