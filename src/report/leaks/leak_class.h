/* SPDX-License-Identifier: MIT */
/*
 * What became of the blocks of a site that were never freed: whether they count as leaked, and if
 * not, who keeps them. Decided by the kind of memory, then by the first rule that matches the
 * site's stack (suppress.h): those of the user's file, then the built-in ones.
 */
#ifndef CW_REPORT_LEAK_CLASS_H
#define CW_REPORT_LEAK_CLASS_H

#include <stdint.h>

enum cw_leak_class {
    CW_LEAK_NONE,       /* nothing left */
    CW_LEAK_LOST,       /* blocks that are still live */
    CW_LEAK_GROWING,    /* the same, and they became more and more (snapshot_growth.h) */
    CW_LEAK_CONTEXT,    /* nothing live, but blocks that went with their context */
    CW_LEAK_LIBRARY,    /* either, owned by a library of NVIDIA: not counted */
    CW_LEAK_CACHE,      /* either, kept on purpose by an allocator of a framework: not counted */
    CW_LEAK_IMPORT,     /* memory of another process or API, still open: not counted */
    CW_LEAK_HANDLE,     /* what holds no memory (reservations, pools, modules): not counted */
    CW_LEAK_SUPPRESSED, /* any of those but handles, by a rule of the user's: not counted */
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

/* The built-in rules, index from 0; NULL behind the last. */
const struct cw_rule *cw_leak_rule(uint32_t index);

/*
 * Sets the class of each site, and what follows from it: the lists, and what the summary says of
 * leaks. May be called again with more to go by. Without symbols functions have no names; rules
 * NULL: the built-in ones. A rule's use is added up in rules->use. 0, or -1 when there is no
 * memory, and then the classes are by kind alone.
 */
int cw_leak_classify(struct cw_snapshot *snapshot, const struct cw_symbols *symbols,
                     const struct cw_rules *rules);

/* Marks the stacks by which sites are classified. */
void cw_leak_want(const struct cw_snapshot *snapshot, struct cw_symbols *symbols);

/* "lost", "growing", "context-destroyed", "library", "cache", "ipc-imported", "imported", "handle",
 * "suppressed"; "" for none. */
const char *cw_leak_name(const struct cw_snapshot_site *site);
/* The same of a class; "imported" for both kinds of imports. */
const char *cw_leak_class_name(unsigned leak);

/* How the memory that a framework's cache hides is brought to light, by the owner of its rule. */
struct cw_leak_hint {
    const char *owner, *setting;
};
/* From 0; NULL behind the last. */
const struct cw_leak_hint *cw_leak_hint(uint32_t index);

#endif
