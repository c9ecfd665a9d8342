/* SPDX-License-Identifier: MIT */
/* The messages of the command. See command_fixture.h. */
#include "command_fixture.h"

#include <stdarg.h>

#include "cli/cli.h"

char command_said[1024];
unsigned command_errors;

void cw_cli_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command_said, sizeof(command_said), fmt, ap);
    va_end(ap);
    command_errors++;
}

void cw_cli_warn(const char *fmt, ...)
{
    (void)fmt;
}

int cw_cli_usage_error(void)
{
    return CW_EXIT_USAGE;
}
