/* SPDX-License-Identifier: MIT */
/* Text and JSON of a model, by the writers of the report layer. */
#include "cli/export/form.h"

#include <errno.h>

#include "report/json/json_write.h"
#include "report/text/report_text.h"

#define BUFFER_SIZE 65536

static int write_report(const struct cw_form_request *request, int is_text)
{
    char buffer[BUFFER_SIZE];
    struct cw_out out;

    if (fflush(request->out) != 0)
        return -1;
    cw_out_init(&out, fileno(request->out), buffer, sizeof(buffer));
    if (is_text)
        cw_report_text_write(request->model, CW_TEXT_FULL, request->sections, &out);
    else
        cw_report_json_write(request->model, &out);
    errno = cw_out_flush(&out);
    return errno == 0 ? 0 : -1;
}

int cw_form_text(const struct cw_form_request *request)
{
    return write_report(request, 1);
}

int cw_form_json(const struct cw_form_request *request)
{
    return write_report(request, 0);
}
