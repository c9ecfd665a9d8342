/* SPDX-License-Identifier: MIT */
/* The variables of the platform. See platform_limits.h. */
#include "base/options/platform_limits.h"

#include <string.h>

#include "base/compiler.h"
#include "base/options/number.h"
#include "base/options/option_table.h"

#define MIB ((uint64_t)1 << 20)

/* ---- numbers ---- */

static int scale(uint64_t number, uint64_t unit, struct cw_size *out)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(number, unit, &bytes))
        return -1;
    *out = (struct cw_size){.kind = bytes != 0 ? CW_SIZE_BYTES : CW_SIZE_NONE, .amount = bytes};
    return 0;
}

/* A whole number and one of the units, of which "" is 1. Returns what follows, or NULL. */
static const char *read_amount(const char *at, const char *const unit[], unsigned units,
                               const uint64_t *factor, struct cw_size *out)
{
    uint64_t number;
    size_t len;

    at = cw_number_read_digits(at, &number);
    if (!at)
        return NULL;
    len = strcspn(at, ",");
    for (unsigned i = 0; i < units; i++) {
        size_t n = strlen(unit[i]), k = 0;

        while (k < n && cw_number_is_letter(at[k], unit[i][k]))
            k++;
        if (k == n && n == len)
            return scale(number, factor[i], out) == 0 ? at + n : NULL;
    }
    return NULL;
}

/* ---- forms ---- */

/* What follows the name of the variable: "_0", or nothing; of the others nothing. */
static int add(struct cw_device_sizes *sizes, const struct cw_device_size *item)
{
    for (unsigned i = 0; i < sizes->count; i++)
        if (sizes->device[i].named_by == item->named_by &&
            sizes->device[i].ordinal == item->ordinal &&
            memcmp(sizes->device[i].uuid, item->uuid, sizeof(item->uuid)) == 0)
            return 0; /* the first one counts */
    if (sizes->count == CW_SIZES_MAX)
        return -1;
    sizes->device[sizes->count++] = *item;
    return 0;
}

static int read_mebibytes(const char *value, struct cw_size *out)
{
    uint64_t number;
    const char *end = cw_number_read_digits(value, &number);

    return end && *end == '\0' ? scale(number, MIB, out) : -1;
}

static int read_vgpu(const char *value, struct cw_size *out)
{
    static const char *const unit[] = {"", "k", "m", "g"};
    static const uint64_t factor[] = {1, 1024, MIB, 1024 * MIB};
    const char *end = read_amount(value, unit, CW_ARRAY_LEN(unit), factor, out);

    return end && *end == '\0' ? 0 : -1;
}

static const char *read_mps_item(const char *at, struct cw_device_size *item)
{
    static const char *const unit[] = {"m", "mb", "g", "gb"};
    static const uint64_t factor[] = {MIB, MIB, 1024 * MIB, 1024 * MIB};
    uint64_t ordinal;
    char uuid[48];

    memset(item, 0, sizeof(*item));
    if (strncmp(at, "GPU-", 4) == 0) {
        size_t len = strcspn(at, "=");

        cw_format(uuid, sizeof(uuid), "%.*s", (int)len, at);
        if (len >= sizeof(uuid) || cw_uuid_parse(uuid, item->uuid) != 0)
            return NULL;
        item->named_by = CW_DEVICE_UUID;
        at += len;
    } else {
        at = cw_number_read_digits(at, &ordinal);
        if (!at || ordinal > UINT32_MAX)
            return NULL;
        item->named_by = CW_DEVICE_ORDINAL;
        item->ordinal = (uint32_t)ordinal;
    }
    return *at == '=' ? read_amount(at + 1, unit, CW_ARRAY_LEN(unit), factor, &item->size) : NULL;
}

static int read_mps(const char *value, struct cw_device_sizes *out)
{
    struct cw_device_sizes sizes = {.count = 0};
    struct cw_device_size item;

    do {
        value = read_mps_item(value, &item);
        if (!value || (*value != '\0' && *value != ',') || add(&sizes, &item) != 0)
            return -1;
    } while (*value++ == ',');
    *out = sizes;
    return 0;
}

/* ---- the variables, in the order of enum cw_bound ---- */

static const struct variable {
    int (*read)(const char *value, struct cw_size *out); /* NULL: a list, as MPS has it */
    int takes_ordinal;
    const char *form;
} variables[CW_BOUND_VARIABLES] = {
    [CW_BOUND_NVIDIA_LIMIT] = {read_mebibytes, 0, "a whole number of MiB (4096)"},
    [CW_BOUND_NVIDIA_REQUEST] = {read_mebibytes, 0, "a whole number of MiB (4096)"},
    [CW_BOUND_VGPU] = {read_vgpu, 1, "a whole number with K, M, G or nothing after it (4096m)"},
    [CW_BOUND_MPS] = {NULL, 0, "a list of DEVICE=SIZE with M or G after each size (0=4G,1=512M)"},
};

/* The device of CUDA_DEVICE_MEMORY_LIMIT_1; 0: what follows is no ordinal. */
static int read_suffix(const char *suffix, const char *equals, struct cw_device_size *item)
{
    uint64_t ordinal;
    const char *end = *suffix == '_' ? cw_number_read_digits(suffix + 1, &ordinal) : NULL;

    if (end != equals || ordinal > UINT32_MAX)
        return 0;
    *item = (struct cw_device_size){.named_by = CW_DEVICE_ORDINAL, .ordinal = (uint32_t)ordinal};
    return 1;
}

static int read_value(struct cw_platform_limits *limits, unsigned i, const char *value,
                      struct cw_device_size *item)
{
    struct cw_device_sizes *sizes = &limits->of[i];
    int is_first = !limits->is_seen[i];

    if (item->named_by == CW_DEVICE_UNNAMED)
        limits->is_seen[i] = 1;
    if (*value == '\0')
        return 0;
    if (variables[i].read == NULL)
        return is_first ? read_mps(value, sizes) : 0;
    if (variables[i].read(value, &item->size) != 0)
        return -1;
    if (item->size.kind == CW_SIZE_NONE)
        return 0;
    if (item->named_by != CW_DEVICE_UNNAMED)
        return add(sizes, item);
    if (is_first)
        sizes->fallback = item->size;
    return 0;
}

int cw_platform_limits_read(struct cw_platform_limits *limits, const char *entry,
                            struct cw_out *why)
{
    const char *equals;

    if ((entry[0] != 'C' && entry[0] != 'N') || (equals = strchr(entry, '=')) == NULL)
        return 0;
    for (unsigned i = 0; i < CW_BOUND_VARIABLES; i++) {
        const char *name = cw_bound_kind((enum cw_bound)i)->name;
        size_t len = strlen(name);
        struct cw_device_size item = {.named_by = CW_DEVICE_UNNAMED};

        if (strncmp(entry, name, len) != 0 ||
            (entry + len != equals &&
             !(variables[i].takes_ordinal && read_suffix(entry + len, equals, &item))))
            continue;
        if (read_value(limits, i, equals + 1, &item) == 0)
            return 0;
        cw_out_write(why, entry, (size_t)(equals - entry));
        cw_out_string(why, ": ");
        cw_option_quote(why, equals + 1, strlen(equals + 1));
        cw_out_printf(why, " is not %s; ignored, correct it where it is set", variables[i].form);
        return -1;
    }
    return 0;
}
