/* SPDX-License-Identifier: MIT */
/* What others have asked for. See lending.h. */
#include "core/limits/lending.h"

#include <stdatomic.h>

#include "live/layout.h"

static struct {
    _Atomic uint64_t bytes, until_ns;
} wanted[CW_DEVICES];

void cw_lending_reset(void)
{
    for (unsigned d = 0; d < CW_DEVICES; d++)
        atomic_store(&wanted[d].bytes, 0);
}

void cw_lending_want(uint8_t device, uint64_t bytes, uint64_t until_ns)
{
    if (atomic_load(&wanted[device].bytes) < bytes)
        atomic_store(&wanted[device].bytes, bytes);
    atomic_store(&wanted[device].until_ns, until_ns);
}

uint64_t cw_lending_wanted(uint8_t device, uint64_t now_ns)
{
    if (now_ns >= atomic_load(&wanted[device].until_ns))
        atomic_store(&wanted[device].bytes, 0);
    return atomic_load(&wanted[device].bytes);
}

void cw_lending_given(uint8_t device, uint64_t bytes)
{
    uint64_t left = atomic_load(&wanted[device].bytes);

    while (!atomic_compare_exchange_weak(&wanted[device].bytes, &left,
                                         left > bytes ? left - bytes : 0))
        continue;
}
