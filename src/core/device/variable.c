/* SPDX-License-Identifier: MIT */
/*
 * Variables by their address. See variable.h.
 *
 * Always: a module's block whose `maps` is 0 has no variables yet, so those that are known by its
 * index are of an earlier block.
 */
#include "core/device/variable.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/account/tracker.h"

struct variable {
    struct cw_map_entry map; /* by address */
    uint32_t block;          /* of its module; 0: of none that is loaded */
};

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_VARIABLE); /* guards the map */
static struct cw_map variables;

void cw_variable_reset(void)
{
    cw_lock_reset(&lock);
    variables = (struct cw_map){0};
}

static void forget(struct cw_map_entry *entry, void *arg)
{
    struct variable *variable = (struct variable *)entry;

    if (variable->block == *(const uint32_t *)arg)
        variable->block = 0;
}

/* 1 if it was not known as one of this module. */
static int is_new_locked(uint32_t block, uint64_t address)
{
    struct variable *variable;

    if (atomic_load(&cw_tracker_at(block)->maps) == 0)
        cw_map_visit(&variables, forget, &block);
    variable = (struct variable *)cw_map_find(&variables, address);
    if (variable != NULL && variable->block == block)
        return 0;
    if (variable == NULL) {
        variable = cw_mem_alloc(sizeof(*variable));
        if (variable == NULL)
            return 0;
        if (cw_map_insert(&variables, &variable->map, address) != 0) {
            cw_mem_free(variable, sizeof(*variable));
            return 0;
        }
    }
    variable->block = block;
    return 1;
}

void cw_variable_seen(uint64_t module, uint64_t address, uint64_t bytes)
{
    uint32_t block;

    cw_lock_acquire(&lock);
    block = cw_tracker_find(CW_SPACE_MODULE, module);
    if (block != 0 && is_new_locked(block, address)) {
        atomic_fetch_add(&cw_tracker_at(block)->maps, 1);
        cw_tracker_resize(block, atomic_load(&cw_tracker_at(block)->bytes) + bytes);
    }
    cw_lock_release(&lock);
}
