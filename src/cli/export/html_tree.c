/* SPDX-License-Identifier: MIT */
/* The call tree of an HTML report. See html_tree.h. */
#include "cli/export/html_tree.h"
#include "cli/ui/message.h"

#include <stdlib.h>
#include <stdint.h>

#define SLOTS_FIRST 4096U

static uint32_t *find_slot(const struct cw_html_tree *self, uint32_t parent, uint32_t frame)
{
    uint64_t mixed = (((uint64_t)parent << 32) | frame) * 0x9e3779b97f4a7c15ULL;
    uint32_t at = (uint32_t)(mixed >> 32) & (self->slots - 1);

    for (;; at = (at + 1) & (self->slots - 1)) {
        const struct cw_html_node *node;

        if (self->slot[at] == 0)
            return &self->slot[at];
        node = &self->node[self->slot[at] - 1];
        if (node->parent == parent && node->frame == frame)
            return &self->slot[at];
    }
}

static int grow(struct cw_html_tree *self)
{
    uint32_t slots = self->slots ? self->slots * 2 : SLOTS_FIRST;
    uint32_t *slot = slots ? calloc(slots, sizeof(*slot)) : NULL;
    struct cw_html_node *node = slot ? reallocarray(self->node, slots / 2, sizeof(*node)) : NULL;

    if (!node) {
        free(slot);
        cw_cli_error("out of memory for the call tree of the HTML report");
        self->failed = 1;
        return -1;
    }
    free(self->slot);
    self->slot = slot;
    self->slots = slots;
    self->node = node;
    for (uint32_t i = 0; i < self->count; i++)
        *find_slot(self, node[i].parent, node[i].frame) = i + 1;
    return 0;
}

uint32_t cw_html_tree_add(struct cw_html_tree *self, uint32_t parent, uint32_t frame)
{
    uint32_t *slot;

    if (self->failed || (self->count == self->slots / 2 && grow(self) != 0))
        return CW_HTML_ROOT;
    slot = find_slot(self, parent, frame);
    if (*slot == 0) {
        self->node[self->count++] = (struct cw_html_node){.parent = parent, .frame = frame};
        *slot = self->count;
    }
    return *slot - 1;
}

void cw_html_tree_free(struct cw_html_tree *self)
{
    free(self->node);
    free(self->slot);
    *self = (struct cw_html_tree){.count = 0};
}
