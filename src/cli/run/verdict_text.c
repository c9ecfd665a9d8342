/* SPDX-License-Identifier: MIT */
/* The lines of the verdict. See verdict.h. */
#include "cli/run/verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/out.h"
#include "base/printable.h"
#include "cli/model/site_text.h"
#include "cli/run/finding.h"
#include "cli/ui/message.h"
#include "report/model/error_name.h"

#define LINE_MAX_BYTES      1024
#define LINE_MAX_CHARACTERS 240
#define ITEM_MAX            512
#define SIZE_MAX_BYTES      24
#define TIMES_MAX           32
#define NO_DEVICE           100 /* CUDA_ERROR_NO_DEVICE */

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

/* An item of a list: the first one always, others if they fit in the line. Whether it is there. */
static int say_item(struct page *page, const char *item)
{
    size_t width = strlen(page->ending->prefix) + page->len + strlen(item) + 2;

    if (page->items > 0 && width > page->ending->columns)
        return 0;
    say(page, "%s%s", page->items > 0 ? ", " : "", item);
    page->items++;
    return 1;
}

/* As the text report shows names: UTF-8, whatever the locale. */
static void make_printable(struct page *page)
{
    size_t len = cw_printable_clean(page->line, page->len), at = 0;
    int is_printable;

    for (unsigned i = 0; at < len && i < LINE_MAX_CHARACTERS; i++)
        at += cw_printable_scan(page->line + at, len - at, &is_printable);
    page->line[at] = '\0';
}

/* A line that is longer than the screen stays whole: the terminal breaks it, and a log has room.
 * With troubles of all kinds there is no room for what comes last. */
static void end_line(struct page *page)
{
    make_printable(page);
    if (page->left > 0) {
        fprintf(page->out, "%s%s\n", page->ending->prefix, page->line);
        page->left--;
    }
    page->len = 0;
    page->line[0] = '\0';
    page->items = 0;
}

/* Where it is, told apart from the others beside it. */
static const char *place_of(const struct cw_run_finding *finding,
                            struct cw_run_finding *const *beside, unsigned count)
{
    static const struct cw_site_place unknown;
    static char text[2 * CW_SITE_PLACE_MAX + 8];
    const struct cw_site_place *others[CW_FINDINGS_SHOWN];

    for (unsigned i = 0; i < count; i++)
        others[i] = beside[i]->place ? beside[i]->place : &unknown;
    return cw_site_place_format(finding->place ? finding->place : &unknown, others, count, text,
                                sizeof(text));
}

static void say_refused(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    char name[CW_ERROR_NAME_MAX];

    say(page, "%s: cuInit returned %s",
        verdict->init_error == NO_DEVICE ? "no CUDA-capable device" : "CUDA could not be used",
        cw_error_format(name, sizeof(name), verdict->init_error));
    if (verdict->refused > 1)
        say(page, " in %" PRIu64 " processes, the last of them %s", verdict->refused,
            verdict->refused_exe);
    else
        say(page, " in %s", verdict->refused_exe);
    end_line(page);
}

static int has_unseen(const struct cw_run_verdict *verdict)
{
    return verdict->unseen + verdict->uncalled != 0;
}

/* Two lines, or one where there is more to say; then the way out stands for the next command. */
static void say_unseen(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    uint64_t processes = verdict->unseen + verdict->uncalled;

    say(page, "not seen: what %s calls of CUDA: it was opened with RTLD_DEEPBIND",
        verdict->unseen_object);
    if (processes > 1)
        say(page, " in %" PRIu64 " processes", processes);
    if (verdict->processes == 0)
        end_line(page);
    else
        say(page, "; ");
    say(page, page->ending->is_patched ? "--deepbind=patch could not reach it: see docs/method.md"
                                       : "--deepbind=patch brings it here");
    end_line(page);
}

static void add_eviction(const struct cw_run_finding *error, char *item, size_t cap)
{
    size_t len = strlen(item);
    char size[SIZE_MAX_BYTES];

    if (cw_error_is_eviction(error->code) && error->bytes != 0)
        snprintf(item + len, cap - len, ", evicted while borrowing %s",
                 cw_format_size(size, sizeof(size), error->bytes));
}

/* all: errors; where they are one finding the line has its number already. */
static void format_error(const struct cw_run_finding *error, uint64_t all, const char *place,
                         char *item, size_t cap)
{
    char name[CW_ERROR_NAME_MAX], times[TIMES_MAX] = "";

    if (error->count > 1 && error->count < all)
        snprintf(times, sizeof(times), " (%" PRIu64 " times)", error->count);
    if (error->kind == CW_FOUND_FATAL)
        snprintf(item, cap, "%s in %s%s at %s", cw_error_format(name, sizeof(name), error->code),
                 error->api, times, place);
    else
        snprintf(item, cap, "%s%s at %s", cw_misuse_label((unsigned)error->code), times, place);
    add_eviction(error, item, cap);
}

