/* SPDX-License-Identifier: MIT */
/*
 * The call tree of an HTML report: the stacks of the sites, outermost frame first, with common
 * prefixes merged. A node's parent always has the lower number, so a walk from the last node to the
 * first sums everything up.
 *
 * Owns its arrays. One caller at a time.
 */
#ifndef CW_CLI_HTML_TREE_H
#define CW_CLI_HTML_TREE_H

#include <stdint.h>

#define CW_HTML_ROOT UINT32_MAX /* the parent of outermost frames */

struct cw_html_node {
    uint32_t parent;
    uint32_t frame; /* numbered by the caller */
};

struct cw_html_tree {
    struct cw_html_node *node;
    uint32_t count;
    uint32_t *slot; /* open addressing: number + 1, 0 is empty */
    uint32_t slots; /* a power of two, at least twice `count` */
    int failed;     /* out of memory, reported */
};

/* The node of this frame under `parent`; if out of memory sets `failed`, returns CW_HTML_ROOT. */
uint32_t cw_html_tree_add(struct cw_html_tree *self, uint32_t parent, uint32_t frame);
void cw_html_tree_free(struct cw_html_tree *self);

#endif
