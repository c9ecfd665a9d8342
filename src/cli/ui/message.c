/* SPDX-License-Identifier: MIT */
/* Messages on stderr, one line each, in the style of getopt. Owns their prefix. See message.h. */
#include "cli/ui/message.h"
#include "base/printable.h"
#include "cli/ui/exit_status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *speaker = "cuwarden";

void cw_cli_speak_as(const char *name)
{
    speaker = name;
}

static void say(const char *prefix, const char *fmt, va_list ap)
{
    char *text = NULL;

    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    fprintf(stderr, "%s: %s\n", prefix, text ? cw_printable_clean_string(text) : "out of memory");
    free(text);
}

void cw_cli_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(speaker, fmt, ap);
    va_end(ap);
}

void cw_cli_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say("cuwarden: warning", fmt, ap);
    va_end(ap);
}

int cw_cli_usage_error(void)
{
    fprintf(stderr, "Try '%s --help' for more information.\n", speaker);
    return CW_EXIT_USAGE;
}

const char *cw_cli_suggestion(char *buf, size_t cap, const struct cw_nearest *nearest)
{
    buf[0] = '\0';
    if (nearest->found)
        snprintf(buf, cap, "; did you mean '%.*s'?", (int)nearest->found_len, nearest->found);
    return buf;
}
