/* SPDX-License-Identifier: MIT */
/*
 * Names of tags as a report shows them: "forward", or "forward@NCCL" for one of the domain NCCL.
 */
#ifndef CW_REPORT_TAG_H
#define CW_REPORT_TAG_H

#include <stddef.h>
#include <stdint.h>

#include "live/view.h"

/* Room for any of them. */
#define CW_TAG_LABEL_MAX 256

/* Returns buf; "" for tag 0 and for unknown tags. */
const char *cw_tag_label(const struct cw_view *view, uint32_t tag, char *buf, size_t cap);

#endif
