/* SPDX-License-Identifier: MIT */
/*
 * Old blocks and events from the model: the sections OLD, OUT OF MEMORY, INVALID FREES and FATAL
 * ERRORS, and the changes at the end of PRESSURE. They read as the library's own.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/out.h"
#include "cli/text/form_whole.h"
#include "live/view.h"
#include "report/text/text_put.h"

#define NEWEST_MAX   10
#define FRAMES_EVENT 6
#define OLD_MAX      20
#define TRAIL_WIDTH  76
#define SHARE_ONE    10000

/* ---- words ---- */

static const char *rung_label(const char *name)
{
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++)
        if (strcmp(name, cw_rung_name(i)) == 0)
            return cw_rung_label(i);
    return name;
}

static const struct cw_model_site *site_at(const struct cw_say *to, uint32_t site)
{
    return site < to->model->sites ? &to->model->site[site] : NULL;
}

/* "cuMemAlloc, device 0" */
static void put_call(const struct cw_say *to, const struct cw_model_site *site)
{
    if (!site) {
        fputs("unknown call", to->out);
        return;
    }
    cw_say_clean(to, site->api, CW_SAY_NAME_MAX);
    fputs(", ", to->out);
    cw_say_device(to, site->device);
}

static void put_times(const struct cw_say *to, uint32_t count)
{
    if (count > 1)
        fprintf(to->out, ", %" PRIu32 " times", count);
}

/* ---- which events ---- */

struct newest {
    uint32_t event[NEWEST_MAX]; /* the oldest of them first */
    uint32_t count, of;
};

static void find_newest(const struct cw_model *model, const char *const *types,
                        struct newest *newest)
{
    *newest = (struct newest){.of = 0};
    for (uint32_t i = 0; i < model->events; i++) {
        const char *const *type = types;

        while (*type && strcmp(*type, model->event[i].type) != 0)
            type++;
        if (!*type || model->event[i].t_ns == 0)
            continue;
        newest->of++;
        if (newest->count == NEWEST_MAX)
            memmove(newest->event, newest->event + 1, --newest->count * sizeof(uint32_t));
        newest->event[newest->count++] = i;
    }
}

static void put_note(const struct cw_say *to, const struct newest *newest)
{
    if (newest->of > newest->count)
        fprintf(to->out, ", the last %" PRIu32 " of them", newest->count);
    fputc('\n', to->out);
}

static void begin_event(const struct cw_say *to, const struct cw_model_event *event)
{
    cw_say_begin(to);
    cw_say_time(to, event->t_ns);
    fputs("  ", to->out);
}

/* ---- the changes of PRESSURE ---- */

static void put_level(const struct cw_say *to, const struct cw_model_event *event)
{
    int by_limit = strcmp(event->share_of, "limit") == 0;
    char share[16];

    cw_text_format_share(share, sizeof(share), (uint64_t)llround(event->share * SHARE_ONE),
                         SHARE_ONE);
    cw_say_clean(to, event->level_before, CW_SAY_NAME_MAX);
    fputs(" -> ", to->out);
    cw_say_clean(to, event->level, CW_SAY_NAME_MAX);
    fprintf(to->out, ": %s of %s, ", share, by_limit ? "CUWARDEN_LIMIT" : "the device");
    cw_say_size(to, event->bytes);
    fputs(by_limit ? " held\n" : " in use\n", to->out);
}

static void put_trim(const struct cw_say *to, const struct cw_model_event *event)
{
    if (event->bytes != 0) {
        cw_say_size(to, event->bytes);
        fputc(' ', to->out);
    }
    fputs("served after all\n", to->out);
    cw_say_line(to, "        at first: %s", cw_form_cause_label(event->cause));
    cw_say_line(to, "        what helped: %s", rung_label(event->rung));
}

static void put_limit(const struct cw_say *to, const struct cw_model_event *event)
{
    if (event->bytes == 0) {
        fputs("limit lifted\n", to->out);
        return;
    }
    fputs("limit changed to ", to->out);
    cw_say_size(to, event->bytes);
    fputc('\n', to->out);
}

