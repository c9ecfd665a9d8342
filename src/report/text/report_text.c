/* SPDX-License-Identifier: MIT */
/*
 * The text report. See report_text.h.
 *
 * What comes from outside (command line, paths, names) passes cw_text_clean on its way. Columns are
 * as wide as what stands in them.
 */
#include "report/text/report_text.h"

#include <string.h>

#include "base/compiler.h"
#include "report/snapshot/age.h"
#include "report/leaks/suppress.h"
#include "report/text/text_audit.h"
#include "report/text/text_devices.h"
#include "report/text/text_event.h"
#include "report/text/text_growth.h"
#include "report/text/text_old.h"
#include "report/text/text_oom.h"
#include "report/text/text_pool.h"
#include "report/text/text_pressure.h"
#include "report/text/text_put.h"
#include "report/text/text_suppressed.h"

#define LEAKS_FULL   20
#define LEAKS_SHORT  5
#define FRAMES_SHORT 6
#define APART_MAX    10
#define COMMAND_MAX  64
#define TRAIL_WIDTH  80

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- the head ---- */

static void put_end(const struct cw_text *text)
{
    const char *end = cw_report_end(text->source);

    if (cw_report_has_exit_code(text->source))
        cw_out_printf(text->out, "%s %d", end, LOAD(cw_view_header(text->view)->exit_code));
    else if (LOAD(cw_view_header(text->view)->exit_kind) == CW_EXIT_QUICK_EXIT)
        cw_out_string(text->out, end);
    else if (text->source->process == CW_REPORT_PROCESS_DEAD)
        cw_out_string(text->out, "died: no orderly end was recorded");
    else if (text->source->process == CW_REPORT_PROCESS_ALIVE)
        cw_out_string(text->out, "still running");
    else
        cw_out_string(text->out, "no exit seen");
}

static void put_head(const struct cw_text *text)
{
    const struct cw_live_header *header = cw_view_header(text->view);

    cw_text_begin_line(text);
    cw_out_string(text->out, "cuwarden ");
    cw_text_clean(text, text->source->version ? text->source->version : "", COMMAND_MAX);
    cw_out_string(text->out, "  ");
    cw_text_clean(text, cw_view_text(text->view, header->command), COMMAND_MAX);
    cw_out_string(text->out, "  (");
    cw_text_count(text, text->snapshot->devices, "device");
    cw_out_string(text->out, ", ");
    cw_text_time(text, text->snapshot->duration_ns);
    cw_out_string(text->out, ", ");
    put_end(text);
    cw_out_char(text->out, ')');
    cw_text_end_line(text);
}

static void put_diagnostics(const struct cw_text *text)
{
    char sentence[256];

    for (unsigned i = 0; i < CW_DIAGNOSTICS; i++) {
        if (cw_report_diagnostic(text->source, i, sentence, sizeof(sentence)) == 0)
            continue;
        cw_text_begin_line(text);
        if (i < CW_DIAGNOSTICS_LOSSES)
            cw_out_string(text->out, "accounting is incomplete: ");
        cw_text_clean(text, sentence, sizeof(sentence) - 1);
        cw_text_end_line(text);
    }
}

/* ---- LEAKS ---- */

static void put_leak_size(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    char asked[24], held[24];

    cw_format_size(asked, sizeof(asked), cw_leaked_bytes(site));
    cw_format_size(held, sizeof(held), site->live_held + site->reclaimed_bytes);
    cw_text_begin_line(text);
    cw_out_string(text->out, asked);
    if (site->live_held > site->live_bytes && strcmp(asked, held) != 0)
        cw_out_printf(text->out, " (held %s)", held);
    cw_out_string(text->out, " in ");
    cw_text_count(text, cw_leaked_blocks(site), "block");
    cw_out_printf(text->out, "  %s", cw_leak_name(site));
    if (site->leak == CW_LEAK_GROWING)
        cw_text_site_slope(text, site);
    if (site->live_blocks > 0 && site->reclaimed > 0)
        cw_out_printf(text->out, " (%ju of them context-destroyed)", (uintmax_t)site->reclaimed);
    cw_out_string(text->out, "  ");
    cw_text_clean(text, site->api, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, ", ");
    cw_text_device(text, site->device);
    cw_out_printf(text->out, ", %s", cw_kind_label(site->kind));
    cw_text_end_line(text);
}

static void put_leak_times(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    cw_text_begin_line(text);
    cw_out_printf(text->out, "    site %08x  first ", site->id);
    cw_text_time(text, site->first_ns);
    cw_out_string(text->out, "  last ");
    cw_text_time(text, site->last_ns);
    if (site->live_blocks > 0 && site->oldest_ns != 0) {
        cw_out_string(text->out, "  oldest ");
        cw_text_time(text, cw_oldest_age(text->snapshot, site));
        cw_out_string(text->out, " ago");
    }
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
}