/* Those of a kind in the order of their weight. Returns how many errors that are. */
static uint64_t say_errors_of(struct page *page, enum cw_finding_kind kind, uint64_t all)
{
    struct cw_run_finding *error[CW_FINDINGS_SHOWN];
    unsigned errors = cw_findings_rank(&page->verdict->findings, kind, error);
    char item[ITEM_MAX];
    uint64_t said = 0;

    for (unsigned i = 0; i < errors; i++) {
        format_error(error[i], all, place_of(error[i], error, errors), item, sizeof(item));
        if (say_item(page, item))
            said += error[i]->count;
    }
    return said;
}

static void say_errors(struct page *page)
{
    const struct cw_snapshot_summary *sum = &page->verdict->sum;
    uint64_t errors = sum->invalid_frees + sum->fatal_errors, said;

    if (errors == 0)
        return;
    say_count(page, errors, "memory error");
    say(page, ": ");
    said = say_errors_of(page, CW_FOUND_FATAL, errors);
    said += say_errors_of(page, CW_FOUND_INVALID_FREE, errors);
    if (said == 0)
        say(page, "places not known");
    else if (said < errors)
        say(page, ", and %" PRIu64 " other%s", errors - said, cw_cli_plural(errors - said));
    end_line(page);
}

/* Calls that ask for a context, or launch a graph, name no size. */
static void say_oom_size(struct page *page, uint64_t bytes)
{
    int are_several = page->verdict->ooms > 1;

    if (bytes == 0) {
        say(page, "%s", are_several ? ", one" : "");
        return;
    }
    say(page, "%s", are_several ? ", largest " : ", ");
    say_size(page, bytes);
}

static void say_ooms(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    struct cw_run_finding *oom[CW_FINDINGS_SHOWN];
    unsigned ooms = cw_findings_rank(&verdict->findings, CW_FOUND_OOM, oom);

    if (verdict->ooms + verdict->sum.fallbacks == 0)
        return;
    if (verdict->ooms != 0) {
        say(page, "out of memory: ");
        say_count(page, verdict->ooms, "call");
    }
    if (verdict->ooms != 0 && ooms != 0) {
        say_oom_size(page, oom[0]->bytes);
        say(page, " at %s", place_of(oom[0], oom, 0));
        if (oom[0]->cause != CW_CAUSE_DRIVER)
            say(page, ", %s", cw_cause_label(oom[0]->cause));
    }
    if (page->ending->others && verdict->ooms != 0)
        say(page, "; on the device now: %s", page->ending->others);
    if (verdict->sum.fallbacks != 0) {
        say(page, "%sserved from host memory: ", verdict->ooms != 0 ? "; " : "");
        say_size(page, verdict->fallback_bytes);
        say(page, " in ");
        say_count(page, verdict->sum.fallbacks, "request");
    }
    end_line(page);
}

static void say_leaked(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    const char *allocated = verdict->running != 0 ? " allocated" : "";

    say(page, verdict->running != 0 ? "still running, with " : "leaked ");
    if (verdict->leaked_blocks == 0) {
        say_size(page, verdict->all_leaked_bytes);
        say(page, "%s, none of it at the selected call sites", allocated);
        return;
    }
    say_size(page, verdict->leaked_bytes);
    if (verdict->leaked_bytes < verdict->all_leaked_bytes) {
        say(page, " (of ");
        say_size(page, verdict->all_leaked_bytes);
        say(page, " in all)");
    }
    say(page, "%s in ", allocated);
    say_count(page, verdict->leaked_blocks, "block");
    if (verdict->leak_sites > 1)
        say(page, " from %zu call sites", verdict->leak_sites);
}

/* Whether these are less than what leaked, so that nobody adds them up. */
static int are_some(const struct page *page, struct cw_run_finding *const *leak, unsigned leaks)
{
    uint64_t blocks = 0;

    for (unsigned i = 0; i < leaks; i++)
        blocks += leak[i]->blocks;
    return blocks < page->verdict->leaked_blocks;
}

/* A line for the sum, and one for each of the largest sites as far as there is room; one site needs
 * no sum. */
