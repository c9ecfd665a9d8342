/* SPDX-License-Identifier: MIT */
/* An event of the model with the words that its type has. */
#ifndef CW_CLI_EVENT_WORDS_H
#define CW_CLI_EVENT_WORDS_H

#include <stdint.h>

#include "report/model/report_model.h"

struct cw_event_words {
    const char *type, *level, *level_before, *cause; /* "" for what its type does not have */
    uint64_t t_ns, bytes;
    uint32_t site, count; /* site: index, or CW_SITE_NONE */
    uint32_t device;
};

/* Of an event whose record is not empty. */
struct cw_event_words cw_event_words(const struct cw_report_event *event);

#endif
