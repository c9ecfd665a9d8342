/* SPDX-License-Identifier: MIT */
/*
 * NVTX: the ranges and marks with which a program says what it is doing.
 *
 * NVTX is in headers, so each module of a program may have a client of its own. At its first call a
 * client loads the library that NVTX_INJECTION64_PATH names, and asks it for the one function
 * below; it hands over its tables of functions, into which we write ours. In a process without NVTX
 * nothing of this runs.
 */
#ifndef CW_HOOK_NVTX_H
#define CW_HOOK_NVTX_H

#include <stdint.h>

/* Returns 1; 0: the client must do without us (and may unload us again). */
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));

#endif
