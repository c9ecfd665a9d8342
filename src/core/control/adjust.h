/* SPDX-License-Identifier: MIT */
/*
 * What may be changed while the process runs, by `cuwarden ctl` (control.h) and by the program
 * itself (src/api): the limit, what the pool may keep, how much of that goes back now.
 *
 * No state of its own. All call the driver: no lock held, the gate open, no capture.
 */
#ifndef CW_CORE_ADJUST_H
#define CW_CORE_ADJUST_H

#include <stdint.h>

/* How much idle memory goes back to the driver. */
enum cw_trim {
    CW_TRIM_SHRINK, /* half of it, the largest blocks first */
    CW_TRIM_READY,  /* all that the device is known to be done with, but what threads keep */
    CW_TRIM_CLEAR,  /* that too, and what turns out to be ready */
    CW_TRIM_ALL,    /* all; waits for the device, if that is the program's own thread */
};
/* Returns the bytes. */
uint64_t cw_adjust_trim(uint8_t device, enum cw_trim how);

/* 0: no limit. Idle memory beyond it is released at once, what the program has stays. Returns the
 * bytes that went back. */
uint64_t cw_adjust_limit(uint8_t device, uint64_t bytes);
/* Of CW_DEVICE_HOST: of pinned memory. Idle memory beyond it goes as far as no free waits for the
 * device, and the rest once that is done with it, in the program's frees and waits or by the
 * background thread. Returns the bytes that went back at once. */
uint64_t cw_adjust_pool_max(uint8_t device, uint64_t bytes);

/* Another process has found no memory, and lacks so many bytes: idle memory goes back, what this
 * program has needed least first. 0: memory is scarce; this process looks for itself, and does what
 * its own levels of pressure ask for. What went back goes to *out_bytes. 0; EINPROGRESS: more will
 * follow in the program's next frees and waits, because its device is at work now; EPERM: nothing
 * is given (NEIGHBOURS). */
int cw_adjust_lend(uint8_t device, uint64_t bytes, uint64_t *out_bytes);

#endif
