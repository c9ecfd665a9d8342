/* SPDX-License-Identifier: MIT */
/* Words of the JSON report. See json_put.h. */
#include "report/json/json_put.h"

#include <string.h>

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
    if (key)
        cw_out_printf(json->out, "\"%s\":", key);
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
    cw_out_printf(json->out, "%ju", (uintmax_t)value);
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
    cw_out_printf(json->out, "%s%ju.%09ju", value < 0 ? "-" : "",
                  (uintmax_t)magnitude + (uintmax_t)(parts / FRACTION),
                  (uintmax_t)(parts % FRACTION));
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
    cw_out_printf(json->out, "%u.%06u", millionths / 1000000, millionths % 1000000);
}

void cw_json_string(struct cw_json *json, const char *key, const char *value)
{
    cw_json_key(json, key);
    cw_out_json_string(json->out, value, strlen(value));
}

void cw_json_text(struct cw_json *json, const char *key, uint32_t text)
{
    const char *value = cw_view_text(json->view, text);

    if (*value)
        cw_json_string(json, key, value);
}

void cw_json_time(struct cw_json *json, const char *key, uint64_t ns)
{
    if (ns != 0)
        cw_json_number(json, key, ns);
}

void cw_json_address(struct cw_json *json, const char *key, uint64_t address)
{
    cw_json_key(json, key);
    cw_out_printf(json->out, "\"0x%jx\"", (uintmax_t)address);
}

void cw_json_hex(struct cw_json *json, const char *key, const uint8_t *bytes, size_t len)
{
    cw_json_key(json, key);
    cw_out_char(json->out, '"');
    for (size_t i = 0; i < len; i++)
        cw_out_printf(json->out, "%02x", bytes[i]);
    cw_out_char(json->out, '"');
}

void cw_json_amount(struct cw_json *json, const char *key, uint64_t count, uint64_t bytes)
{
    cw_json_open(json, key, '{');
    cw_json_number(json, "count", count);
    cw_json_number(json, "bytes", bytes);
    cw_json_close(json, '}');
}

void cw_json_device(struct cw_json *json, unsigned device)
{
    if (device == CW_DEVICE_HOST)
        cw_json_string(json, "device", "host");
    else
        cw_json_number(json, "device", device);
}

void cw_json_device_name(struct cw_json *json, unsigned device)
{
    const struct cw_live_device *live = &cw_view_header(json->view)->device[device];

    if (!atomic_load_explicit(&live->known, memory_order_relaxed))
        return;
    cw_json_key(json, "name");
    cw_out_json_string(json->out, live->name, strnlen(live->name, sizeof(live->name)));
}
