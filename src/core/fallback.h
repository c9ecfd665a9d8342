/* SPDX-License-Identifier: MIT */
/*
 * The fallback (FALLBACK=managed): when a device has no memory left, managed memory that prefers to
 * stay on the host and is mapped for the device. Never more of it than the host has to spare: what
 * the program holds of it already counts in full, because its pages may not have been touched yet.
 * Counts on the host, as kind MANAGED. Not for blocks that are pitched or pinned.
 */
#ifndef CW_CORE_FALLBACK_H
#define CW_CORE_FALLBACK_H

#include <stdint.h>

#include "base/options.h"
#include "core/types.h"

void cw_fallback_init(const struct cw_options *options);
int cw_fallback_is_on(void);

/* 0, and what the block is in *out (key, kind, flags, held); -1: the device cannot, or the host has
 * too little to spare. Inside a hook, with no lock held. */
int cw_fallback_alloc(uint8_t device, uint64_t bytes, struct cw_request *out);

/* The block that came of it has its record. */
void cw_fallback_committed(uint64_t bytes);

#endif
