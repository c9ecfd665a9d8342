/* SPDX-License-Identifier: MIT */
/* The section AUDIT. See text_sections.h. */
#include "report/text/text_sections.h"

#define WHY_MAX 400

static const char *label_of(unsigned class)
{
    static const char *const labels[CW_AUDIT_CLASS_COUNT] = {
#define X(id, name, label, addressed) [CW_AUDIT_##id] = (label),
        CW_AUDIT_CLASSES(X)
#undef X
    };

    return class < CW_AUDIT_CLASS_COUNT ? labels[class] : "unknown memory";
}

static const char *op_of(unsigned op)
{
    return op == CW_AUDIT_TAKEN ? "allocated" : "freed";
}

/* ---- the figures ---- */

static void put_amount(const struct cw_text *text, const struct cw_live_audit_amount *amount,
                       const char *by)
{
    char size[24];

    cw_out_printf(text->out, "%ju (%s) by %s", (uintmax_t)amount->count,
                  cw_format_size(size, sizeof(size), amount->bytes), by);
}

static void put_row(const struct cw_text *text, const struct cw_live_audit_row *row, unsigned class,
                    unsigned op)
{
    if (row->both.count == 0 && row->tool.count == 0 && row->ours.count == 0)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "  %s, %s: ", label_of(class), op_of(op));
    put_amount(text, &row->both, "both");
    if (row->tool.count > 0) {
        cw_out_string(text->out, ", ");
        put_amount(text, &row->tool, "CUPTI alone");
    }
    if (row->ours.count > 0) {
        cw_out_string(text->out, ", ");
        put_amount(text, &row->ours, "cuwarden alone");
    }
    cw_text_end_line(text);
}

static void put_rows(const struct cw_text *text, const struct cw_report_audit *audit)
{
    for (unsigned class = 0; class < CW_AUDIT_CLASS_COUNT; class ++)
        for (unsigned op = 0; op < CW_AUDIT_OP_COUNT; op++)
            put_row(text, &audit->row[class][op], class, op);
}

/* ---- differences ---- */

static void put_finding(const struct cw_text *text, const struct cw_report_finding *finding)
{
    char size[24], tool_size[24];

    cw_text_begin_line(text);
    cw_out_string(text->out, "  ");
    if (finding->side == CW_AUDIT_SIZES)
        cw_out_string(text->out, "sizes differ: ");
    else
        cw_out_printf(text->out, "not seen by %s: ",
                      finding->side == CW_AUDIT_TOOL_ALONE ? "cuwarden" : "CUPTI");
    cw_format_size(size, sizeof(size), finding->bytes);
    cw_format_size(tool_size, sizeof(tool_size), finding->tool_bytes);
    cw_out_printf(text->out, "%s of %s %s", size, label_of(finding->class), op_of(finding->op));
    if (finding->address != 0)
        cw_out_printf(text->out, " at 0x%jx", (uintmax_t)finding->address);
    if (finding->count > 1)
        cw_out_printf(text->out, ", %ju times", (uintmax_t)finding->count);
    if (finding->side == CW_AUDIT_SIZES)
        cw_out_printf(text->out, ", %s by CUPTI", tool_size);
    if (finding->source[0] != '\0') {
        cw_out_string(text->out, ", requested by ");
        cw_text_clean(text, finding->source, CW_TEXT_NAME_MAX);
    }
    cw_text_end_line(text);
}

static void put_findings(const struct cw_text *text, const struct cw_report_audit *audit)
{
    for (uint32_t i = 0; i < audit->findings; i++)
        put_finding(text, &audit->finding[i]);
    if (audit->all_findings > audit->findings)
        cw_text_line(text, "  ... %ju more", (uintmax_t)(audit->all_findings - audit->findings));
}

/* ---- variables of modules ---- */

static void put_variables(const struct cw_text *text, const struct cw_report_audit *audit)
{
    if (audit->fixed.count == 0)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  static memory of modules: ");
    cw_text_size(text, audit->fixed.bytes);
    cw_out_string(text->out, " in ");
    cw_text_count(text, audit->fixed.count, "variable");
    cw_out_string(text->out, ", which no call allocates\n");
    for (uint32_t i = 0; i < audit->variables; i++) {
        const char *name = audit->variable[i].name;

        cw_text_begin_line(text);
        cw_out_string(text->out, "    ");
        cw_text_size(text, audit->variable[i].bytes);
        cw_out_string(text->out,
                      audit->variable[i].is_managed ? "  __managed__ " : "  __device__ ");
        cw_text_clean(text, name[0] != '\0' ? name : "?", CW_TEXT_NAME_MAX);
        cw_text_end_line(text);
    }
    if (audit->fixed.count > audit->variables)
        cw_text_line(text, "    ... %ju more", (uintmax_t)(audit->fixed.count - audit->variables));
}

/* ---- the section ---- */

static void put_incomplete(const struct cw_text *text, const struct cw_report_audit *audit)
{
    if (audit->dropped != 0)
        cw_text_line(text, "  CUPTI dropped %ju records, which may explain what it did not see",
                     (uintmax_t)audit->dropped);
    if (audit->not_kept != 0)
        cw_text_line(text, "  incomplete: out of memory for %ju records",
                     (uintmax_t)audit->not_kept);
}

static void put_done(const struct cw_text *text, const struct cw_report_audit *audit)
{
    cw_text_heading(text, "AUDIT  ");
    cw_out_printf(text->out, "CUPTI (version %u) ", audit->version);
    if (audit->all_findings == 0)
        cw_out_string(text->out, "and cuwarden agree");
    else {
        cw_out_string(text->out, "and cuwarden differ in ");
        cw_text_count(text, audit->all_findings, "place");
    }
    cw_text_end_line(text);
    put_rows(text, audit);
    put_findings(text, audit);
    put_incomplete(text, audit);
    put_variables(text, audit);
}

static void put_none(const struct cw_text *text, const char *what, const char *why)
{
    cw_text_heading(text, "AUDIT  ");
    cw_out_string(text->out, what);
    cw_text_clean(text, why, WHY_MAX);
    cw_text_end_line(text);
}

void cw_text_audit(const struct cw_text *text)
{
    const struct cw_report_audit *audit = &text->model->audit;

    switch (audit->status) {
    case CW_AUDIT_DONE:
        put_done(text, audit);
        break;
    case CW_AUDIT_RUNNING:
        put_none(text, "CUPTI reports when the process ends: no figures yet", "");
        break;
    case CW_AUDIT_REFUSED:
        put_none(text, "none: ", audit->why);
        break;
    case CW_AUDIT_CUT:
        put_none(text, "incomplete: ", audit->why);
        break;
    default:
        break;
    }
}
