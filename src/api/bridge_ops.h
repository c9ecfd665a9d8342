/* SPDX-License-Identifier: MIT */
/*
 * What bridges and prefetches need of the driver beside api/transfer_ops.h, whose rules hold here
 * too. Unit tests give a fake.
 */
#ifndef CW_API_BRIDGE_OPS_H
#define CW_API_BRIDGE_OPS_H

#include <stdint.h>

/* What lies at an address, as the program knows it. */
struct cw_bridge_memory {
    uint64_t context; /* handle; 0: it belongs to none, and peers do not reach it by themselves */
    uint64_t base, bytes;
    int32_t device;
    int32_t is_host;
};

struct cw_bridge_ops {
    /* Of a live block. */
    int (*look)(uint64_t address, struct cw_bridge_memory *out);
    /* The current context may use the memory of another, on another device; it stays so. */
    int (*reach)(uint8_t device, uint8_t peer, uint64_t peer_context);
    /* The context of a stream of the program. */
    int (*stream_context)(void *stream, uint64_t *out_context);

    int (*upload)(uint64_t to, const void *from, uint64_t bytes, void *stream);
    int (*copy)(uint64_t to, uint64_t from, uint64_t bytes, void *stream);
    int (*copy_peer)(uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                     uint64_t bytes, void *stream);
};

#endif
