/* SPDX-License-Identifier: MIT */
/*
 * Classes of sites with blocks that were never freed: whether they count as leaked, and if not,
 * what owns them. Decided by the kind of memory, then by the first rule that matches the site's
 * stack (suppress.h): those of the user's file, then the built-in ones.
 */
#ifndef CW_REPORT_LEAK_CLASS_H
#define CW_REPORT_LEAK_CLASS_H

#include <stdint.h>

enum cw_leak_class {
    CW_LEAK_NONE,       /* nothing left */
    CW_LEAK_LOST,       /* blocks still live */
    CW_LEAK_GROWING,    /* the same, and growing steadily (snapshot_growth.h) */
    CW_LEAK_CONTEXT,    /* nothing live, but blocks released with their context */
    CW_LEAK_LIBRARY,    /* either, owned by an NVIDIA library: not counted */
    CW_LEAK_CACHE,      /* either, kept on purpose by a framework's allocator: not counted */
    CW_LEAK_IMPORT,     /* memory of another process or API, still open: not counted */
    CW_LEAK_HANDLE,     /* objects without memory (reservations, pools, modules): not counted */
    CW_LEAK_SUPPRESSED, /* any of those except handles, by a user's rule: not counted */
};

static inline int cw_leak_is_counted(unsigned leak)
{
    return leak == CW_LEAK_LOST || leak == CW_LEAK_GROWING || leak == CW_LEAK_CONTEXT;
}

struct cw_rule;
struct cw_rules;
struct cw_snapshot;
struct cw_snapshot_site;
struct cw_symbols;

/* The built-in rules by index; NULL after the last. */
const struct cw_rule *cw_leak_rule(uint32_t index);

/*
 * Sets the class of each site, and derives the lists and the leak totals of the summary. May be
 * called again with more information. Without symbols, functions have no names; rules NULL: the
 * built-in ones. Rule usage is counted in rules->use. 0, or -1 if out of memory; then the classes
 * are by kind alone.
 */
int cw_leak_classify(struct cw_snapshot *snapshot, const struct cw_symbols *symbols,
                     const struct cw_rules *rules);

/* Marks the stacks needed for classification. */
void cw_leak_want(const struct cw_snapshot *snapshot, struct cw_symbols *symbols);

/* "lost", "growing", "context-destroyed", "library", "cache", "ipc-imported", "imported", "handle",
 * "suppressed"; "" if none. */
const char *cw_leak_name(const struct cw_snapshot_site *site);
/* The name of a class; "imported" for both kinds of imports. */
const char *cw_leak_class_name(unsigned leak);

/* The setting that reveals the memory inside a framework's cache, by the owner of its rule. */
struct cw_leak_hint {
    const char *owner, *setting;
};
/* By index; NULL after the last. */
const struct cw_leak_hint *cw_leak_hint(uint32_t index);

#endif
