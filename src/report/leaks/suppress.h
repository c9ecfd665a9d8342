/* SPDX-License-Identifier: MIT */
/*
 * Rules for leaked sites that do not count: those of the user's file, followed by the built-in ones
 * (leak_class.h). A rule is identified by its index; the first one that matches decides.
 *
 * A file has one rule per line, "KIND:PATTERN [max=SIZE] [count=N]", in LeakSanitizer's syntax:
 *   leak:PATTERN    a function, a source file or the path of a module anywhere in the stack
 *                   (pattern.h). Source files of Python are always known; others, and functions
 *                   that were inlined, only where debug information is read, in the command
 *   module:PATTERN  the path of the module that requested the memory
 *   site:ID         the site with this id
 *   tag:PATTERN     the tag of the memory, as the report shows it (tag.h)
 * Empty lines and those that begin with # are ignored. A site with more than max bytes or count
 * blocks is a leak after all, whoever owns it.
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
    CW_RULE_PATH,     /* the path of a module or of a Python file in the stack */
    CW_RULE_FILE,     /* the requesting module: "libnccl" is libnccl.so.2 and libnccl-1a2b.so, */
                      /* and "libnpp*" is all that begin with libnpp */
};

#define CW_CAP_NONE UINT64_MAX

struct cw_rule {
    uint8_t kind;  /* enum cw_rule_kind */
    uint8_t leak;  /* enum cw_leak_class of what it matches */
    uint8_t cache; /* enum cw_cache_id, for built-in rules of frameworks */
    uint32_t line;
    uint32_t site;       /* of CW_RULE_SITE */
    const char *pattern; /* also for display */
    const char *label;   /* "cuBLAS", for built-in rules without a cache */
    uint64_t max_bytes, max_blocks;
};

/* What a rule matched within its caps, and how many sites exceeded them. */
struct cw_rule_use {
    uint64_t bytes, blocks;
    uint32_t sites, past;
};

/* What is wrong with a file, the first thing only; "" if nothing. */
struct cw_rules_fault {
    char text[512];
};

struct cw_rules {
    const char *path;             /* of the file, "" if none */
    struct cw_rules_fault *fault; /* while the file is read */
    struct cw_rule *rule;
    uint32_t count; /* of the file's */
    char *text;     /* the file, each pattern terminated */
    size_t size;
    struct cw_rule_use *use; /* of the file's and the built-in rules; NULL: not recorded */
};

/*
 * Without a path (NULL or ""), or if the file cannot be read, there are only the built-in rules.
 * What is wrong with the file goes to `fault`, or to stderr if that is NULL. The path must stay
 * valid. 0, or the errno of a file that cannot be read, also because there is none: it has rules
 * that nobody knows. A line that is not a rule is no error.
 */
int cw_rules_init(struct cw_rules *rules, const char *path, struct cw_rules_fault *fault);
void cw_rules_fini(struct cw_rules *rules);

/* The number of the file's and the built-in rules. */
uint32_t cw_rules_count(const struct cw_rules *rules);
const struct cw_rule *cw_rules_at(const struct cw_rules *rules, uint32_t index);
static inline int cw_rule_is_builtin(const struct cw_rule *rule)
{
    return rule->label || rule->cache != 0;
}
/* "cuBLAS", "PyTorch" of a built-in rule; "" of the user's. */
const char *cw_rule_owner(const struct cw_rule *rule);

/* "leak:grow_cache max=8M", "library cuBLAS (libcublas)" */
void cw_rule_print(const struct cw_rule *rule, struct cw_out *out);
/* "max=8M count=2", or "" without caps */
void cw_rule_print_caps(const struct cw_rule *rule, struct cw_out *out);

#endif
