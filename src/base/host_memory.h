/* SPDX-License-Identifier: MIT */
/*
 * How much memory the host has to spare: what the kernel calls available, or what the control group
 * of the process (v2, else v1) still allows, whichever is less. Reads /proc and /sys; no lock.
 */
#ifndef CW_BASE_HOST_MEMORY_H
#define CW_BASE_HOST_MEMORY_H

#include <stdint.h>

/* Bytes; 0 if it cannot be found out. errno is preserved. */
uint64_t cw_host_memory_available(void);

/* The same from files under other roots: "" for both means the real ones. For tests. */
uint64_t cw_host_memory_available_at(const char *proc, const char *sys);

#endif
