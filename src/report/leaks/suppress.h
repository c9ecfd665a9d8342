/* SPDX-License-Identifier: MIT */
/*
 * Rules that say of a leaked site that it does not count: those of a file of the user's, and behind
 * them the built-in ones (leak_class.h). A rule is named by its index; the first that matches
 * decides.
 *
 * A file has one rule per line, "KIND:PATTERN [max=SIZE] [count=N]", in LeakSanitizer's syntax:
 *   leak:PATTERN    a function, a source file or the path of a module anywhere in the stack
 *                   (pattern.h). Source files of Python are always known; others, and functions
 *                   that were inlined, only where debug information is read, in the command
 *   module:PATTERN  the path of the module that asked for the memory
 *   site:ID         the site with this id
 *   tag:PATTERN     the tag of the memory, as the report shows it (tag.h)
 * Empty lines and those that begin with # are left out. A site with more than max bytes or count
 * blocks is a leak all the same, whoever owns it.
 */
#ifndef CW_REPORT_SUPPRESS_H
#define CW_REPORT_SUPPRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/out.h"

#define CW_RULES_MAX      1000 /* of a file */
#define CW_RULES_SIZE_MAX ((uint64_t)1 << 20)

/* No rule. */
#define CW_RULE_NONE UINT16_MAX

enum cw_rule_kind {
    CW_RULE_LEAK,
    CW_RULE_MODULE,
    CW_RULE_SITE,
    CW_RULE_TAG,
    /* Built-in only. */
    CW_RULE_FUNCTION, /* the qualified name of a function in the stack (qualified.h) */
    CW_RULE_PATH,     /* the path of a module in the stack */
    CW_RULE_FILE,     /* the module that asked: "libnccl" is libnccl.so.2 and libnccl-1a2b.so, */
                      /* and "libnpp*" all that begin with libnpp */
};

#define CW_CAP_NONE UINT64_MAX

struct cw_rule {
    uint8_t kind; /* enum cw_rule_kind */
    uint8_t leak; /* enum cw_leak_class of what it matches */
    uint32_t line;
    uint32_t site;       /* of CW_RULE_SITE */
    const char *pattern; /* for people too */
    const char *label;   /* of a built-in one: "cuBLAS" */
    uint64_t max_bytes, max_blocks;
};

/* What a rule matched, within its caps; and how many sites went past them. */
struct cw_rule_use {
    uint64_t bytes, blocks;
    uint32_t sites, past;
};

struct cw_rules {
    const char *path; /* of the file, "" for none */
    struct cw_rule *rule;
    uint32_t count; /* of the file's */
    char *text;     /* the file, each pattern terminated */
    size_t size;
    struct cw_rule_use *use; /* of the file's and the built-in ones; NULL: not kept */
};

/*
 * Without a path (NULL or ""), or when the file cannot be read, there are only the built-in rules.
 * What is wrong with the file is said on stderr. The path must stay.
 */
void cw_rules_init(struct cw_rules *rules, const char *path);
void cw_rules_fini(struct cw_rules *rules);

/* The file's and the built-in ones. */
uint32_t cw_rules_count(const struct cw_rules *rules);
const struct cw_rule *cw_rules_at(const struct cw_rules *rules, uint32_t index);
static inline int cw_rule_is_builtin(const struct cw_rule *rule)
{
    return rule->label != NULL;
}

/* "leak:grow_cache max=8M", "library cuBLAS (libcublas)" */
void cw_rule_print(const struct cw_rule *rule, struct cw_out *out);
/* "max=8M count=2", "" without caps */
void cw_rule_print_caps(const struct cw_rule *rule, struct cw_out *out);

#endif
