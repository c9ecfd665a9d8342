/* SPDX-License-Identifier: MIT */
/* Which characters are printed. See printable.h. */
#include "base/printable.h"

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/utf8.h"

/* Beyond ASCII: C1; marks, embeddings, overrides and isolates of direction; line and paragraph
 * separators. */
static const struct {
    uint32_t first, last;
} refused[] = {
    {0x0080, 0x009f}, {0x061c, 0x061c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
};

size_t cw_printable_scan(const char *text, size_t len, int *out_is_printable)
{
    unsigned char byte = (unsigned char)*text;
    uint32_t point;
    size_t size;

    *out_is_printable = byte >= 0x20 && byte != 0x7f;
    if (byte < 0x80)
        return 1;
    size = cw_utf8_scan(text, len, out_is_printable);
    point = *out_is_printable ? cw_utf8_decode(text, size) : 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(refused); i++) {
        if (refused[i].first <= point && point <= refused[i].last)
            *out_is_printable = 0;
    }
    return size;
}

size_t cw_printable_clean(char *text, size_t len)
{
    size_t kept = 0;

    for (size_t at = 0, size; at < len; at += size) {
        int is_printable;

        size = cw_printable_scan(text + at, len - at, &is_printable);
        if (is_printable)
            memmove(text + kept, text + at, size);
        else
            text[kept] = '?';
        kept += is_printable ? size : 1;
    }
    return kept;
}

char *cw_printable_clean_string(char *text)
{
    text[cw_printable_clean(text, strlen(text))] = '\0';
    return text;
}
