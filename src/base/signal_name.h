/* SPDX-License-Identifier: MIT */
/*
 * Signals by name, as a user writes them, and as text again. Only those that a program may have a
 * handler for without harm: not the ones that cannot be caught, that mean a fault of the program,
 * or that the C library needs.
 */
#ifndef CW_BASE_SIGNAL_NAME_H
#define CW_BASE_SIGNAL_NAME_H

#include "base/out.h"

/* "USR1", "SIGUSR1", "RTMIN+3" or a number; the letters' case does not count. The signal, or 0. */
int cw_signal_parse(const char *text);
/* "USR1", "RTMIN+3". */
void cw_signal_print(int number, struct cw_out *out);

#endif
