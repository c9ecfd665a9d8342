/* SPDX-License-Identifier: MIT */
/* Colours for the text report. See color.h. */
#include "cli/ui/color.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

static const struct {
    const char *begins; /* the line after its prefix */
    const char *color;
} rows[] = {
    {"LEAKS  none", CW_PAINT_GREEN},     {"LEAKS  ", CW_PAINT_ALARM},
    {"INVALID FREES  ", CW_PAINT_ALARM}, {"FATAL ERRORS  ", CW_PAINT_ALARM},
    {"OUT OF MEMORY  ", CW_PAINT_ALARM}, {"accounting is incomplete: ", CW_PAINT_ALARM},
    {"selected: ", CW_PAINT_CYAN},       {"cuwarden ", CW_PAINT_BOLD},
};

static int is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* NULL: as it is. */
static const char *color_of(const char *line)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        if (strncmp(line, rows[i].begins, strlen(rows[i].begins)) == 0)
            return rows[i].color;
    return is_capital(line[0]) && is_capital(line[1]) ? CW_PAINT_BOLD : NULL;
}

/* The length of "==4711== ", or 0. */
static size_t prefix_of(const char *line)
{
    size_t digits = strncmp(line, "==", 2) == 0 ? strspn(line + 2, "0123456789") : 0;

    return digits > 0 && strncmp(line + 2 + digits, "== ", 3) == 0 ? digits + 5 : 0;
}

static void put_line(char *line, FILE *out)
{
    size_t prefix = prefix_of(line);
    const char *color;

    line[strcspn(line, "\n")] = '\0';
    color = prefix ? color_of(line + prefix) : NULL;
    if (prefix)
        fprintf(out, CW_PAINT_DIM "%.*s" CW_PAINT_PLAIN, (int)prefix, line);
    if (color)
        fprintf(out, "%s%s" CW_PAINT_PLAIN "\n", color, line + prefix);
    else
        fprintf(out, "%s\n", line + prefix);
}

int cw_color_text(int fd, FILE *out)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *in = copy < 0 ? NULL : fdopen(copy, "r");
    char *line = NULL;
    size_t cap = 0;
    int rc;

    if (!in) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    rewind(in);
    while (getline(&line, &cap, in) >= 0)
        put_line(line, out);
    rc = ferror(in) || ferror(out) ? -1 : 0;
    free(line);
    fclose(in);
    return rc;
}
