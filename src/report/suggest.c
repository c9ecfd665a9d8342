/* SPDX-License-Identifier: MIT */
/* Suggested suppressions. See suggest.h. Neither the program as a module nor its main: those would
 * suppress all of its leaks. */
#include "report/suggest.h"

#include <string.h>

#include "base/mem.h"
#include "report/stack.h"

#define RULE_MAX 1024 /* a longer name ends in * */

/* ---- one rule ---- */

/* Text of the layout inside a pattern: what is no printable character matches anything. */
static void put_pattern(struct cw_out *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        cw_out_char(out, byte < 0x20 || byte == 0x7f ? '*' : (char)byte);
    }
}

static int is_program(const struct cw_view *view, const struct cw_live_module *module)
{
    return strcmp(cw_view_text(view, module->path),
                  cw_view_text(view, cw_view_header(view)->exe)) == 0;
}

/* The rule for a site, in RULE_MAX bytes. */
static void make_rule(const struct cw_report_source *source, const struct cw_snapshot_site *site,
                      char *rule)
{
    const struct cw_live_module *owner = cw_view_module(source->view, site->owner);
    const char *function;
    struct cw_stack stack;
    struct cw_out out;

    cw_stack_visible(source->symbols, source->view, site->stack, &stack);
    function = stack.count > 0 ? cw_symbols_name(source->symbols, stack.frame[0]) : NULL;
    cw_out_init(&out, -1, rule, RULE_MAX - 2);
    if (function && strcmp(function, "main") != 0) {
        cw_out_string(&out, "leak:^");
        put_pattern(&out, function);
    } else if (!function && owner && *cw_module_name(source->view, owner) &&
               !is_program(source->view, owner)) {
        cw_out_string(&out, "module:/");
        put_pattern(&out, cw_module_name(source->view, owner));
    } else {
        cw_out_printf(&out, "site:%08x", site->id);
        rule[out.len] = '\0';
        return;
    }
    rule[out.len] = out.truncated ? '*' : '$';
    rule[out.len + 1] = '\0';
}

/* ---- which are there already ---- */

struct seen {
    uint64_t *hash; /* open addressing, 0: free */
    uint32_t slots; /* a power of two, more than there are sites */
};

/* 1 when the rule was there; without memory none ever is. */
static int is_repeated(struct seen *seen, const char *rule)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    uint32_t at;

    for (; *rule != '\0'; rule++)
        hash = (hash ^ (unsigned char)*rule) * UINT64_C(0x100000001b3);
    hash |= 1;
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
    for (; *text != '\0'; text++)
        cw_out_char(out, (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
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

void cw_suppressions_want(const struct cw_report_source *source)
{
    const struct cw_snapshot_list *leaks = &source->snapshot->leaks;

    for (uint32_t i = 0; i < leaks->count; i++)
        cw_symbols_want(source->symbols, source->snapshot->site[leaks->site[i]].stack);
}

void cw_suppressions_suggest(const struct cw_report_source *source, struct cw_out *out)
{
    const struct cw_snapshot_list *leaks = &source->snapshot->leaks;
    struct seen seen = {.slots = 2};
    char rule[RULE_MAX];

    while (seen.slots <= leaks->count && seen.slots < UINT32_MAX / 4)
        seen.slots *= 2;
    seen.hash = cw_mem_alloc(seen.slots * sizeof(*seen.hash));
    cw_out_string(out, "# What leaked in ");
    put_clean(out, cw_view_text(source->view, cw_view_header(source->view)->exe));
    cw_out_printf(out,
                  ", process %u: rules for CUWARDEN_SUPPRESSIONS. Delete those of leaks that "
                  "are to be found.\n",
                  cw_view_header(source->view)->pid);
    for (uint32_t i = 0; i < leaks->count; i++) {
        const struct cw_snapshot_site *site = &source->snapshot->site[leaks->site[i]];

        make_rule(source, site, rule);
        put_comment(site, out);
        cw_out_printf(out, "%s%s\n", is_repeated(&seen, rule) ? "# as above: " : "", rule);
    }
    cw_mem_free(seen.hash, seen.slots * sizeof(*seen.hash));
}
