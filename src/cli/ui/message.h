/* SPDX-License-Identifier: MIT */
/* Errors and warnings of the command: one line on stderr that begins with "cuwarden NAME: ", names
 * the file or value, and says what to do. */
#ifndef CW_CLI_MESSAGE_H
#define CW_CLI_MESSAGE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/nearest.h"
#include "cli/ui/exit_status.h"

/* "cuwarden NAME", which must outlive the calls; "cuwarden" until then. */
void cw_cli_speak_as(const char *name);
/* Prints "cuwarden NAME: text" on stderr. */
void cw_cli_error(const char *fmt, ...) CW_PRINTF(1, 2);
/* Prints "cuwarden: warning: text" on stderr, as the library would. */
void cw_cli_warn(const char *fmt, ...) CW_PRINTF(1, 2);
/* Points to --help after a message about the command line; returns CW_EXIT_USAGE. */
int cw_cli_usage_error(void);

#define CW_SUGGESTION_MAX 96
/* "; did you mean 'report'?", or "" if no known word is near. Returns buf. */
const char *cw_cli_suggestion(char *buf, size_t cap, const struct cw_nearest *nearest);

/* "s" unless the count is 1. */
static inline const char *cw_cli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
