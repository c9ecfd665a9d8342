/* SPDX-License-Identifier: MIT */
/* The width of a screen. See screen.h. */
#include "cli/ui/screen.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80
#define COLUMNS_MIN     20
#define COLUMNS_MAX     1000

/* As other programs do: what the user exported wins over what the terminal says. */
static long find_columns(int fd)
{
    const char *value = getenv("COLUMNS");
    long columns = value ? strtol(value, NULL, 10) : 0;
    struct winsize size = {.ws_col = 0};

    if (columns > 0)
        return columns;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return COLUMNS_DEFAULT;
}

unsigned cw_screen_columns(FILE *out)
{
    long columns = find_columns(fileno(out));

    if (columns < COLUMNS_MIN)
        return COLUMNS_MIN;
    return columns < COLUMNS_MAX ? (unsigned)columns : COLUMNS_MAX;
}
