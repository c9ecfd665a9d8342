/* SPDX-License-Identifier: MIT */
/*
 * Reading and printing of the options' values.
 *
 * Owns nothing; no lock. The read_ functions take text from `at` on and return where the next
 * character stands, or NULL when the text is not what they read; what may follow is their caller's
 * business.
 */
#include "base/option_values.h"

#include <string.h>

#define DECIMALS 18
#define ONE      UINT64_C(1000000000000000000) /* 10 to the power of DECIMALS */

#define MILLISECOND UINT64_C(1000000)
#define SECOND      (1000 * MILLISECOND)
#define MINUTE      (60 * SECOND)
#define HOUR        (60 * MINUTE)

/* ---- numbers ---- */

struct decimal {
    uint64_t whole;
    uint64_t fraction; /* of ONE */
    int has_point;
};

static const char *read_digits(const char *at, uint64_t *out)
{
    size_t len = strspn(at, "0123456789");
    uint64_t number = 0;

    for (size_t i = 0; i < len; i++) {
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(at[i] - '0'), &number))
            return NULL;
    }
    *out = number;
    return len > 0 ? at + len : NULL;
}

static const char *read_decimal(const char *at, struct decimal *out)
{
    size_t decimals;

    at = read_digits(at, &out->whole);
    out->fraction = 0;
    out->has_point = at && *at == '.';
    if (!out->has_point)
        return at;
    at++;
    decimals = strspn(at, "0123456789");
    if (decimals > DECIMALS)
        return NULL;
    at = read_digits(at, &out->fraction);
    for (; decimals < DECIMALS; decimals++)
        out->fraction *= 10;
    return at;
}

/* number times unit, rounded down. The product of fraction and unit may have 128 bits, so it is
 * summed up bit by bit of the unit and brought below ONE after each. */
static int scale(const struct decimal *number, uint64_t unit, uint64_t *out)
{
    uint64_t part = 0;
    uint64_t rest = 0;
    uint64_t product;

    for (int bit = 63; bit >= 0; bit--) {
        rest = 2 * rest + (unit >> bit & 1) * number->fraction;
        part = 2 * part + rest / ONE;
        rest %= ONE;
    }
    if (__builtin_mul_overflow(number->whole, unit, &product) ||
        __builtin_add_overflow(product, part, &product))
        return -1;
    *out = product;
    return 0;
}

/* For the letters of units. */
static int is_letter(char c, char lower)
{
    return (c | 0x20) == lower;
}

int cw_count_parse(const char *text, uint64_t *out)
{
    uint64_t number;
    const char *end = read_digits(text, &number);

    if (!end || *end)
        return -1;
    *out = number;
    return 0;
}

/* ---- sizes ---- */

static const char *read_size_unit(const char *at, uint64_t *unit)
{
    static const char letters[] = "kmgt";
    unsigned exponent = 0;

    while (letters[exponent] && !is_letter(*at, letters[exponent]))
        exponent++;
    if (!letters[exponent]) {
        *unit = 1;
        return at;
    }
    *unit = UINT64_C(1024) << 10 * exponent;
    at++;
    if (is_letter(at[0], 'i') && is_letter(at[1], 'b'))
        return at + 2;
    return is_letter(at[0], 'b') ? at + 1 : at;
}

/* What follows the number of a size. A fraction without a unit is a forgotten unit. */
static const char *read_bytes(const char *at, const struct decimal *number, uint64_t *bytes)
{
    uint64_t unit;

    at = read_size_unit(at, &unit);
    if ((unit == 1 && number->has_point) || scale(number, unit, bytes) != 0)
        return NULL;
    return at;
}

static const char *read_size(const char *at, int takes_none, struct cw_size *out)
{
    static const char none[] = "none";
    struct decimal number;

    if (takes_none && strncmp(at, none, sizeof(none) - 1) == 0) {
        *out = (struct cw_size){.kind = CW_SIZE_NONE};
        return at + sizeof(none) - 1;
    }
    at = read_decimal(at, &number);
    if (!at)
        return NULL;
    if (*at != '%') {
        out->kind = CW_SIZE_BYTES;
        return read_bytes(at, &number, &out->amount);
    }
    out->kind = CW_SIZE_SHARE;
    if (number.whole > 100 || (number.whole == 100 && number.fraction > 0) ||
        scale(&number, CW_SHARE_OF_WHOLE / 100, &out->amount) != 0)
        return NULL;
    return at + 1;
}

