/* SPDX-License-Identifier: MIT */
/* The value of the option FAIL. See fail_plan.h. */
#include "base/options/fail_plan.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/options/number.h"

#define OFF "off"

/* ---- the keys ---- */

static const char *read_count(const char *at, uint64_t *out)
{
    at = cw_number_read_digits(at, out);
    return at && *out > 0 ? at : NULL;
}

static const char *read_nth(const char *at, struct cw_fail_plan *plan)
{
    return read_count(at, &plan->nth);
}

static const char *read_every(const char *at, struct cw_fail_plan *plan)
{
    return read_count(at, &plan->every);
}

static const char *read_prob(const char *at, struct cw_fail_plan *plan)
{
    struct cw_decimal number;
    uint64_t millionths;

    at = cw_number_read_decimal(at, &number);
    if (!at || number.whole > 1 || (number.whole == 1 && number.fraction > 0) ||
        cw_number_scale(&number, CW_FAIL_CERTAIN, &millionths) != 0 || millionths == 0)
        return NULL;
    plan->millionths = (uint32_t)millionths;
    return at;
}

static const char *read_seed(const char *at, struct cw_fail_plan *plan)
{
    return cw_number_read_digits(at, &plan->seed);
}

static const char *read_above(const char *at, struct cw_fail_plan *plan)
{
    struct cw_decimal number;

    at = cw_number_read_decimal(at, &number);
    if (at)
        at = cw_number_read_bytes(at, &number, &plan->above);
    return at && plan->above > 0 ? at : NULL;
}

enum { NTH = 1, EVERY = 2, PROB = 4, SEED = 8, ABOVE = 16 };

static const struct key {
    const char *name; /* with its '=' */
    unsigned bit;
    unsigned excludes;
    const char *(*read)(const char *at, struct cw_fail_plan *plan);
} keys[] = {
    {"nth=", NTH, NTH | EVERY | PROB, read_nth},
    {"every=", EVERY, NTH | EVERY | PROB, read_every},
    {"prob=", PROB, NTH | EVERY | PROB, read_prob},
    {"seed=", SEED, SEED, read_seed},
    {"above=", ABOVE, ABOVE, read_above},
};

static const struct key *find_key(const char *at)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(keys); i++) {
        if (strncmp(at, keys[i].name, strlen(keys[i].name)) == 0)
            return &keys[i];
    }
    return NULL;
}

/* ---- from text and back ---- */

int cw_fail_plan_parse(const char *text, struct cw_fail_plan *out)
{
    struct cw_fail_plan plan = {.seed = CW_FAIL_DEFAULT_SEED};
    unsigned seen = 0;

    if (strcmp(text, OFF) == 0) {
        *out = (struct cw_fail_plan){0};
        return 0;
    }
    do {
        const struct key *key = find_key(text);

        if (!key || (seen & key->excludes) != 0)
            return -1;
        seen |= key->bit;
        text = key->read(text + strlen(key->name), &plan);
        if (!text || (*text && *text != ','))
            return -1;
    } while (*text++ == ',');
    if ((seen & (SEED | PROB)) == SEED)
        return -1;
    if ((seen & PROB) == 0)
        plan.seed = 0;
    *out = plan;
    return 0;
}

static void print_prob(const struct cw_fail_plan *plan, struct cw_out *out)
{
    cw_out_printf(out, "prob=%u", plan->millionths / CW_FAIL_CERTAIN);
    cw_number_print_fraction(plan->millionths % CW_FAIL_CERTAIN, 6, out);
    cw_out_printf(out, ",seed=%ju", (uintmax_t)plan->seed);
}

void cw_fail_plan_print(const struct cw_fail_plan *plan, struct cw_out *out)
{
    int has_first = 1;

    if (plan->nth > 0)
        cw_out_printf(out, "nth=%ju", (uintmax_t)plan->nth);
    else if (plan->every > 0)
        cw_out_printf(out, "every=%ju", (uintmax_t)plan->every);
    else if (plan->millionths > 0)
        print_prob(plan, out);
    else
        has_first = 0;
    if (plan->above > 0) {
        cw_out_string(out, has_first ? ",above=" : "above=");
        cw_number_print_bytes(plan->above, out);
    } else if (!has_first) {
        cw_out_string(out, OFF);
    }
}
