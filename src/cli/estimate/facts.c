/* SPDX-License-Identifier: MIT */
/* What a model's files say of it. See facts.h. */
#include "cli/estimate/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- for the readers ---- */

int cw_facts_refuse(struct cw_facts *facts, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(facts->why, sizeof(facts->why), fmt, ap);
    va_end(ap);
    return -1;
}

int cw_facts_set(struct cw_facts *facts, enum cw_shape_field field, const char *key, uint64_t value)
{
    const struct cw_shape_row *row = cw_shape_row(field);

    if (value < row->least || value > row->most)
        return cw_facts_refuse(facts, "has a %s of %ju, which is not from %ju to %ju", key,
                               (uintmax_t)value, (uintmax_t)row->least, (uintmax_t)row->most);
    *cw_shape_at(&facts->shape, field) = value;
    return 0;
}

int cw_facts_drop_shape(struct cw_facts *facts)
{
    facts->shape = (struct cw_shape){.layers = 0};
    facts->has_shape = 0;
    facts->varies = 0;
    return 1;
}

static const struct cw_family families[] = {
#define X(...) {__VA_ARGS__},
#include "cli/estimate/families.def"
#undef X
    {.names = "", .gguf = ""},
};

const struct cw_family *cw_family_of(const char *name, int is_gguf)
{
    const struct cw_family *family = families;
    size_t len = strlen(name);

    while (*family->names &&
           (len == 0 || !cw_shape_has_word(is_gguf ? family->gguf : family->names, name, len)))
        family++;
    return family;
}