/* What the list holds behind its first `shown` sites. */
static void put_rest(const struct cw_text *text, const struct cw_snapshot_list *list,
                     uint32_t shown)
{
    uint64_t bytes = list->bytes;

    if (list->count <= shown)
        return;
    for (uint32_t i = 0; i < shown; i++)
        bytes -= cw_leaked_bytes(&text->snapshot->site[list->site[i]]);
    cw_text_begin_line(text);
    cw_out_string(text->out, "... ");
    cw_text_count(text, list->count - shown, "more site");
    cw_out_string(text->out, ", ");
    cw_text_size(text, bytes);
    if (text->form == CW_TEXT_FULL)
        cw_out_string(text->out, " (all of them: CUWARDEN_FORMAT=json)");
    cw_text_end_line(text);
}

static uint32_t leak_limit(enum cw_text_form form)
{
    return form == CW_TEXT_FULL ? LEAKS_FULL : LEAKS_SHORT;
}

static void put_leaks_heading(const struct cw_text *text)
{
    const struct cw_snapshot_list *leaks = &text->snapshot->leaks;
    const struct cw_snapshot_list *suppressed = &text->snapshot->suppressed;

    cw_text_heading(text, "LEAKS  ");
    if (leaks->count == 0) {
        cw_out_string(text->out, "none");
    } else {
        cw_text_bytes_in_blocks(text, leaks->bytes, leaks->blocks);
        cw_out_string(text->out, " from ");
        cw_text_count(text, leaks->count, "call site");
    }
    if (suppressed->count > 0) {
        cw_out_string(text->out, "; suppressed: ");
        cw_text_bytes_in_blocks(text, suppressed->bytes, suppressed->blocks);
    }
    cw_text_end_line(text);
}

static void put_leaks(const struct cw_text *text)
{
    const struct cw_snapshot_list *leaks = &text->snapshot->leaks;
    uint32_t shown = leaks->count < leak_limit(text->form) ? leaks->count : leak_limit(text->form);

    put_leaks_heading(text);
    for (uint32_t i = 0; i < shown; i++) {
        const struct cw_snapshot_site *site = &text->snapshot->site[leaks->site[i]];

        put_leak_size(text, site);
        put_leak_times(text, site);
        cw_text_past_cap(text, site);
        cw_text_stack(text, site->stack, text->form == CW_TEXT_FULL ? CW_DEPTH_MAX : FRAMES_SHORT);
    }
    put_rest(text, leaks, shown);
}

/* ---- what is not counted ---- */

/* "cuBLAS", "PyTorch"; of others their class. */
static const char *owner_of(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    const struct cw_rule *rule =
        text->source->rules ? cw_rules_at(text->source->rules, site->rule) : NULL;

    return rule && cw_rule_is_builtin(rule) ? rule->label : cw_leak_name(site);
}

static void put_apart_site(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ");
    cw_text_bytes_in_blocks(text, cw_leaked_bytes(site), cw_leaked_blocks(site));
    cw_out_printf(text->out, "  %s  ", owner_of(text, site));
    cw_text_clean(text, site->api, CW_TEXT_NAME_WIDTH);
    cw_out_string(text->out, ", ");
    cw_text_device(text, site->device);
    cw_out_printf(text->out, "  site %08x", site->id);
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
    cw_text_begin_line(text);
    cw_out_string(text->out, "      ");
    if (site->leak == CW_LEAK_LIBRARY)
        cw_text_entry(text, site);
    else
        cw_text_trail(text, site->stack, TRAIL_WIDTH);
    cw_text_end_line(text);
}

static void put_hints(const struct cw_text *text, const struct cw_snapshot_list *list)
{
    const struct cw_leak_hint *hint;

    for (uint32_t i = 0; (hint = cw_leak_hint(i)) != NULL; i++) {
        for (uint32_t k = 0; k < list->count; k++) {
            const struct cw_snapshot_site *site = &text->snapshot->site[list->site[k]];

            if (site->device == CW_DEVICE_HOST || strcmp(owner_of(text, site), hint->owner) != 0)
                continue;
            cw_text_line(text, "  to see here what lives in the cache of %s, run it with",
                         hint->owner);
            cw_text_line(text, "    %s", hint->setting);
            break;
        }
    }
}

