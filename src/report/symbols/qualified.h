/* SPDX-License-Identifier: MIT */
/*
 * A function's name without its arguments: "::rmm::mr::pool::grow" of both
 * "_ZN3rmm2mr4poolINS0_4cudaEE4growEm" and "rmm::mr::pool<rmm::mr::cuda>::grow(unsigned long)",
 * "::main" of "main".
 *
 * This finds a class only if it is the function's own, not an argument's, and works without a
 * demangler.
 */
#ifndef CW_REPORT_QUALIFIED_H
#define CW_REPORT_QUALIFIED_H

#include <stddef.h>

/* Truncated to fit, always terminated; returns buf. A name that is not understood is copied
 * unchanged. */
char *cw_qualified_name(const char *symbol, char *buf, size_t cap);

#endif
