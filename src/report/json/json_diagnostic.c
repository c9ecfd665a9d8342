/* SPDX-License-Identifier: MIT */
/* How far the account is complete, in the JSON report. See json_diagnostic.h. */
#include "report/json/json_diagnostic.h"

#include <stdatomic.h>

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

void cw_json_diagnostics(struct cw_json *json)
{
    char sentence[256];

    cw_json_number(json, "invalid_frees", LOAD(cw_view_header(json->view)->invalid_frees));
    cw_json_open(json, "diagnostics", '[');
    for (unsigned i = 0; i < CW_DIAGNOSTICS; i++) {
        if (cw_report_diagnostic(json->source, i, sentence, sizeof(sentence)) == 0)
            continue;
        cw_json_element(json, '{');
        cw_json_string(json, "level", "warning");
        cw_json_string(json, "text", sentence);
        cw_json_truth(json, "incomplete", i < CW_DIAGNOSTICS_LOSSES);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}
