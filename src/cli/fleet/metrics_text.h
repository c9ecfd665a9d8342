/* SPDX-License-Identifier: MIT */
/*
 * A fleet in Prometheus's text format, version 0.0.4. Each metric is a row of a table in
 * metrics_text.c; docs/fleet.md lists them.
 */
#ifndef CW_CLI_METRICS_TEXT_H
#define CW_CLI_METRICS_TEXT_H

#include <stdio.h>

#include "cli/fleet/fleet.h"

#define CW_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

void cw_metrics_print(FILE *to, const struct cw_fleet *fleet);

#endif
