/* SPDX-License-Identifier: MIT */
/* UTF-8 by RFC 3629. See utf8.h. */
#include "base/utf8.h"

#include <string.h>

static int is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The range of the second byte rules out overlong forms, surrogates and what is past U+10FFFF. */
static int is_second_byte(unsigned char lead, unsigned char byte)
{
    switch (lead) {
    case 0xe0:
        return byte >= 0xa0 && byte <= 0xbf;
    case 0xed:
        return byte >= 0x80 && byte <= 0x9f;
    case 0xf0:
        return byte >= 0x90 && byte <= 0xbf;
    case 0xf4:
        return byte >= 0x80 && byte <= 0x8f;
    default:
        return is_continuation(byte);
    }
}

static size_t utf8_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef)
        return 3;
    if (lead >= 0xf0 && lead <= 0xf4)
        return 4;
    return 0;
}

size_t cw_utf8_scan(const char *text, size_t len, int *out_complete)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t want = utf8_length(s[0]);
    size_t n = 1;

    if (want > 1 && len > 1 && is_second_byte(s[0], s[1])) {
        n = 2;
        while (n < want && n < len && is_continuation(s[n]))
            n++;
    }
    *out_complete = n == want;
    return n;
}

uint32_t cw_utf8_decode(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    uint32_t point = len == 1 ? s[0] : s[0] & (0x7fu >> len);

    for (size_t i = 1; i < len; i++)
        point = point << 6 | (s[i] & 0x3fu);
    return point;
}

int cw_utf8_is_valid(const char *text)
{
    size_t len = strlen(text);
    int is_complete = 1;

    for (size_t at = 0; at < len && is_complete;)
        at += cw_utf8_scan(text + at, len - at, &is_complete);
    return is_complete;
}

size_t cw_utf8_clean(char *buf, size_t cap, const char *text)
{
    size_t len = strlen(text), at = 0;

    for (size_t i = 0, n; i < len; i += n) {
        int is_complete;
        const char *from = text + i;
        size_t size;

        n = cw_utf8_scan(from, len - i, &is_complete);
        size = is_complete ? n : strlen(CW_UTF8_REPLACEMENT);
        if (at + size >= cap)
            break;
        memcpy(buf + at, is_complete ? from : CW_UTF8_REPLACEMENT, size);
        at += size;
    }
    buf[at] = '\0';
    return at;
}

size_t cw_utf8_cut(const char *text, size_t cap)
{
    size_t len = strnlen(text, cap);

    if (len < cap)
        return len;
    len--;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}
