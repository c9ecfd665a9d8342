/* SPDX-License-Identifier: MIT */
/* How much was transferred, device by device: sums that any thread adds to; no lock. */
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

/* One is done: it took ns, for waited_ns of which (or longer) somebody waited. Adds it to the
 * device's sums, and to *own, which its owner guards. */
void cw_transfers_add(uint8_t device, struct cw_transfers *own, uint64_t bytes, uint64_t ns,
                      uint64_t waited_ns);
/* It came from a device, by this way. */
void cw_transfers_carried(uint8_t device, enum cw_transfer_way way, uint64_t bytes);
/* Adds those of a device to *sums. */
void cw_transfers_sum(uint8_t device, struct cw_transfers *sums);
void cw_transfers_sum_carried(uint8_t device, struct cw_carried *sums);
/* 0 to 1; 0 without any. */
double cw_transfers_overlap(const struct cw_transfers *sums);
/* In a forked child. */
void cw_transfers_reset(void);

#endif