/* What was done in answer, and at which call. */
static void put_answer(const struct cw_say *to, const struct cw_model_event *event)
{
    const struct cw_model_site *site = site_at(to, event->site);
    size_t len = site ? strnlen(site->api, CW_TEXT_NAME_WIDTH) : 0;

    if (event->released != 0 || event->count > 1) {
        cw_say_begin(to);
        fputs("        ", to->out);
        cw_say_size(to, event->released);
        fputs(" given back", to->out);
        put_times(to, event->count);
        fputc('\n', to->out);
    }
    if (!site)
        return;
    cw_say_begin(to);
    fputs("        ", to->out);
    cw_say_clean(to, site->api, CW_TEXT_NAME_WIDTH);
    fputs("  ", to->out);
    cw_say_trail(to, site, TRAIL_WIDTH + 2 - len);
    fputc('\n', to->out);
}

static void put_change(const struct cw_say *to, const struct cw_model_event *event)
{
    cw_say_begin(to);
    fputs("    ", to->out);
    cw_say_time(to, event->t_ns);
    fputs("  ", to->out);
    cw_say_device(to, event->device);
    fputs("  ", to->out);
    if (strcmp(event->type, "pressure") == 0)
        put_level(to, event);
    else if (strcmp(event->type, "trim") == 0)
        put_trim(to, event);
    else
        put_limit(to, event);
    put_answer(to, event);
}

static int has_pressure(const struct cw_model *model)
{
    for (uint32_t i = 0; i < model->devices; i++)
        if (model->device[i].pressure.is_there)
            return 1;
    return 0;
}

void cw_form_changes(const struct cw_say *to)
{
    static const char *const types[] = {"pressure", "trim", "limit", NULL};
    struct newest newest;

    find_newest(to->model, types, &newest);
    if (newest.count == 0)
        return;
    if (!has_pressure(to->model))
        cw_say_heading(to, "PRESSURE\n");
    cw_say_line(to, "%s", "");
    cw_say_begin(to);
    fputs("  events: ", to->out);
    cw_say_count(to, newest.of, "change");
    put_note(to, &newest);
    for (uint32_t i = 0; i < newest.count; i++)
        put_change(to, &to->model->event[newest.event[i]]);
}

/* ---- OLD ---- */

static void put_old(const struct cw_say *to, const struct cw_model_old *old)
{
    const struct cw_model_site *site = &to->model->site[old->site];
    char size[24];

    cw_say_begin(to);
    fprintf(to->out, "  %10s in ", cw_format_size(size, sizeof(size), old->old.bytes));
    cw_say_count(to, old->old.count, "block");
    if (site->live.count > old->old.count)
        fprintf(to->out, " of %" PRIu64, site->live.count);
    fputs(old->old.count == 1 ? "  now " : "  up to ", to->out);
    cw_say_time(to, old->age_ns);
    fprintf(to->out, " old  site %08" PRIx32 "  ", site->id);
    cw_say_clean(to, site->api, CW_TEXT_NAME_WIDTH);
    fputs(", ", to->out);
    cw_say_device(to, site->device);
    if (site->tag[0]) {
        fputs("  tag: ", to->out);
        cw_say_clean(to, site->tag, CW_SAY_NAME_MAX);
    }
    fputc('\n', to->out);
    cw_say_begin(to);
    fprintf(to->out, "%13s", "");
    cw_say_trail(to, site, TRAIL_WIDTH);
    fputc('\n', to->out);
}

void cw_form_old(const struct cw_say *to, const uint8_t *is_shown)
{
    const struct cw_model *model = to->model;
    struct cw_model_amount sum = {0, 0}, rest = {0, 0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->olds; i++) {
        const struct cw_model_old *old = &model->old[i];

        if (old->site >= model->sites || !is_shown[old->site])
            continue;
        sum.count += old->old.count;
        sum.bytes += old->old.bytes;
    }
    if (sum.count == 0)
        return;
    cw_say_heading(to, "OLD  ");
    cw_say_amount(to, sum);
    fputs(" live for ", to->out);
    cw_say_time(to, model->old_ns);
    fputs(" and more (CUWARDEN_OLD)\n", to->out);
    for (uint32_t i = 0; i < model->olds; i++) {
        const struct cw_model_old *old = &model->old[i];

        if (old->site >= model->sites || !is_shown[old->site])
            continue;
        if (count++ < OLD_MAX)
            put_old(to, old);
        else
            rest.bytes += old->old.bytes;
    }
    if (count <= OLD_MAX)
        return;
    cw_say_begin(to);
    fputs("  ... ", to->out);
    cw_say_count(to, count - OLD_MAX, "more site");
    fputs(", ", to->out);
    cw_say_size(to, rest.bytes);
    fputc('\n', to->out);
}

