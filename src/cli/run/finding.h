/* SPDX-License-Identifier: MIT */
/* What verdict.c finds and verdict_text.c tells. */
#ifndef CW_CLI_FINDING_H
#define CW_CLI_FINDING_H

#include <stdint.h>

#include "cli/model/site_place.h"

#define CW_FINDINGS_SHOWN 3 /* of one kind */
#define CW_FINDINGS_SEEN  8 /* of one kind in one process: some may be in one place */

enum cw_finding_kind {
    CW_FOUND_FATAL,
    CW_FOUND_INVALID_FREE,
    CW_FOUND_OOM,
    CW_FOUND_LEAK,
    CW_FOUND_GROWTH,
    CW_FOUND_HOLDER,
    CW_FOUND_TENSORS, /* in a framework's cache at its peak */
    CW_FOUND_HELD     /* until the program ended */
};

struct cw_finding {
    uint32_t site; /* its id; of a line without one, a hash of it */
    uint8_t kind, cause;
    int32_t code;      /* the driver's; of CW_FOUND_INVALID_FREE enum cw_misuse */
    const char *cache; /* the framework that keeps it, or NULL */
    uint64_t bytes, blocks, count;
    double weight;   /* the heaviest come first */
    double slope;    /* bytes a second */
    uint64_t end_ns; /* of its process */
    char api[48];
    struct cw_site_place place;
};

#endif
