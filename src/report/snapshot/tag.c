/* SPDX-License-Identifier: MIT */
/* Names of tags. See tag.h. */
#include "report/snapshot/tag.h"

#include "base/out.h"

const char *cw_tag_label(const struct cw_view *view, uint32_t index, char *buf, size_t cap)
{
    const struct cw_live_tag *tag = index != 0 ? cw_view_tag(view, index) : NULL;
    const char *domain = tag ? cw_view_text(view, tag->domain) : "";

    cw_format(buf, cap, "%s%s%s", tag ? cw_view_text(view, tag->name) : "",
              domain[0] != '\0' ? "@" : "", domain);
    return buf;
}
