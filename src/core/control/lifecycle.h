/* SPDX-License-Identifier: MIT */
/*
 * The life of the core: who is started, forked and ended in which order.
 *
 * Every module that has state says with an init, reset or finish function how it begins, what a
 * forked child must forget, and what is left to do at the end. They are called here and nowhere
 * else. A lower module calls upwards through a listener, and all listeners are set here; for what
 * the core needs of its host see core/process/host.h.
 */
#ifndef CW_CORE_LIFECYCLE_H
#define CW_CORE_LIFECYCLE_H

#include "base/launcher.h"
#include "base/options/options.h"
#include "core/process/driver_ops.h"
#include "live/layout.h"

/* Before cuInit makes threads of the driver's: what can be had for nothing only then. */
void cw_lifecycle_prepare(void);

/* Makes the arena and starts accounting; does nothing when that was done. Any thread, no lock held.
 * ops and options must live as long as the process; launcher is copied, NULL: nothing is known. */
void cw_lifecycle_arm(const struct cw_driver_ops *ops, const struct cw_options *options,
                      const struct cw_launcher *launcher, unsigned driver_version);

/* Notes how the process ends. 1 for the one caller that must write the report, once. */
int cw_lifecycle_finish(enum cw_exit_kind kind, int code);

/* Accounting has stopped: gives what is idle back to the driver, unless that is done. Inside a call
 * of the program's that takes or frees memory, which a capture permits or forbids as it does ours.
 */
void cw_lifecycle_give_back(void);

/* In a forked child. */
void cw_lifecycle_reset(void);

/* The calling thread ends: what it kept to itself becomes shared. */
void cw_lifecycle_thread_ends(void);

#endif
