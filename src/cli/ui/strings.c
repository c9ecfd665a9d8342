/* SPDX-License-Identifier: MIT */
/* Strings by number. See strings.h. */
#include "cli/ui/strings.h"

#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#include "base/hash.h"
#include "cli/ui/message.h"

#define SLOTS_MIN 1024

static uint32_t fail(struct cw_strings *strings)
{
    if (!strings->failed)
        cw_cli_error("out of memory");
    strings->failed = 1;
    return 0;
}

/* The slot of the string, or the slot where it would go. */
static uint32_t *find_slot(const struct cw_strings *strings, const char *text)
{
    uint32_t at = (uint32_t)cw_hash_text(text) & (strings->slots - 1);

    while (strings->slot[at] != 0 && strcmp(strings->text[strings->slot[at] - 1], text) != 0)
        at = (at + 1) & (strings->slots - 1);
    return &strings->slot[at];
}

static int grow_slots(struct cw_strings *strings)
{
    uint32_t slots = strings->slots ? strings->slots * 2 : SLOTS_MIN;
    uint32_t *grown = calloc(slots, sizeof(*grown));

    if (!grown)
        return -1;
    free(strings->slot);
    strings->slot = grown;
    strings->slots = slots;
    for (uint32_t i = 0; i < strings->count; i++)
        *find_slot(strings, strings->text[i]) = i + 1;
    return 0;
}

static int grow_text(struct cw_strings *strings)
{
    uint32_t cap = strings->cap ? strings->cap * 2 : SLOTS_MIN;
    const char **grown = reallocarray(strings->text, cap, sizeof(*grown));

    if (!grown)
        return -1;
    strings->text = grown;
    strings->cap = cap;
    return 0;
}

uint32_t cw_strings_add(struct cw_strings *strings, const char *text)
{
    uint32_t *slot;

    if (strings->failed)
        return 0;
    if (strings->count >= strings->slots / 2 && grow_slots(strings) != 0)
        return fail(strings);
    if (strings->count == strings->cap && grow_text(strings) != 0)
        return fail(strings);
    slot = find_slot(strings, text);
    if (*slot != 0)
        return *slot - 1;
    strings->text[strings->count] = strings->borrows ? text : strdup(text);
    if (!strings->text[strings->count])
        return fail(strings);
    *slot = ++strings->count;
    return strings->count - 1;
}

void cw_strings_free(struct cw_strings *strings)
{
    for (uint32_t i = 0; i < strings->count && !strings->borrows; i++)
        free((char *)strings->text[i]);
    free(strings->text);
    free(strings->slot);
    *strings = (struct cw_strings){.borrows = strings->borrows};
}
