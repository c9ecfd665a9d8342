/* SPDX-License-Identifier: MIT */
/* What the command says. See command_fixture.h. */
#include "command_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

char command_said[1024];
unsigned command_errors;

/* stderr is flushed at the end of each line. */
static ssize_t hear(void *cookie, const char *text, size_t len)
{
    (void)cookie;
    snprintf(command_said, sizeof(command_said), "%.*s", (int)strcspn(text, "\n"), text);
    for (size_t i = 0; i < len; i++)
        command_errors += text[i] == '\n';
    return (ssize_t)len;
}

void command_listen(void)
{
    static char line[sizeof(command_said)];

    stderr = fopencookie(NULL, "w", (cookie_io_functions_t){.write = hear});
    setvbuf(stderr, line, _IOLBF, sizeof(line));
    command_errors = 0;
}
