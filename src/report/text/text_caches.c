/* SPDX-License-Identifier: MIT */
/* What is said of frameworks' caches in CACHES and GROWTH. See text_sections.h. */
#include "report/text/text_sections.h"

#include <string.h>

/* Whether the list has memory that the cache's setting is about. */
static int is_in(const struct cw_text *text, const struct cw_report_cache *cache,
                 const struct cw_snapshot_list *list)
{
    int is_host = strcmp(cache->memory, "host") == 0;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct cw_snapshot_site *site = &text->snapshot->site[list->site[i]];

        if (site->cache == cache->id && (site->device == CW_DEVICE_HOST) == is_host)
            return 1;
    }
    return 0;
}

/* A line of our words with two of a report, which may be anybody's. */
static void put_words(const struct cw_text *text, const char *before, const char *first,
                      const char *between, const char *second, const char *after)
{
    cw_text_begin_line(text);
    cw_out_string(text->out, before);
    cw_text_clean(text, first, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, between);
    cw_text_clean(text, second, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, after);
    cw_text_end_line(text);
}

void cw_text_cache_hints(const struct cw_text *text, const struct cw_snapshot_list *list)
{
    for (uint32_t i = 0; i < text->model->caches; i++) {
        const struct cw_report_cache *cache = &text->model->cache[i];

        if (!is_in(text, cache, list))
            continue;
        put_words(text, "  the cache of ", cache->owner, " keeps ", cache->keeps,
                  "; what the program still has is in it, too");
        if (cache->empties[0] == '\0')
            continue;
        cw_text_line(text, "  to see its blocks one by one, run it with");
        put_words(text, "    ", cache->empties, "", "", "");
    }
}

void cw_text_in_cache(const struct cw_text *text, uint32_t id)
{
    for (uint32_t i = 0; i < text->model->caches; i++) {
        if (text->model->cache[i].id != id)
            continue;
        cw_out_string(text->out, ", in the cache of ");
        cw_text_clean(text, text->model->cache[i].owner, CW_TEXT_NAME_MAX);
    }
}
