/* SPDX-License-Identifier: MIT */
/* Converts JSON texts and numbers to the values of rows. See json_value.h. */
#include "cli/model/json_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void store(void *field, size_t size, uint64_t value)
{
    switch (size) {
    case 1:
        *(uint8_t *)field = value < UINT8_MAX ? (uint8_t)value : UINT8_MAX;
        break;
    case 2:
        *(uint16_t *)field = value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
        break;
    case 4:
        *(uint32_t *)field = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
        break;
    default:
        *(uint64_t *)field = value;
        break;
    }
}

/* An unknown word, from a later version, becomes the number after the last. */
static unsigned find_word(const struct cw_json_words *words, const char *text)
{
    unsigned word = 0;

    while (word < words->count && strcmp(words->name(word), text) != 0)
        word++;
    return word;
}

void cw_json_put_text(struct cw_json_storage *self, const struct cw_json_field *row, unsigned type,
                      void *to, const char *text)
{
    switch ((enum cw_json_type)type) {
    case CW_JSON_TEXT:
        *(const char **)to = text;
        break;
    case CW_JSON_ADDRESS:
        *(uint64_t *)to = strtoull(text, NULL, 16);
        break;
    case CW_JSON_KEY:
        *(uint32_t *)to = (uint32_t)strtoul(text, NULL, 16);
        break;
    case CW_JSON_WORD:
        store(to, row->size, find_word(row->words, text));
        break;
    case CW_JSON_TAG:
        store(to, row->size, cw_json_tag(self, text));
        break;
    case CW_JSON_DEVICE:
        store(to, row->size, CW_DEVICE_HOST);
        break;
    default:
        break;
    }
}

uint64_t cw_json_to_whole(const char *digits)
{
    uint64_t value = 0;
    const char *at = digits;
    double real;

    for (; *at >= '0' && *at <= '9' && at - digits < 19; at++) /* 19 digits cannot overflow */
        value = value * 10 + (uint64_t)(*at - '0');
    if (*at == '\0')
        return value;
    if (at[strspn(at, "0123456789")] == '\0')
        return strtoull(digits, NULL, 10);
    real = strtod(digits, NULL);
    return real < 0x1p64 ? (uint64_t)real : UINT64_MAX;
}

void cw_json_put_number(const struct cw_json_field *row, unsigned type, void *to,
                        const char *digits)
{
    double real = type == CW_JSON_REAL || type == CW_JSON_SHARE ? strtod(digits, NULL) : 0;

    switch ((enum cw_json_type)type) {
    case CW_JSON_INT:
        *(int32_t *)to = (int32_t)strtol(digits, NULL, 10);
        break;
    case CW_JSON_REAL:
        *(double *)to = real;
        break;
    case CW_JSON_SHARE:
        store(to, row->size, real > 0 && real < 1e6 ? (uint64_t)llround(real * 10000) : 0);
        break;
    case CW_JSON_DEVICE:
        store(to, row->size,
              cw_json_to_whole(digits) < CW_DEVICES ? cw_json_to_whole(digits) : CW_DEVICE_HOST);
        break;
    case CW_JSON_TRUTH:
    case CW_JSON_UINT:
        store(to, row->size, cw_json_to_whole(digits));
        break;
    case CW_JSON_REF:
        store(to, sizeof(uint32_t), cw_json_to_whole(digits));
        break;
    default:
        break;
    }
}
