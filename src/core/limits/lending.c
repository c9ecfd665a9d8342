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

void cw_lending_want(uint8_t device, uint64_t bytes, uint64_t now_ns, uint64_t until_ns)
{
    uint64_t others = cw_lending_wanted(device, now_ns); /* one that is over does not go on */

    atomic_store(&wanted[device].until_ns, until_ns);
    while (others < bytes && !atomic_compare_exchange_weak(&wanted[device].bytes, &others, bytes))
        continue;
}

uint64_t cw_lending_wanted(uint8_t device, uint64_t now_ns)
{
    uint64_t bytes = atomic_load(&wanted[device].bytes);

    while (now_ns >= atomic_load(&wanted[device].until_ns))
        if (atomic_compare_exchange_weak(&wanted[device].bytes, &bytes, 0))
            return 0;
    return bytes;
}

void cw_lending_given(uint8_t device, uint64_t bytes)
{
    uint64_t left = atomic_load(&wanted[device].bytes);

    while (!atomic_compare_exchange_weak(&wanted[device].bytes, &left,
                                         left > bytes ? left - bytes : 0))
        continue;
}
