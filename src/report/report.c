/* SPDX-License-Identifier: MIT */
/*
 * Composes a report and delivers it to its destination. See report.h.
 *
 * Everything large is in one job, allocated by cw_mem: this may run on the alternate stack of a
 * signal handler. If the destination fails, the text goes to the request's file descriptor, so that
 * results are never lost.
 */
#include "report/report.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/reason.h"
#include "report/snapshot/age.h"
#include "report/path/path.h"
#include "report/json/report_json.h"
#include "report/model/model_live.h"
#include "report/text/report_text.h"
#include "report/symbols/source.h"
#include "report/leaks/suggest.h"
#include "report/leaks/suppress.h"

#define BUFFER_SIZE ((size_t)64 * 1024)
#define OLD_NS      (UINT64_C(60) * 1000000000)

struct job {
    struct cw_snapshot snapshot;
    struct cw_symbols symbols;
    struct cw_rules rules;
    struct cw_report_file file;
    struct cw_path_values values;
    struct cw_report_source source;
    struct cw_live_model model;
    const struct cw_report_request *request;
    char buffer[BUFFER_SIZE];
};

enum content { CONTENT_SHORT, CONTENT_TEXT, CONTENT_JSON, CONTENT_SUGGESTIONS };

static int request_fd(const struct cw_report_request *request)
{
    return request->fd > 0 ? request->fd : 2;
}

static int goes_to_fd(const struct cw_report_request *request)
{
    return !request->destination || request->destination[0] == '\0' ||
           strcmp(request->destination, "-") == 0;
}

static void write_text(struct job *job, enum cw_text_form form, struct cw_out *out)
{
    struct cw_live_model *live = &job->model;

    cw_live_model_init(live, &job->source);
    cw_report_text_want(&live->model, form, cw_live_model_want, live);
    cw_live_model_resolve(live);
    cw_report_text_write(&live->model, form, out);
    cw_live_model_fini(live);
}

/* Resolves the names that it needs. The errno, or 0. */
static int write_content(struct job *job, enum content content, int fd)
{
    struct cw_out out;

    cw_out_init(&out, fd, job->buffer, sizeof(job->buffer));
    switch (content) {
    case CONTENT_JSON:
        cw_symbols_want_all(&job->symbols);
        cw_symbols_resolve(&job->symbols);
        cw_report_json_write(&job->source, &out);
        break;
    case CONTENT_SUGGESTIONS:
        cw_suppressions_want(&job->source);
        cw_symbols_resolve(&job->symbols);
        cw_suppressions_suggest(&job->source, &out);
        break;
    default:
        write_text(job, content == CONTENT_SHORT ? CW_TEXT_SHORT : CW_TEXT_FULL, &out);
        break;
    }
    return cw_out_flush(&out);
}

static int write_file(struct job *job, enum content content, const char *suffix)
{
    const char *pattern = job->request->destination;
    int error = cw_report_file_open(&job->file, pattern, suffix, &job->values);

    if (error == 0)
        error = write_content(job, content, job->file.fd);
    error = cw_report_file_close(&job->file, error);
    if (error == 0)
        return 0;
    cw_log(CW_LOG_WARN, "cannot write the report to \"%s\": %s (errno %d)%s",
           job->file.path[0] ? job->file.path : pattern, cw_reason(error), error,
           job->request->is_dump ? "" : "; it goes to stderr instead");
    return error;
}

static int write_files(struct job *job)
{
    enum cw_report_form form = job->request->form;
    int failed = 0;

    if (form == CW_REPORT_SHORT_IF_LEAKED)
        failed = write_file(job, CONTENT_SHORT, "");
    else if (form != CW_REPORT_JSON)
        failed = write_file(job, CONTENT_TEXT, "");
    if (!failed && (form == CW_REPORT_JSON || form == CW_REPORT_BOTH))
        failed = write_file(job, CONTENT_JSON, form == CW_REPORT_BOTH ? ".json" : "");
    if (!failed)
        return 0;
    if (!job->request->is_dump)
        write_content(job, CONTENT_TEXT, request_fd(job->request));
    return -1;
}

static int write_to_fd(struct job *job)
{
    enum cw_report_form form = job->request->form;
    int fd = request_fd(job->request);
    int error = 0;

    if (form == CW_REPORT_SHORT_IF_LEAKED)
        return write_content(job, CONTENT_SHORT, fd) == 0 ? 0 : -1;
    if (form == CW_REPORT_SUGGESTIONS)
        return write_content(job, CONTENT_SUGGESTIONS, fd) == 0 ? 0 : -1;
    if (form != CW_REPORT_JSON)
        error = write_content(job, CONTENT_TEXT, fd);
    if (error == 0 && form != CW_REPORT_TEXT)
        error = write_content(job, CONTENT_JSON, fd);
    return error == 0 ? 0 : -1;
}

