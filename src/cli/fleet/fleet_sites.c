/* SPDX-License-Identifier: MIT */
/*
 * Sums over the sites of one process. See fleet_sites.h.
 *
 * Frames are append-only, so a name stays valid as long as the process runs. Which frames of a
 * stack are shown depends on names too, so the result of cw_stack_visible is cached with them.
 */
#include "cli/input/live_files.h"
#include "cli/fleet/fleet_sites.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/input/source_file.h"
#include "report/symbols/stack.h"
#include "report/symbols/symbol.h"

#define TABLES                                                                                     \
    (CW_LOOK_AT(CW_TABLE_TEXT) | CW_LOOK_AT(CW_TABLE_MODULE) | CW_LOOK_AT(CW_TABLE_FRAME) |        \
     CW_LOOK_AT(CW_TABLE_SITE) | CW_LOOK_AT(CW_TABLE_CODE))
#define LINE_MAX_BYTES 512

static int compare_keys(const struct cw_fleet_site *a, const struct cw_fleet_site *b)
{
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->api != b->api)
        return a->api < b->api ? -1 : 1;
    if (a->tag != b->tag)
        return a->tag < b->tag ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

static int by_key(const void *a, const void *b)
{
    return compare_keys(a, b);
}

static int by_bytes(const void *a, const void *b)
{
    const struct cw_fleet_site *x = a, *y = b;

    if (x->live_bytes != y->live_bytes)
        return x->live_bytes < y->live_bytes ? 1 : -1;
    return compare_keys(x, y);
}

static uint32_t collect(const struct cw_view *view, uint32_t device, struct cw_fleet_site *to)
{
    uint32_t records = cw_view_count(view, CW_TABLE_SITE), count = 0;

    for (uint32_t i = 1; i < records; i++) {
        const struct cw_live_site *site = cw_view_site(view, i);
        struct cw_site_sums sums;

        if (!site || cw_kind_home(site->kind, site->device) != device)
            continue;
        cw_view_site_sums(site, &sums);
        if (sums.live_bytes == 0)
            continue;
        to[count++] = (struct cw_fleet_site){
            .stack = site->stack,
            .api = site->api,
            .tag = site->tag,
            .kind = site->kind,
            .device = (uint8_t)device,
            .live_bytes = sums.live_bytes,
            .live_blocks = sums.live_blocks,
            .allocs = sums.allocs,
        };
    }
    return count;
}

/* Merges the records of several threads for one place. */
static uint32_t merge(struct cw_fleet_site *site, uint32_t count)
{
    uint32_t kept = 0;

    if (count > 1)
        qsort(site, count, sizeof(*site), by_key);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || compare_keys(&site[kept - 1], &site[i]) != 0) {
            site[kept++] = site[i];
            continue;
        }
        site[kept - 1].live_bytes += site[i].live_bytes;
        site[kept - 1].live_blocks += site[i].live_blocks;
        site[kept - 1].allocs += site[i].allocs;
    }
    if (kept > 1)
        qsort(site, kept, sizeof(*site), by_bytes);
    return kept;
}

/* ---- names ---- */

static char *name_frame(const struct cw_symbols *symbols, const struct cw_view *view,
                        uint32_t frame)
{
    const struct cw_live_frame *record = cw_view_frame(view, frame);
    const struct cw_live_code *code = cw_stack_code(view, frame);
    const struct cw_live_module *module = cw_stack_module(view, frame);
    const char *function = cw_stack_function(symbols, view, frame);
    char line[LINE_MAX_BYTES];

    if (code)
        snprintf(line, sizeof(line), "%.300s %.160s:%u", function ? function : "?",
                 cw_source_line_file(view, code), (unsigned)code->line);
    else if (module && record)
        snprintf(line, sizeof(line), "%.300s %.160s+0x%llx", function ? function : "",
                 cw_module_name(view, module), (unsigned long long)cw_frame_offset(record, module));
    else
        snprintf(line, sizeof(line), "%.300s", function ? function : "?");
    return strdup(line[0] == ' ' ? line + 1 : line);
}

static int grow_names(struct cw_fleet_sites *sites, uint32_t frames)
{
    char **grown;

    if (frames <= sites->names)
        return 0;
    grown = reallocarray(sites->name, frames, sizeof(*grown));
    if (!grown)
        return -1;
    memset(grown + sites->names, 0, (frames - sites->names) * sizeof(*grown));
    sites->name = grown;
    sites->names = frames;
    return 0;
}

