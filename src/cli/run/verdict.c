/* SPDX-License-Identifier: MIT */
/* The verdict on a run. See verdict.h. */
#include "cli/run/verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/out.h"
#include "cli/model/site_place.h"
#include "cli/model/site_text.h"
#include "cli/ui/message.h"
#include "cli/ui/truncate.h"
#include "report/leaks/leak_class.h"
#include "report/model/error_name.h"

#define LINE_MAX_BYTES   1024
#define LINE_MAX_COLUMNS 240
#define ITEM_MAX         512
#define SHOWN_MAX        3 /* sites of one kind */
#define SIZE_MAX_BYTES   24

enum kind { FATAL, INVALID_FREE, OOM, LEAK, GROWTH, HOLDER };

struct cw_finding {
    uint32_t site; /* its id */
    uint8_t kind, cause;
    int32_t code;      /* the driver's; of INVALID_FREE enum cw_misuse */
    const char *cache; /* the framework that keeps it, or NULL */
    uint64_t bytes, blocks, count;
    double weight;   /* the heaviest come first */
    double slope;    /* bytes a second */
    uint64_t end_ns; /* of its process */
    char api[48];
    struct cw_site_place place;
};

typedef void (*visit_fn)(void *arg, uint32_t site, const struct cw_finding *finding);

/* ---- what is looked at ---- */

/* The framework that owns a cached site, or NULL. */
static const struct cw_leak_hint *hint_of(const struct cw_report_model *model,
                                          const struct cw_snapshot_site *site)
{
    const struct cw_report_rule *rule =
        site->rule != CW_RULE_NONE ? cw_report_rule_at(model, site->rule) : NULL;
    const struct cw_leak_hint *hint;

    for (uint32_t i = 0; rule && (hint = cw_leak_hint(i)) != NULL; i++)
        if (strcmp(rule->owner, hint->owner) == 0)
            return hint;
    return NULL;
}

/* A failed call is not a site's memory, so each kind of error shows its latest. */
static void visit_events(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    for (uint32_t i = model->events; i-- > 0;) {
        const struct cw_report_event *event = &model->event[i];
        struct cw_finding finding = {.code = event->code,
                                     .cause = event->cause,
                                     .bytes = event->bytes,
                                     .count = event->count};

        if (event->type == CW_EVENT_FATAL) {
            finding.kind = FATAL;
        } else if (event->type == CW_EVENT_INVALID_FREE) {
            finding.kind = INVALID_FREE;
            finding.code = event->misuse;
            finding.weight = -(double)((event->misuse + CW_MISUSE_COUNT - 1) % CW_MISUSE_COUNT);
        } else if (event->type == CW_EVENT_OOM) {
            finding.kind = OOM;
            finding.weight = (double)event->bytes;
        } else {
            continue;
        }
        visit(arg, event->site, &finding);
    }
}

static void visit_leaks(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    const struct cw_snapshot_list *leaks = &model->snapshot.leaks;

    for (uint32_t i = 0; i < leaks->count && i < SHOWN_MAX; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[leaks->site[i]];

        visit(arg, leaks->site[i],
              &(struct cw_finding){.kind = LEAK,
                                   .bytes = cw_leaked_bytes(site),
                                   .weight = (double)cw_leaked_bytes(site),
                                   .blocks = cw_leaked_blocks(site)});
    }
}

static void visit_growth(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    const struct cw_snapshot_growth *growth = &model->snapshot.growth;

    for (uint32_t i = 0; i < growth->suspects && i < SHOWN_MAX; i++) {
        uint32_t site = growth->suspect[i];
        const struct cw_growth_row *row = cw_snapshot_growth_row(&model->snapshot, site);
        const struct cw_leak_hint *hint = hint_of(model, &model->snapshot.site[site]);

        if (row)
            visit(arg, site,
                  &(struct cw_finding){.kind = GROWTH,
                                       .slope = row->trend.slope,
                                       .weight = row->trend.slope,
                                       .end_ns = growth->end_ns,
                                       .cache = hint ? hint->owner : NULL});
    }
}

