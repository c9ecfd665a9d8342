/* SPDX-License-Identifier: MIT */
/*
 * A report in JSON with some of its sites: what is in "sites", "leaks" and "regrowth" of others is
 * left out, the order of the sites is the selection's, and "selection" says how many of how many
 * are there. All else is copied byte for byte: sums are of the whole process.
 */
#ifndef CW_CLI_JSON_PICK_H
#define CW_CLI_JSON_PICK_H

#include <stdint.h>
#include <stdio.h>

#include "cli/model/model.h"

/* The model is what was read from `fd`. 0, or -1 when it could not be written or read. */
int cw_json_pick(const struct cw_model *model, int fd, const uint32_t *site, uint32_t sites,
                 FILE *out);
/* As it is. */
int cw_json_copy(int fd, FILE *out);

#endif
