/* SPDX-License-Identifier: MIT */
/*
 * The text report. See report_text.h.
 *
 * External text (command line, paths, names) goes through cw_text_clean. Columns are as wide as
 * their content.
 */
#include "report/text/report_text.h"

#include <string.h>

#include "base/compiler.h"
#include "report/model/error_name.h"
#include "report/text/text_event.h"
#include "report/leaks/leak_class.h"
#include "report/text/text_sections.h"

#define LEAKS_FULL     20
#define LEAKS_SHORT    5
#define FRAMES_SHORT   6
#define APART_MAX      10
#define RANKS_MAX      20
#define DIAGNOSTIC_MAX 255
#define COMMAND_MAX    64

/* ---- the head ---- */

static void put_end(const struct cw_text *text)
{
    const struct cw_report_model *model = text->model;

    if (strcmp(model->process.end, "died") == 0)
        cw_out_string(text->out, "terminated abnormally");
    else if (strcmp(model->process.end, "killed") == 0)
        cw_out_string(text->out, "ended by a signal");
    else if (strcmp(model->process.end, "running") == 0)
        cw_out_string(text->out, "still running");
    else if (strcmp(model->process.end, "unknown") == 0)
        cw_out_string(text->out, "no exit seen");
    else
        cw_text_clean(text, model->process.end, COMMAND_MAX);
    if (model->process.has_exit_code)
        cw_out_printf(text->out, " %d", model->process.exit_code);
}

static void put_head(const struct cw_text *text)
{
    cw_text_begin_line(text);
    cw_out_string(text->out, "cuwarden ");
    cw_text_clean(text, text->model->version, COMMAND_MAX);
    cw_out_string(text->out, "  ");
    cw_text_clean(text, text->model->process.command, COMMAND_MAX);
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
    for (unsigned i = 0; i < text->model->diagnostics; i++) {
        const struct cw_report_diagnostic *diagnostic = &text->model->diagnostic[i];

        cw_text_begin_line(text);
        if (diagnostic->is_loss)
            cw_out_string(text->out, "accounting is incomplete: ");
        cw_text_clean(text, diagnostic->text, DIAGNOSTIC_MAX);
        cw_text_end_line(text);
    }
}

static void put_selected(const struct cw_text *text)
{
    const struct cw_report_selection *selection = text->model->selection;

    if (selection && selection->sites != selection->of)
        cw_text_line(text,
                     "selected: %u of %u call sites; DEVICES, POOL, PRESSURE, AUDIT, errors, "
                     "SUPPRESSED and SUMMARY are of the whole process",
                     selection->sites, selection->of);
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
    cw_out_printf(text->out, "  %s",
                  !cw_report_has_leaks(text->model) && site->leak == CW_LEAK_LOST
                      ? "live"
                      : cw_leak_name(site));
    if (site->leak == CW_LEAK_GROWING)
        cw_text_site_slope(text, site);
    if (site->live_blocks > 0 && site->reclaimed > 0)
        cw_out_printf(text->out, " (%ju of them context-destroyed)", (uintmax_t)site->reclaimed);
    cw_out_string(text->out, "  ");
    cw_text_site_call(text, site, CW_TEXT_NAME_MAX);
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
    if (site->has_age) {
        cw_out_string(text->out, "  oldest ");
        cw_text_time(text, site->oldest_age_ns);
        cw_out_string(text->out, " ago");
    }
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
}

/* The totals of a list after its first `shown` sites. */
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
    if (text->model->selection)
        cw_out_string(text->out, " (--top=N shows N)");
    else if (text->form == CW_TEXT_FULL)
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

    cw_text_heading(text, !cw_report_has_leaks(text->model) ? "STILL ALLOCATED  " : "LEAKS  ");
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
    uint32_t shown = cw_text_shown(text, leaks->count, leak_limit(text->form));
    struct cw_text_list list;

    put_leaks_heading(text);
    cw_text_begin_list(text, leaks->site, sizeof(*leaks->site), shown, &list);
    for (uint32_t i = 0; i < shown; i++) {
        const struct cw_snapshot_site *site = &text->snapshot->site[leaks->site[i]];

        if (i > 0)
            cw_text_blank(text);
        put_leak_size(text, site);
        put_leak_times(text, site);
        cw_text_past_cap(text, site);
        cw_text_stack(&list.text, site->stack,
                      text->form == CW_TEXT_FULL ? CW_DEPTH_MAX : FRAMES_SHORT);
    }
    put_rest(text, leaks, shown);
    cw_text_end_list(&list);
}

