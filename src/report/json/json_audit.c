/* SPDX-License-Identifier: MIT */
/* The audit in the JSON report. See json_audit.h. */
#include "report/json/json_audit.h"

#include "base/compiler.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_acquire)

static const char *name_of(unsigned class)
{
    static const char *const names[CW_AUDIT_CLASS_COUNT] = {
#define X(id, name, label, addressed) [CW_AUDIT_##id] = (name),
        CW_AUDIT_CLASSES(X)
#undef X
    };

    return class < CW_AUDIT_CLASS_COUNT ? names[class] : "unknown";
}

static const char *op_of(unsigned op)
{
    return op == CW_AUDIT_TAKEN ? "allocated" : "freed";
}

static void put_amount(struct cw_json *json, const char *key,
                       const struct cw_live_audit_amount *amount)
{
    cw_json_amount(json, key, amount->count, amount->bytes);
}

static void put_row(struct cw_json *json, const struct cw_live_audit_row *row, unsigned op)
{
    cw_json_open(json, op_of(op), '{');
    put_amount(json, "both", &row->both);
    cw_json_number(json, "both_cupti_bytes", row->tool_bytes);
    cw_json_number(json, "sizes_differ", row->differing);
    put_amount(json, "cupti_alone", &row->tool);
    put_amount(json, "cuwarden_alone", &row->ours);
    cw_json_close(json, '}');
}

static void put_finding(struct cw_json *json, const struct cw_live_audit_finding *finding)
{
    static const char *const sides[] = {[CW_AUDIT_TOOL_ALONE] = "cupti",
                                        [CW_AUDIT_OURS_ALONE] = "cuwarden",
                                        [CW_AUDIT_SIZES] = "both"};

    cw_json_element(json, '{');
    cw_json_string(json, "seen_by",
                   finding->side < CW_ARRAY_LEN(sides) ? sides[finding->side] : "unknown");
    cw_json_string(json, "kind", name_of(finding->class));
    cw_json_string(json, "operation", op_of(finding->op));
    if (finding->address != 0)
        cw_json_address(json, "address", finding->address);
    cw_json_number(json, "count", finding->count);
    cw_json_number(json, "bytes", finding->bytes);
    if (finding->side == CW_AUDIT_SIZES)
        cw_json_number(json, "cupti_bytes", finding->tool_bytes);
    cw_json_text(json, "source", finding->source);
    cw_json_close(json, '}');
}

static void put_variable(struct cw_json *json, const struct cw_live_audit_variable *variable)
{
    cw_json_element(json, '{');
    cw_json_text(json, "name", variable->name);
    cw_json_number(json, "bytes", variable->bytes);
    cw_json_truth(json, "managed", variable->is_managed);
    cw_json_close(json, '}');
}

static void put_done(struct cw_json *json, const struct cw_live_audit *audit)
{
    cw_json_open(json, "kinds", '{');
    for (unsigned class = 0; class < CW_AUDIT_CLASS_COUNT; class ++) {
        cw_json_open(json, name_of(class), '{');
        for (unsigned op = 0; op < CW_AUDIT_OP_COUNT; op++)
            put_row(json, &audit->row[class][op], op);
        cw_json_close(json, '}');
    }
    cw_json_close(json, '}');
    cw_json_number(json, "mismatches", audit->all_findings);
    cw_json_open(json, "findings", '[');
    for (uint32_t i = 0; i < audit->findings && i < CW_AUDIT_FINDINGS; i++)
        put_finding(json, &audit->finding[i]);
    cw_json_close(json, ']');
    cw_json_number(json, "dropped", audit->dropped);
    cw_json_number(json, "not_kept", audit->not_kept);
    cw_json_number(json, "excused_frees", audit->excused);
    put_amount(json, "static", &audit->fixed);
    cw_json_open(json, "variables", '[');
    for (uint32_t i = 0; i < audit->variables && i < CW_AUDIT_VARIABLES; i++)
        put_variable(json, &audit->variable[i]);
    cw_json_close(json, ']');
}

void cw_json_audit(struct cw_json *json)
{
    static const char *const names[] = {[CW_AUDIT_RUNNING] = "running",
                                        [CW_AUDIT_DONE] = "done",
                                        [CW_AUDIT_REFUSED] = "none",
                                        [CW_AUDIT_CUT] = "incomplete"};
    const struct cw_live_audit *audit = &cw_view_header(json->view)->audit;
    uint32_t status = LOAD(audit->status);

    if (status == CW_AUDIT_OFF || status >= CW_ARRAY_LEN(names))
        return;
    cw_json_open(json, "audit", '{');
    cw_json_string(json, "status", names[status]);
    cw_json_text(json, "why", audit->why);
    if (audit->version != 0)
        cw_json_number(json, "cupti_version", audit->version);
    if (status == CW_AUDIT_DONE)
        put_done(json, audit);
    cw_json_close(json, '}');
}