/* Of the device with the largest peak. */
static const struct cw_snapshot_device *peak_device(const struct cw_report_model *model)
{
    const struct cw_snapshot_device *most = &model->snapshot.device[0];

    for (uint32_t i = 1; i < CW_DEVICES; i++)
        if (model->snapshot.device[i].peak_bytes > most->peak_bytes)
            most = &model->snapshot.device[i];
    return most;
}

static void visit_holders(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    const struct cw_report_peak *peak = &model->peak[peak_device(model) - model->snapshot.device];

    for (uint32_t i = 0; i < peak->shown && i < SHOWN_MAX; i++) {
        const struct cw_snapshot_site *site = cw_report_site(model, peak->site[i]);

        if (site)
            visit(arg, peak->site[i],
                  &(struct cw_finding){.kind = HOLDER,
                                       .bytes = site->at_peak_bytes,
                                       .weight = (double)site->at_peak_bytes,
                                       .blocks = site->at_peak_blocks});
    }
}

/* ---- collecting ---- */

struct wanting {
    const struct cw_report_model *model;
    cw_report_want_fn want;
    void *arg;
};

static void want_site(void *arg, uint32_t site, const struct cw_finding *finding)
{
    const struct wanting *wanting = arg;
    const struct cw_snapshot_site *from = cw_report_site(wanting->model, site);

    (void)finding;
    if (from)
        wanting->want(wanting->arg, from->stack);
}

void cw_verdict_want(const struct cw_report_model *model, cw_report_want_fn want, void *arg)
{
    struct wanting wanting = {model, want, arg};

    visit_events(model, want_site, &wanting);
    visit_leaks(model, want_site, &wanting);
    visit_growth(model, want_site, &wanting);
    visit_holders(model, want_site, &wanting);
}

struct adding {
    struct cw_run_verdict *verdict;
    const struct cw_report_model *model;
};

static struct cw_finding *find_equal(struct cw_run_verdict *verdict,
                                     const struct cw_finding *finding)
{
    for (size_t i = 0; i < verdict->findings; i++) {
        struct cw_finding *other = &verdict->finding[i];

        if (other->kind == finding->kind && other->site == finding->site &&
            other->code == finding->code)
            return other;
    }
    return NULL;
}

static struct cw_finding *append(struct cw_run_verdict *verdict)
{
    size_t room = verdict->room ? 2 * verdict->room : 16;
    struct cw_finding *grown;

    if (verdict->findings < verdict->room)
        return &verdict->finding[verdict->findings++];
    grown = reallocarray(verdict->finding, room, sizeof(*grown));
    if (!grown) {
        verdict->is_short = 1;
        return NULL;
    }
    verdict->finding = grown;
    verdict->room = room;
    return &verdict->finding[verdict->findings++];
}

static void add_finding(void *arg, uint32_t index, const struct cw_finding *finding)
{
    struct adding *adding = arg;
    const struct cw_snapshot_site *site = cw_report_site(adding->model, index);
    struct cw_finding from = *finding, *to;

    from.site = site ? site->id : 0;
    to = find_equal(adding->verdict, &from);
    if (to) {
        to->count += from.count;
        to->blocks += from.blocks;
        to->slope += from.slope;
        if (from.kind != OOM) {
            to->bytes += from.bytes;
            to->weight += from.weight;
        } else if (from.bytes > to->bytes) {
            to->bytes = from.bytes;
            to->weight = from.weight;
        }
        return;
    }
    to = append(adding->verdict);
    if (!to)
        return;
    *to = from;
    snprintf(to->api, sizeof(to->api), "%s", site ? site->api : "");
    if (site)
        cw_site_place_find(adding->model, site, &to->place);
}