static void put_apart(const struct cw_text *text, const struct cw_snapshot_list *list,
                      const char *heading, const char *why)
{
    uint32_t shown = list->count < APART_MAX ? list->count : APART_MAX;

    if (list->count == 0)
        return;
    cw_text_heading(text, heading);
    cw_out_string(text->out, "  ");
    cw_text_bytes_in_blocks(text, list->bytes, list->blocks);
    cw_out_printf(text->out, ", not counted as leaked: %s\n", why);
    for (uint32_t i = 0; i < shown; i++)
        put_apart_site(text, &text->snapshot->site[list->site[i]]);
    put_rest(text, list, shown);
}

/* ---- events ---- */

static void put_invalid_free(const struct cw_text *text, const struct cw_live_event *event)
{
    cw_text_begin_line(text);
    cw_text_time(text, event->t_ns);
    cw_out_string(text->out, "  ");
    cw_text_call(text, event->site);
    cw_out_printf(text->out, ": 0x%jx refused (error %d)", (uintmax_t)event->key, event->code);
    cw_text_end_line(text);
    cw_text_call_stack(text, event->site);
    if (!cw_view_site(text->view, event->other_site))
        return;
    cw_text_line(text, "    first freed at");
    cw_text_call_stack(text, event->other_site);
}

static void put_invalid_frees(const struct cw_text *text)
{
    uint64_t count = LOAD(cw_view_header(text->view)->invalid_frees);
    struct cw_newest newest;

    cw_newest_find(text->view, 1u << CW_EVENT_INVALID_FREE, &newest);
    if (count < newest.of)
        count = newest.of;
    if (count == 0)
        return;
    newest.of = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    cw_text_heading(text, "INVALID FREES  ");
    cw_text_count(text, count, "call");
    cw_text_newest_note(text, &newest);
    for (unsigned i = 0; i < newest.count; i++) {
        const struct cw_live_event *event = cw_view_event(text->view, newest.event[i]);

        if (event)
            put_invalid_free(text, event);
    }
}

static void put_fatal_errors(const struct cw_text *text)
{
    struct cw_newest newest;

    cw_newest_find(text->view, 1u << CW_EVENT_FATAL, &newest);
    if (newest.count == 0)
        return;
    cw_text_heading(text, "FATAL ERRORS  ");
    cw_text_count(text, newest.of, "context");
    cw_out_string(text->out, " unusable from then on");
    cw_text_newest_note(text, &newest);
    for (unsigned i = 0; i < newest.count; i++) {
        const struct cw_live_event *event = cw_view_event(text->view, newest.event[i]);

        if (!event)
            continue;
        cw_text_begin_line(text);
        cw_text_time(text, event->t_ns);
        cw_out_printf(text->out, "  error %d from ", event->code);
        cw_text_call(text, event->site);
        cw_text_end_line(text);
    }
}

/* ---- PEAK ---- */

struct peak_widths {
    int blocks;
    size_t api;
};

static void put_peak_site(const struct cw_text *text, const struct cw_snapshot_site *site,
                          uint64_t peak, const struct peak_widths *widths)
{
    char share[16];
    char size[24];

    cw_text_begin_line(text);
    cw_out_printf(text->out, "  %6s  %10s in %*ju block%s  site %08x  ",
                  cw_text_format_share(share, sizeof(share), site->at_peak_bytes, peak),
                  cw_format_size(size, sizeof(size), site->at_peak_bytes), widths->blocks,
                  (uintmax_t)site->at_peak_blocks, site->at_peak_blocks == 1 ? " " : "s", site->id);
    cw_text_clean(text, site->api, CW_TEXT_NAME_MAX);
    cw_text_padding(text, cw_text_clean_len(site->api, CW_TEXT_NAME_MAX), widths->api);
    cw_out_string(text->out, "  ");
    cw_text_where(text, site->stack);
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
}

static uint32_t peak_shown(const struct cw_snapshot_device *device)
{
    return device->peak_sites < CW_PEAK_SITES ? device->peak_sites : CW_PEAK_SITES;
}

static struct peak_widths measure_peak(const struct cw_text *text,
                                       const struct cw_snapshot_device *device)
{
    struct peak_widths widths = {0};

    for (uint32_t i = 0; i < peak_shown(device); i++) {
        const struct cw_snapshot_site *site = &text->snapshot->site[device->peak[i]];
        size_t api = cw_text_clean_len(site->api, CW_TEXT_NAME_WIDTH);
        int blocks = (int)cw_format(NULL, 0, "%ju", (uintmax_t)site->at_peak_blocks);

        widths.api = api > widths.api ? api : widths.api;
        widths.blocks = blocks > widths.blocks ? blocks : widths.blocks;
    }
    return widths;
}