void cw_report_path_values(const struct cw_view *view, char *const *env, struct cw_path_values *out)
{
    const struct cw_live_header *header = cw_view_header(view);

    *out = (struct cw_path_values){.pid = header->pid,
                                   .host = cw_view_text(view, header->host),
                                   .program = cw_view_text(view, header->exe),
                                   .start_seconds = header->start_realtime_ns / 1000000000,
                                   .rank = cw_view_text(view, header->rank),
                                   .env = env};
}

static void prepare(struct job *job, const struct cw_view *view,
                    const struct cw_report_request *request)
{
    job->request = request;
    job->source = (struct cw_report_source){.view = view,
                                            .snapshot = &job->snapshot,
                                            .symbols = &job->symbols,
                                            .rules = &job->rules,
                                            .process = request->process,
                                            .version = request->version};
    cw_report_path_values(view, request->env, &job->values);
    /* If out of memory for names, the report has addresses. */
    cw_symbols_init(&job->symbols, view, request->demangle, request->demangle_arg);
    cw_symbols_use(&job->symbols, request->lines, request->sysroot);
}

/* For a running process the current time; otherwise the last time recorded. */
static uint64_t moment(const struct job *job, const struct cw_view *view)
{
    uint64_t start_ns = cw_view_header(view)->start_ns;
    uint64_t now_ns = cw_clock_ns();

    if (job->request->process != CW_REPORT_PROCESS_ALIVE)
        return job->snapshot.duration_ns;
    return now_ns > start_ns ? now_ns - start_ns : job->snapshot.duration_ns;
}

/* Steps that need names and the user's file: classes and, from them, whether there is anything to
 * report. */
static void classify(struct job *job, const struct cw_view *view)
{
    uint64_t old_ns = job->request->old_ns != 0 ? job->request->old_ns : OLD_NS;
    uint64_t now_ns = moment(job, view);

    cw_rules_init(&job->rules, job->request->suppressions);
    cw_leak_want(&job->snapshot, &job->symbols);
    cw_symbols_resolve(&job->symbols);
    cw_snapshot_growth_read(&job->snapshot, now_ns);
    cw_leak_classify(&job->snapshot, &job->symbols, &job->rules);
    cw_snapshot_ages(&job->snapshot, now_ns, old_ns);
}

static int has_leaks(const struct cw_snapshot *snapshot)
{
    return snapshot->leaks.count > 0;
}

/* With names and rules, a separately listed site may become a leak, and vice versa. */
static int may_have_leaks(const struct cw_snapshot *snapshot)
{
    return has_leaks(snapshot) || snapshot->library.count > 0 || snapshot->caches.count > 0;
}

static int write_job(struct job *job, const struct cw_view *view,
                     const struct cw_report_request *request)
{
    int result = 0;

    prepare(job, view, request);
    classify(job, view);
    if (request->form != CW_REPORT_SHORT_IF_LEAKED || has_leaks(&job->snapshot))
        result = goes_to_fd(request) ? write_to_fd(job) : write_files(job);
    cw_rules_fini(&job->rules);
    cw_symbols_fini(&job->symbols);
    return result;
}

/* A leak is memory that a site holds, or that was released with its context. Most programs end
 * without any, which needs no snapshot. */
static int has_leftovers(const struct cw_view *view)
{
    uint32_t count = cw_view_count(view, CW_TABLE_SITE);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_site *site = cw_view_site(view, i);
        struct cw_site_sums sums;

        if (site == NULL)
            continue;
        cw_view_site_sums(site, &sums);
        if (sums.live_blocks != 0 || sums.reclaimed != 0)
            return 1;
    }
    return 0;
}

int cw_report_write(const struct cw_view *view, const struct cw_report_request *request)
{
    struct job *job;
    int result = 0;

    if (request->form == CW_REPORT_SHORT_IF_LEAKED && !has_leftovers(view))
        return 0;
    job = cw_mem_alloc(sizeof(*job));
    if (!job || cw_snapshot_init(&job->snapshot, view) != 0) {
        cw_log(CW_LOG_WARN, "not enough memory for the report; none is written");
        cw_mem_free(job, sizeof(*job));
        return -1;
    }
    if (request->form != CW_REPORT_SHORT_IF_LEAKED || may_have_leaks(&job->snapshot))
        result = write_job(job, view, request);
    cw_snapshot_fini(&job->snapshot);
    cw_mem_free(job, sizeof(*job));
    return result;
}
