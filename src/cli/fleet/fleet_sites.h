/* SPDX-License-Identifier: MIT */
/*
 * The places of one process that hold most, with their call stacks: what `top` shows of a process
 * that is expanded. Names of functions are looked up once for each frame of the process.
 */
#ifndef CW_CLI_FLEET_SITES_H
#define CW_CLI_FLEET_SITES_H

#include <stdint.h>

#include "cli/fleet/fleet.h"

struct cw_fleet_site {
    uint32_t stack; /* innermost frame */
    uint32_t api;   /* text */
    uint16_t tag;
    uint8_t kind, device;
    uint64_t live_bytes, live_blocks, allocs;
};

struct cw_fleet_sites {
    struct cw_look look;
    char **name; /* of a frame's index: what a line says of it; NULL: not looked up */
    uint32_t names;
    struct cw_fleet_site *site; /* of one device, most live bytes first */
    uint32_t count;
};

/*
 * Looks at the process's file: at most `most` sites whose bytes are counted on the device, that
 * hold something. `sites` is zeroed before the first look, and belongs to one process. 0, or -1
 * with the reason in `why`, to be read after the file's name.
 */
int cw_fleet_sites_look(struct cw_fleet_sites *sites, const char *path, uint32_t device,
                        uint32_t most, char *why, size_t cap);
void cw_fleet_sites_free(struct cw_fleet_sites *sites);

#define CW_FLEET_FRAMES 8 /* of a stack, shown at most */

/* The frames that a reader wants to see, innermost first, as names; how many. They belong to
 * `sites`. */
unsigned cw_fleet_sites_stack(const struct cw_fleet_sites *sites, const struct cw_fleet_site *site,
                              const char *name[CW_FLEET_FRAMES]);
/* The function that was called. */
const char *cw_fleet_sites_api(const struct cw_fleet_sites *sites,
                               const struct cw_fleet_site *site);

#endif
