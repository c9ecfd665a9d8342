/* SPDX-License-Identifier: MIT */
/* The account of an out of memory. See text_account.h. No line is wider than 100 columns. */
#include "report/text/text_account.h"

#include "report/text/text_event.h"

#define TRAIL_WIDTH 76

void cw_text_refusal(const struct cw_text *text, const struct cw_refusal *refusal)
{
    cw_text_call(text, refusal->site);
    if (!cw_view_site(text->view, refusal->site)) {
        cw_out_string(text->out, ", ");
        cw_text_device(text, refusal->device);
    }
    cw_out_string(text->out, ": ");
    if (refusal->bytes != 0) {
        cw_text_size(text, refusal->bytes);
        cw_out_char(text->out, ' ');
    }
    cw_out_printf(text->out, "refused (error %d)", refusal->code);
    if (refusal->cause == CW_CAUSE_INJECTED)
        cw_out_printf(text->out, " (%s)", cw_cause_label(refusal->cause));
    if (refusal->count > 1)
        cw_out_printf(text->out, ", %u times", refusal->count);
    cw_text_end_line(text);
    cw_text_call_stack(text, refusal->site);
    if (refusal->cause != CW_CAUSE_INJECTED)
        cw_text_line(text, "  why: %s", cw_cause_label(refusal->cause));
}

/* ---- what would have fitted ---- */

static void put_fitting(const struct cw_text *text, const struct cw_live_oom *oom)
{
    if (oom->total_bytes == 0 && oom->limit == 0)
        return; /* not known */
    cw_text_begin_line(text);
    if (oom->fits == 0) {
        cw_out_string(text->out, "  nothing would have fitted");
    } else {
        cw_out_string(text->out, "  would have fitted: at most ");
        cw_text_size(text, oom->fits);
    }
    cw_text_end_line(text);
}

static void put_limits(const struct cw_text *text, const struct cw_live_oom *oom)
{
    char limit[24], held[24], least[24];

    if (oom->limit != 0)
        cw_text_line(text, "  CUWARDEN_LIMIT is %s; %s counted as held",
                     cw_format_size(limit, sizeof(limit), oom->limit),
                     cw_format_size(held, sizeof(held), oom->held + oom->spare));
    if (oom->min_free != 0)
        cw_text_line(text, "  CUWARDEN_MIN_FREE keeps %s free",
                     cw_format_size(least, sizeof(least), oom->min_free));
}

static void put_unserved(const struct cw_text *text, const struct cw_live_oom *oom)
{
    if (oom->unserved != CW_UNSERVED_UNASKED)
        cw_text_line(text, "  CUWARDEN_FALLBACK does not serve it: %s",
                     cw_unserved_label(oom->unserved));
}

static void put_fragmented(const struct cw_text *text, const struct cw_live_oom *oom)
{
    char free_size[24], size[24];

    if (cw_oom_is_fragmented(oom))
        cw_text_line(text, "  fragmented: the driver had %s free in sum, and no %s in one piece",
                     cw_format_size(free_size, sizeof(free_size), oom->free_bytes),
                     cw_format_size(size, sizeof(size), oom->bytes));
}

/* ---- where the memory was ---- */

static void put_part(const struct cw_text *text, uint64_t bytes, uint64_t whole, const char *label)
{
    char size[24], share[16];

    if (bytes == 0)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "    %10s", cw_format_size(size, sizeof(size), bytes));
    if (whole != 0)
        cw_out_printf(text->out, "  %6s", cw_text_format_share(share, sizeof(share), bytes, whole));
    cw_out_printf(text->out, "  %s\n", label);
}

static void put_parts(const struct cw_text *text, const struct cw_live_oom *oom)
{
    uint64_t whole = oom->total_bytes, used = oom->live + oom->idle;
    char total[24];

    if (whole == 0 && oom->held == 0)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  where the memory of ");
    cw_text_device(text, oom->device);
    if (whole == 0)
        cw_out_string(text->out, " was, as far as it is this process's\n");
    else
        cw_out_printf(text->out, " was, %s in all\n",
                      cw_format_size(total, sizeof(total), oom->total_bytes));
    put_part(text, oom->live, whole, "in use by this process");
    put_part(text, oom->held > used ? oom->held - used : 0, whole,
             "by which its blocks were rounded up");
    put_part(text, oom->idle, whole, "idle in the pool");
    put_part(text, oom->spare, whole, "unused in the driver's stream-ordered pools");
    put_part(text, cw_oom_others(oom), whole, "other processes, contexts and modules");
    put_part(text, whole != 0 ? oom->free_bytes : 0, whole, "free");
}

/* ---- who held it ---- */

static void put_holder(const struct cw_text *text, const struct cw_live_oom *oom, unsigned index)
{
    uint32_t live_site = oom->holder[index].site;
    const struct cw_live_site *site = cw_view_site(text->view, live_site);
    const struct cw_snapshot_site *merged =
        text->snapshot ? cw_snapshot_find(text->snapshot, live_site) : NULL;
    char size[24], share[16];

    if (!site)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "    %10s  %6s  in ",
                  cw_format_size(size, sizeof(size), oom->holder[index].bytes),
                  cw_text_format_share(share, sizeof(share), oom->holder[index].bytes, oom->live));
    cw_text_count(text, oom->holder[index].blocks, "block");
    cw_out_string(text->out, "  ");
    cw_text_clean(text, cw_view_text(text->view, site->api), CW_TEXT_NAME_WIDTH);
    if (merged)
        cw_out_printf(text->out, "  site %08x", merged->id);
    cw_text_end_line(text);
    cw_text_begin_line(text);
    cw_text_padding(text, 0, 12);
    cw_text_call_trail(text, live_site, TRAIL_WIDTH);
    cw_text_end_line(text);
}

static void put_holders(const struct cw_text *text, const struct cw_live_oom *oom)
{
    unsigned count = cw_oom_holders(oom);
    char size[24], share[16];

    if (count == 0)
        return;
    cw_text_line(text, "  what was in use, by the place that allocated it");
    for (unsigned i = 0; i < count; i++)
        put_holder(text, oom, i);
    if (oom->rest_blocks == 0)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "    %10s  %6s  in ",
                  cw_format_size(size, sizeof(size), oom->rest_bytes),
                  cw_text_format_share(share, sizeof(share), oom->rest_bytes, oom->live));
    cw_text_count(text, oom->rest_blocks, "block");
    cw_out_string(text->out, " of all other places\n");
}

void cw_text_account(const struct cw_text *text, const struct cw_live_oom *oom)
{
    put_fitting(text, oom);
    put_limits(text, oom);
    put_unserved(text, oom);
    put_fragmented(text, oom);
    put_parts(text, oom);
    put_holders(text, oom);
}

void cw_text_account_want(const struct cw_report_source *source, const struct cw_live_oom *oom)
{
    for (unsigned i = 0; i < cw_oom_holders(oom); i++)
        cw_text_want_site(source, oom->holder[i].site);
}