/* ---- sizes by device ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

static int has_dash_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

/* The form of nvidia-smi -L behind "GPU-", which has the bytes in their order. */
static const char *read_uuid(const char *at, uint8_t uuid[16])
{
    for (size_t i = 0; i < 16; i++) {
        int high;
        int low;

        if (has_dash_before(i) && *at++ != '-')
            return NULL;
        high = hex_digit(at[0]);
        low = high < 0 ? -1 : hex_digit(at[1]);
        if (low < 0)
            return NULL;
        uuid[i] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    return at;
}

static const char *read_device(const char *at, struct cw_device_size *out)
{
    uint64_t ordinal;

    if (strncmp(at, "GPU-", 4) == 0) {
        out->named_by = CW_DEVICE_UUID;
        return read_uuid(at + 4, out->uuid);
    }
    at = read_digits(at, &ordinal);
    if (!at || ordinal > UINT32_MAX)
        return NULL;
    out->named_by = CW_DEVICE_ORDINAL;
    out->ordinal = (uint32_t)ordinal;
    return at;
}

static const char *read_device_size(const char *at, int takes_none, struct cw_device_size *out)
{
    memset(out, 0, sizeof(*out));
    if (at[strcspn(at, ":,")] == ':') {
        at = read_device(at, out);
        if (!at || *at++ != ':')
            return NULL;
    }
    return read_size(at, takes_none, &out->size);
}

static int is_device(const struct cw_device_size *item, enum cw_device_name named_by,
                     uint32_t ordinal, const uint8_t *uuid)
{
    if (item->named_by != named_by)
        return 0;
    return named_by == CW_DEVICE_UUID ? memcmp(item->uuid, uuid, sizeof(item->uuid)) == 0
                                      : item->ordinal == ordinal;
}

static const struct cw_device_size *find_device(const struct cw_device_sizes *sizes,
                                                enum cw_device_name named_by, uint32_t ordinal,
                                                const uint8_t *uuid)
{
    for (unsigned i = 0; i < sizes->count; i++) {
        if (is_device(&sizes->device[i], named_by, ordinal, uuid))
            return &sizes->device[i];
    }
    return NULL;
}

static int add_device(struct cw_device_sizes *sizes, const struct cw_device_size *item)
{
    if (sizes->count == CW_SIZES_MAX ||
        find_device(sizes, item->named_by, item->ordinal, item->uuid))
        return -1;
    sizes->device[sizes->count++] = *item;
    return 0;
}

int cw_sizes_parse(const char *text, int takes_none, struct cw_device_sizes *out)
{
    struct cw_device_sizes sizes = {.fallback = out->fallback};
    int fallbacks = 0;

    do {
        struct cw_device_size item;

        text = read_device_size(text, takes_none, &item);
        if (!text || (*text && *text != ','))
            return -1;
        if (item.named_by != CW_DEVICE_UNNAMED) {
            if (add_device(&sizes, &item) != 0)
                return -1;
        } else {
            if (fallbacks++ > 0)
                return -1;
            sizes.fallback = item.size;
        }
    } while (*text++ == ',');
    *out = sizes;
    return 0;
}

static uint64_t share_of(uint64_t total, uint64_t share)
{
    return total / CW_SHARE_OF_WHOLE * share +
           total % CW_SHARE_OF_WHOLE * share / CW_SHARE_OF_WHOLE;
}

int cw_sizes_for(const struct cw_device_sizes *sizes, unsigned device, const uint8_t uuid[16],
                 uint64_t device_total, uint64_t *out_bytes)
{
    const struct cw_device_size *item = NULL;
    const struct cw_size *size;

    if (uuid)
        item = find_device(sizes, CW_DEVICE_UUID, 0, uuid);
    if (!item)
        item = find_device(sizes, CW_DEVICE_ORDINAL, device, NULL);
    size = item ? &item->size : &sizes->fallback;
    if (size->kind == CW_SIZE_NONE)
        return 0;
    *out_bytes = size->kind == CW_SIZE_BYTES ? size->amount : share_of(device_total, size->amount);
    return 1;
}

/* ---- printing of sizes ---- */

static void print_fraction(uint64_t fraction, int decimals, struct cw_out *out)
{
    if (fraction == 0)
        return;
    for (; fraction % 10 == 0; fraction /= 10)
        decimals--;
    cw_out_printf(out, ".%0*ju", decimals, (uintmax_t)fraction);
}

/* Whole or half units, "8G" and "1.5G"; else a smaller unit. */
static void print_bytes(uint64_t bytes, struct cw_out *out)
{
    static const char letters[] = "KMGT";

    for (int i = sizeof(letters) - 2; i >= 0; i--) {
        uint64_t unit = UINT64_C(1024) << 10 * i;

        if (bytes < unit || bytes % (unit / 2) != 0)
            continue;
        cw_out_printf(out, "%ju%s%c", (uintmax_t)(bytes / unit), bytes % unit ? ".5" : "",
                      letters[i]);
        return;
    }
    cw_out_printf(out, "%ju", (uintmax_t)bytes);
}

static void print_size(const struct cw_size *size, struct cw_out *out)
{
    switch (size->kind) {
    case CW_SIZE_NONE:
        cw_out_string(out, "none");
        return;
    case CW_SIZE_BYTES:
        print_bytes(size->amount, out);
        return;
    case CW_SIZE_SHARE:
        cw_out_printf(out, "%ju", (uintmax_t)(size->amount / (CW_SHARE_OF_WHOLE / 100)));
        print_fraction(size->amount % (CW_SHARE_OF_WHOLE / 100), 6, out);
        cw_out_char(out, '%');
        return;
    }
}

static void print_device(const struct cw_device_size *item, struct cw_out *out)
{
    if (item->named_by == CW_DEVICE_ORDINAL) {
        cw_out_printf(out, "%u:", item->ordinal);
        return;
    }
    cw_out_string(out, "GPU-");
    for (size_t i = 0; i < sizeof(item->uuid); i++)
        cw_out_printf(out, has_dash_before(i) ? "-%02x" : "%02x", item->uuid[i]);
    cw_out_char(out, ':');
}

void cw_sizes_print(const struct cw_device_sizes *sizes, struct cw_out *out)
{
    for (unsigned i = 0; i < sizes->count; i++) {
        print_device(&sizes->device[i], out);
        print_size(&sizes->device[i].size, out);
        cw_out_char(out, ',');
    }
    print_size(&sizes->fallback, out);
}

/* ---- times ---- */

static const char *read_time_unit(const char *at, uint64_t *unit)
{
    *unit = SECOND;
    if (is_letter(at[0], 'm') && is_letter(at[1], 's')) {
        *unit = MILLISECOND;
        return at + 2;
    }
    if (is_letter(*at, 'm'))
        *unit = MINUTE;
    else if (is_letter(*at, 'h'))
        *unit = HOUR;
    else if (!is_letter(*at, 's'))
        return at;
    return at + 1;
}

int cw_time_parse(const char *text, uint64_t *out_ns)
{
    struct decimal number;
    uint64_t unit;

    text = read_decimal(text, &number);
    if (!text)
        return -1;
    text = read_time_unit(text, &unit);
    return *text ? -1 : scale(&number, unit, out_ns);
}

void cw_time_print(uint64_t ns, struct cw_out *out)
{
    if (ns > 0 && ns % MINUTE == 0) {
        int is_hours = ns % HOUR == 0;

        cw_out_printf(out, "%ju%c", (uintmax_t)(ns / (is_hours ? HOUR : MINUTE)),
                      is_hours ? 'h' : 'm');
        return;
    }
    if (ns > 0 && ns < SECOND && ns % MILLISECOND == 0) {
        cw_out_printf(out, "%jums", (uintmax_t)(ns / MILLISECOND));
        return;
    }
    cw_out_printf(out, "%ju", (uintmax_t)(ns / SECOND));
    print_fraction(ns % SECOND, 9, out);
    cw_out_char(out, 's');
}

/* ---- batches ---- */

static const char *read_batch(const char *at, uint64_t *bytes, uint32_t *blocks)
{
    struct decimal number;
    uint64_t count;

    at = read_decimal(at, &number);
    if (at)
        at = read_bytes(at, &number, bytes);
    if (!at || *at != ':' || *bytes < 1 || *bytes > CW_BATCH_BYTES)
        return NULL;
    at = read_digits(at + 1, &count);
    if (!at || count < 1 || count > CW_BATCH_BLOCKS)
        return NULL;
    *blocks = (uint32_t)count;
    return at;
}

int cw_batches_parse(const char *text, struct cw_option_batches *out)
{
    struct cw_option_batches batches = {.count = 0};
    int has_more = *text != '\0';

    while (has_more) {
        unsigned i = batches.count++;

        if (i == CW_BATCHES_MAX)
            return -1;
        text = read_batch(text, &batches.item[i].bytes, &batches.item[i].blocks);
        if (!text || (*text && *text != ','))
            return -1;
        has_more = *text++ == ',';
    }
    *out = batches;
    return 0;
}

void cw_batches_print(const struct cw_option_batches *batches, struct cw_out *out)
{
    for (unsigned i = 0; i < batches->count; i++) {
        if (i > 0)
            cw_out_char(out, ',');
        print_bytes(batches->item[i].bytes, out);
        cw_out_printf(out, ":%u", batches->item[i].blocks);
    }
}

/* ---- report destinations ---- */

/* Length of a known sequence at the '%', or 0. */
static size_t sequence_length(const char *percent)
{
    const char *closing;

    switch (percent[1]) {
    case 'p':
    case 'h':
    case 'e':
    case 't':
    case 'n':
    case '%':
        return 2;
    case 'q':
        closing = percent[2] == '{' ? strchr(percent + 3, '}') : NULL;
        return closing && closing > percent + 3 ? (size_t)(closing - percent) + 1 : 0;
    default:
        return 0;
    }
}

const char *cw_path_find_bad_sequence(const char *template)
{
    for (const char *at = strchr(template, '%'); at; at = strchr(at, '%')) {
        size_t len = sequence_length(at);

        if (len == 0)
            return at;
        at += len;
    }
    return NULL;
}
