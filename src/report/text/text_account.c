/* SPDX-License-Identifier: MIT */
/* The account of an out-of-memory error. See text_account.h. No line exceeds 100 columns. */
#include "report/text/text_account.h"

#include "report/model/error_name.h"
#include "report/text/text_event.h"

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY, which the line says already */

void cw_text_refusal(const struct cw_text *text, const struct cw_refusal *refusal)
{
    char name[CW_ERROR_NAME_MAX];

    cw_text_call(text, refusal->site);
    if (!cw_report_site(text->model, refusal->site)) {
        cw_out_string(text->out, ", ");
        cw_text_device(text, refusal->device);
    }
    cw_out_string(text->out, ": ");
    if (refusal->bytes != 0) {
        cw_text_size(text, refusal->bytes);
        cw_out_char(text->out, ' ');
    }
    cw_out_string(text->out, "refused");
    if (refusal->code != OUT_OF_MEMORY)
        cw_out_printf(text->out, ", %s", cw_error_format(name, sizeof(name), refusal->code));
    if (refusal->cause == CW_CAUSE_INJECTED)
        cw_out_printf(text->out, " (%s)", cw_cause_label(refusal->cause));
    cw_text_times(text, refusal->count);
    cw_text_end_line(text);
    cw_text_call_stack(text, refusal->site);
    if (refusal->cause != CW_CAUSE_INJECTED)
        cw_text_line(text, "  why: %s", cw_cause_label(refusal->cause));
}

/* ---- the largest request that fits ---- */

static void put_fitting(const struct cw_text *text, const struct cw_report_oom *oom)
{
    if ((oom->is_fragmented && oom->fits >= oom->bytes) ||
        (oom->total_bytes == 0 && oom->limit == 0 && oom->cause != CW_CAUSE_BUDGET))
        return; /* unknown */
    cw_text_begin_line(text);
    if (oom->fits == 0) {
        cw_out_string(text->out, "  nothing fits");
    } else {
        cw_out_string(text->out, "  largest that fits: ");
        cw_text_size(text, oom->fits);
    }
    cw_text_end_line(text);
}

static void put_budget(const struct cw_text *text, const struct cw_report_oom *oom)
{
    const struct cw_snapshot_site *site = cw_report_site(text->model, oom->site);
    const char *label = cw_report_tag_label(text->model, site ? site->tag : 0);
    char size[24];

    cw_text_begin_line(text);
    cw_out_string(text->out, "  the budget of ");
    cw_text_clean(text, label[0] != '\0' ? label : "its tag", CW_TEXT_NAME_WIDTH);
    cw_out_printf(text->out, " is %s; ", cw_format_size(size, sizeof(size), oom->budget_bytes));
    cw_out_printf(text->out, "%s are live\n", cw_format_size(size, sizeof(size), oom->budget_used));
}

static void put_limits(const struct cw_text *text, const struct cw_report_oom *oom)
{
    char limit[24], held[24], least[24], others[24];

    if (oom->cause == CW_CAUSE_BUDGET)
        put_budget(text, oom);
    if (oom->limit != 0)
        cw_text_line(text, "  the memory limit is %s; %s counted as held",
                     cw_format_size(limit, sizeof(limit), oom->limit),
                     cw_format_size(held, sizeof(held), oom->held + oom->spare));
    if (oom->limit != 0 && oom->scope_others != 0)
        cw_text_line(text, "  it is for several processes: the others hold %s",
                     cw_format_size(others, sizeof(others), oom->scope_others));
    if (oom->min_free != 0)
        cw_text_line(text, "  CUWARDEN_MIN_FREE keeps %s free",
                     cw_format_size(least, sizeof(least), oom->min_free));
}

static void put_unserved(const struct cw_text *text, const struct cw_report_oom *oom)
{
    if (oom->unserved != CW_UNSERVED_UNASKED)
        cw_text_line(text, "  CUWARDEN_FALLBACK does not serve it: %s",
                     cw_unserved_label(oom->unserved));
}

static void put_fragmented(const struct cw_text *text, const struct cw_report_oom *oom)
{
    char free_size[24], size[24];

    if (oom->is_fragmented)
        cw_text_line(text, "  fragmented: the driver had %s free in total, but no %s in one piece",
                     cw_format_size(free_size, sizeof(free_size), oom->free_bytes),
                     cw_format_size(size, sizeof(size), oom->bytes));
}

