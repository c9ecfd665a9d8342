/* SPDX-License-Identifier: MIT */
/* Valid UTF-8. See utf8.h. */
#include "cli/ui/utf8.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

static int is_in(unsigned char byte, unsigned first, unsigned last)
{
    return byte >= first && byte <= last;
}

/* Checks the bytes after the first: no overlong form, no surrogate, nothing beyond 10FFFF. */
static int is_second(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return is_in(second, 0xa0, 0xbf);
    case 0xed:
        return is_in(second, 0x80, 0x9f);
    case 0xf0:
        return is_in(second, 0x90, 0xbf);
    case 0xf4:
        return is_in(second, 0x80, 0x8f);
    default:
        return is_in(second, 0x80, 0xbf);
    }
}

size_t cw_utf8_len(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    size_t len = byte[0] == 0                 ? 0
                 : byte[0] < 0x80             ? 1
                 : is_in(byte[0], 0xc2, 0xdf) ? 2
                 : is_in(byte[0], 0xe0, 0xef) ? 3
                 : is_in(byte[0], 0xf0, 0xf4) ? 4
                                              : 0;

    for (size_t i = 1; i < len; i++) {
        if (i == 1 ? !is_second(byte[0], byte[1]) : !is_in(byte[i], 0x80, 0xbf))
            return 0;
    }
    return len;
}

void cw_utf8_clean(char *buf, size_t cap, const char *text)
{
    size_t at = 0;

    while (*text) {
        size_t len = cw_utf8_len(text), needs = len ? len : sizeof(REPLACEMENT) - 1;

        if (at + needs >= cap)
            break;
        memcpy(buf + at, len ? text : REPLACEMENT, needs);
        at += needs;
        text += len ? len : 1;
    }
    buf[at] = '\0';
}