/* The peak of one device in one process has holders; those of the largest are shown. */
static void add_holders(struct adding *adding)
{
    const struct cw_snapshot_device *device = peak_device(adding->model);
    struct cw_run_verdict *verdict = adding->verdict;
    size_t kept = 0;

    if (device->peak_bytes <= verdict->peak_bytes)
        return;
    for (size_t i = 0; i < verdict->findings; i++)
        if (verdict->finding[i].kind != HOLDER)
            verdict->finding[kept++] = verdict->finding[i];
    verdict->findings = kept;
    verdict->peak_bytes = device->peak_bytes;
    verdict->peak_device = (uint32_t)(device - adding->model->snapshot.device);
    visit_holders(adding->model, add_finding, adding);
}

static void add_caches(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    const struct cw_snapshot_list *caches = &model->snapshot.caches;
    uint64_t bytes = 0;
    const struct cw_leak_hint *hint = NULL;

    for (uint32_t i = 0; i < caches->count; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[caches->site[i]];
        const struct cw_leak_hint *found = hint_of(model, site);

        if (!found || site->device == CW_DEVICE_HOST)
            continue;
        hint = found;
        bytes += cw_leaked_bytes(site);
    }
    verdict->cache_bytes += bytes;
    if (hint && bytes > verdict->largest_cache) {
        verdict->largest_cache = bytes;
        verdict->cache = hint->owner;
        verdict->setting = hint->setting;
    }
}

void cw_verdict_add(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    struct adding adding = {verdict, model};

    verdict->processes++;
    cw_snapshot_summary_add(&verdict->sum, &model->snapshot.summary);
    for (uint32_t i = 0; i < CW_DEVICES; i++)
        verdict->ooms += model->snapshot.device[i].sums.oom;
    verdict->fallback_bytes += model->snapshot.pressure.all.fallback_bytes;
    verdict->has_pool |= model->snapshot.pool.on;
    visit_events(model, add_finding, &adding);
    visit_leaks(model, add_finding, &adding);
    visit_growth(model, add_finding, &adding);
    add_caches(verdict, model);
    add_holders(&adding);
}

int cw_verdict_is_bad(const struct cw_run_verdict *verdict)
{
    const struct cw_snapshot_summary *sum = &verdict->sum;

    for (size_t i = 0; i < verdict->findings; i++)
        if (verdict->finding[i].kind == GROWTH)
            return 1;
    return sum->invalid_frees + sum->fatal_errors + sum->leaked_blocks + verdict->ooms > 0;
}

/* ---- lines ---- */

struct page {
    const struct cw_run_verdict *verdict;
    const struct cw_verdict_ending *ending;
    FILE *out;
    unsigned left; /* lines */
    char line[LINE_MAX_BYTES];
    size_t len;
    unsigned items; /* of a list, in this line */
};

static void say(struct page *page, const char *format, ...) CW_PRINTF(2, 3);

static void say(struct page *page, const char *format, ...)
{
    va_list ap;
    int len;

    va_start(ap, format);
    len = vsnprintf(page->line + page->len, sizeof(page->line) - page->len, format, ap);
    va_end(ap);
    if (len > 0)
        page->len += (size_t)len;
    if (page->len >= sizeof(page->line))
        page->len = sizeof(page->line) - 1;
}

static void say_size(struct page *page, uint64_t bytes)
{
    char size[SIZE_MAX_BYTES];

    say(page, "%s", cw_format_size(size, sizeof(size), bytes));
}

static void say_count(struct page *page, uint64_t count, const char *noun)
{
    say(page, "%" PRIu64 " %s%s", count, noun, cw_cli_plural(count));
}

/* An item of a list: the first one always, others if they fit in the line. */
static void say_item(struct page *page, const char *item)
{
    size_t width = strlen(page->ending->prefix) + page->len + strlen(item) + 2;

    if (page->items > 0 && width > page->ending->columns)
        return;
    say(page, "%s%s", page->items > 0 ? ", " : "", item);
    page->items++;
}

/* A line that is longer than the screen stays whole: the terminal breaks it, and a log has room. */
static void end_line(struct page *page)
{
    char shown[LINE_MAX_BYTES];

    cw_truncate(shown, sizeof(shown), page->line, LINE_MAX_COLUMNS);
    fprintf(page->out, "%s%s\n", page->ending->prefix, shown);
    page->len = 0;
    page->line[0] = '\0';
    page->items = 0;
    page->left--;
}

