/* SPDX-License-Identifier: MIT */
/*
 * What a function is called without its arguments: "::rmm::mr::pool::grow" of both
 * "_ZN3rmm2mr4poolINS0_4cudaEE4growEm" and "rmm::mr::pool<rmm::mr::cuda>::grow(unsigned long)",
 * "::main" of "main".
 *
 * So that a class is found where it is the function's own, and not in an argument; and that it is
 * found where no demangler is at hand.
 */
#ifndef CW_REPORT_QUALIFIED_H
#define CW_REPORT_QUALIFIED_H

#include <stddef.h>

/* Cut to fit, always terminated; returns buf. A name that is not understood comes as it stands. */
char *cw_qualified_name(const char *symbol, char *buf, size_t cap);

#endif