static void put_peak(const struct cw_text *text, unsigned index)
{
    const struct cw_snapshot_device *device = &text->snapshot->device[index];
    struct peak_widths widths = measure_peak(text, device);
    uint32_t shown = peak_shown(device);

    if (device->peak_bytes == 0)
        return;
    cw_text_heading(text, "PEAK  ");
    cw_text_device(text, index);
    cw_out_string(text->out, ": ");
    cw_text_size(text, device->peak_bytes);
    cw_out_string(text->out, " at ");
    cw_text_time(text, device->peak_ns);
    cw_text_end_line(text);
    for (uint32_t i = 0; i < shown; i++)
        put_peak_site(text, &text->snapshot->site[device->peak[i]], device->peak_bytes, &widths);
    if (device->peak_sites > shown) {
        cw_text_begin_line(text);
        cw_out_string(text->out, "  ... ");
        cw_text_count(text, device->peak_sites - shown, "more site");
        cw_out_string(text->out, ", ");
        cw_text_size(text, device->peak_rest);
        cw_text_end_line(text);
    }
}

/* ---- the whole ---- */

static void put_summary(const struct cw_text *text)
{
    const struct cw_snapshot_summary *s = &text->snapshot->summary;

    cw_text_line(
        text,
        "SUMMARY: leaked_bytes=%ju leaked_blocks=%ju leak_sites=%ju peak_bytes=%ju allocs=%ju "
        "frees=%ju failed=%ju pool_hits=%ju pool_misses=%ju",
        (uintmax_t)s->leaked_bytes, (uintmax_t)s->leaked_blocks, (uintmax_t)s->leak_sites,
        (uintmax_t)s->peak_bytes, (uintmax_t)s->allocs, (uintmax_t)s->frees, (uintmax_t)s->failed,
        (uintmax_t)s->pool_hits, (uintmax_t)s->pool_misses);
}

static void put_body(const struct cw_text *text)
{
    cw_text_devices(text);
    cw_text_pool(text);
    cw_text_pressure(text);
    put_leaks(text);
    put_apart(text, &text->snapshot->library, "LIBRARIES", "owned by libraries of NVIDIA");
    put_apart(text, &text->snapshot->caches, "CACHES", "kept on purpose by frameworks");
    put_hints(text, &text->snapshot->caches);
    put_apart(text, &text->snapshot->imports, "IMPORTS", "memory of another process or API");
    cw_text_growth(text);
    cw_text_audit(text);
    cw_text_old(text);
    cw_text_ooms(text);
    put_invalid_frees(text);
    put_fatal_errors(text);
    for (unsigned i = 0; i < CW_DEVICES; i++)
        put_peak(text, i);
    cw_text_suppressed(text);
}

void cw_report_text_write(const struct cw_report_source *source, enum cw_text_form form,
                          struct cw_out *out)
{
    struct cw_text text = {.source = source,
                           .view = source->view,
                           .snapshot = source->snapshot,
                           .out = out,
                           .form = form};

    put_head(&text);
    put_diagnostics(&text);
    if (form == CW_TEXT_FULL) {
        put_body(&text);
    } else {
        put_leaks(&text);
        cw_text_heading(&text,
                        "For the full report set CUWARDEN_REPORT=FILE, or CUWARDEN_REPORT=- for "
                        "stderr.\n");
    }
    cw_text_blank(&text);
    put_summary(&text);
}

/* ---- which stacks are printed ---- */

static void want_list(const struct cw_report_source *source, const struct cw_snapshot_list *list,
                      uint32_t limit)
{
    for (uint32_t i = 0; i < list->count && i < limit; i++)
        cw_symbols_want(source->symbols, source->snapshot->site[list->site[i]].stack);
}

void cw_report_text_want(const struct cw_report_source *source, enum cw_text_form form)
{
    want_list(source, &source->snapshot->leaks, leak_limit(form));
    if (form == CW_TEXT_SHORT)
        return;
    want_list(source, &source->snapshot->library, APART_MAX);
    want_list(source, &source->snapshot->caches, APART_MAX);
    want_list(source, &source->snapshot->imports, APART_MAX);
    cw_text_growth_want(source);
    cw_text_old_want(source);
    cw_text_pressure_want(source);
    cw_text_ooms_want(source);
    cw_text_want_newest(source, 1u << CW_EVENT_INVALID_FREE);
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_snapshot_device *device = &source->snapshot->device[i];

        for (uint32_t k = 0; k < peak_shown(device); k++)
            cw_symbols_want(source->symbols, source->snapshot->site[device->peak[k]].stack);
    }
}
