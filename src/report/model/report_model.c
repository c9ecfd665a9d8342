/* SPDX-License-Identifier: MIT */
/* What readers of a model share. See report_model.h. */
#include "report/model/report_model.h"

#include "base/out.h"

const char *cw_report_tag_label(const struct cw_report_model *model, uint32_t tag, char *buf,
                                size_t cap)
{
    static const struct cw_report_tag none = {"", ""};
    const struct cw_report_tag *found = tag < model->tags ? &model->tag[tag] : &none;

    cw_format(buf, cap, "%s%s%s", found->name, found->domain[0] != '\0' ? "@" : "", found->domain);
    return buf;
}

const struct cw_report_rule *cw_report_rule_at(const struct cw_report_model *model, uint32_t id)
{
    for (uint32_t i = 0; i < model->rules; i++)
        if (model->rule[i].id == id)
            return &model->rule[i];
    return NULL;
}
