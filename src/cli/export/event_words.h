/* SPDX-License-Identifier: MIT */
/* An event of the model, with the names of its values. */
#ifndef CW_CLI_EVENT_WORDS_H
#define CW_CLI_EVENT_WORDS_H

#include <stdint.h>

#include "report/model/report_model.h"

struct cw_event_words {
    const char *type, *level, *level_before, *cause; /* "" if not applicable */
    uint64_t t_ns, bytes;
    uint32_t site, count; /* site: index, or CW_SITE_NONE */
    uint32_t device;
};

/* The event's record must not be empty. */
struct cw_event_words cw_event_words(const struct cw_report_event *event);

#endif
