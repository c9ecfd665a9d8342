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

#define CW_NAME_WHOLE 60 /* as wide as a column of names */

/* For reading, of a name of more than `whole` bytes: without return type, parameters and template
 * arguments, "at::empty" of "at::Tensor at::empty<long>(c10::ArrayRef<long>) const". Names of other
 * languages and mangled ones are copied unchanged. Ends in three dots where it is truncated to fit;
 * returns buf. cap: 8 or more. */
char *cw_short_name(const char *symbol, size_t whole, char *buf, size_t cap);

#endif
