/* SPDX-License-Identifier: MIT */
/*
 * How much memory the host has to spare: what the kernel calls available, or what the control group
 * of the process (v2, else v1) still allows, whichever is less; and what a device has to spare
 * whose memory is the host's. Reads /proc and /sys; no lock.
 */
#ifndef CW_BASE_HOST_MEMORY_H
#define CW_BASE_HOST_MEMORY_H

#include <stdint.h>

/* Bytes; 0 if it cannot be found out. errno is preserved. */
uint64_t cw_host_memory_available(void);

/* The same from files under other roots: "" for both means the real ones. For tests. */
uint64_t cw_host_memory_available_at(const char *proc, const char *sys);

/* Memory without regard to control groups, which a device that has the host's memory for its own
 * takes no notice of. Bytes. */
struct cw_host_memory {
    uint64_t total, available; /* available: with what the kernel would take back of its caches */
};

#define CW_HOST_MEMORY_ALL (-1)

/* That of the whole host (CW_HOST_MEMORY_ALL), or of one NUMA node. 0, or -1: it cannot be found
 * out. errno is preserved. */
int cw_host_memory_of(int node, struct cw_host_memory *out);

/* The same under other roots. For tests. */
int cw_host_memory_of_at(const char *proc, const char *sys, int node, struct cw_host_memory *out);

#endif
