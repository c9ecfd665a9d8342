/* SPDX-License-Identifier: MIT */
/* How weights and caches are stored. See number_format.h. */
#include "base/estimate/number_format.h"

#include <strings.h>

#include "base/compiler.h"

#define PER_BYTE 80000 /* 1/10000 bits */
#define PLAIN    3     /* the first of the table */

enum scope { ALL, LINEAR, EXPERTS };

static const struct cw_number_format formats[] = {
#define X(name, bits, scope) {name, bits, (scope) != ALL, (scope) == EXPERTS},
#include "base/estimate/number_format.def"
#undef X
};

const struct cw_number_format *cw_number_format_at(size_t i)
{
    return i < CW_ARRAY_LEN(formats) ? &formats[i] : NULL;
}

const struct cw_number_format *cw_number_format_find(const char *name)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(formats); i++)
        if (strcasecmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

int cw_number_format_is_plain(const struct cw_number_format *format)
{
    return format < &formats[PLAIN];
}

uint64_t cw_number_format_count(const struct cw_number_format *format, uint64_t bytes)
{
    return (uint64_t)((unsigned __int128)bytes * PER_BYTE / format->bits);
}

uint64_t cw_number_format_bytes(const struct cw_number_format *format, uint64_t count)
{
    unsigned __int128 bytes = ((unsigned __int128)count * format->bits + PER_BYTE - 1) / PER_BYTE;

    return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}
