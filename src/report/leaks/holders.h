/* SPDX-License-Identifier: MIT */
/*
 * The places that hold most of a device's memory now. Fast, and safe while the process continues:
 * linear in the sites, no names, only counters that may be read at any moment.
 */
#ifndef CW_REPORT_HOLDERS_H
#define CW_REPORT_HOLDERS_H

#include <stdint.h>

#include "live/view.h"

/* All live sites with equal stack, API, kind and device. */
struct cw_report_holder {
    uint32_t site; /* one of them */
    uint64_t bytes, blocks;
};

/*
 * The places with most live bytes on the device (CW_DEVICE_HOST: on the host), largest first, and
 * the sum of all others. Returns their number.
 */
unsigned cw_report_holders(const struct cw_view *view, unsigned device,
                           struct cw_report_holder out[CW_OOM_HOLDERS], uint64_t *out_rest_bytes,
                           uint64_t *out_rest_blocks);

#endif
