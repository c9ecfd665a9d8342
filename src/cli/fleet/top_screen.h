/* SPDX-License-Identifier: MIT */
/*
 * `top` on a terminal: what is shown, and what the keys do. cmd_top.c handles the terminal itself,
 * time and signals.
 */
#ifndef CW_CLI_TOP_SCREEN_H
#define CW_CLI_TOP_SCREEN_H

#include <stdint.h>

#include "cli/fleet/fleet_sites.h"
#include "cli/fleet/gpus.h"
#include "cli/fleet/top_table.h"

#define CW_TOP_FILTER_MAX 64

/* Identifies a row across refreshes. */
struct cw_top_mark {
    char *path; /* NULL: none */
    uint32_t device;
};

enum cw_top_mode { CW_TOP_TABLE, CW_TOP_HELP, CW_TOP_FILTER };

struct cw_top_screen {
    struct cw_fleet fleet;
    struct cw_gpus gpus;
    struct cw_top_choice choice;
    char filter[CW_TOP_FILTER_MAX]; /* choice.filter points here */
    uint64_t interval_ns;
    int is_paused, is_done, has_colours;
    enum cw_top_mode mode;
    struct cw_top_row *rows;
    long count;
    long selected, first; /* row indexes: the one with the cursor, the one at the top */
    struct cw_top_mark cursor, expanded;
    struct cw_fleet_sites sites; /* of `expanded` */
    char why[512];               /* there are none */
};

#define CW_TOP_INTERVAL_LEAST UINT64_C(100000000)
#define CW_TOP_INTERVAL_MOST  UINT64_C(3600000000000)

/* Selects and sorts the rows again, and finds the cursor's. 0, or -1 if out of memory. */
int cw_top_refresh(struct cw_top_screen *screen);
/* Reads the sites of the expanded row, if there is one. */
void cw_top_look_at_sites(struct cw_top_screen *screen);
void cw_top_draw(struct cw_top_screen *screen);
/* Handles a key; afterwards rows may have to be selected and drawn again. */
void cw_top_press(struct cw_top_screen *screen, int key);
void cw_top_screen_free(struct cw_top_screen *screen);

#endif
