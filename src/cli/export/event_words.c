/* SPDX-License-Identifier: MIT */
/* Names in events. See event_words.h. */
#include "cli/export/event_words.h"

#include "live/view.h"

struct cw_event_words cw_event_words(const struct cw_report_event *event)
{
    int is_pressure = event->type == CW_EVENT_PRESSURE;
    int has_cause = event->type == CW_EVENT_OOM || event->type == CW_EVENT_TRIM;
    int is_error = event->type == CW_EVENT_INVALID_FREE || event->type == CW_EVENT_FATAL;

    return (struct cw_event_words){
        .type = cw_event_name(event->type),
        .level = is_pressure ? cw_level_name(event->level) : "",
        .level_before = is_pressure ? cw_level_name(event->level_before) : "",
        .cause = has_cause ? cw_cause_name(event->cause) : "",
        .t_ns = event->t_ns,
        .bytes = event->bytes,
        .site = event->site,
        .count = event->count != 0 ? event->count : 1,
        /* An error belongs to a call: without the call, the device is unknown. */
        .device = is_error && event->site == CW_SITE_NONE ? CW_DEVICE_HOST : event->device};
}