/* The findings of a kind, the heaviest first, else the latest. Returns their number. */
static unsigned rank(const struct cw_run_verdict *verdict, enum kind kind,
                     const struct cw_finding *most[SHOWN_MAX])
{
    unsigned count = 0;

    for (size_t i = 0; i < verdict->findings; i++) {
        const struct cw_finding *finding = &verdict->finding[i];
        unsigned at = count;

        if (finding->kind != kind)
            continue;
        for (; at > 0 && finding->weight > most[at - 1]->weight; at--)
            if (at < SHOWN_MAX)
                most[at] = most[at - 1];
        if (at < SHOWN_MAX)
            most[at] = finding;
        count += count < SHOWN_MAX;
    }
    return count;
}

/* Where it is, told apart from the others beside it. */
static const char *place_of(const struct cw_finding *finding,
                            const struct cw_finding *const *beside, unsigned count)
{
    static char text[2 * CW_SITE_PLACE_MAX + 8];
    const struct cw_site_place *others[SHOWN_MAX];

    for (unsigned i = 0; i < count; i++)
        others[i] = &beside[i]->place;
    return cw_site_place_format(&finding->place, others, count, text, sizeof(text));
}

static void say_errors(struct page *page)
{
    const struct cw_snapshot_summary *sum = &page->verdict->sum;
    const struct cw_finding *error[SHOWN_MAX];
    unsigned errors = rank(page->verdict, FATAL, error);
    char name[CW_ERROR_NAME_MAX], item[ITEM_MAX];

    if (sum->invalid_frees + sum->fatal_errors == 0)
        return;
    say_count(page, sum->invalid_frees + sum->fatal_errors, "memory error");
    say(page, ": ");
    for (unsigned i = 0; i < errors; i++) {
        snprintf(item, sizeof(item), "%s in %s at %s",
                 cw_error_format(name, sizeof(name), error[i]->code), error[i]->api,
                 place_of(error[i], error, errors));
        say_item(page, item);
    }
    errors = rank(page->verdict, INVALID_FREE, error);
    for (unsigned i = 0; i < errors; i++) {
        snprintf(item, sizeof(item), "%s at %s", cw_misuse_label((unsigned)error[i]->code),
                 place_of(error[i], error, errors));
        say_item(page, item);
    }
    end_line(page);
}

static void say_ooms(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    const struct cw_finding *oom[SHOWN_MAX];
    unsigned ooms = rank(verdict, OOM, oom);

    if (verdict->ooms + verdict->sum.fallbacks == 0)
        return;
    if (verdict->ooms != 0) {
        say(page, "out of memory: ");
        say_count(page, verdict->ooms, "call");
    }
    if (verdict->ooms != 0 && ooms != 0) {
        say(page, verdict->ooms > 1 ? ", largest " : ", ");
        say_size(page, oom[0]->bytes);
        say(page, " at %s", place_of(oom[0], oom, 0));
        if (oom[0]->cause != CW_CAUSE_DRIVER)
            say(page, ", %s", cw_cause_label(oom[0]->cause));
    }
    if (verdict->sum.fallbacks != 0) {
        say(page, "%sserved from host memory: ", verdict->ooms != 0 ? "; " : "");
        say_size(page, verdict->fallback_bytes);
        say(page, " in ");
        say_count(page, verdict->sum.fallbacks, "request");
    }
    end_line(page);
}

/* A line for the sum, and one for each of the largest sites as far as there is room; one site needs
 * no sum. */
