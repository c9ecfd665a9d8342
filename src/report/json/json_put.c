/* SPDX-License-Identifier: MIT */
/* Words of the JSON report. See json_put.h. */
#include "report/json/json_put.h"

#include <string.h>

#include "live/layout.h"

#define DECIMAL_MAX 1e15
#define FRACTION    UINT64_C(1000000000) /* to so many parts a decimal is exact */

static void next(struct cw_json *json)
{
    if (!json->first)
        cw_out_char(json->out, ',');
    json->first = 0;
}

void cw_json_key(struct cw_json *json, const char *key)
{
    next(json);
    if (!key)
        return;
    cw_out_char(json->out, '"');
    cw_out_string(json->out, key);
    cw_out_write(json->out, "\":", 2);
}

/* In base 10 or 16, at least `width` digits: reports are mostly numbers, and the formatter takes
 * several times as long. */
static void put_digits(struct cw_json *json, uint64_t value, unsigned base, size_t width)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0 || sizeof(digits) - at < width);
    cw_out_write(json->out, digits + at, sizeof(digits) - at);
}

void cw_json_name(struct cw_json *json, const char *name, size_t len)
{
    next(json);
    cw_out_json_string(json->out, name, len);
    cw_out_char(json->out, ':');
    json->first = 1;
}

void cw_json_open(struct cw_json *json, const char *key, char bracket)
{
    cw_json_key(json, key);
    cw_out_char(json->out, bracket);
    json->first = 1;
}

void cw_json_element(struct cw_json *json, char bracket)
{
    next(json);
    cw_out_char(json->out, '\n');
    cw_out_char(json->out, bracket);
    json->first = 1;
}

void cw_json_close(struct cw_json *json, char bracket)
{
    cw_out_char(json->out, bracket);
    json->first = 0;
}

void cw_json_number(struct cw_json *json, const char *key, uint64_t value)
{
    cw_json_key(json, key);
    put_digits(json, value, 10, 1);
}

void cw_json_decimal(struct cw_json *json, const char *key, double value)
{
    double magnitude = value < 0 ? -value : value;
    uint64_t parts;

    cw_json_key(json, key);
    if (value != value) {
        cw_out_string(json->out, "null");
        return;
    }
    if (magnitude > DECIMAL_MAX)
        magnitude = DECIMAL_MAX;
    parts = (uint64_t)((magnitude - (double)(uint64_t)magnitude) * (double)FRACTION + 0.5);
    if (value < 0)
        cw_out_char(json->out, '-');
    put_digits(json, (uint64_t)magnitude + parts / FRACTION, 10, 1);
    cw_out_char(json->out, '.');
    put_digits(json, parts % FRACTION, 10, 9);
}

void cw_json_truth(struct cw_json *json, const char *key, int value)
{
    cw_json_key(json, key);
    cw_out_string(json->out, value ? "true" : "false");
}

void cw_json_share(struct cw_json *json, const char *key, uint64_t part, uint64_t whole)
{
    unsigned millionths = 1000000;

    cw_json_key(json, key);
    if (whole == 0) {
        cw_out_string(json->out, "null");
        return;
    }
    if (part < whole)
        millionths = (unsigned)((double)part * 1e6 / (double)whole + 0.5);
    put_digits(json, millionths / 1000000, 10, 1);
    cw_out_char(json->out, '.');
    put_digits(json, millionths % 1000000, 10, 6);
}

void cw_json_string(struct cw_json *json, const char *key, const char *value)
{
    cw_json_key(json, key);
    cw_out_json_string(json->out, value, strlen(value));
}

void cw_json_address(struct cw_json *json, const char *key, uint64_t address)
{
    cw_json_key(json, key);
    cw_out_write(json->out, "\"0x", 3);
    put_digits(json, address, 16, 1);
    cw_out_char(json->out, '"');
}

void cw_json_amount(struct cw_json *json, const char *key, uint64_t count, uint64_t bytes)
{
    cw_json_open(json, key, '{');
    cw_json_number(json, "count", count);
    cw_json_number(json, "bytes", bytes);
    cw_json_close(json, '}');
}

void cw_json_device(struct cw_json *json, const char *key, unsigned device)
{
    if (device == CW_DEVICE_HOST)
        cw_json_string(json, key, "host");
    else
        cw_json_number(json, key, device);
}
