/* SPDX-License-Identifier: MIT */
/* What is written through a cw_out: text and JSON, by the report layer, and suggestions. */
#include "cli/export/form.h"

#include <errno.h>

#include "cli/export/form_suggestions.h"
#include "report/json/json_write.h"
#include "report/text/report_text.h"

#define BUFFER_SIZE 65536

static void put_text(const struct cw_form_request *request, struct cw_out *out)
{
    struct cw_text_style style = {.form = CW_TEXT_FULL,
                                  .sections = request->sections,
                                  .columns = request->columns,
                                  .has_all_frames = request->has_all_frames};

    cw_report_text_write(request->model, &style, out);
}

static void put_json(const struct cw_form_request *request, struct cw_out *out)
{
    cw_report_json_write(request->model, out);
}

static void put_suggestions(const struct cw_form_request *request, struct cw_out *out)
{
    cw_suppressions_suggest(request->model, out);
}

static int write_report(const struct cw_form_request *request,
                        void (*put)(const struct cw_form_request *request, struct cw_out *out))
{
    char buffer[BUFFER_SIZE];
    struct cw_out out;

    if (fflush(request->out) != 0)
        return -1;
    cw_out_init(&out, fileno(request->out), buffer, sizeof(buffer));
    put(request, &out);
    errno = cw_out_flush(&out);
    return errno == 0 ? 0 : -1;
}

int cw_form_text(const struct cw_form_request *request)
{
    return write_report(request, put_text);
}

int cw_form_json(const struct cw_form_request *request)
{
    return write_report(request, put_json);
}

int cw_form_suggestions(const struct cw_form_request *request)
{
    return write_report(request, put_suggestions);
}
