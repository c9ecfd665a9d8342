/* SPDX-License-Identifier: MIT */
/* Events of the text report. See text_event.h. They name live sites: no snapshot is needed. */
#include "report/text/text_event.h"

#include <string.h>

#include "report/symbols/stack.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

void cw_newest_find(const struct cw_view *view, unsigned types, struct cw_newest *newest)
{
    uint32_t count = cw_view_count(view, CW_TABLE_EVENT);

    newest->count = 0;
    newest->of = 0;
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_event *event = cw_view_event(view, i);

        if (!event || event->type >= 32 || !(types >> event->type & 1) || event->t_ns == 0)
            continue;
        newest->of++;
        if (newest->count == CW_NEWEST_MAX) {
            memmove(newest->event, newest->event + 1, sizeof(newest->event) - sizeof(uint32_t));
            newest->count--;
        }
        newest->event[newest->count++] = i;
    }
}

void cw_text_newest_note(const struct cw_text *text, const struct cw_newest *newest)
{
    if (newest->of > newest->count)
        cw_out_printf(text->out, ", the last %u of them", newest->count);
    cw_text_end_line(text);
}

void cw_text_call(const struct cw_text *text, uint32_t live_site)
{
    const struct cw_live_site *site = cw_view_site(text->view, live_site);

    if (!site) {
        cw_out_string(text->out, "unknown call");
        return;
    }
    cw_text_clean(text, cw_view_text(text->view, site->api), CW_TEXT_NAME_MAX);
    cw_out_string(text->out, ", ");
    cw_text_device(text, site->device);
}

static uint32_t stack_of(const struct cw_view *view, uint32_t live_site)
{
    const struct cw_live_site *site = cw_view_site(view, live_site);

    return site ? site->stack : 0;
}

void cw_text_call_stack(const struct cw_text *text, uint32_t live_site)
{
    cw_text_stack(text, stack_of(text->view, live_site), CW_FRAMES_EVENT);
}

void cw_text_call_trail(const struct cw_text *text, uint32_t live_site, size_t width)
{
    cw_text_trail(text, stack_of(text->view, live_site), width);
}

void cw_text_times(const struct cw_text *text, const struct cw_live_event *event)
{
    uint32_t count = LOAD(event->count);

    if (count > 1)
        cw_out_printf(text->out, ", %u times", count);
}

void cw_text_want_site(const struct cw_report_source *source, uint32_t live_site)
{
    cw_symbols_want(source->symbols, stack_of(source->view, live_site));
}

void cw_text_want_newest(const struct cw_report_source *source, unsigned types)
{
    struct cw_newest newest;

    cw_newest_find(source->view, types, &newest);
    for (unsigned i = 0; i < newest.count; i++) {
        const struct cw_live_event *event = cw_view_event(source->view, newest.event[i]);

        if (!event)
            continue;
        cw_text_want_site(source, event->site);
        cw_text_want_site(source, event->other_site);
    }
}