/* ---- not counted as leaked ---- */

/* "cuBLAS", "PyTorch"; otherwise the class. */
static const char *owner_of(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    const struct cw_report_rule *rule =
        site->rule != CW_RULE_NONE ? cw_report_rule_at(text->model, site->rule) : NULL;

    return rule && rule->owner[0] != '\0' ? rule->owner : cw_leak_name(site);
}

static void put_apart_site(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ");
    cw_text_bytes_in_blocks(text, cw_leaked_bytes(site), cw_leaked_blocks(site));
    cw_out_string(text->out, "  ");
    cw_text_clean(text, owner_of(text, site), CW_TEXT_NAME_MAX);
    cw_out_string(text->out, "  ");
    cw_text_site_call(text, site, CW_TEXT_NAME_WIDTH);
    cw_out_printf(text->out, "  site %08x", site->id);
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
    cw_text_begin_line(text);
    cw_out_string(text->out, "      ");
    if (site->leak == CW_LEAK_LIBRARY)
        cw_text_entry(text, site);
    else
        cw_text_trail(text, site->stack, text->columns);
    cw_text_end_line(text);
}

static void put_apart(const struct cw_text *text, const struct cw_snapshot_list *list,
                      const char *heading, const char *why)
{
    uint32_t shown = cw_text_shown(text, list->count, APART_MAX);
    struct cw_text_list lines;

    if (list->count == 0)
        return;
    cw_text_heading(text, heading);
    cw_out_string(text->out, "  ");
    cw_text_bytes_in_blocks(text, list->bytes, list->blocks);
    cw_out_printf(text->out, ", not counted as leaked: %s\n", why);
    cw_text_begin_list(text, list->site, sizeof(*list->site), shown, &lines);
    for (uint32_t i = 0; i < shown; i++)
        put_apart_site(&lines.text, &text->snapshot->site[list->site[i]]);
    cw_text_end_list(&lines);
    put_rest(text, list, shown);
}

/* ---- events ---- */

static void put_allocation(const struct cw_text *text, const struct cw_report_event *event)
{
    const struct cw_snapshot_site *site = cw_report_site(text->model, event->alloc_site);

    if (!site)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "    allocated by ");
    cw_text_clean(text, site->api, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, " at\n");
    cw_text_call_stack(text, event->alloc_site);
}

static void put_invalid_free(const struct cw_text *text, const struct cw_report_event *event)
{
    char name[CW_ERROR_NAME_MAX];

    cw_text_begin_line(text);
    cw_text_time(text, event->t_ns);
    cw_out_string(text->out, "  ");
    cw_out_printf(text->out, "%s: ", cw_misuse_label(event->misuse));
    cw_text_call(text, event->site);
    cw_out_printf(text->out, ": 0x%jx refused, %s", (uintmax_t)event->key,
                  cw_error_format(name, sizeof(name), event->code));
    cw_text_end_line(text);
    cw_text_call_stack(text, event->site);
    if (cw_report_site(text->model, event->first_site)) {
        cw_text_line(text, "    first freed at");
        cw_text_call_stack(text, event->first_site);
    }
    put_allocation(text, event);
}

static void put_invalid_frees(const struct cw_text *text)
{
    uint64_t count = text->model->invalid_frees;
    struct cw_newest newest;

    cw_newest_find(text->model, 1u << CW_EVENT_INVALID_FREE, &newest);
    if (count < newest.of)
        count = newest.of;
    if (count == 0)
        return;
    cw_text_heading(text, "INVALID FREES  ");
    cw_text_count(text, count, "call");
    cw_text_newest_note(text, count, newest.of, newest.count);
    for (unsigned i = 0; i < newest.count; i++)
        put_invalid_free(text, &text->model->event[newest.event[i]]);
}

/* Why MPS ended the process, as far as it can be told. */
static void put_eviction(const struct cw_text *text, const struct cw_report_event *event)
{
    if (event->bytes == 0) {
        cw_text_line(text,
                     "    MPS ended this process, which had borrowed nothing beyond a soft limit");
        return;
    }
    cw_text_begin_line(text);
    cw_out_string(text->out, "    evicted while borrowing ");
    cw_text_size(text, event->bytes);
    cw_out_printf(text->out, " beyond %s\n", cw_bound_name(event->bound));
    cw_text_line(text, "    others needed what is theirs: use less, or have that limit raised");
}

