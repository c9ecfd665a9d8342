/* SPDX-License-Identifier: MIT */
/* Parsing and printing of option values. See option_values.h, and number.h for the read_ part. */
#include "base/options/option_values.h"

#include <string.h>

#include "base/compiler.h"
#include "base/device_reserve.h"
#include "base/options/number.h"

#define MILLISECOND UINT64_C(1000000)
#define SECOND      (1000 * MILLISECOND)
#define MINUTE      (60 * SECOND)
#define HOUR        (60 * MINUTE)

/* ---- counts ---- */

int cw_count_parse(const char *text, uint64_t *out)
{
    uint64_t number;
    const char *end = cw_number_read_digits(text, &number);

    if (!end || *end)
        return -1;
    *out = number;
    return 0;
}

/* ---- sizes ---- */

static const struct {
    const char *word;
    unsigned bit;
    enum cw_size_kind kind;
} size_words[] = {
    {"none", CW_SIZE_TAKES_NONE, CW_SIZE_NONE},
    {"usable", CW_SIZE_TAKES_USABLE, CW_SIZE_USABLE},
    {"platform", CW_SIZE_TAKES_PLATFORM, CW_SIZE_PLATFORM},
};

static const char *read_size(const char *at, unsigned words, struct cw_size *out)
{
    struct cw_decimal number;

    for (size_t i = 0; i < CW_ARRAY_LEN(size_words); i++) {
        size_t len = strlen(size_words[i].word);

        if ((words & size_words[i].bit) == 0 || strncmp(at, size_words[i].word, len) != 0)
            continue;
        *out = (struct cw_size){.kind = size_words[i].kind};
        return at + len;
    }
    at = cw_number_read_decimal(at, &number);
    if (!at)
        return NULL;
    if (*at != '%') {
        out->kind = CW_SIZE_BYTES;
        return cw_number_read_bytes(at, &number, &out->amount);
    }
    out->kind = CW_SIZE_SHARE;
    if (number.whole > 100 || (number.whole == 100 && number.fraction > 0) ||
        cw_number_scale(&number, CW_SHARE_OF_WHOLE / 100, &out->amount) != 0)
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

/* The UUID as printed by nvidia-smi -L after "GPU-" or "MIG-", bytes in order. */
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

/* A GPU or a MIG instance. */
static int has_uuid_prefix(const char *at)
{
    return strncmp(at, "GPU-", 4) == 0 || strncmp(at, "MIG-", 4) == 0;
}

int cw_uuid_parse(const char *text, uint8_t out[16])
{
    const char *end = has_uuid_prefix(text) ? read_uuid(text + 4, out) : NULL;

    return end != NULL && *end == '\0' ? 0 : -1;
}

static const char *read_device(const char *at, struct cw_device_size *out)
{
    uint64_t ordinal;

    if (has_uuid_prefix(at)) {
        out->named_by = CW_DEVICE_UUID;
        out->is_mig = at[0] == 'M';
        return read_uuid(at + 4, out->uuid);
    }
    at = cw_number_read_digits(at, &ordinal);
    if (!at || ordinal > UINT32_MAX)
        return NULL;
    out->named_by = CW_DEVICE_ORDINAL;
    out->ordinal = (uint32_t)ordinal;
    return at;
}

static const char *read_device_size(const char *at, unsigned words, struct cw_device_size *out)
{
    memset(out, 0, sizeof(*out));
    if (at[strcspn(at, ":,")] == ':') {
        at = read_device(at, out);
        if (!at || *at++ != ':')
            return NULL;
    }
    return read_size(at, words, &out->size);
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

int cw_sizes_parse(const char *text, unsigned words, struct cw_device_sizes *out)
{
    struct cw_device_sizes sizes = {.fallback = out->fallback};
    int fallbacks = 0;

    do {
        struct cw_device_size item;

        text = read_device_size(text, words, &item);
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

static int is_zero(const struct cw_size *size)
{
    return (size->kind == CW_SIZE_BYTES || size->kind == CW_SIZE_SHARE) && size->amount == 0;
}

int cw_sizes_have_zero(const struct cw_device_sizes *sizes)
{
    for (unsigned i = 0; i < sizes->count; i++) {
        if (is_zero(&sizes->device[i].size))
            return 1;
    }
    return is_zero(&sizes->fallback);
}

static uint64_t share_of(uint64_t total, uint64_t share)
{
    return total / CW_SHARE_OF_WHOLE * share +
           total % CW_SHARE_OF_WHOLE * share / CW_SHARE_OF_WHOLE;
}

static uint64_t usable_of(uint64_t total)
{
    uint64_t reserve = cw_device_reserve(total);

    return reserve < total / 2 ? total - reserve : total - total / 2;
}

static const struct cw_size *find_size(const struct cw_device_sizes *sizes, unsigned device,
                                       const uint8_t uuid[16])
{
    const struct cw_device_size *item = NULL;

    if (uuid)
        item = find_device(sizes, CW_DEVICE_UUID, 0, uuid);
    if (!item)
        item = find_device(sizes, CW_DEVICE_ORDINAL, device, NULL);
    return item ? &item->size : &sizes->fallback;
}

enum cw_size_kind cw_sizes_kind_for(const struct cw_device_sizes *sizes, unsigned device,
                                    const uint8_t uuid[16])
{
    return find_size(sizes, device, uuid)->kind;
}

int cw_sizes_for(const struct cw_device_sizes *sizes, unsigned device, const uint8_t uuid[16],
                 uint64_t device_total, uint64_t *out_bytes)
{
    const struct cw_size *size = find_size(sizes, device, uuid);

    switch (size->kind) {
    case CW_SIZE_BYTES:
        *out_bytes = size->amount;
        return 1;
    case CW_SIZE_SHARE:
        *out_bytes = share_of(device_total, size->amount);
        return 1;
    case CW_SIZE_USABLE:
        *out_bytes = usable_of(device_total);
        return 1;
    default:
        return 0;
    }
}

/* ---- printing of sizes ---- */

static void print_size(const struct cw_size *size, struct cw_out *out)
{
    switch (size->kind) {
    case CW_SIZE_NONE:
        cw_out_string(out, "none");
        return;
    case CW_SIZE_USABLE:
        cw_out_string(out, "usable");
        return;
    case CW_SIZE_PLATFORM:
        cw_out_string(out, "platform");
        return;
    case CW_SIZE_BYTES:
        cw_number_print_bytes(size->amount, out);
        return;
    case CW_SIZE_SHARE:
        cw_out_printf(out, "%ju", (uintmax_t)(size->amount / (CW_SHARE_OF_WHOLE / 100)));
        cw_number_print_fraction(size->amount % (CW_SHARE_OF_WHOLE / 100), 6, out);
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
    cw_out_string(out, item->is_mig ? "MIG-" : "GPU-");
    for (size_t i = 0; i < sizeof(item->uuid); i++)
        cw_out_printf(out, has_dash_before(i) ? "-%02x" : "%02x", item->uuid[i]);
    cw_out_char(out, ':');
}

void cw_device_size_print(const struct cw_device_size *item, struct cw_out *out)
{
    print_device(item, out);
    print_size(&item->size, out);
}

void cw_sizes_print(const struct cw_device_sizes *sizes, struct cw_out *out)
{
    for (unsigned i = 0; i < sizes->count; i++) {
        cw_device_size_print(&sizes->device[i], out);
        cw_out_char(out, ',');
    }
    print_size(&sizes->fallback, out);
}

/* ---- times ---- */

static const char *read_time_unit(const char *at, uint64_t *unit)
{
    *unit = SECOND;
    if (cw_number_is_letter(at[0], 'm') && cw_number_is_letter(at[1], 's')) {
        *unit = MILLISECOND;
        return at + 2;
    }
    if (cw_number_is_letter(*at, 'm'))
        *unit = MINUTE;
    else if (cw_number_is_letter(*at, 'h'))
        *unit = HOUR;
    else if (!cw_number_is_letter(*at, 's'))
        return at;
    return at + 1;
}

int cw_time_parse(const char *text, uint64_t *out_ns)
{
    struct cw_decimal number;
    uint64_t unit;

    text = cw_number_read_decimal(text, &number);
    if (!text)
        return -1;
    text = read_time_unit(text, &unit);
    return *text ? -1 : cw_number_scale(&number, unit, out_ns);
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
    cw_number_print_fraction(ns % SECOND, 9, out);
    cw_out_char(out, 's');
}

/* ---- levels ---- */

static const char *read_percent(const char *at, uint64_t above, uint8_t *out)
{
    uint64_t percent;

    at = cw_number_read_digits(at, &percent);
    if (!at || percent <= above || percent > 100)
        return NULL;
    *out = (uint8_t)percent;
    return *at == '%' ? at + 1 : at;
}

int cw_levels_parse(const char *text, struct cw_levels *out)
{
    struct cw_levels levels;

    for (unsigned i = 0; i < CW_THRESHOLDS; i++) {
        text = read_percent(text, i > 0 ? levels.percent[i - 1] : 0, &levels.percent[i]);
        if (!text || *text++ != (i + 1 < CW_THRESHOLDS ? ',' : '\0'))
            return -1;
    }
    *out = levels;
    return 0;
}

void cw_levels_print(const struct cw_levels *levels, struct cw_out *out)
{
    for (unsigned i = 0; i < CW_THRESHOLDS; i++)
        cw_out_printf(out, i > 0 ? ",%u" : "%u", levels->percent[i]);
}

/* ---- batches ---- */

static const char *read_batch(const char *at, uint64_t *bytes, uint32_t *blocks)
{
    struct cw_decimal number;
    uint64_t count;

    at = cw_number_read_decimal(at, &number);
    if (at)
        at = cw_number_read_bytes(at, &number, bytes);
    if (!at || *at != ':' || *bytes < 1 || *bytes > CW_BATCH_BYTES)
        return NULL;
    at = cw_number_read_digits(at + 1, &count);
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
        cw_number_print_bytes(batches->item[i].bytes, out);
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
    case 'r':
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
