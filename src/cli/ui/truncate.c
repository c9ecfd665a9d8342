/* SPDX-License-Identifier: MIT */
/* Truncation of text. See truncate.h. */
#include "cli/ui/truncate.h"

#include <string.h>
#include <wchar.h>
#include "base/printable.h"

/* One character: its bytes and columns. Combining characters take no column and stay attached. */
static size_t measure(const char *text, size_t len, mbstate_t *state, int *out_columns)
{
    int columns, is_printable;
    wchar_t wide;
    size_t bytes = mbrtowc(&wide, text, len, state);

    (void)cw_printable_scan(text, len, &is_printable);
    if (bytes == (size_t)-1 || bytes == (size_t)-2 || bytes == 0) {
        memset(state, 0, sizeof(*state));
        *out_columns = -1;
        return 1;
    }
    columns = wcwidth(wide);
    *out_columns = is_printable ? columns : -1;
    return bytes;
}

size_t cw_truncate(char *buf, size_t cap, const char *text, size_t columns)
{
    size_t left = strlen(text), used = 0, at = 0;
    mbstate_t state = {0};

    while (left > 0) {
        int width;
        size_t bytes = measure(text, left, &state, &width);
        size_t takes = width < 0 ? 1 : (size_t)width, needs = width < 0 ? 1 : bytes;

        if (used + takes > columns || at + needs >= cap)
            break;
        if (width < 0)
            buf[at] = '?';
        else
            memcpy(buf + at, text, bytes);
        at += needs;
        used += takes;
        text += bytes;
        left -= bytes;
    }
    buf[at] = '\0';
    return used;
}

void cw_truncate_fill(char *buf, size_t cap, const char *text, size_t columns)
{
    size_t used = cw_truncate(buf, cap, text, columns), at = strlen(buf);

    for (; used < columns && at + 1 < cap; used++)
        buf[at++] = ' ';
    buf[at] = '\0';
}
