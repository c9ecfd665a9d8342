/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: handles and mappings.
 *
 * Memory made by a create call lives until its last handle reference is released and its last
 * mapping is gone (cuda.h, cuMemRelease). The block's `refs` and `maps` count both; the handle's
 * number may be given out again by the driver while the old memory is still mapped, so handles have
 * a map of their own and are not keys of the index. Guarded by one lock (CW_RANK_VMM), never held
 * across the driver.
 */
#ifndef CW_CORE_VMM_H
#define CW_CORE_VMM_H

#include <stdint.h>

#include "core/process/types.h"

void cw_vmm_reset(void);

/* A handle was made (create, import, multicast) for the block that the tracker just inserted. */
void cw_vmm_insert(uint64_t handle, uint32_t block);
/* The driver gave another reference to the memory mapped at addr. */
void cw_vmm_retain(uint64_t handle, uint64_t addr);
/* Marks the memory behind a handle as exported. */
void cw_vmm_export(uint64_t handle);

struct cw_vmm_release {
    uint64_t handle;
    uint32_t block; /* 0: the handle was never seen */
};
void cw_vmm_release_begin(uint64_t handle, struct cw_vmm_release *out);
/* 1 if the handle was known. */
int cw_vmm_release_finish(const struct cw_vmm_release *release, int released);

/* The block whose memory is mapped at the address; 0: none. */
uint32_t cw_vmm_block_at(uint64_t addr);

void cw_vmm_map(uint64_t addr, uint64_t size, uint64_t offset, uint64_t handle);

struct cw_vmm_mapping {
    uint64_t addr, size;
    uint32_t block;
};
struct cw_vmm_unmap {
    struct cw_vmm_mapping *mappings; /* from cw_mem, count of them */
    uint32_t count;
};
void cw_vmm_unmap_begin(uint64_t addr, uint64_t size, struct cw_vmm_unmap *out);
void cw_vmm_unmap_finish(struct cw_vmm_unmap *unmap, int unmapped);

#endif
