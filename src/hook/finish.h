/* SPDX-License-Identifier: MIT */
/*
 * The end of the process, however it ends: exit handlers, our destructor, _exit.
 *
 * The report is written once, from our own state; the driver is not called any more.
 */
#ifndef CW_HOOK_FINISH_H
#define CW_HOOK_FINISH_H

/* Registers our exit handlers. Once, at the first call of CUDA. */
void cw_finish_register(void);
/* Once CUPTI runs: registers our handler, so that it runs before CUPTI's own exit handlers. */
void cw_finish_register_audit(void);

#endif
