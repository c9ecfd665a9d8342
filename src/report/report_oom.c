/* SPDX-License-Identifier: MIT */
/* The dump of an out-of-memory error. See report_oom.h. Large data is in one job from cw_mem. */
#include "report/report_oom.h"

#include <errno.h>

#include "base/float_env.h"
#include "base/mem.h"
#include "report/model/model_live.h"
#include "report/symbols/symbol.h"
#include "report/text/text_account.h"
#include "report/text/text_put.h"

#define SITES (CW_OOM_HOLDERS + 1)

struct job {
    struct cw_symbols symbols;
    struct cw_snapshot_site site[SITES];
    struct cw_live_model live; /* its snapshot has only the named sites */
    struct cw_report_oom account;
    struct cw_out out;
    char buffer[(size_t)16 * 1024];
};

/* Adds a site of the layout to the job; returns its index there. */
static uint32_t add_site(struct job *job, uint32_t live_site)
{
    const struct cw_view *view = job->live.view;
    const struct cw_live_site *site = cw_view_site(view, live_site);
    struct cw_snapshot *snapshot = &job->live.model.snapshot;

    if (!site || snapshot->sites == SITES)
        return CW_SITE_NONE;
    job->site[snapshot->sites] = (struct cw_snapshot_site){
        .stack = site->stack, .device = site->device, .api = cw_view_text(view, site->api)};
    return snapshot->sites++;
}

static void read_account(struct job *job, const struct cw_live_oom *oom)
{
    job->live.model.snapshot.site = job->site;
    cw_live_model_begin(&job->live);
    job->live.model.has_no_ids = 1;
    cw_live_model_read_oom(oom, &job->live.model.snapshot, &job->account);
    job->account.site = add_site(job, oom->site);
    for (unsigned i = 0; i < job->account.holders; i++)
        job->account.holder[i].site = add_site(job, oom->holder[i].site);
}

static void put_dump(const struct cw_text *text, const struct cw_report_oom *oom, const char *file)
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

static int write_dump(struct job *job, const struct cw_report_request *request)
{
    struct cw_text text = {.model = &job->live.model,
                           .columns = CW_TEXT_WIDTH,
                           .snapshot = &job->live.model.snapshot,
                           .out = &job->out,
                           .form = CW_TEXT_FULL,
                           .want = cw_live_model_want,
                           .want_arg = &job->live};

    cw_out_init(&job->out, -1, job->buffer, sizeof(job->buffer));
    put_dump(&text, &job->account, request->destination);
    cw_live_model_resolve(&job->live);
    text.want = NULL;
    cw_out_init(&job->out, request->fd > 0 ? request->fd : 2, job->buffer, sizeof(job->buffer));
    put_dump(&text, &job->account, request->destination);
    return cw_out_flush(&job->out) == 0 ? 0 : -1;
}

int cw_report_oom(const struct cw_view *view, uint32_t oom_index,
                  const struct cw_report_request *request)
{
    const struct cw_live_oom *oom = cw_view_oom(view, oom_index);
    int saved = errno, result;
    struct cw_float_env env;
    struct job *job;

    if (!oom)
        return -1;
    job = cw_mem_alloc(sizeof(*job));
    if (!job) {
        errno = saved;
        return -1;
    }
    job->live.view = view;
    job->live.symbols = &job->symbols;
    /* If out of memory for names, frames show addresses. */
    cw_symbols_init(&job->symbols, view, NULL, NULL);
    env = cw_float_hold();
    read_account(job, oom);
    result = write_dump(job, request);
    cw_float_release(&env);
    cw_live_model_fini(&job->live);
    cw_symbols_fini(&job->symbols);
    cw_mem_free(job, sizeof(*job));
    errno = saved;
    return result;
}
