/* SPDX-License-Identifier: MIT */
/* Suggested suppressions. See form_suggestions.h. Never suggests the program as a module or its
 * main: that would suppress all of its leaks. */
#include "cli/export/form_suggestions.h"

#include <string.h>

#include "base/printable.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/mem.h"
#include "report/symbols/qualified.h"
#include "report/leaks/leak_class.h"

#define RULE_MAX 1024 /* longer names end in * */

/* ---- one rule ---- */

/* Text of the program as part of a pattern: nonprintable characters match anything. */
static void put_pattern(struct cw_out *out, const char *text)
{
    for (size_t at = 0, len = strlen(text), size; at < len; at += size) {
        int is_printable;

        size = cw_printable_scan(text + at, len - at, &is_printable);
        if (is_printable)
            cw_out_write(out, text + at, size);
        else
            cw_out_char(out, '*');
    }
}

/* Anonymous namespaces have different names in mangled and readable symbols. */
static void put_qualified(struct cw_out *out, const char *name)
{
    static const char *const anonymous[] = {"(anonymous namespace)", "_GLOBAL__N_1"};

    for (size_t i = 0; i < CW_ARRAY_LEN(anonymous); i++) {
        const char *at = strstr(name, anonymous[i]);

        if (!at)
            continue;
        cw_out_write(out, name, (size_t)(at - name));
        cw_out_char(out, '*');
        name = at + strlen(anonymous[i]);
    }
    put_pattern(out, name);
}

/* The mangled and readable names of constructors, destructors, operators and lambdas have nothing
 * in common. */
static int is_special(const char *name, const char *qualified)
{
    const char *last = qualified;
    const char *before = qualified;
    size_t len;

    for (const char *at = strstr(qualified, "::"); at; at = strstr(at + 2, "::")) {
        before = last;
        last = at + 2;
    }
    len = strlen(last);
    return *last == '~' || strstr(name, "operator") || strstr(name, "{lambda") ||
           (strncmp(before, last, len) == 0 && strncmp(before + len, "::", 2) == 0);
}

/*
 * Whether the library knows the function by this name too: not if only debug information has it, or
 * if it represents a whole Python file. For C++ functions, the class and name without arguments,
 * which match mangled or not.
 */
static int put_function(const struct cw_report_frame *frame, struct cw_out *out)
{
    const char *name = frame->is_debug_name ? NULL : frame->function;
    char qualified[RULE_MAX / 2];

    if (!name || *name == '\0' || *name == '<' || strcmp(name, "main") == 0)
        return 0;
    if (frame->is_python || (strncmp(name, "_Z", 2) != 0 && !strchr(name, '('))) {
        cw_out_string(out, "leak:^");
        put_pattern(out, name);
        cw_out_char(out, '$');
        return 1;
    }
    cw_qualified_name(name, qualified, sizeof(qualified));
    if (is_special(name, qualified))
        return 0;
    cw_out_string(out, "leak:^");
    put_qualified(out, strncmp(qualified, "::", 2) == 0 ? qualified + 2 : qualified);
    cw_out_char(out, '(');
    return 1;
}

/* The rule for a site, in RULE_MAX bytes: the site itself if its function is main, or known only
 * from debug information. */
static void make_rule(const struct cw_report_model *model, const struct cw_snapshot_site *site,
                      char *rule)
{
    const struct cw_report_stack *stack = cw_report_stack(model, site->stack);
    const struct cw_report_frame *frame =
        stack && stack->shown > 0 ? cw_report_shown_frame(model, stack, 0) : NULL;
    const char *owner = cw_report_module_path(model, site->owner);
    struct cw_out out;

    cw_out_init(&out, -1, rule, RULE_MAX - 2);
    if (frame && put_function(frame, &out)) {
        /* it is there */
    } else if (*owner && strcmp(owner, model->process.exe) != 0 && !(frame && frame->function)) {
        cw_out_string(&out, "module:/");
        put_pattern(&out, cw_report_module_name(model, site->owner));
        cw_out_char(&out, '$');
    } else {
        cw_out_printf(&out, "site:%08x", site->id);
    }
    if (out.truncated) /* the $ with it */
        rule[out.len++] = '*';
    rule[out.len] = '\0';
}

/* ---- which are there already ---- */

struct seen {
    uint64_t *hash; /* open addressing, 0: free */
    uint32_t slots; /* a power of two, larger than the number of sites */
};

/* 1 if the rule occurred before; always 0 if out of memory. */
static int is_repeated(struct seen *seen, const char *rule)
{
    uint64_t hash = cw_hash_text(rule) | 1;
    uint32_t at;

    if (!seen->hash)
        return 0;
    at = (uint32_t)(hash >> 32) & (seen->slots - 1);
    while (seen->hash[at] != 0 && seen->hash[at] != hash)
        at = (at + 1) & (seen->slots - 1);
    if (seen->hash[at] == hash)
        return 1;
    seen->hash[at] = hash;
    return 0;
}

/* ---- all of them ---- */

static void put_clean(struct cw_out *out, const char *text)
{
    cw_out_printable(out, text, strlen(text));
}

static void put_comment(const struct cw_snapshot_site *site, struct cw_out *out)
{
    uint64_t blocks = cw_leaked_blocks(site);
    char size[24];

    cw_out_printf(out, "\n# %s in %ju block%s, %s, ",
                  cw_format_size(size, sizeof(size), cw_leaked_bytes(site)), (uintmax_t)blocks,
                  blocks == 1 ? "" : "s", cw_leak_name(site));
    put_clean(out, site->api);
    if (site->device == CW_DEVICE_HOST)
        cw_out_string(out, " on the host");
    else
        cw_out_printf(out, " on device %u", site->device);
    cw_out_printf(out, ", site %08x\n", site->id);
}

void cw_suppressions_suggest(const struct cw_report_model *model, struct cw_out *out)
{
    const struct cw_snapshot_list *leaks = &model->snapshot.leaks;
    struct seen seen = {.slots = 2};
    char rule[RULE_MAX];

    while (seen.slots <= leaks->count && seen.slots < UINT32_MAX / 4)
        seen.slots *= 2;
    seen.hash = cw_mem_alloc(seen.slots * sizeof(*seen.hash));
    cw_out_string(out, "# Leaks of ");
    put_clean(out, model->process.exe);
    cw_out_printf(out,
                  ", process %u: rules for CUWARDEN_SUPPRESSIONS. Delete those for leaks that you "
                  "want to find.\n",
                  model->process.pid);
    for (uint32_t i = 0; i < leaks->count; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[leaks->site[i]];

        make_rule(model, site, rule);
        put_comment(site, out);
        cw_out_printf(out, "%s%s\n", is_repeated(&seen, rule) ? "# as above: " : "", rule);
    }
    cw_mem_free(seen.hash, seen.slots * sizeof(*seen.hash));
}
