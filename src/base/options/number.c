/* SPDX-License-Identifier: MIT */
/* Numbers as users write them. See number.h. */
#include "base/options/number.h"

#include <string.h>

#define DECIMALS 18
#define ONE      CW_DECIMAL_ONE

const char *cw_number_read_digits(const char *at, uint64_t *out)
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

const char *cw_number_read_decimal(const char *at, struct cw_decimal *out)
{
    size_t decimals;

    at = cw_number_read_digits(at, &out->whole);
    out->fraction = 0;
    out->has_point = at && *at == '.';
    if (!out->has_point)
        return at;
    at++;
    decimals = strspn(at, "0123456789");
    if (decimals > DECIMALS)
        return NULL;
    at = cw_number_read_digits(at, &out->fraction);
    for (; decimals < DECIMALS; decimals++)
        out->fraction *= 10;
    return at;
}

/* number times unit, rounded down. The product of fraction and unit may have 128 bits, so it is
 * summed bit by bit of the unit and reduced below ONE after each. */
int cw_number_scale(const struct cw_decimal *number, uint64_t unit, uint64_t *out)
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

static const char *read_size_unit(const char *at, uint64_t *unit)
{
    static const char letters[] = "kmgt";
    unsigned exponent = 0;

    while (letters[exponent] && !cw_number_is_letter(*at, letters[exponent]))
        exponent++;
    if (!letters[exponent]) {
        *unit = 1;
        return cw_number_is_letter(*at, 'b') ? at + 1 : at;
    }
    *unit = UINT64_C(1024) << 10 * exponent;
    at++;
    if (cw_number_is_letter(*at, 'i')) /* 8Gi, as Kubernetes spells it, and 8GiB */
        at++;
    return cw_number_is_letter(at[0], 'b') ? at + 1 : at;
}

/* The unit of a size. A fraction without a unit is an error: the unit was forgotten. */
const char *cw_number_read_bytes(const char *at, const struct cw_decimal *number, uint64_t *bytes)
{
    uint64_t unit;

    at = read_size_unit(at, &unit);
    if ((unit == 1 && number->has_point) || cw_number_scale(number, unit, bytes) != 0)
        return NULL;
    return at;
}

void cw_number_print_fraction(uint64_t fraction, int decimals, struct cw_out *out)
{
    if (fraction == 0)
        return;
    for (; fraction % 10 == 0; fraction /= 10)
        decimals--;
    cw_out_printf(out, ".%0*ju", decimals, (uintmax_t)fraction);
}

/* In whole or half units, "8G" and "1.5G"; otherwise in a smaller unit. */
void cw_number_print_bytes(uint64_t bytes, struct cw_out *out)
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