/* ---- memory use of the device ---- */

unsigned cw_report_oom_parts(const struct cw_report_oom *oom,
                             struct cw_report_part part[CW_REPORT_PARTS])
{
    uint64_t used = oom->live + oom->idle;
    const struct cw_report_part all[CW_REPORT_PARTS] = {
        {"in use by this process", oom->live},
        {"rounding overhead", oom->held > used ? oom->held - used : 0},
        {"idle in the pool", oom->idle},
        {"unused in the driver's stream-ordered pools", oom->spare},
        {"other processes, contexts and modules", oom->others},
        {"free", oom->total_bytes != 0 ? oom->free_bytes : 0},
    };
    unsigned count = 0;

    for (unsigned i = 0; i < CW_REPORT_PARTS; i++)
        if (all[i].bytes != 0)
            part[count++] = all[i];
    return count;
}

static void put_part(const struct cw_text *text, const struct cw_report_part *part, uint64_t whole)
{
    char size[24], share[16];

    cw_text_begin_line(text);
    cw_out_printf(text->out, "    %10s", cw_format_size(size, sizeof(size), part->bytes));
    if (whole != 0)
        cw_out_printf(text->out, "  %6s",
                      cw_text_format_share(share, sizeof(share), part->bytes, whole));
    cw_out_printf(text->out, "  %s\n", part->label);
}

static void put_parts(const struct cw_text *text, const struct cw_report_oom *oom)
{
    struct cw_report_part part[CW_REPORT_PARTS];
    unsigned count = cw_report_oom_parts(oom, part);
    char total[24];

    if (oom->total_bytes == 0 && oom->held == 0)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  memory use of ");
    cw_text_device(text, oom->device);
    if (oom->total_bytes == 0)
        cw_out_string(text->out, ", this process only\n");
    else
        cw_out_printf(text->out, ", %s in total\n",
                      cw_format_size(total, sizeof(total), oom->total_bytes));
    for (unsigned i = 0; i < count; i++)
        put_part(text, &part[i], oom->total_bytes);
}

/* ---- holders ---- */

static void put_holder(const struct cw_text *text, const struct cw_report_oom *oom, unsigned index)
{
    const struct cw_snapshot_site *site = cw_report_site(text->model, oom->holder[index].site);
    char size[24], share[16];

    if (!site)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "    %10s  %6s  in ",
                  cw_format_size(size, sizeof(size), oom->holder[index].bytes),
                  cw_text_format_share(share, sizeof(share), oom->holder[index].bytes, oom->live));
    cw_text_count(text, oom->holder[index].blocks, "block");
    cw_out_string(text->out, "  ");
    cw_text_clean(text, site->api, CW_TEXT_NAME_WIDTH);
    if (!text->model->has_no_ids)
        cw_out_printf(text->out, "  site %08x", site->id);
    cw_text_end_line(text);
    cw_text_begin_line(text);
    cw_text_padding(text, 0, 12);
    cw_text_trail(text, site->stack, text->columns - 4);
    cw_text_end_line(text);
}

static void put_holders(const struct cw_text *text, const struct cw_report_oom *oom)
{
    char size[24], share[16];
    struct cw_text_list list;

    if (oom->holders == 0)
        return;
    cw_text_line(text, "  memory in use, by call site");
    cw_text_begin_list(text, &oom->holder->site, sizeof(*oom->holder), oom->holders, &list);
    for (unsigned i = 0; i < oom->holders; i++)
        put_holder(&list.text, oom, i);
    cw_text_end_list(&list);
    if (oom->rest_blocks == 0)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "    %10s  %6s  in ",
                  cw_format_size(size, sizeof(size), oom->rest_bytes),
                  cw_text_format_share(share, sizeof(share), oom->rest_bytes, oom->live));
    cw_text_count(text, oom->rest_blocks, "block");
    cw_out_string(text->out, " at all other sites\n");
}

void cw_text_account(const struct cw_text *text, const struct cw_report_oom *oom)
{
    put_fitting(text, oom);
    put_limits(text, oom);
    put_unserved(text, oom);
    put_fragmented(text, oom);
    put_parts(text, oom);
    put_holders(text, oom);
}