static void put_fatal_errors(const struct cw_text *text)
{
    uint64_t count = text->snapshot->summary.fatal_errors;
    char name[CW_ERROR_NAME_MAX];
    struct cw_newest newest;

    cw_newest_find(text->model, 1u << CW_EVENT_FATAL, &newest);
    if (count < newest.of)
        count = newest.of;
    if (count == 0)
        return;
    cw_text_heading(text, "FATAL ERRORS  ");
    cw_text_count(text, count, "context");
    cw_out_string(text->out, " unusable from then on");
    cw_text_newest_note(text, count, newest.of, newest.count);
    for (unsigned i = 0; i < newest.count; i++) {
        const struct cw_report_event *event = &text->model->event[newest.event[i]];

        cw_text_begin_line(text);
        cw_text_time(text, event->t_ns);
        cw_out_printf(text->out, "  %s from ", cw_error_format(name, sizeof(name), event->code));
        cw_text_call(text, event->site);
        cw_text_end_line(text);
        if (cw_error_is_eviction(event->code))
            put_eviction(text, event);
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

static struct peak_widths measure_peak(const struct cw_text *text,
                                       const struct cw_report_peak *peak)
{
    struct peak_widths widths = {0};

    for (uint32_t i = 0; i < peak->shown; i++) {
        const struct cw_snapshot_site *site = &text->snapshot->site[peak->site[i]];
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
    const struct cw_report_peak *peak = &text->model->peak[index];
    struct peak_widths widths = measure_peak(text, peak);
    struct cw_text_list list;

    if (device->peak_bytes == 0 || (text->model->selection && peak->count == 0))
        return;
    cw_text_heading(text, "PEAK  ");
    cw_text_device(text, index);
    cw_out_string(text->out, ": ");
    cw_text_size(text, device->peak_bytes);
    cw_out_string(text->out, " at ");
    cw_text_time(text, device->peak_ns);
    cw_text_end_line(text);
    cw_text_begin_list(text, peak->site, sizeof(*peak->site), peak->shown, &list);
    for (uint32_t i = 0; i < peak->shown; i++)
        put_peak_site(&list.text, &text->snapshot->site[peak->site[i]], device->peak_bytes,
                      &widths);
    cw_text_end_list(&list);
    if (peak->count == peak->shown)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ... ");
    cw_text_count(text, peak->count - peak->shown, "more site");
    cw_out_string(text->out, ", ");
    cw_text_size(text, peak->rest);
    cw_text_end_line(text);
}

/* ---- by another metric ---- */

static void put_rank(const struct cw_text *text, const struct cw_report_rank *rank, uint64_t whole)
{
    const struct cw_snapshot_site *site = &text->snapshot->site[rank->site];
    char share[16], value[24];

    cw_text_begin_line(text);
    if (text->model->selection->is_count)
        cw_format(value, sizeof(value), "%ju", (uintmax_t)rank->value);
    else
        cw_format_size(value, sizeof(value), rank->value);
    cw_out_printf(text->out, "  %6s  %10s  site %08x  ",
                  cw_text_format_share(share, sizeof(share), rank->value, whole), value, site->id);
    cw_text_site_call(text, site, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, "  ");
    cw_text_where(text, site->stack);
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
}

/* Ranks sites by a metric other than that of LEAKS, in the selection's order. */
static void put_ranks(const struct cw_text *text)
{
    const struct cw_report_selection *selection = text->model->selection;
    uint32_t shown = selection ? cw_text_shown(text, selection->ranks, RANKS_MAX) : 0;
    struct cw_text_list list;
    uint64_t whole = 0;

    if (!selection || !selection->metric)
        return;
    for (uint32_t i = 0; i < selection->ranks; i++)
        whole += selection->rank[i].value;
    cw_text_heading(text, "CALL SITES  by ");
    cw_out_string(text->out, selection->metric);
    cw_text_end_line(text);
    cw_text_begin_list(text, &selection->rank->site, sizeof(*selection->rank), shown, &list);
    for (uint32_t i = 0; i < shown; i++)
        put_rank(&list.text, &selection->rank[i], whole);
    cw_text_end_list(&list);
    if (selection->ranks == shown)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "... ");
    cw_text_count(text, selection->ranks - shown, "more site");
    cw_out_string(text->out, " (--top=N shows N)\n");
}

/* ---- the report ---- */

static void put_summary(const struct cw_text *text)
{
    const struct cw_snapshot_summary *summary = &text->snapshot->summary;

    cw_text_begin_line(text);
    cw_out_string(text->out, "SUMMARY:");
#define X(key, member, unit, meaning)                                                              \
    cw_out_printf(text->out, " " key "=%ju", (uintmax_t)summary->member);
    CW_SUMMARY_KEYS(X)
#undef X
    cw_text_end_line(text);
}

static void put_errors(const struct cw_text *text)
{
    put_fatal_errors(text);
    put_invalid_frees(text);
}

static void put_unfreed(const struct cw_text *text)
{
    put_leaks(text);
    put_apart(text, &text->snapshot->library, "LIBRARIES", "owned by libraries of NVIDIA");
    put_apart(text, &text->snapshot->caches, "CACHES", "kept by frameworks on purpose");
    cw_text_cache_hints(text, &text->snapshot->caches);
    put_apart(text, &text->snapshot->imports, "IMPORTS", "memory of another process or API");
    if (text->model->selection)
        put_apart(text, &text->model->selection->apart, "APART", "suppressed, or without memory");
    put_ranks(text);
}

static void put_peaks(const struct cw_text *text)
{
    for (unsigned i = 0; i < CW_DEVICES; i++)
        put_peak(text, i);
}

/* What went wrong comes first, then who held the memory, then the machinery. */
static void put_body(const struct cw_text *text)
{
    static void (*const put[CW_TEXT_SECTION_COUNT])(const struct cw_text *text) = {
        [CW_TEXT_ERRORS] = put_errors,       [CW_TEXT_OOM] = cw_text_ooms,
        [CW_TEXT_LEAKS] = put_unfreed,       [CW_TEXT_GROWTH] = cw_text_growth,
        [CW_TEXT_OLD] = cw_text_old,         [CW_TEXT_PEAK] = put_peaks,
        [CW_TEXT_HELD] = cw_text_held,       [CW_TEXT_TENSORS] = cw_text_tensors,
        [CW_TEXT_DEVICES] = cw_text_devices, [CW_TEXT_POOL] = cw_text_pool,
        [CW_TEXT_BUDGETS] = cw_text_budgets, [CW_TEXT_PRESSURE] = cw_text_pressure,
        [CW_TEXT_AUDIT] = cw_text_audit,     [CW_TEXT_SUPPRESSED] = cw_text_suppressed,
    };

    for (unsigned i = 0; i < CW_TEXT_SECTION_COUNT; i++)
        if (text->sections & (1u << i))
            put[i](text);
}

static void put_report(const struct cw_text *text)
{
    put_head(text);
    put_diagnostics(text);
    put_selected(text);
    if (text->form == CW_TEXT_FULL) {
        put_body(text);
    } else {
        put_fatal_errors(text);
        put_invalid_frees(text);
        if (text->snapshot->leaks.count > 0)
            put_leaks(text);
        cw_text_heading(text, text->has_live_file
                                  ? "For the full report set CUWARDEN_REPORT=FILE; for source "
                                    "lines use 'cuwarden run'.\n"
                                  : "For the full report set CUWARDEN_REPORT=FILE.\n");
    }
    cw_text_blank(text);
    put_summary(text);
}

static struct cw_text start(const struct cw_report_model *model, const struct cw_text_style *style,
                            struct cw_out *out)
{
    return (struct cw_text){.model = model,
                            .snapshot = &model->snapshot,
                            .out = out,
                            .form = style->form,
                            .sections = style->sections,
                            .has_all_frames = style->has_all_frames,
                            .has_live_file = style->has_live_file,
                            .columns = style->columns != 0 ? style->columns : CW_TEXT_WIDTH};
}

void cw_report_text_want(const struct cw_report_model *model, const struct cw_text_style *style,
                         cw_report_want_fn want, void *arg)
{
    char nothing[64]; /* truncated */
    struct cw_out out;
    struct cw_text text = start(model, style, &out);

    text.want = want;
    text.want_arg = arg;
    cw_out_init(&out, -1, nothing, sizeof(nothing));
    put_report(&text);
}

void cw_report_text_write(const struct cw_report_model *model, const struct cw_text_style *style,
                          struct cw_out *out)
{
    struct cw_text text = start(model, style, out);

    put_report(&text);
}
