/* SPDX-License-Identifier: MIT */
/* The text report of a model: the report layer writes it, from what model_report.h makes of the
 * model. */
#include "cli/export/form.h"
#include "cli/model/model_report.h"
#include "cli/ui/message.h"

#define BUFFER_SIZE 65536

int cw_form_text(const struct cw_form_request *request)
{
    char buffer[BUFFER_SIZE];
    struct cw_out out;
    int rc;

    if (fflush(request->out) != 0)
        return -1;
    cw_out_init(&out, fileno(request->out), buffer, sizeof(buffer));
    rc = cw_model_report_write(request->model, request->selection, request->site, request->sites,
                               &out);
    if (rc != CW_MODEL_REPORT_NO_MEMORY)
        return rc;
    cw_cli_error("'%s': out of memory", request->model->source);
    return CW_FORM_TOLD;
}
