/* SPDX-License-Identifier: MIT */
/*
 * What of a device is not for the program's data: 500 MiB for the context, 100 MiB for the driver,
 * and 10 % for fragmentation and what libraries take, at most 2 GiB in all.
 */
#ifndef CW_BASE_DEVICE_RESERVE_H
#define CW_BASE_DEVICE_RESERVE_H

#include <stdint.h>

/* Beside so many bytes of data, or of so large a device. */
static inline uint64_t cw_device_reserve(uint64_t bytes)
{
    uint64_t reserve = (UINT64_C(600) << 20) + bytes / 10, most = UINT64_C(2) << 30;

    return reserve < most ? reserve : most;
}

#endif
