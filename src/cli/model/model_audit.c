/* SPDX-License-Identifier: MIT */
/* Records of the audit. See model_reader.h. What a later version adds to its words has no place. */
#include "cli/model/model_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* The index of a word, or `count`. */
static unsigned find(const char *const *words, unsigned count, const char *word)
{
    unsigned at = 0;

    while (at < count && strcmp(words[at], word) != 0)
        at++;
    return at;
}

void cw_reader_begin_audit(struct cw_reader *self)
{
    self->now.audit_status = "";
    self->model->audit = (struct cw_model_audit){.why = ""};
}

void cw_reader_end_audit(struct cw_reader *self)
{
    static const char *const names[] = {[CW_AUDIT_OFF] = "off",
                                        [CW_AUDIT_RUNNING] = "running",
                                        [CW_AUDIT_DONE] = "done",
                                        [CW_AUDIT_REFUSED] = "none",
                                        [CW_AUDIT_CUT] = "incomplete"};
    unsigned status = find(names, CW_ARRAY_LEN(names), self->now.audit_status);

    if (status < CW_ARRAY_LEN(names))
        atomic_store(&self->model->audit.of.status, status);
}

void cw_reader_begin_finding(struct cw_reader *self)
{
    self->now.finding =
        (struct finding_now){.side = "", .kind = "", .operation = "", .address = "", .source = ""};
}

void cw_reader_end_finding(struct cw_reader *self)
{
    static const char *const sides[] = {[CW_AUDIT_TOOL_ALONE] = "cupti",
                                        [CW_AUDIT_OURS_ALONE] = "cuwarden",
                                        [CW_AUDIT_SIZES] = "both"};
    static const char *const kinds[] = {
#define X(id, name, label, addressed) [CW_AUDIT_##id] = (name),
        CW_AUDIT_CLASSES(X)
#undef X
    };
    struct cw_model_audit *audit = &self->model->audit;
    struct finding_now *now = &self->now.finding;
    unsigned side = find(sides, CW_ARRAY_LEN(sides), now->side);

    if (side == CW_ARRAY_LEN(sides) || audit->of.findings == CW_AUDIT_FINDINGS)
        return;
    now->of.side = (uint8_t)side;
    now->of.class = (uint8_t)find(kinds, CW_AUDIT_CLASS_COUNT, now->kind);
    now->of.op = strcmp(now->operation, "freed") == 0 ? CW_AUDIT_GIVEN : CW_AUDIT_TAKEN;
    now->of.address = strtoull(now->address, NULL, 16);
    audit->source[audit->of.findings] = now->source;
    audit->of.finding[audit->of.findings++] = now->of;
}

void cw_reader_begin_variable(struct cw_reader *self)
{
    self->now.variable = (struct variable_now){.name = ""};
}

void cw_reader_end_variable(struct cw_reader *self)
{
    struct cw_model_audit *audit = &self->model->audit;

    if (audit->of.variables == CW_AUDIT_VARIABLES)
        return;
    audit->name[audit->of.variables] = self->now.variable.name;
    audit->of.variable[audit->of.variables++] = self->now.variable.of;
}
