/* SPDX-License-Identifier: MIT */
/* Strings of a model of a live layout. See live_parts.h. */
#include <string.h>

#include "base/utf8.h"
#include "report/model/live_parts.h"

const char *cw_live_model_copy(struct cw_live_model *live, const char *text, size_t len)
{
    const char *made = cw_pages_copy(&live->pages, text, len);

    return made ? made : "";
}

const char *cw_live_model_text(struct cw_live_model *live, const char *text)
{
    size_t cap;
    char *made;

    if (!text || cw_utf8_is_valid(text))
        return text;
    cap = CW_UTF8_REPLACEMENT_MAX * strlen(text) + 1;
    made = cw_pages_take(&live->pages, cap);
    if (!made)
        return "";
    cw_utf8_clean(made, cap, text);
    return made;
}

const char *cw_live_model_text_at(struct cw_live_model *live, uint32_t text)
{
    return cw_live_model_text(live, cw_view_text(live->view, text));
}
