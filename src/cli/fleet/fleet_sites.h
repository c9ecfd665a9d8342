/* SPDX-License-Identifier: MIT */
/*
 * The call sites of one process that hold most, with their call stacks: shown by `top` for an
 * expanded row. Function names are looked up once per frame of the process.
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
    char **name; /* by frame index: its line of text; NULL: not looked up */
    uint32_t names;
    struct cw_fleet_site *site; /* on one device, most live bytes first */
    uint32_t count;
};

/*
 * Reads from the process's file at most `most` sites that hold memory counted on the device.
 * `sites` is zeroed before the first call, and belongs to one process. 0, or -1 with the reason in
 * `why`, to be appended to the file's name.
 */
int cw_fleet_sites_look(struct cw_fleet_sites *sites, const char *path, uint32_t device,
                        uint32_t most, char *why, size_t cap);
void cw_fleet_sites_free(struct cw_fleet_sites *sites);

#define CW_FLEET_FRAMES 8 /* maximum shown per stack */

/* The frames worth showing, innermost first, as names owned by `sites`. Returns their number. */
unsigned cw_fleet_sites_stack(const struct cw_fleet_sites *sites, const struct cw_fleet_site *site,
                              const char *name[CW_FLEET_FRAMES]);
/* The API function that was called. */
const char *cw_fleet_sites_api(const struct cw_fleet_sites *sites,
                               const struct cw_fleet_site *site);

#endif
