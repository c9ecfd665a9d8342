/* SPDX-License-Identifier: MIT */
/* The next command. See run_next.h. */
#include "cli/run/run_next.h"

#include <stdio.h>
#include <string.h>

#include "base/out.h"

/* What a shell takes as it is. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+"

/* As it is, in every locale; a quote would need others. */
static int can_be_quoted(const char *text)
{
    while (' ' <= *text && *text <= '~' && *text != '\'')
        text++;
    return *text == '\0';
}

void cw_run_next_format(char **argv, char next[CW_RUN_NEXT_MAX])
{
    struct cw_out out;
    char line[CW_RUN_NEXT_MAX];

    cw_out_init(&out, -1, line, sizeof(line) - 1);
    cw_out_string(&out, "cuwarden run --html=report.html");
    for (char **arg = argv + 1; *arg; arg++) {
        int is_plain = **arg && (*arg)[strspn(*arg, PLAIN)] == '\0';

        if (!can_be_quoted(*arg))
            out.truncated = 1;
        cw_out_printf(&out, is_plain ? " %s" : " '%s'", *arg);
    }
    line[out.len] = '\0';
    snprintf(next, CW_RUN_NEXT_MAX, "%s",
             out.truncated ? "the same command with --html=report.html" : line);
}
