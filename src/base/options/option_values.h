/* SPDX-License-Identifier: MIT */
/*
 * Option values other than words: counts, sizes and shares by device, times, levels, batches of
 * blocks, report destinations; from text and back.
 *
 * Nothing here depends on the option table or the locale, or prints errors: a parser returns 0, or
 * -1 with its out-parameter unchanged, and the caller describes the expected form. Units of size
 * are powers of 1024; case does not matter in units. Numbers may have up to 18 decimals; they are
 * rounded down to a byte, a nanosecond or a millionth of a percent. Values that do not fit in 64
 * bits are rejected. Printed text parses to the same value.
 */
#ifndef CW_BASE_OPTION_VALUES_H
#define CW_BASE_OPTION_VALUES_H

#include <stdint.h>

#include "base/options/budget_rules.h" /* two more of them */
#include "base/options/fail_plan.h"
#include "base/out.h"

#define CW_SIZES_MAX      16 /* devices in a list */
#define CW_BATCHES_MAX    16
#define CW_BATCH_BYTES    (UINT64_C(1) << 40) /* largest block of a batch */
#define CW_BATCH_BLOCKS   4096
#define CW_SHARE_OF_WHOLE UINT64_C(100000000) /* 100%, in millionths of a percent */

enum cw_size_kind { CW_SIZE_NONE, CW_SIZE_BYTES, CW_SIZE_SHARE, CW_SIZE_USABLE, CW_SIZE_PLATFORM };

/* Words that may stand for a size. */
#define CW_SIZE_TAKES_NONE     1
#define CW_SIZE_TAKES_USABLE   2
#define CW_SIZE_TAKES_PLATFORM 4

struct cw_size {
    enum cw_size_kind kind;
    uint64_t amount; /* bytes, or of CW_SHARE_OF_WHOLE */
};

enum cw_device_name { CW_DEVICE_UNNAMED, CW_DEVICE_ORDINAL, CW_DEVICE_UUID };

struct cw_device_size {
    struct cw_size size;
    enum cw_device_name named_by;
    uint32_t ordinal;
    uint8_t is_mig; /* the uuid is of a MIG instance */
    uint8_t uuid[16];
};

struct cw_device_sizes {
    struct cw_size fallback; /* for the devices that are not listed */
    unsigned count;
    struct cw_device_size device[CW_SIZES_MAX];
};

struct cw_option_batches {
    unsigned count;
    struct {
        uint64_t bytes;  /* 1..CW_BATCH_BYTES */
        uint32_t blocks; /* 1..CW_BATCH_BLOCKS */
    } item[CW_BATCHES_MAX];
};

#define CW_THRESHOLDS 3

/* Thresholds of pressure, in percent: each from 1 to 100, in ascending order. */
struct cw_levels {
    uint8_t percent[CW_THRESHOLDS];
};

/* Only digits: no sign, no blank, no unit. */
int cw_count_parse(const char *text, uint64_t *out);

/*
 * One size or share ("8G", "1.5GiB", "4096", "25%"; the words "none", "usable"
 * and "platform" if `words` has CW_SIZE_TAKES_NONE, ..._USABLE and ..._PLATFORM), or a list of
 * them by device ("0:8G,GPU-UUID:50%"), each device at most once; at most one item has no device
 * and applies to all others. The list replaces the one in *out; without an item for the others,
 * out->fallback is left unchanged, so set that first.
 */
int cw_sizes_parse(const char *text, unsigned words, struct cw_device_sizes *out);
/* "GPU-" or "MIG-" and a uuid, as nvidia-smi -L and NVML print it. */
int cw_uuid_parse(const char *text, uint8_t out[16]);
/* One item: "9:4G". */
void cw_device_size_print(const struct cw_device_size *item, struct cw_out *out);
void cw_sizes_print(const struct cw_device_sizes *sizes, struct cw_out *out);

/* 1 if any size or share is 0; "none" is not 0. */
int cw_sizes_have_zero(const struct cw_device_sizes *sizes);

/*
 * The value for a device: the item with its uuid (NULL: unknown), else with its ordinal, else the
 * fallback. Returns 1 with the bytes, a share rounded down, or 0 for "none". "usable" is the device
 * less what driver and context take (base/device_reserve.h), and at least half of it. "platform" is
 * 0: only the platform knows (cw_sizes_kind_for).
 */
int cw_sizes_for(const struct cw_device_sizes *sizes, unsigned device, const uint8_t uuid[16],
                 uint64_t device_total, uint64_t *out_bytes);

/* Which kind of value the device has. */
enum cw_size_kind cw_sizes_kind_for(const struct cw_device_sizes *sizes, unsigned device,
                                    const uint8_t uuid[16]);

/* "500ms", "10s", "1.5s", "2m", "1h"; a plain number is seconds. */
int cw_time_parse(const char *text, uint64_t *out_ns);
void cw_time_print(uint64_t ns, struct cw_out *out);

/* "60,80,95"; each may be followed by %. */
int cw_levels_parse(const char *text, struct cw_levels *out);
void cw_levels_print(const struct cw_levels *levels, struct cw_out *out);

/* "64M:8,1.5G:2"; "" is an empty list. */
int cw_batches_parse(const char *text, struct cw_option_batches *out);
void cw_batches_print(const struct cw_option_batches *batches, struct cw_out *out);

/* The first '%' of a report destination that does not start a known sequence, or NULL. */
const char *cw_path_find_bad_sequence(const char *template);

#endif
