/* SPDX-License-Identifier: MIT */
/*
 * What a device says of itself, for reports and for `doctor --gpu`; nothing is decided by it. One
 * row a property: its member, and the number by which the driver is asked for it
 * (CUdevice_attribute, whose numbers are part of the driver's ABI).
 */
#ifndef CW_BASE_DEVICE_PROPERTIES_H
#define CW_BASE_DEVICE_PROPERTIES_H

#include <stddef.h>
#include <stdint.h>

#define CW_DEVICE_PROPERTIES(X)                                                                    \
    X(capability_major, 75)                                                                        \
    X(capability_minor, 76)                                                                        \
    X(multiprocessors, 16)                                                                         \
    X(clock_khz, 13)                                                                               \
    X(memory_clock_khz, 36)                                                                        \
    X(memory_bus_bits, 37)                                                                         \
    X(has_unified_addressing, 41)

/* 0: the driver does not say, or no. */
struct cw_device_properties {
#define X(member, attribute) uint32_t member;
    CW_DEVICE_PROPERTIES(X)
#undef X
};

/* 0: *out is the answer. */
typedef int (*cw_device_attribute_fn)(int *out, int attribute, int device);

/* Asks for all of them. */
static inline void cw_device_properties_ask(cw_device_attribute_fn ask, int device,
                                            struct cw_device_properties *out)
{
    static const struct {
        int attribute;
        size_t at;
    } row[] = {
#define X(member, attribute) {attribute, offsetof(struct cw_device_properties, member)},
        CW_DEVICE_PROPERTIES(X)
#undef X
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        int value = 0;

        if (ask(&value, row[i].attribute, device) != 0 || value < 0)
            value = 0;
        *(uint32_t *)(void *)((char *)out + row[i].at) = (uint32_t)value;
    }
}

#endif
