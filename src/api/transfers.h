/* SPDX-License-Identifier: MIT */
/* How much was transferred, device by device and tag by tag: sums that any thread adds to; no lock.
 */
#ifndef CW_API_TRANSFERS_H
#define CW_API_TRANSFERS_H

#include <stdint.h>

struct cw_transfers {
    uint64_t count, bytes;
    uint64_t ns;            /* that they took on the device */
    uint64_t waited_ns;     /* that the program waited for them */
    uint64_t overlapped_ns; /* of their time, while nobody waited */
};

/* How bytes come from one device to another. */
enum cw_transfer_way { CW_WAY_LOCAL, CW_WAY_PEER, CW_WAY_STAGED, CW_WAYS };

struct cw_carried {
    uint64_t count[CW_WAYS], bytes[CW_WAYS];
};

/* How long somebody waited for one; its owner guards it. */
struct cw_waits {
    uint32_t waiters;
    uint64_t since_ns, ns; /* the first of them came; those that have ended */
};

void cw_waits_begin(struct cw_waits *waits);
void cw_waits_end(struct cw_waits *waits);
/* Until now. */
uint64_t cw_waits_ns(const struct cw_waits *waits);

/* One is done: the thread that started it had this tag (0: none), it took ns, for waited_ns of
 * which (or longer) somebody waited. Adds it to the sums of the device and of the tag there, and to
 * *own, which its owner guards. */
void cw_transfers_add(uint8_t device, uint16_t tag, struct cw_transfers *own, uint64_t bytes,
                      uint64_t ns, uint64_t waited_ns);
/* It came from a device, by this way. */
void cw_transfers_carried(uint8_t device, uint16_t tag, enum cw_transfer_way way, uint64_t bytes);

#define CW_TRANSFERS_ANY UINT16_MAX /* in place of a tag: with or without one */

/* Adds those of a device to *sums. */
void cw_transfers_sum(uint8_t device, uint16_t tag, struct cw_transfers *sums);
void cw_transfers_sum_carried(uint8_t device, uint16_t tag, struct cw_carried *sums);
/* 0 to 1; 0 without any. */
double cw_transfers_overlap(const struct cw_transfers *sums);
/* In a forked child. */
void cw_transfers_reset(void);

#endif
