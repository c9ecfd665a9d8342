/* SPDX-License-Identifier: MIT */
/* The section OLD. See text_sections.h. One line for the figures, and one for the place. */
#include "report/text/text_sections.h"

#define OLD_MAX 20

static void put_site(const struct cw_text *text, const struct cw_report_old *old)
{
    const struct cw_snapshot_site *site = cw_report_site(text->model, old->site);
    char size[24], age[32];

    if (!site)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "  %10s in ", cw_format_size(size, sizeof(size), old->bytes));
    cw_text_count(text, old->blocks, "block");
    if (site->live_blocks > old->blocks)
        cw_out_printf(text->out, " of %ju", (uintmax_t)site->live_blocks);
    cw_out_printf(text->out, "  %s %s old  site %08x  ", old->blocks == 1 ? "now" : "up to",
                  cw_format_duration(age, sizeof(age), old->oldest_age_ns), site->id);
    cw_text_site_call(text, site, CW_TEXT_NAME_WIDTH);
    cw_text_tag(text, "  ", site);
    cw_text_end_line(text);
    cw_text_begin_line(text);
    cw_text_padding(text, 0, 13);
    cw_text_trail(text, site->stack, text->columns - 4);
    cw_text_end_line(text);
}

void cw_text_old(const struct cw_text *text)
{
    const struct cw_report_model *model = text->model;
    uint32_t shown = model->olds < OLD_MAX ? model->olds : OLD_MAX;
    uint64_t bytes = 0, blocks = 0;
    struct cw_text_list list;

    for (uint32_t i = 0; i < model->olds; i++) {
        bytes += model->old[i].bytes;
        blocks += model->old[i].blocks;
    }
    if (model->olds == 0)
        return;
    cw_text_heading(text, "OLD  ");
    cw_text_bytes_in_blocks(text, bytes, blocks);
    cw_out_string(text->out, " live for ");
    cw_text_time(text, text->snapshot->old_ns);
    cw_out_string(text->out, " and more (CUWARDEN_OLD)\n");
    cw_text_begin_list(text, &model->old->site, sizeof(*model->old), shown, &list);
    for (uint32_t i = 0; i < shown; i++) {
        put_site(&list.text, &model->old[i]);
        bytes -= model->old[i].bytes;
    }
    cw_text_end_list(&list);
    if (model->olds == shown)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ... ");
    cw_text_count(text, model->olds - shown, "more site");
    cw_out_string(text->out, ", ");
    cw_text_size(text, bytes);
    cw_text_end_line(text);
}
