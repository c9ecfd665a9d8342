/* SPDX-License-Identifier: MIT */
/*
 * Classes of sites with blocks that were never freed: whether they count as leaked, and if not,
 * what owns them. Decided by the kind of memory, then by the first rule that matches the site's
 * stack (suppress.h): those of the user's file, then the built-in ones.
 */
#ifndef CW_REPORT_LEAK_CLASS_H
#define CW_REPORT_LEAK_CLASS_H

#include <stdint.h>

#include "report/snapshot/snapshot.h"

struct cw_rule;
struct cw_rules;
struct cw_symbols;

/* The built-in rules by index; NULL after the last. */
const struct cw_rule *cw_leak_rule(uint32_t index);

/* Whether a built-in rule is about the library with this path. */
int cw_leak_rule_names_file(const char *path);

/*
 * Sets the class and the cache of each site, and derives the lists and the leak totals of the
 * summary. May be called again with more information. Without symbols, functions have no names;
 * rules NULL: the built-in ones. Rule usage is counted in rules->use. 0, or -1 if out of memory;
 * then the classes are by kind alone.
 */
int cw_leak_classify(struct cw_snapshot *snapshot, const struct cw_symbols *symbols,
                     const struct cw_rules *rules);

/* Marks the stacks needed for classification. */
void cw_leak_want(const struct cw_snapshot *snapshot, struct cw_symbols *symbols);

#endif