static void say_leaks(struct page *page, unsigned reserved)
{
    const struct cw_run_verdict *verdict = page->verdict;
    struct cw_run_finding *leak[CW_FINDINGS_SHOWN];
    unsigned leaks = cw_findings_rank(&verdict->findings, CW_FOUND_LEAK, leak);
    unsigned room = page->left > reserved ? page->left - reserved - 1 : 0; /* after the sum */
    int has_list = leaks > 1 && room > 0;

    if (verdict->leaked_blocks == 0 && verdict->all_leaked_bytes == 0 && verdict->running == 0)
        return;
    if (verdict->leaked_blocks != 0 || verdict->all_leaked_bytes != 0)
        say_leaked(page);
    else
        say(page, "still running");
    if (leaks != 0 && !has_list)
        say(page, "%s at %s", leaks > 1 ? ", most" : "", place_of(leak[0], leak, leaks));
    else if (has_list)
        say(page, are_some(page, leak, leaks < room ? leaks : room) ? ", the largest:" : ":");
    end_line(page);
    for (unsigned i = 0; has_list && i < leaks && i < room; i++) {
        say(page, "  ");
        say_size(page, leak[i]->bytes);
        say(page, " in ");
        say_count(page, leak[i]->blocks, "block");
        say(page, "  %s", place_of(leak[i], leak, leaks));
        end_line(page);
    }
}

static void say_killed(struct page *page)
{
    if (page->verdict->killed_bytes == 0)
        return;
    say(page, "ended by a signal: %" PRIu64 " process%s with ", page->verdict->killed,
        page->verdict->killed == 1 ? "" : "es");
    say_size(page, page->verdict->killed_bytes);
    say(page, " allocated, not counted as leaked");
    end_line(page);
}

