/* SPDX-License-Identifier: MIT */
/*
 * The modules of the process: which object file an address belongs to.
 *
 * Module records are append-only; a separate sorted table has the ranges mapped now. The loader's
 * lock is taken (dl_iterate_phdr) only while no lock of ours is held: a thread inside dlopen may be
 * running a constructor that calls CUDA and so waits for ours.
 */
#ifndef CW_CORE_MODULE_H
#define CW_CORE_MODULE_H

#include <stdint.h>

#include "live/arena.h"

/* Address inside this library, to tell our own frames; call before the first refresh. */
void cw_module_init(struct cw_arena *arena);
void cw_module_reset(void);

/* Reads the loader's list again if anything was loaded or unloaded since. No lock of ours may be
 * held. */
void cw_module_refresh(void);
/* Called when that has found a change, by the same thread, no lock held. Set once, before the
 * session is armed. */
void cw_module_set_watch(void (*changed)(void));

/* Record of the module mapped at pc, 0 if none is known. Caller holds the site lock (site.h). */
uint32_t cw_module_find_locked(uint64_t pc);

/* 1 if pc lies in this library. Any time, no lock. */
int cw_module_is_self(uint64_t pc);

#endif
