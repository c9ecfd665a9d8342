/* SPDX-License-Identifier: MIT */
/* Pressure, old blocks, accounts and the audit for the page. See html_whole.h. */
#include "cli/export/html_whole.h"

#include <inttypes.h>
#include <stdlib.h>

#include "live/view.h"
#include "report/json/json_write.h"
#include "report/text/text_account.h"

/* Separates the values of a list. */
static void put_comma(FILE *out, uint32_t before)
{
    if (before > 0)
        fputc(',', out);
}

static int64_t row_of(const struct cw_html_writer *writer, uint32_t site)
{
    return site < writer->rows && writer->row[site] != UINT32_MAX ? (int64_t)writer->row[site] : -1;
}

static void put_row(const struct cw_html_writer *writer, uint32_t site)
{
    fprintf(writer->out, "%" PRId64, row_of(writer, site));
}

/* ---- pressure ---- */

static void put_device(FILE *out, const struct cw_snapshot_pressure_device *pressure,
                       uint32_t ordinal)
{
    double use = (double)pressure->highest_use / 10000;
    uint64_t refused = 0;

    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        refused += pressure->refused[i];
    fprintf(out, "{\"device\":%" PRIu32 ",\"held\":%" PRIu64 ",\"peakHeld\":%" PRIu64, ordinal,
            pressure->held, pressure->peak_held);
    fprintf(out, ",\"use\":%.6g,\"changes\":%" PRIu64 ",\"limited\":%" PRIu64, use < 1 ? use : 1,
            pressure->changes, pressure->limited);
    fprintf(out, ",\"refused\":%" PRIu64 ",\"fallbacks\":%" PRIu64 ",\"ns\":[", refused,
            pressure->fallback_bytes);
    for (unsigned i = 0; i < CW_LEVEL_COUNT; i++) {
        put_comma(out, i);
        fprintf(out, "%" PRIu64, pressure->level_ns[i]);
    }
    fputs("]}", out);
}

static void put_pressure(FILE *out, const struct cw_snapshot_pressure *pressure)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < CW_DEVICES; i++) {
        if (!pressure->device[i].used)
            continue;
        put_comma(out, count++);
        put_device(out, &pressure->device[i], i);
    }
}

/* Of all devices together, in the order in which the library tries them. */
static void put_rungs(FILE *out, const struct cw_snapshot_rung *rung)
{
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++) {
        put_comma(out, i);
        fputc('[', out);
        cw_html_put_text(out, cw_rung_label(i));
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", rung[i].tried, rung[i].helped,
                rung[i].released);
    }
}

/* ---- old blocks ---- */

static void put_old(const struct cw_html_writer *writer, const struct cw_report_model *model)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->olds; i++) {
        const struct cw_report_old *old = &model->old[i];

        if (row_of(writer, old->site) < 0)
            continue;
        put_comma(writer->out, count++);
        fputc('[', writer->out);
        put_row(writer, old->site);
        fprintf(writer->out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", old->blocks, old->bytes,
                old->oldest_age_ns);
    }
}

/* ---- accounts ---- */

static void put_parts(FILE *out, const struct cw_report_oom *oom)
{
    struct cw_report_part part[CW_REPORT_PARTS];
    unsigned count = cw_report_oom_parts(oom, part);

    fputs(",\"parts\":[", out);
    for (unsigned i = 0; i < count; i++) {
        put_comma(out, i);
        fputc('[', out);
        cw_html_put_text(out, part[i].label);
        fprintf(out, ",%" PRIu64 "]", part[i].bytes);
    }
    fputc(']', out);
}

static void put_holders(const struct cw_html_writer *writer, const struct cw_report_model *model,
                        const struct cw_report_oom *oom)
{
    fputs(",\"holders\":[", writer->out);
    for (uint32_t i = 0; i < oom->holders; i++) {
        const struct cw_report_holder *holder = &oom->holder[i];
        const struct cw_snapshot_site *site = cw_report_site(model, holder->site);

        put_comma(writer->out, i);
        fputc('[', writer->out);
        put_row(writer, holder->site);
        fputc(',', writer->out);
        cw_html_put_text(writer->out, site ? site->api : "");
        fprintf(writer->out, ",%" PRIu64 ",%" PRIu64 "]", holder->blocks, holder->bytes);
    }
    fprintf(writer->out, "],\"rest\":[%" PRIu64 ",%" PRIu64 "]", oom->rest_blocks, oom->rest_bytes);
}

static void put_account(const struct cw_html_writer *writer, const struct cw_report_model *model,
                        const struct cw_report_oom *oom)
{
    FILE *out = writer->out;

    fprintf(out, "{\"t\":%" PRIu64 ",\"device\":%u,\"site\":", oom->t_ns, oom->device);
    put_row(writer, oom->site);
    fprintf(out, ",\"bytes\":%" PRIu64 ",\"code\":%d,\"cause\":", oom->bytes, oom->code);
    cw_html_put_text(out, cw_cause_label(oom->cause));
    fprintf(out, ",\"fits\":%" PRIu64 ",\"limit\":%" PRIu64 ",\"minFree\":%" PRIu64, oom->fits,
            oom->limit, oom->min_free);
    fprintf(out, ",\"live\":%" PRIu64 ",\"free\":%" PRIu64 ",\"total\":%" PRIu64, oom->live,
            oom->free_bytes, oom->total_bytes);
    fprintf(out, ",\"fragmented\":%s", oom->is_fragmented ? "true" : "false");
    put_parts(out, oom);
    put_holders(writer, model, oom);
    fputc('}', out);
}

/* ---- the audit ---- */

/* JSON for a script's element: only texts have a '<', which could end it. */
static void put_escaped(FILE *out, const char *json, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (json[i] == '<')
            fputs("\\u003c", out);
        else
            putc_unlocked(json[i], out);
}

/* As the report has it; null if there is none, or no memory for it. */
static void put_audit(FILE *out, const struct cw_report_model *model)
{
    struct cw_out json;
    char *text = NULL;
    size_t len = 0;

    for (int pass = 0; pass < 2 && model->audit.status != CW_AUDIT_OFF; pass++) {
        cw_out_init(&json, -1, text, len);
        cw_report_json_write_record(model, CW_JSON_RECORD_audit, &model->audit, &json);
        len = (size_t)json.total;
        if (pass == 0 && !(text = malloc(len)))
            break;
    }
    if (text)
        put_escaped(out, text, len);
    else
        fputs("null", out);
    free(text);
}

void cw_html_put_whole(const struct cw_html_writer *writer, const struct cw_report_model *model)
{
    FILE *out = writer->out;

    fputs("{\"pressure\":[", out);
    put_pressure(out, &model->snapshot.pressure);
    fputs("],\"rungs\":[", out);
    put_rungs(out, model->snapshot.pressure.all.rung);
    fprintf(out, "],\"oldNs\":%" PRIu64 ",\"old\":[", model->snapshot.old_ns);
    put_old(writer, model);
    fputs("],\"ooms\":[", out);
    for (uint32_t i = 0; i < model->ooms; i++) {
        put_comma(out, i);
        put_account(writer, model, &model->oom[i]);
    }
    fputs("],\"audit\":", out);
    put_audit(out, model);
    putc('}', out);
}