/* ---- OUT OF MEMORY ---- */

struct refusal {
    uint32_t site, device, count;
    const char *cause;
    uint64_t t_ns, bytes;
    int code;
};

static void put_refusal(const struct cw_say *to, const struct refusal *refusal)
{
    const struct cw_model_site *site = site_at(to, refusal->site);
    int is_injected = strcmp(refusal->cause, cw_cause_name(CW_CAUSE_INJECTED)) == 0;

    cw_say_begin(to);
    cw_say_time(to, refusal->t_ns);
    fputs("  ", to->out);
    put_call(to, site);
    if (!site) {
        fputs(", ", to->out);
        cw_say_device(to, refusal->device);
    }
    fputs(": ", to->out);
    if (refusal->bytes != 0) {
        cw_say_size(to, refusal->bytes);
        fputc(' ', to->out);
    }
    fprintf(to->out, "refused (error %d)", refusal->code);
    if (is_injected)
        fprintf(to->out, " (%s)", cw_form_cause_label(refusal->cause));
    put_times(to, refusal->count);
    fputc('\n', to->out);
    if (site)
        cw_say_frames(to, site, FRAMES_EVENT);
    if (!is_injected) {
        cw_say_begin(to);
        fputs("  why: ", to->out);
        cw_say_clean(to, cw_form_cause_label(refusal->cause), CW_SAY_NAME_MAX);
        fputc('\n', to->out);
    }
}

static const struct cw_model_oom *find_account(const struct cw_model *model, uint32_t event)
{
    for (uint32_t i = 0; i < model->ooms; i++)
        if (model->oom[i].event == event)
            return &model->oom[i];
    return NULL;
}

static void put_oom_event(const struct cw_say *to, uint32_t index)
{
    const struct cw_model_event *event = &to->model->event[index];
    const struct cw_model_oom *oom = find_account(to->model, index);

    put_refusal(to, &(struct refusal){.site = event->site,
                                      .device = event->device,
                                      .count = event->count,
                                      .cause = event->cause,
                                      .t_ns = event->t_ns,
                                      .bytes = event->bytes,
                                      .code = event->code});
    if (oom) {
        cw_form_account(to, oom);
    } else if (event->total != 0) {
        char a[24], b[24];

        cw_say_line(to, "  at the last look %s of %s were free",
                    cw_format_size(a, sizeof(a), event->free),
                    cw_format_size(b, sizeof(b), event->total));
    }
}

static int is_listed(const struct newest *newest, uint32_t event)
{
    for (uint32_t i = 0; i < newest->count; i++)
        if (newest->event[i] == event)
            return 1;
    return 0;
}

/* The first account comes even if its call is not among the newest: what follows it is often but a
 * consequence. */
static void put_unlisted(const struct cw_say *to, const struct newest *newest)
{
    const struct cw_model_oom *first = NULL;
    uint32_t more = 0;

    for (uint32_t i = 0; i < to->model->ooms; i++) {
        if (is_listed(newest, to->model->oom[i].event))
            continue;
        if (first)
            more++;
        else
            first = &to->model->oom[i];
    }
    if (!first)
        return;
    put_refusal(to, &(struct refusal){.site = first->site,
                                      .device = first->device,
                                      .cause = first->cause,
                                      .t_ns = first->t_ns,
                                      .bytes = first->bytes,
                                      .code = first->code});
    cw_form_account(to, first);
    cw_say_begin(to);
    fputs("...", to->out);
    if (more != 0) {
        fputc(' ', to->out);
        cw_say_count(to, more, "more account");
        fputs(" of what was in use then: CUWARDEN_FORMAT=json", to->out);
    }
    fputc('\n', to->out);
}

