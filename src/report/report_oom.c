/* SPDX-License-Identifier: MIT */
/* The dump of an out of memory. See report_oom.h. What is large lies in one job from cw_mem. */
#include "report/report_oom.h"

#include <errno.h>

#include "base/mem.h"
#include "report/symbols/symbol.h"
#include "report/text/text_account.h"
#include "report/text/text_event.h"

struct job {
    struct cw_symbols symbols;
    struct cw_report_source source;
    struct cw_out out;
    char buffer[(size_t)16 * 1024];
};

static void put_dump(const struct cw_text *text, const struct cw_live_oom *oom, const char *file)
{
    cw_text_begin_line(text);
    cw_out_string(text->out, "cuwarden: out of memory: ");
    cw_text_refusal(text, &(struct cw_refusal){.site = oom->site,
                                               .device = oom->device,
                                               .cause = oom->cause,
                                               .bytes = oom->bytes,
                                               .code = oom->code});
    cw_text_account(text, oom);
    if (file == NULL)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "cuwarden: report written to ");
    cw_text_clean(text, file, CW_PATH_MAX);
    cw_out_string(text->out, " (out of memory)\n");
}

static int write_dump(struct job *job, const struct cw_live_oom *oom,
                      const struct cw_report_request *request)
{
    struct cw_text text = {
        .source = &job->source, .view = job->source.view, .out = &job->out, .form = CW_TEXT_FULL};

    cw_text_want_site(&job->source, oom->site);
    cw_text_account_want(&job->source, oom);
    cw_symbols_resolve(&job->symbols);
    cw_out_init(&job->out, request->fd > 0 ? request->fd : 2, job->buffer, sizeof(job->buffer));
    put_dump(&text, oom, request->destination);
    return cw_out_flush(&job->out) == 0 ? 0 : -1;
}

int cw_report_oom(const struct cw_view *view, uint32_t oom_index,
                  const struct cw_report_request *request)
{
    const struct cw_live_oom *oom = cw_view_oom(view, oom_index);
    int saved = errno, result;
    struct job *job;

    if (!oom)
        return -1;
    job = cw_mem_alloc(sizeof(*job));
    if (!job) {
        errno = saved;
        return -1;
    }
    job->source = (struct cw_report_source){.view = view, .symbols = &job->symbols};
    /* Without memory for names the frames have addresses. */
    cw_symbols_init(&job->symbols, view, NULL, NULL);
    result = write_dump(job, oom, request);
    cw_symbols_fini(&job->symbols);
    cw_mem_free(job, sizeof(*job));
    errno = saved;
    return result;
}
