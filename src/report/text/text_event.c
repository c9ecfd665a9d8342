/* SPDX-License-Identifier: MIT */
/* Events of the text report. See text_event.h. */
#include "report/text/text_event.h"

#include <string.h>

void cw_newest_find(const struct cw_report_model *model, unsigned types, struct cw_newest *newest)
{
    newest->count = 0;
    newest->of = 0;
    for (uint32_t i = 0; i < model->events; i++) {
        const struct cw_report_event *event = &model->event[i];

        if (event->type >= 32 || !(types >> event->type & 1) || event->t_ns == 0)
            continue;
        newest->of++;
        if (newest->count == CW_NEWEST_MAX) {
            memmove(newest->event, newest->event + 1, sizeof(newest->event) - sizeof(uint32_t));
            newest->count--;
        }
        newest->event[newest->count++] = i;
    }
}

void cw_text_newest_note(const struct cw_text *text, uint64_t all, uint64_t recorded,
                         uint64_t listed)
{
    int is_short = all > recorded;

    if (is_short && recorded == 0)
        cw_out_string(text->out, ", none of them recorded");
    else if (is_short)
        cw_out_printf(text->out, ", %ju of them recorded", (uintmax_t)recorded);
    if (recorded > listed)
        cw_out_printf(text->out, ", the last %ju of %s", (uintmax_t)listed,
                      is_short ? "those" : "them");
    cw_text_end_line(text);
}

void cw_text_call(const struct cw_text *text, uint32_t site)
{
    const struct cw_snapshot_site *found = cw_report_site(text->model, site);

    if (found)
        cw_text_site_call(text, found, CW_TEXT_NAME_MAX);
    else
        cw_out_string(text->out, "unknown call");
}

void cw_text_call_stack(const struct cw_text *text, uint32_t site)
{
    const struct cw_snapshot_site *found = cw_report_site(text->model, site);

    cw_text_stack(text, found ? found->stack : 0, CW_FRAMES_EVENT);
}

void cw_text_times(const struct cw_text *text, uint32_t count)
{
    if (count > 1)
        cw_out_printf(text->out, ", %u times", count);
}