struct calls {
    uint64_t all, injected, listed;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Events are kept up to a number, and counters of calls without a site are kept by device only. */
static struct calls count_calls(const struct cw_model *model, const struct newest *newest)
{
    struct calls calls = {.all = 0};
    uint64_t by_cause = 0;

    for (uint32_t i = 0; i < newest->count; i++)
        calls.listed += larger(model->event[newest->event[i]].count, 1);
    for (uint32_t i = 0; i < model->sites; i++)
        calls.all += model->site[i].oom;
    for (uint32_t i = 0; i < model->devices; i++) {
        for (unsigned k = 0; k < CW_CAUSE_COUNT; k++)
            by_cause += model->device[i].pressure.refused[k];
        calls.injected += model->device[i].pressure.refused[CW_CAUSE_INJECTED];
    }
    calls.all = larger(larger(calls.all, by_cause), larger(newest->of, calls.listed));
    return calls;
}

static void put_heading(const struct cw_say *to, const struct calls *calls)
{
    cw_say_heading(to, "OUT OF MEMORY  ");
    if (calls->all > calls->injected)
        cw_say_count(to, calls->all - calls->injected, "call");
    else
        fputs("none", to->out);
    if (calls->injected != 0) {
        fputs(", and ", to->out);
        cw_say_count(to, calls->injected, "call");
        fputs(" injected by CUWARDEN_FAIL", to->out);
    }
    if (calls->all > calls->listed)
        fprintf(to->out, ", the last %" PRIu64 " of them", calls->listed);
    fputc('\n', to->out);
}

void cw_form_ooms(const struct cw_say *to)
{
    static const char *const types[] = {"oom", NULL};
    struct newest newest;
    struct calls calls;

    find_newest(to->model, types, &newest);
    calls = count_calls(to->model, &newest);
    if (calls.all == 0)
        return;
    put_heading(to, &calls);
    put_unlisted(to, &newest);
    for (uint32_t i = 0; i < newest.count; i++)
        put_oom_event(to, newest.event[i]);
}

/* ---- INVALID FREES, FATAL ERRORS ---- */

static void put_invalid_free(const struct cw_say *to, const struct cw_model_event *event)
{
    const struct cw_model_site *site = site_at(to, event->site);
    const struct cw_model_site *first = site_at(to, event->first_site);

    begin_event(to, event);
    put_call(to, site);
    fputs(": ", to->out);
    cw_say_clean(to, event->address[0] ? event->address : "0x0", CW_SAY_NAME_MAX);
    fprintf(to->out, " refused (error %d)\n", event->code);
    if (site)
        cw_say_frames(to, site, FRAMES_EVENT);
    if (!first)
        return;
    cw_say_line(to, "    first freed at");
    cw_say_frames(to, first, FRAMES_EVENT);
}

static void put_invalid_frees(const struct cw_say *to)
{
    static const char *const types[] = {"invalid-free", NULL};
    struct newest newest;

    find_newest(to->model, types, &newest);
    if (newest.of < to->model->invalid_frees)
        newest.of =
            to->model->invalid_frees < UINT32_MAX ? (uint32_t)to->model->invalid_frees : UINT32_MAX;
    if (newest.of == 0)
        return;
    cw_say_heading(to, "INVALID FREES  ");
    cw_say_count(to, newest.of, "call");
    put_note(to, &newest);
    for (uint32_t i = 0; i < newest.count; i++)
        put_invalid_free(to, &to->model->event[newest.event[i]]);
}

void cw_form_errors(const struct cw_say *to)
{
    static const char *const types[] = {"fatal", NULL};
    struct newest newest;

    put_invalid_frees(to);
    find_newest(to->model, types, &newest);
    if (newest.count == 0)
        return;
    cw_say_heading(to, "FATAL ERRORS  ");
    cw_say_count(to, newest.of, "context");
    fputs(" unusable from then on", to->out);
    put_note(to, &newest);
    for (uint32_t i = 0; i < newest.count; i++) {
        const struct cw_model_event *event = &to->model->event[newest.event[i]];

        begin_event(to, event);
        fprintf(to->out, "error %d from ", event->code);
        put_call(to, site_at(to, event->site));
        fputc('\n', to->out);
    }
}
