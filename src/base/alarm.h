/* SPDX-License-Identifier: MIT */
/* A wait with a deadline that another thread can end: for a thread of our own; the program's wait
 * only for an unwinder that cannot be loaded otherwise (core/stacks/unwind.c). In a file that
 * several processes map, another process can (live/mailbox.h). */
#ifndef CW_BASE_ALARM_H
#define CW_BASE_ALARM_H

#include <stdatomic.h>
#include <stdint.h>

struct cw_alarm {
    _Atomic uint32_t rung; /* 1: until it is reset nobody waits */
};

/* 1 when it was rung, 0 after so many nanoseconds. errno is preserved. */
int cw_alarm_wait(struct cw_alarm *alarm, uint64_t ns);
/* Also in a signal handler. */
void cw_alarm_ring(struct cw_alarm *alarm);
void cw_alarm_reset(struct cw_alarm *alarm);

#endif
