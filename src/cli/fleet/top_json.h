/* SPDX-License-Identifier: MIT */
/* `top --once --format=json`: one object, schema "cuwarden-top/1" (cuwarden(1)). */
#ifndef CW_CLI_TOP_JSON_H
#define CW_CLI_TOP_JSON_H

#include <stdio.h>

#include "cli/fleet/gpus.h"
#include "cli/fleet/top_table.h"

/* A process with its devices is at the position of its first row. 0, or the errno: it cannot be
 * written. */
int cw_top_print_json(FILE *to, const struct cw_fleet *fleet, const struct cw_gpus *gpus,
                      const struct cw_top_row *rows, long count);

#endif
