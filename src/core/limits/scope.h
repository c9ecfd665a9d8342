/* SPDX-License-Identifier: MIT */
/*
 * Scopes: a limit that is for all processes of a container or a control group, not for this one
 * alone (LIMIT=platform). Its scope is the processes of this user in the same mount namespace and
 * control group that have such a limit too.
 *
 * Owns this process's slot in the sum of each device (live/group_file.h). A request is counted as
 * held in this process and claimed in the sum under one lock (CW_RANK_SCOPE), so that what is shown
 * there is at least what is held, as far as it is by requests; it is too much for a moment after a
 * free.
 */
#ifndef CW_CORE_SCOPE_H
#define CW_CORE_SCOPE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"

void cw_scope_init(const struct cw_options *options);
void cw_scope_reset(void);

extern CW_HIDDEN _Atomic int cw_scopes_on;

/* 1 if any device has one. */
static inline int cw_scope_is_on(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_scopes_on, memory_order_relaxed));
}

/* Takes part in the sum of the device, unless that was done or has failed, which is said. */
void cw_scope_join(uint8_t device);

/* Counts bytes as held, as cw_usage_reserve(device, bytes, own) does, unless all of the scope would
 * have more than `most`. spare: what this process has beside what is held. 0, or -1. */
int cw_scope_reserve(uint8_t device, uint64_t bytes, uint64_t spare, uint64_t own, uint64_t most);
/* Less may be held than is shown. */
void cw_scope_show(uint8_t device, uint64_t spare);
void cw_scope_show_all(void);
/* What the others of the scope have. */
uint64_t cw_scope_others(uint8_t device);

#endif
