/* SPDX-License-Identifier: MIT */
/* The texts of an HTML report. See html_strings.h. */
#include "cli/html_strings.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define SLOTS_FIRST 1024U

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261U;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619U;
    return hash;
}

/* Where the text is, or would be. */
static uint32_t *find_slot(const struct cw_html_strings *self, const char *text)
{
    uint32_t at = hash_of(text) & (self->slots - 1);

    while (self->slot[at] != 0 && strcmp(self->text[self->slot[at] - 1], text) != 0)
        at = (at + 1) & (self->slots - 1);
    return &self->slot[at];
}

static int grow(struct cw_html_strings *self)
{
    uint32_t slots = self->slots ? self->slots * 2 : SLOTS_FIRST;
    uint32_t *slot = calloc(slots, sizeof(*slot));
    const char **text = slot ? reallocarray(self->text, slots / 2, sizeof(*text)) : NULL;

    if (!text) {
        free(slot);
        cw_cli_error("no memory for the names of the HTML report");
        self->failed = 1;
        return -1;
    }
    free(self->slot);
    self->slot = slot;
    self->slots = slots;
    self->text = text;
    for (uint32_t i = 0; i < self->count; i++)
        *find_slot(self, text[i]) = i + 1;
    return 0;
}

uint32_t cw_html_strings_add(struct cw_html_strings *self, const char *text)
{
    uint32_t *slot;

    if (self->failed || (self->count == self->slots / 2 && grow(self) != 0))
        return 0;
    slot = find_slot(self, text);
    if (*slot == 0) {
        self->text[self->count++] = text;
        *slot = self->count;
    }
    return *slot - 1;
}

void cw_html_strings_free(struct cw_html_strings *self)
{
    free(self->text);
    free(self->slot);
    *self = (struct cw_html_strings){.count = 0};
}

void cw_html_put_text(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < ' ' || c == '<' || c == '>' || c == 0x7f) {
            fprintf(out, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\')
                putc_unlocked('\\', out);
            putc_unlocked(c, out);
        }
    }
    putc_unlocked('"', out);
}
