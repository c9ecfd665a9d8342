/* SPDX-License-Identifier: MIT */
/* See transfers.h. */
#include "api/transfers.h"

#include <stdatomic.h>

#include "live/layout.h"

#define ADD(field, by) atomic_fetch_add_explicit(&(field), by, memory_order_relaxed)
#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define CLEAR(field)   atomic_store_explicit(&(field), 0, memory_order_relaxed)

static struct {
    _Atomic uint64_t count, bytes, ns, waited_ns, overlapped_ns;
    struct {
        _Atomic uint64_t count, bytes;
    } way[CW_WAYS];
} devices[CW_MAX_DEVICES];

void cw_transfers_add(uint8_t device, struct cw_transfers *own, uint64_t bytes, uint64_t ns,
                      uint64_t waited_ns)
{
    uint64_t overlapped_ns = waited_ns < ns ? ns - waited_ns : 0;

    own->count++;
    own->bytes += bytes;
    own->ns += ns;
    own->waited_ns += waited_ns;
    own->overlapped_ns += overlapped_ns;
    if (device >= CW_MAX_DEVICES)
        return;
    ADD(devices[device].count, 1);
    ADD(devices[device].bytes, bytes);
    ADD(devices[device].ns, ns);
    ADD(devices[device].waited_ns, waited_ns);
    ADD(devices[device].overlapped_ns, overlapped_ns);
}

void cw_transfers_carried(uint8_t device, enum cw_transfer_way way, uint64_t bytes)
{
    if (device >= CW_MAX_DEVICES)
        return;
    ADD(devices[device].way[way].count, 1);
    ADD(devices[device].way[way].bytes, bytes);
}

void cw_transfers_sum(uint8_t device, struct cw_transfers *sums)
{
    if (device >= CW_MAX_DEVICES)
        return;
    sums->count += LOAD(devices[device].count);
    sums->bytes += LOAD(devices[device].bytes);
    sums->ns += LOAD(devices[device].ns);
    sums->waited_ns += LOAD(devices[device].waited_ns);
    sums->overlapped_ns += LOAD(devices[device].overlapped_ns);
}

void cw_transfers_sum_carried(uint8_t device, struct cw_carried *sums)
{
    if (device >= CW_MAX_DEVICES)
        return;
    for (int way = 0; way < CW_WAYS; way++) {
        sums->count[way] += LOAD(devices[device].way[way].count);
        sums->bytes[way] += LOAD(devices[device].way[way].bytes);
    }
}

double cw_transfers_overlap(const struct cw_transfers *sums)
{
    return sums->ns != 0 ? (double)sums->overlapped_ns / (double)sums->ns : 0;
}

void cw_transfers_reset(void)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        CLEAR(devices[i].count);
        CLEAR(devices[i].bytes);
        CLEAR(devices[i].ns);
        CLEAR(devices[i].waited_ns);
        CLEAR(devices[i].overlapped_ns);
        for (int way = 0; way < CW_WAYS; way++) {
            CLEAR(devices[i].way[way].count);
            CLEAR(devices[i].way[way].bytes);
        }
    }
}
