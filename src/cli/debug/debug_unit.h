/* SPDX-License-Identifier: MIT */
/*
 * The compilation units in one file's debug information: which functions contain an address, and
 * the lines of their calls.
 *
 * A unit's functions are collected at the first address inside it, so that each further address
 * costs one search. Nothing in the file is trusted: entries are followed forward only, and a unit
 * gets no more steps than it has bytes.
 */
#ifndef CW_CLI_DEBUG_UNIT_H
#define CW_CLI_DEBUG_UNIT_H

#include <elfutils/libdw.h>

#include "report/symbols/symbol.h"

struct cw_debug_unit;

/* An address range of one unit. */
struct cw_debug_range {
    uint64_t low, high, reach; /* reach: the highest `high` of this range and those before it */
    uint32_t unit;
};

struct cw_debug_units {
    struct cw_debug_unit *unit;
    size_t units, units_cap;
    struct cw_debug_range *range; /* by address */
    size_t ranges, ranges_cap;
};

/* Lists the units; omits those that do not fit in memory. */
void cw_debug_units_init(struct cw_debug_units *units, Dwarf *dwarf);
void cw_debug_units_fini(struct cw_debug_units *units);

/* As struct cw_symbol_ops' find, for an address of the debug information. */
size_t cw_debug_units_find(struct cw_debug_units *units, uint64_t address,
                           struct cw_symbol_place *places, size_t cap);

#endif
