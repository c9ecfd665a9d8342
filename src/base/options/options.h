/* SPDX-License-Identifier: MIT */
/*
 * The options: CUWARDEN_* in the environment, one row each in options.def.
 *
 * Parsed once, when the library is loaded, into a struct that is constant afterwards. The parser
 * prints nothing: complaints about bad values are kept as text until somebody asks, because a
 * process that never calls CUDA stays silent.
 */
#ifndef CW_BASE_OPTIONS_H
#define CW_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/options/option_values.h"
#include "base/options/platform_limits.h"

#define CW_OPTION_PREFIX     "CUWARDEN_"
#define CW_OPTION_VALUE_MAX  1024 /* longest value, with its NUL; longer ones are rejected */
#define CW_OPTION_COMPLAINTS 16   /* maximum number of remembered bad values and unknown names */
#define CW_OPTION_LINE_MAX   272  /* longest complaint, with its NUL */
#define CW_COUNT_AUTO        UINT64_MAX

/* ---- what options.def expands to: the enums, the struct, the indices ---- */

/* enum cw_mode { CW_MODE_POOL, CW_MODE_TRACK, CW_MODE_OFF }; enum cw_free_sync { ... }; ... */
#define CW_OPTION_CONSTANT(constant, word) constant,
#define CW_OPTION_DEFINE_ENUM(name)        enum cw_##name{CW_ENUM_##name(CW_OPTION_CONSTANT)};
#define CW_OPTION_DEFINE_EXTERN_ENUM(name)
#define CW_OPTION_DEFINE_COUNT(min, max)
#define CW_OPTION_DEFINE_AUTO_COUNT(min, max)
#define CW_OPTION_DEFINE_SIZES(takes_none, takes_zero)
#define CW_OPTION_DEFINE_TIME(min, max)
#define CW_OPTION_DEFINE_INTERVAL(min, max)
#define CW_OPTION_DEFINE_LEVELS
#define CW_OPTION_DEFINE_FAIL
#define CW_OPTION_DEFINE_BUDGETS
#define CW_OPTION_DEFINE_BATCHES
#define CW_OPTION_DEFINE_PATH
#define CW_OPTION_DEFINE_PLACE
#define CW_OPTION_DEFINE_INPUT
#define CW_OPTION_DEFINE_SIGNAL
#define OPTION(field, type, NAME, fallback, help, detail) CW_OPTION_DEFINE_##type
#include "base/options/options.def"
#undef OPTION

#define OPTION(field, type, NAME, fallback, help, detail) CW_OPTION_INDEX_##NAME,
enum cw_option_index {
#include "base/options/options.def"
    CW_OPTION_COUNT
};
#undef OPTION

enum cw_option_origin { CW_ORIGIN_DEFAULT, CW_ORIGIN_PRESET, CW_ORIGIN_ENVIRONMENT };

typedef char cw_option_path[CW_OPTION_VALUE_MAX]; /* "" when unset */

#define CW_OPTION_TYPE_ENUM(name)                         enum cw_##name
#define CW_OPTION_TYPE_EXTERN_ENUM(name)                  enum cw_##name
#define CW_OPTION_TYPE_COUNT(min, max)                    uint64_t
#define CW_OPTION_TYPE_AUTO_COUNT(min, max)               uint64_t
#define CW_OPTION_TYPE_SIZES(takes_none, takes_zero)      struct cw_device_sizes
#define CW_OPTION_TYPE_TIME(min, max)                     uint64_t
#define CW_OPTION_TYPE_INTERVAL(min, max)                 uint64_t
#define CW_OPTION_TYPE_LEVELS                             struct cw_levels
#define CW_OPTION_TYPE_FAIL                               struct cw_fail_plan
#define CW_OPTION_TYPE_BUDGETS                            struct cw_budget_rules
#define CW_OPTION_TYPE_BATCHES                            struct cw_option_batches
#define CW_OPTION_TYPE_PATH                               cw_option_path
#define CW_OPTION_TYPE_PLACE                              cw_option_path
#define CW_OPTION_TYPE_INPUT                              cw_option_path
#define CW_OPTION_TYPE_SIGNAL                             int
#define OPTION(field, type, NAME, fallback, help, detail) CW_OPTION_TYPE_##type field;

/* enum cw_mode mode; enum cw_preset preset; enum cw_free_sync free_sync;
 * struct cw_device_sizes pool_max; uint64_t pool_bucket_max; uint64_t pool_idle; ... */
struct cw_options {
#include "base/options/options.def"
    uint8_t origin[CW_OPTION_COUNT];    /* enum cw_option_origin of each */
    cw_option_path tmpdir;              /* TMPDIR of the environment, no option; "" when unset */
    struct cw_platform_limits platform; /* of the environment, no options either */
};
#undef OPTION

/* ---- parsing ---- */

struct cw_option_complaints {
    unsigned count; /* number of complaints, including those that did not fit */
    char line[CW_OPTION_COMPLAINTS][CW_OPTION_LINE_MAX];
};

/*
 * Reads environ-shaped `env` (NULL: no environment). `trusted` 0 (a setuid program): every
 * CUWARDEN_ variable is ignored and one complaint says so if there was any. If a variable occurs
 * twice, the first one counts, as for getenv(3).
 *
 * Options that are not set, or have a bad value, get the value of the preset, or else the default;
 * so do devices missing in a list of sizes. An empty value is bad (an unset variable in a script
 * must not silently mean "no limit"), unless the default is empty; an unknown name with an empty
 * value is ignored. A report destination with an unknown % sequence causes a complaint but is used,
 * so that the report is not lost. complaints may be NULL.
 */
void cw_options_parse(char *const env[], int trusted, struct cw_options *out,
                      struct cw_option_complaints *complaints);

/*
 * Sets one option by its NAME (without prefix), as if it were in the environment. Returns 0, or -1
 * with the reason in `why` and the option unchanged; the caller prepends the variable or flag.
 * Stricter than the environment: an unknown % sequence in a report destination is rejected too.
 * PRESET applies its values to the options that are not set; a list of sizes that is already set
 * keeps the previous preset's value for the other devices.
 */
int cw_options_set(struct cw_options *options, const char *name, const char *value, char *why,
                   size_t why_cap);

/* ---- the rows, for flags, documentation and `cuwarden options` ---- */

struct cw_option_row {
    const char *name;     /* without prefix, "STACK_DEPTH" */
    const char *values;   /* "full, caller, off" with the default first; "1..128"; "FILE" */
    const char *fallback; /* default as text, "" if none */
    const char *help;
    const char *detail;
};
const struct cw_option_row *cw_options_row(size_t index); /* index < CW_OPTION_COUNT */
/* "inference"; NULL after the last. */
const char *cw_options_preset_name(enum cw_preset preset);
/* The value that a preset uses instead of the default, as text, or NULL. */
const char *cw_options_preset_value(enum cw_preset preset, size_t index);
/* The effective value as a user would write it. */
void cw_options_print_value(const struct cw_options *options, size_t index, char *buf, size_t cap);

#endif
