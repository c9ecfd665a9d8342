/* SPDX-License-Identifier: MIT */
/*
 * The section OUT OF MEMORY: the newest refused calls, each with its account of the device's memory
 * if there is one. The process's first account is always shown, because later errors are often mere
 * consequences of it.
 */
#include "report/text/text_sections.h"

#include "report/text/text_account.h"
#include "report/text/text_event.h"

#define OOM_EVENTS (1u << CW_EVENT_OOM)

/* The event's account, or NULL. */
static const struct cw_report_oom *find_account(const struct cw_report_model *model, uint32_t event)
{
    for (uint32_t i = 0; i < model->ooms; i++)
        if (model->oom[i].event == event)
            return &model->oom[i];
    return NULL;
}

static int is_listed(const struct cw_newest *newest, uint32_t event)
{
    for (unsigned i = 0; i < newest->count; i++)
        if (newest->event[i] == event)
            return 1;
    return 0;
}

/* The first account if its event is not listed, else NULL; and the number of other unlisted. */
static const struct cw_report_oom *find_unlisted(const struct cw_report_model *model,
                                                 const struct cw_newest *newest, uint32_t *out_more)
{
    const struct cw_report_oom *first = NULL;

    *out_more = 0;
    for (uint32_t i = 0; i < model->ooms; i++) {
        if (is_listed(newest, model->oom[i].event))
            continue;
        if (first)
            ++*out_more;
        else
            first = &model->oom[i];
    }
    return first;
}

static void put_sample(const struct cw_text *text, const struct cw_report_event *event)
{
    if (event->total_bytes == 0)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  when last sampled, ");
    cw_text_size(text, event->free_bytes);
    cw_out_string(text->out, " of ");
    cw_text_size(text, event->total_bytes);
    cw_out_string(text->out, " were free\n");
}

static void put_event(const struct cw_text *text, uint32_t index)
{
    const struct cw_report_event *event = &text->model->event[index];
    const struct cw_report_oom *oom = find_account(text->model, index);

    cw_text_begin_line(text);
    cw_text_time(text, event->t_ns);
    cw_out_string(text->out, "  ");
    cw_text_refusal(text, &(struct cw_refusal){.site = event->site,
                                               .device = event->device,
                                               .cause = event->cause,
                                               .bytes = event->bytes,
                                               .code = event->code,
                                               .count = event->count});
    if (oom)
        cw_text_account(text, oom);
    else
        put_sample(text, event);
}

static void put_unlisted(const struct cw_text *text, const struct cw_report_oom *oom, uint32_t more)
{
    cw_text_begin_line(text);
    cw_text_time(text, oom->t_ns);
    cw_out_string(text->out, "  ");
    cw_text_refusal(text, &(struct cw_refusal){.site = oom->site,
                                               .device = oom->device,
                                               .cause = oom->cause,
                                               .bytes = oom->bytes,
                                               .code = oom->code});
    cw_text_account(text, oom);
    cw_text_begin_line(text);
    cw_out_string(text->out, "...");
    if (more != 0) {
        cw_out_char(text->out, ' ');
        cw_text_count(text, more, "more account");
        cw_out_string(text->out, " of what was in use then: CUWARDEN_FORMAT=json");
    }
    cw_text_end_line(text);
}

/* ---- the heading ---- */

struct calls {
    uint64_t all, injected;
    uint64_t recorded; /* calls of all events */
    uint64_t listed;   /* of the newest */
};

static void keep_larger(uint64_t *number, uint64_t other)
{
    if (*number < other)
        *number = other;
}

/* The number of events is limited. */
static struct calls count_calls(const struct cw_text *text, const struct cw_newest *newest)
{
    struct calls calls = {.all = cw_report_oom_calls(text->model),
                          .injected = text->snapshot->pressure.all.refused[CW_CAUSE_INJECTED]};

    for (uint32_t i = 0; i < text->model->events; i++) {
        const struct cw_report_event *event = &text->model->event[i];
        uint64_t count = event->count > 1 ? event->count : 1;

        if (event->type != CW_EVENT_OOM || event->t_ns == 0)
            continue;
        calls.recorded += count;
        calls.listed += is_listed(newest, i) ? count : 0;
    }
    keep_larger(&calls.all, calls.recorded);
    return calls;
}

static void put_heading(const struct cw_text *text, const struct calls *calls)
{
    cw_text_heading(text, "OUT OF MEMORY  ");
    if (calls->all > calls->injected)
        cw_text_count(text, calls->all - calls->injected, "call");
    else
        cw_out_string(text->out, "none");
    if (calls->injected != 0) {
        cw_out_string(text->out, ", and ");
        cw_text_count(text, calls->injected, "call");
        cw_out_string(text->out, " injected by CUWARDEN_FAIL");
    }
    cw_text_newest_note(text, calls->all, calls->recorded, calls->listed);
}

void cw_text_ooms(const struct cw_text *text)
{
    const struct cw_report_oom *unlisted;
    struct cw_newest newest;
    struct calls calls;
    uint32_t more;

    cw_newest_find(text->model, OOM_EVENTS, &newest);
    calls = count_calls(text, &newest);
    if (calls.all == 0)
        return;
    put_heading(text, &calls);
    unlisted = find_unlisted(text->model, &newest, &more);
    if (unlisted)
        put_unlisted(text, unlisted, more);
    for (unsigned i = 0; i < newest.count; i++)
        put_event(text, newest.event[i]);
}