static void say_growth(struct page *page)
{
    struct cw_run_finding *growth[CW_FINDINGS_SHOWN];
    unsigned growths = cw_findings_rank(&page->verdict->findings, CW_FOUND_GROWTH, growth);
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

/* The cache that kept most, or CW_CACHE_NONE. */
static unsigned largest_cache(const struct cw_run_verdict *verdict)
{
    unsigned most = CW_CACHE_NONE;

    for (unsigned id = CW_CACHE_NONE + 1; id < CW_CACHE_COUNT; id++)
        if (verdict->cache_bytes[id] > verdict->cache_bytes[most])
            most = id;
    return most;
}

/* How to look inside, unless the framework has told. */
static void say_cache(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    unsigned id = largest_cache(verdict);
    const struct cw_cache *cache = cw_cache_row(id);

    if (verdict->framework && verdict->framework_error[0])
        say(page, "%s cannot tell its tensors: %s", verdict->framework, verdict->framework_error);
    else if (!cache || verdict->framework)
        return;
    else
        say(page, "%s's cache kept ", cache->owner);
    if (!verdict->framework) {
        const char *how = cache->flag[0] ? cache->flag : cache->empties;

        say_size(page, verdict->cache_bytes[id]);
        say(page, " in %s%s%s", cache->keeps, how[0] ? "; to see inside, run with " : "", how);
    }
    end_line(page);
}

/* The largest findings of a kind: "200.0 MiB in 100 tensors at step train.py:7". */
static void say_amounts(struct page *page, enum cw_finding_kind kind)
{
    struct cw_run_finding *finding[CW_FINDINGS_SHOWN];
    unsigned findings = cw_findings_rank(&page->verdict->findings, kind, finding);
    char size[SIZE_MAX_BYTES], count[40], item[ITEM_MAX];

    for (unsigned i = 0; i < findings; i++) {
        count[0] = '\0';
        if (finding[i]->blocks != 0)
            snprintf(count, sizeof(count), " in %" PRIu64 " tensor%s", finding[i]->blocks,
                     cw_cli_plural(finding[i]->blocks));
        snprintf(item, sizeof(item), "%s%s at %s",
                 cw_format_size(size, sizeof(size), finding[i]->bytes), count,
                 place_of(finding[i], finding, findings));
        say_item(page, item);
    }
    end_line(page);
}

static void say_held(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    struct cw_run_finding *finding[CW_FINDINGS_SHOWN];

    if (cw_findings_rank(&verdict->findings, CW_FOUND_HELD, finding) == 0)
        return;
    say(page, "held until exit: ");
    if (finding[0]->bytes < verdict->held_bytes) {
        say_size(page, verdict->held_bytes);
        say(page, "; ");
    }
    say_amounts(page, CW_FOUND_HELD);
}

static int has_audit(const struct cw_run_verdict *verdict)
{
    return verdict->audited + verdict->unaudited != 0;
}

static void say_audited(struct page *page)
{
    uint64_t findings = page->verdict->audit_findings, dropped = page->verdict->audit_dropped;

    say(page, "CUPTI and cuwarden ");
    if (findings == 0) {
        say(page, "agree");
    } else {
        say(page, "differ in ");
        say_count(page, findings, "place");
    }
    if (dropped != 0) {
        say(page, ", with ");
        say_count(page, dropped, "record");
        say(page, " missing");
    }
    if (findings != 0)
        say(page, "; to see %s, run with --report=-", findings == 1 ? "it" : "them");
}

static void say_audit(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;

    if (!has_audit(verdict))
        return;
    say(page, "audit: ");
    if (verdict->audited != 0)
        say_audited(page);
    if (verdict->unaudited != 0)
        say(page, "%sincomplete: %s", verdict->audited != 0 ? "; " : "", verdict->audit_why);
    if (verdict->unaudited > 1)
        say(page, " (in %" PRIu64 " processes)", verdict->unaudited);
    end_line(page);
}

/* heading: before the first. */
static void say_holders(struct page *page, enum cw_finding_kind kind, const char *heading)
{
    struct cw_run_finding *holder[CW_FINDINGS_SHOWN];
    unsigned holders = cw_findings_rank(&page->verdict->findings, kind, holder);

    if (holders == 0)
        return;
    for (unsigned i = 0; i < holders; i++) {
        say(page, "%s", i == 0 ? heading : ", ");
        say_size(page, holder[i]->bytes);
        say(page, " %s", place_of(holder[i], holder, holders));
    }
    end_line(page);
}

/* The host's have a line where its peak is the larger one, and there is room. */
static void say_all_holders(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    int is_host_alone = verdict->gpu.bytes == 0;

    if (verdict->has_tensors) {
        say(page, "  in %s: ", verdict->framework);
        say_amounts(page, CW_FOUND_TENSORS);
    } else {
        say_holders(page, CW_FOUND_HOLDER, "  ");
    }
    if (verdict->host.bytes > verdict->gpu.bytes && (is_host_alone || page->left > 1))
        say_holders(page, CW_FOUND_HOST_HOLDER, is_host_alone ? "  " : "  on host: ");
}

static void say_device(struct page *page, const char *before, const struct cw_verdict_peak *peak,
                       const char *of)
{
    char device[CW_AMOUNT_MAX];

    if (peak->bytes == 0)
        return;
    say(page, "%s", before);
    say_size(page, peak->bytes);
    say(page, "%s on %s", of, cw_device_format(device, peak->device));
}

/* Beside a GPU's the host's is named from 1 % of it on: the few bytes in which a framework keeps a
 * flag are no news. */
static int is_host_named(const struct cw_run_verdict *verdict)
{
    return verdict->host.bytes >= verdict->gpu.bytes / 100;
}

/* The sum where it is of several; the GPU that had most, and the host. */
static void say_peak(struct page *page)
{
    const struct cw_run_verdict *verdict = page->verdict;
    uint64_t peak_bytes = page->ending->peak_bytes;
    const char *before = "", *of = "";

    if (peak_bytes == 0) {
        say(page, "no CUDA memory was allocated%s",
            verdict->has_graphs ? " outside graphs; memory that a graph allocates and frees "
                                  "itself is not counted"
                                : "");
        end_line(page);
        return;
    }
    say(page, "peak ");
    if (verdict->processes > 1) {
        say_size(page, peak_bytes);
        say(page, " in %" PRIu64 " processes", verdict->processes);
        before = ", the largest ";
    } else if ((verdict->has_several && verdict->gpu.bytes != peak_bytes) ||
               verdict->gpu.bytes + verdict->host.bytes == 0) {
        say_size(page, peak_bytes);
        before = ", ";
        of = " of it";
    }
    say_device(page, before, &verdict->gpu, of);
    if (is_host_named(verdict))
        say_device(page, verdict->gpu.bytes != 0 ? ", " : before, &verdict->host, "");
    say(page, ", in %s mode", verdict->has_pool ? "pool" : "track");
    end_line(page);
    say_all_holders(page);
}

void cw_verdict_print(const struct cw_run_verdict *verdict, const struct cw_verdict_ending *ending,
                      FILE *out)
{
    struct page page = {
        .verdict = verdict, .ending = ending, .out = out, .left = CW_RUN_VERDICT_LINES};
    struct cw_run_finding *growth[CW_FINDINGS_SHOWN];
    unsigned reserved;

    if (verdict->refused != 0)
        say_refused(&page);
    if (has_unseen(verdict))
        say_unseen(&page);
    if (verdict->processes == 0)
        return;
    /* What was killed, growth, the cache, what was held, the audit, the peak and its holders, the
     * next command. */
    reserved = (verdict->killed_bytes != 0) +
               (cw_findings_rank(&verdict->findings, CW_FOUND_GROWTH, growth) != 0) +
               (largest_cache(verdict) != CW_CACHE_NONE) + (verdict->held_bytes != 0) +
               has_audit(verdict) + 2 + (ending->next != NULL && !has_unseen(verdict));
    say_errors(&page);
    say_ooms(&page);
    say_leaks(&page, reserved);
    say_killed(&page);
    say_growth(&page);
    say_cache(&page);
    say_held(&page);
    say_audit(&page);
    say_peak(&page);
    if (!ending->next || has_unseen(verdict))
        return;
    say(&page, "next: %s", ending->next);
    end_line(&page);
}
