/* SPDX-License-Identifier: MIT */
/* The section OLD. See text_old.h. A line for the figures, and one for the place. */
#include "report/text/text_old.h"

#include "report/snapshot/age.h"

#define OLD_MAX     20
#define TRAIL_WIDTH 76

static void put_site(const struct cw_text *text, const struct cw_snapshot_site *site)
{
    char size[24], age[32];

    cw_text_begin_line(text);
    cw_out_printf(text->out, "  %10s in ", cw_format_size(size, sizeof(size), site->old_bytes));
    cw_text_count(text, site->old_blocks, "block");
    if (site->live_blocks > site->old_blocks)
        cw_out_printf(text->out, " of %ju", (uintmax_t)site->live_blocks);
    cw_out_printf(text->out, "  %s %s old  site %08x  ", site->old_blocks == 1 ? "now" : "up to",
                  cw_format_duration(age, sizeof(age), cw_oldest_age(text->snapshot, site)),
                  site->id);
    cw_text_site_call(text, site, CW_TEXT_NAME_WIDTH);
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
    cw_text_begin_line(text);
    cw_text_padding(text, 0, 13);
    cw_text_trail(text, site->stack, TRAIL_WIDTH);
    cw_text_end_line(text);
}

void cw_text_old(const struct cw_text *text)
{
    const struct cw_snapshot_list *old = &text->snapshot->old;
    uint32_t shown = old->count < OLD_MAX ? old->count : OLD_MAX;
    uint64_t bytes = old->bytes;

    if (old->count == 0)
        return;
    cw_text_heading(text, "OLD  ");
    cw_text_bytes_in_blocks(text, old->bytes, old->blocks);
    cw_out_string(text->out, " live for ");
    cw_text_time(text, text->snapshot->old_ns);
    cw_out_string(text->out, " and more (CUWARDEN_OLD)\n");
    for (uint32_t i = 0; i < shown; i++) {
        const struct cw_snapshot_site *site = &text->snapshot->site[old->site[i]];

        put_site(text, site);
        bytes -= site->old_bytes;
    }
    if (old->count == shown)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ... ");
    cw_text_count(text, old->count - shown, "more site");
    cw_out_string(text->out, ", ");
    cw_text_size(text, bytes);
    cw_text_end_line(text);
}