static int has_names(const struct cw_fleet_sites *sites, uint32_t innermost)
{
    struct cw_stack stack;

    cw_stack_walk(&sites->look.view, innermost, &stack);
    for (unsigned i = 0; i < stack.count; i++) {
        if (stack.frame[i] >= sites->names || !sites->name[stack.frame[i]])
            return 0;
    }
    return 1;
}

static void keep_names(struct cw_fleet_sites *sites, const struct cw_symbols *symbols,
                       uint32_t innermost)
{
    const struct cw_view *view = &sites->look.view;
    struct cw_stack all, visible;

    cw_stack_walk(view, innermost, &all);
    cw_stack_visible(symbols, view, innermost, &visible);
    for (unsigned i = 0, seen = 0; i < all.count; i++) {
        uint32_t frame = all.frame[i];
        int is_visible = seen < visible.count && visible.frame[seen] == frame;

        seen += (unsigned)is_visible;
        if (frame < sites->names && !sites->name[frame])
            sites->name[frame] = is_visible ? name_frame(symbols, view, frame) : strdup("");
    }
}

/* Opens module files, so it is done only for new stacks. */
static void look_up_names(struct cw_fleet_sites *sites)
{
    struct cw_report_request report = {.fd = -1};
    struct cw_symbols symbols;
    uint32_t missing = 0;

    if (grow_names(sites, cw_view_count(&sites->look.view, CW_TABLE_FRAME)) != 0)
        return;
    for (uint32_t i = 0; i < sites->count; i++)
        missing += !has_names(sites, sites->site[i].stack);
    if (missing == 0)
        return;
    cw_report_prepare(NULL, &report);
    if (cw_symbols_init(&symbols, &sites->look.view, report.demangle, report.demangle_arg) == 0) {
        for (uint32_t i = 0; i < sites->count; i++)
            cw_symbols_want(&symbols, sites->site[i].stack);
        cw_symbols_resolve(&symbols);
    }
    for (uint32_t i = 0; i < sites->count; i++)
        keep_names(sites, &symbols, sites->site[i].stack);
    cw_symbols_fini(&symbols);
}

unsigned cw_fleet_sites_stack(const struct cw_fleet_sites *sites, const struct cw_fleet_site *site,
                              const char *name[CW_FLEET_FRAMES])
{
    struct cw_stack stack;
    unsigned count = 0;

    cw_stack_walk(&sites->look.view, site->stack, &stack);
    for (unsigned i = 0; i < stack.count && count < CW_FLEET_FRAMES; i++) {
        uint32_t frame = stack.frame[i];

        if (frame < sites->names && sites->name[frame] && sites->name[frame][0])
            name[count++] = sites->name[frame];
    }
    return count;
}

const char *cw_fleet_sites_api(const struct cw_fleet_sites *sites, const struct cw_fleet_site *site)
{
    return cw_view_text(&sites->look.view, site->api);
}

/* ---- looking ---- */

static int read_sites(struct cw_fleet_sites *sites, uint32_t device, uint32_t most)
{
    const struct cw_view *view = &sites->look.view;

    free(sites->site);
    sites->count = 0;
    sites->site = calloc(cw_view_count(view, CW_TABLE_SITE), sizeof(*sites->site));
    if (!sites->site)
        return -1;
    sites->count = merge(sites->site, collect(view, device, sites->site));
    if (sites->count > most)
        sites->count = most;
    look_up_names(sites);
    return 0;
}

int cw_fleet_sites_look(struct cw_fleet_sites *sites, const char *path, uint32_t device,
                        uint32_t most, char *why, size_t cap)
{
    struct cw_live_name name = cw_live_name_of(path);
    int fd = cw_live_file_open(&name, O_RDONLY, NULL, why, cap);
    int rc;

    sites->count = 0;
    if (fd < 0) {
        if (why[0] == '\0')
            snprintf(why, cap, "cannot be read: %s", strerror(errno));
        return -1;
    }
    rc = cw_look_take(&sites->look, fd, TABLES, why, cap);
    close(fd);
    if (rc != 0)
        return -1;
    if (read_sites(sites, device, most) == 0)
        return 0;
    snprintf(why, cap, "does not fit in memory");
    return -1;
}

void cw_fleet_sites_free(struct cw_fleet_sites *sites)
{
    for (uint32_t i = 0; i < sites->names; i++)
        free(sites->name[i]);
    free(sites->name);
    free(sites->site);
    cw_look_free(&sites->look);
    *sites = (struct cw_fleet_sites){.count = 0};
}
