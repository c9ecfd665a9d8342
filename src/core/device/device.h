/* SPDX-License-Identifier: MIT */
/*
 * Devices: what they are, and how much of their memory is in use by anybody, as last asked.
 *
 * Owns identity and samples: struct cw_device_state, by which others decide, and the copies for
 * readers in struct cw_live_device, which nothing of ours follows. No lock: one thread asks for the
 * identity, and one samples in a period; the others use what is there.
 */
#ifndef CW_CORE_DEVICE_H
#define CW_CORE_DEVICE_H

#include <stdatomic.h>
#include <stdint.h>

#include "live/arena.h"

void cw_device_init(struct cw_arena *arena);

/* Callbacks for news of a device. Set once, before the first context (core/control/lifecycle.c);
 * there may be none. Called by the thread that has the news, under no lock. */
struct cw_device_listener {
    /* Size and uuid of one more device are known. Not inside the gate. */
    void (*described)(void);
    /* A sample was stored. Maybe inside the gate: no call of the driver. api: of the call that
     * looked, 0 for none. */
    void (*sampled)(uint8_t device, uint32_t api, uint64_t now_ns);
};
void cw_device_set_listener(const struct cw_device_listener *listener);

/* The device's record, for counters and for what only readers want. */
struct cw_live_device *cw_device_at(uint8_t device);

struct cw_device_state {
    _Atomic uint32_t known; /* 1 once total and uuid are filled */
    _Atomic uint32_t asked; /* 1: a thread is about to fill them */
    uint64_t total;
    uint8_t uuid[16];
    int shares_host;                            /* its memory is the host's, or a node of it */
    int host_node;                              /* which, for base/host_memory.h */
    _Atomic uint64_t driver_total, driver_used; /* last sample; total 0: never sampled */
    _Atomic uint64_t sample_ns;
};
const struct cw_device_state *cw_device_state(uint8_t device);

/* Asks the driver for name, size and uuid, unless that was done; 1 if they are known. Waits for
 * another thread that is asking: until then neither a limit nor the pool knows what may be held. */
int cw_device_describe(uint8_t device);

/* The device with this uuid, if this process has it: 1. Describes devices on the way. */
int cw_device_find(const uint8_t uuid[16], uint8_t *out_device);

/*
 * Samples the current context's device; at most every 100 ms per device. api: of the call inside
 * which that happens, 0 for none; events that follow from the sample (core/limits/pressure.h) name
 * it.
 */
void cw_device_sample(uint32_t api);
/* For a caller that has just read the clock and compared the deadlines. */
void cw_device_sample_at(uint64_t now_ns, uint32_t api);
/* A fresh sample of this device, however old the last is, by any context there; 0, or -1. */
int cw_device_sample_now(uint8_t device, uint32_t api);
/* The same, and the free bytes of this very sample: others may sample too. */
int cw_device_ask_free(uint8_t device, uint64_t *out_free);
/* A sample of the device is due. */
int cw_device_is_sample_old(uint8_t device);
/* The program asked the driver itself: a sample at no cost. */
void cw_device_sampled(uint64_t free_bytes, uint64_t total_bytes, uint32_t api);

/*
 * What is free there for whoever asks for it, given what the driver says. They differ where the
 * memory is the host's: the driver gives what nobody uses, and the kernel's caches fill that
 * sooner or later, but would make room (vllm#48140, ollama#12283; NVIDIA's support answer 5728).
 * Reads a file in that case.
 */
uint64_t cw_device_free_of(uint8_t device, uint64_t driver_free, uint64_t driver_total);

/* Bytes free on the device as far as the last sample tells, if this process held so much now;
 * INT64_MAX when there is none. */
int64_t cw_device_free_when(uint8_t device, uint64_t held);
/* The most that this process may hold so that `least` stays free, by the last sample; UINT64_MAX
 * when there is none. Reservations in flight at that moment count against it. */
uint64_t cw_device_ceiling(uint8_t device, uint64_t least);

#endif