static void say_leaks(struct page *page, unsigned reserved)
{
    const struct cw_snapshot_summary *sum = &page->verdict->sum;
    const struct cw_finding *leak[SHOWN_MAX];
    unsigned leaks = rank(page->verdict, LEAK, leak);
    int has_list = leaks > 1 && page->left > reserved + 1;

    if (sum->leaked_blocks == 0)
        return;
    say(page, "leaked ");
    say_size(page, sum->leaked_bytes);
    say(page, " in ");
    say_count(page, sum->leaked_blocks, "block");
    if (sum->leak_sites > 1)
        say(page, " from %" PRIu64 " call sites", sum->leak_sites);
    if (leaks != 0 && !has_list)
        say(page, "%s at %s", leaks > 1 ? ", most" : "", place_of(leak[0], leak, leaks));
    else if (has_list)
        say(page, ":");
    end_line(page);
    for (unsigned i = 0; has_list && i < leaks && page->left > reserved; i++) {
        say(page, "  ");
        say_size(page, leak[i]->bytes);
        say(page, " in ");
        say_count(page, leak[i]->blocks, "block");
        say(page, "  %s", place_of(leak[i], leak, leaks));
        end_line(page);
    }
}

static void say_growth(struct page *page)
{
    const struct cw_finding *growth[SHOWN_MAX];
    unsigned growths = rank(page->verdict, GROWTH, growth);
    char slope[CW_SLOPE_MAX], item[ITEM_MAX];

    if (growths == 0)
        return;
    say(page, "growing: ");
    for (unsigned i = 0; i < growths; i++) {
        snprintf(item, sizeof(item), "%s at %s%s%s",
                 cw_trend_format_slope(slope, growth[i]->slope, growth[i]->end_ns),
                 place_of(growth[i], growth, growths), growth[i]->cache ? " in the cache of " : "",
                 growth[i]->cache ? growth[i]->cache : "");
        say_item(page, item);
    }
    end_line(page);
}

static void say_cache(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;

    if (!verdict->cache)
        return;
    say(page, "%s's cache kept ", verdict->cache);
    say_size(page, verdict->cache_bytes);
    say(page, "; to see inside, run with %s", verdict->setting);
    end_line(page);
}

static void say_holders(struct page *page)
{
    const struct cw_finding *holder[SHOWN_MAX];
    unsigned holders = rank(page->verdict, HOLDER, holder);

    if (holders == 0)
        return;
    for (unsigned i = 0; i < holders; i++) {
        say(page, i == 0 ? "  " : ", ");
        say_size(page, holder[i]->bytes);
        say(page, " %s", place_of(holder[i], holder, holders));
    }
    end_line(page);
}

static void say_peak(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    uint64_t peak_bytes = page->ending->peak_bytes;
    char device[CW_AMOUNT_MAX];

    say(page, "peak ");
    say_size(page, peak_bytes);
    if (verdict->processes > 1) {
        say(page, " in %" PRIu64 " processes, the largest ", verdict->processes);
        say_size(page, verdict->peak_bytes);
    } else if (verdict->peak_bytes != peak_bytes) {
        say(page, ", ");
        say_size(page, verdict->peak_bytes);
        say(page, " of it");
    }
    if (verdict->peak_bytes != 0)
        say(page, " on %s", cw_device_format(device, verdict->peak_device));
    say(page, ", in %s mode", verdict->has_pool ? "pool" : "track");
    end_line(page);
    say_holders(page);
}

void cw_verdict_print(const struct cw_run_verdict *verdict, const struct cw_verdict_ending *ending,
                      FILE *out)
{
    struct page page = {
        .verdict = verdict, .ending = ending, .out = out, .left = CW_RUN_VERDICT_LINES};
    const struct cw_finding *growth[SHOWN_MAX];
    unsigned reserved;

    if (verdict->processes == 0)
        return;
    /* Growth, the cache, the peak and its holders, the next command. */
    reserved = (rank(verdict, GROWTH, growth) != 0) + (verdict->cache != NULL) + 2 +
               (ending->next != NULL);
    say_errors(&page);
    say_ooms(&page);
    say_leaks(&page, reserved);
    say_growth(&page);
    say_cache(&page);
    say_peak(&page);
    if (!ending->next)
        return;
    say(&page, "next: %s", ending->next);
    end_line(&page);
}

void cw_verdict_free(struct cw_run_verdict *verdict)
{
    free(verdict->finding);
    *verdict = (struct cw_run_verdict){.processes = 0};
}
