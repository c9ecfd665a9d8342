/* SPDX-License-Identifier: MIT */
/* Names of notebooks' cells. See cell_name.h. */
#include "base/cell_name.h"

#include <string.h>

/* Also inside the library: no call of the C library but those on memory and strings. */
static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* The text between `before` and `after` takes the place of all. */
static char *rename_to(char *file, const char *before, const char *value, size_t length,
                       const char *after)
{
    size_t head = strlen(before);

    memmove(file + head, value, length);
    memcpy(file, before, head);
    memcpy(file + head + length, after, strlen(after) + 1);
    return file;
}

char *cw_cell_name(char *file)
{
    static const char input[] = "<ipython-input-", kernel[] = "/ipykernel_";
    const char *number = file + sizeof(input) - 1;
    const char *name = strrchr(file, '/');
    const char *directory = strstr(file, kernel);
    size_t digits;

    if (strncmp(file, input, sizeof(input) - 1) == 0) {
        digits = count_digits(number);
        if (digits != 0 && number[digits] == '-')
            return rename_to(file, "Cell In[", number, digits, "]");
    }
    if (!directory || name <= directory)
        return file;
    directory += sizeof(kernel) - 1;
    digits = count_digits(name + 1);
    if (directory + count_digits(directory) != name || digits == 0 ||
        strcmp(name + 1 + digits, ".py") != 0)
        return file;
    return rename_to(file, "Cell ", name + 1, digits, "");
}
