/* SPDX-License-Identifier: MIT */
/* An account of out of memory, from the model: where the memory was. It reads as the library's own.
 */
#include <inttypes.h>
#include <string.h>

#include "base/out.h"
#include "cli/text/form_whole.h"
#include "live/view.h"
#include "report/text/text_put.h"

#define TRAIL_WIDTH 76

static void put_share(const struct cw_say *to, uint64_t part, uint64_t whole)
{
    char share[16];

    fprintf(to->out, "%6s", cw_text_format_share(share, sizeof(share), part, whole));
}

static void begin_part(const struct cw_say *to, uint64_t bytes)
{
    char size[24];

    cw_say_begin(to);
    fprintf(to->out, "    %10s", cw_format_size(size, sizeof(size), bytes));
}

const char *cw_form_cause_label(const char *name)
{
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        if (strcmp(name, cw_cause_name(i)) == 0)
            return cw_cause_label(i);
    return name; /* of a later version */
}

unsigned cw_form_oom_parts(const struct cw_model_oom *oom, struct cw_form_part part[CW_FORM_PARTS])
{
    uint64_t used = oom->live + oom->idle;
    const struct cw_form_part all[CW_FORM_PARTS] = {
        {"in use by this process", oom->live},
        {"by which its blocks were rounded up", oom->held > used ? oom->held - used : 0},
        {"idle in the pool", oom->idle},
        {"unused in the driver's stream-ordered pools", oom->spare},
        {"other processes, contexts and modules", oom->others},
        {"free", oom->total != 0 ? oom->free : 0},
    };
    unsigned count = 0;

    for (unsigned i = 0; i < CW_FORM_PARTS; i++)
        if (all[i].bytes != 0)
            part[count++] = all[i];
    return count;
}

static void put_part(const struct cw_say *to, const struct cw_form_part *part, uint64_t whole)
{
    begin_part(to, part->bytes);
    if (whole != 0) {
        fputs("  ", to->out);
        put_share(to, part->bytes, whole);
    }
    fprintf(to->out, "  %s\n", part->label);
}

static void put_parts(const struct cw_say *to, const struct cw_model_oom *oom)
{
    struct cw_form_part part[CW_FORM_PARTS];
    unsigned count = cw_form_oom_parts(oom, part);

    if (oom->total == 0 && oom->held == 0)
        return;
    cw_say_begin(to);
    fputs("  where the memory of ", to->out);
    cw_say_device(to, oom->device);
    if (oom->total != 0) {
        fputs(" was, ", to->out);
        cw_say_size(to, oom->total);
        fputs(" in all\n", to->out);
    } else {
        fputs(" was, as far as it is this process's\n", to->out);
    }
    for (unsigned i = 0; i < count; i++)
        put_part(to, &part[i], oom->total);
}

static const char *unserved_label(const char *name)
{
    for (unsigned i = 0; i < CW_UNSERVED_COUNT; i++)
        if (strcmp(name, cw_unserved_name(i)) == 0)
            return cw_unserved_label(i);
    return name; /* of a later version */
}

static void put_fitting(const struct cw_say *to, const struct cw_model_oom *oom)
{
    char a[24], b[24];

    if (oom->total != 0 || oom->limit != 0) {
        if (oom->fits == 0)
            cw_say_line(to, "  nothing would have fitted");
        else
            cw_say_line(to, "  would have fitted: at most %s",
                        cw_format_size(a, sizeof(a), oom->fits));
    }
    if (oom->limit != 0)
        cw_say_line(to, "  CUWARDEN_LIMIT is %s; %s counted as held",
                    cw_format_size(a, sizeof(a), oom->limit),
                    cw_format_size(b, sizeof(b), oom->held + oom->spare));
    if (oom->min_free != 0)
        cw_say_line(to, "  CUWARDEN_MIN_FREE keeps %s free",
                    cw_format_size(a, sizeof(a), oom->min_free));
    if (oom->fallback[0] != '\0')
        cw_say_line(to, "  CUWARDEN_FALLBACK does not serve it: %s", unserved_label(oom->fallback));
    if (oom->is_fragmented)
        cw_say_line(to, "  fragmented: the driver had %s free in sum, and no %s in one piece",
                    cw_format_size(a, sizeof(a), oom->free),
                    cw_format_size(b, sizeof(b), oom->bytes));
}

static void begin_holder(const struct cw_say *to, const struct cw_model_oom *oom,
                         struct cw_model_amount held)
{
    begin_part(to, held.bytes);
    fputs("  ", to->out);
    put_share(to, held.bytes, oom->live);
    fputs("  in ", to->out);
    cw_say_count(to, held.count, "block");
}

static void put_holder(const struct cw_say *to, const struct cw_model_oom *oom,
                       const struct cw_model_holder *holder)
{
    const struct cw_model_site *site =
        holder->site < to->model->sites ? &to->model->site[holder->site] : NULL;

    begin_holder(to, oom, holder->held);
    fputs("  ", to->out);
    cw_say_clean(to, holder->api, CW_TEXT_NAME_WIDTH);
    if (site)
        fprintf(to->out, "  site %08" PRIx32, site->id);
    fputc('\n', to->out);
    if (!site)
        return;
    cw_say_begin(to);
    fprintf(to->out, "%12s", "");
    cw_say_trail(to, site, TRAIL_WIDTH);
    fputc('\n', to->out);
}

void cw_form_account(const struct cw_say *to, const struct cw_model_oom *oom)
{
    put_fitting(to, oom);
    put_parts(to, oom);
    if (oom->holders == 0)
        return;
    cw_say_line(to, "  what was in use, by the place that allocated it");
    for (uint32_t i = 0; i < oom->holders; i++)
        put_holder(to, oom, &to->model->holder[oom->first_holder + i]);
    if (oom->rest.count == 0)
        return;
    begin_holder(to, oom, oom->rest);
    fputs(" of all other places\n", to->out);
}
