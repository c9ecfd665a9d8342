/* SPDX-License-Identifier: MIT */
/*
 * What an allocation on a device of the library's choice needs of the driver (api/placements.h),
 * beside api/buffer_ops.h, whose rules hold here too. Unit tests give a fake.
 */
#ifndef CW_API_DEVICE_OPS_H
#define CW_API_DEVICE_OPS_H

#include <stdint.h>

/* Undone by leave. */
struct cw_device_stay {
    uint8_t device;
    uint8_t is_pushed;   /* a context was made current */
    uint8_t is_borrowed; /* leave gives back the reference to it that enter took */
};

struct cw_device_ops {
    /* Makes a context of the device current: the current one if it is there, else the primary one,
     * which is made, and stays, where the program has none. The driver's code; 0: in. */
    int (*enter)(uint8_t device, struct cw_device_stay *out);
    void (*leave)(const struct cw_device_stay *stay);
    /* An address, if the current context is of the device and the pool has a block for the thread
     * at hand, and nothing stands before the pool; else 0, and nothing has happened. caller: where
     * the program asks from; now_ns: cw_session_now(). */
    uint64_t (*serve)(uint8_t device, uint64_t bytes, uint64_t now_ns, void *caller);
};

#endif
