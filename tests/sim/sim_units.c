/* SPDX-License-Identifier: MIT */
/* Physical memory in units, of CUSIM_ALLOC_GRANULARITY bytes.
 *
 * A block of more than half a unit takes whole units. Smaller ones share units, and leave no holes
 * in them: it is their sum that is rounded up. Guarded by sim.lock.
 */
#include "sim_units.h"

static size_t packed[SIM_MAX_DEVICES]; /* bytes of small blocks */

static bool is_packed(size_t span)
{
    return span <= sim.config.alloc_granularity / 2;
}

static size_t units(size_t bytes)
{
    return sim_round(bytes, sim.config.alloc_granularity);
}

bool sim_units_charge(int device, size_t span)
{
    if (!is_packed(span))
        return units(span) >= span && sim_device_charge(device, units(span));
    if (!sim_device_charge(device, units(packed[device] + span) - units(packed[device])))
        return false;
    packed[device] += span;
    return true;
}

void sim_units_discharge(int device, size_t span)
{
    size_t before = units(packed[device]);

    if (!is_packed(span)) {
        sim_device_discharge(device, units(span));
        return;
    }
    packed[device] -= span;
    sim_device_discharge(device, before - units(packed[device]));
}
