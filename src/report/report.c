/* SPDX-License-Identifier: MIT */
/*
 * Composes a report and delivers it to its destination. See report.h.
 *
 * Everything large is in one job, allocated by cw_mem: this may run on the alternate stack of a
 * signal handler. If the destination fails, the text goes to the request's file descriptor, so that
 * results are never lost.
 */
#include "report/report.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/options/options.h"
#include "base/out.h"
#include "base/reason.h"
#include "report/snapshot/age.h"
#include "report/snapshot/growth_read.h"
#include "report/path/path.h"
#include "report/json/json_write.h"
#include "report/model/model_live.h"
#include "report/text/report_text.h"
#include "report/symbols/symbol.h"
#include "report/leaks/leak_class.h"
#include "report/leaks/suppress.h"

#define BUFFER_SIZE ((size_t)64 * 1024)
#define OLD_NS      (UINT64_C(60) * 1000000000)

struct cw_report_job {
    struct cw_live_model live;
    struct cw_symbols symbols;
    struct cw_rules rules;
    struct cw_report_file file;
    struct cw_path_values values;
    const struct cw_report_request *request;
    char buffer[BUFFER_SIZE];
};

enum content { CONTENT_SHORT, CONTENT_TEXT, CONTENT_JSON };

enum cw_report_form cw_report_form_of(const struct cw_options *options)
{
    if (strcmp(options->report, "off") == 0)
        return CW_REPORT_NONE;
    if (options->report[0] == '\0' && options->format <= CW_FORMAT_TEXT)
        return CW_REPORT_SHORT_IF_LEAKED;
    switch (options->format) {
    case CW_FORMAT_TEXT:
        return CW_REPORT_TEXT;
    case CW_FORMAT_JSON:
        return CW_REPORT_JSON;
    case CW_FORMAT_BOTH:
        return CW_REPORT_BOTH;
    default:
        return cw_path_ends_in(options->report, ".json") ? CW_REPORT_JSON : CW_REPORT_TEXT;
    }
}

static int request_fd(const struct cw_report_request *request)
{
    return request->fd > 0 ? request->fd : 2;
}

static int goes_to_fd(const struct cw_report_request *request)
{
    return !request->destination || !cw_path_names_file(request->destination);
}

static struct cw_snapshot *snapshot_of(struct cw_report_job *job)
{
    return &job->live.model.snapshot;
}

static void write_text(struct cw_report_job *job, enum cw_text_form form, struct cw_out *out)
{
    struct cw_text_style style = {.form = form,
                                  .sections = CW_TEXT_ALL,
                                  .columns = job->request->columns,
                                  .has_all_frames = job->request->has_all_frames,
                                  .has_live_file = job->request->has_live_file};
    struct cw_live_model *live = &job->live;

    cw_live_model_init(live);
    cw_report_text_want(&live->model, &style, cw_live_model_want, live);
    cw_live_model_resolve(live);
    cw_report_text_write(&live->model, &style, out);
    cw_live_model_fini(live);
}

static void write_json(struct cw_live_model *live, struct cw_out *out)
{
    cw_live_model_init(live);
    cw_live_model_want_all(live);
    cw_live_model_resolve(live);
    cw_report_json_write(&live->model, out);
    cw_live_model_fini(live);
}

/* Includes the names that it needs. 0, or the errno. */
static int write_content(struct cw_report_job *job, enum content content, int fd)
{
    struct cw_out out;

    cw_out_init(&out, fd, job->buffer, sizeof(job->buffer));
    switch (content) {
    case CONTENT_JSON:
        write_json(&job->live, &out);
        break;
    default:
        write_text(job, content == CONTENT_SHORT ? CW_TEXT_SHORT : CW_TEXT_FULL, &out);
        break;
    }
    return cw_out_flush(&out);
}

/* other: the suffix of the file that follows it, or NULL. */
static int write_file(struct cw_report_job *job, enum content content, const char *suffix,
                      const char *other)
{
    const char *pattern = job->request->destination;
    int error = cw_report_file_open(&job->file, pattern, suffix, other, &job->values);

    if (error == 0)
        error = write_content(job, content, job->file.fd);
    error = cw_report_file_close(&job->file, error);
    if (error == 0)
        return 0;
    if (job->request->out_error != NULL)
        *job->request->out_error = error;
    else
        cw_log(CW_LOG_WARN, "cannot write the report to \"%s\": %s (errno %d)%s",
               job->file.path[0] ? job->file.path : pattern, cw_reason(error), error,
               job->request->is_dump ? "" : "; writing it to stderr instead");
    return error;
}

static int write_files(struct cw_report_job *job)
{
    enum cw_report_form form = job->request->form;
    int is_both = form == CW_REPORT_BOTH;
    int is_text = !cw_path_ends_in(job->request->destination, ".json");
    const char *text = is_both && !is_text ? ".txt" : "", *json = is_both && is_text ? ".json" : "";
    int failed = 0;

    if (form == CW_REPORT_SHORT_IF_LEAKED)
        failed = write_file(job, CONTENT_SHORT, "", NULL);
    else if (form != CW_REPORT_JSON)
        failed = write_file(job, CONTENT_TEXT, text, is_both ? json : NULL);
    if (!failed && (form == CW_REPORT_JSON || is_both))
        failed = write_file(job, CONTENT_JSON, json, NULL);
    if (!failed)
        return 0;
    if (!job->request->is_dump)
        write_content(job, CONTENT_TEXT, request_fd(job->request));
    return -1;
}

static int write_to_fd(struct cw_report_job *job)
{
    enum cw_report_form form = job->request->form;
    int fd = request_fd(job->request);
    int error = 0;

    if (form == CW_REPORT_SHORT_IF_LEAKED)
        return write_content(job, CONTENT_SHORT, fd) == 0 ? 0 : -1;
    if (form != CW_REPORT_JSON)
        error = write_content(job, CONTENT_TEXT, fd);
    if (error == 0 && form != CW_REPORT_TEXT)
        error = write_content(job, CONTENT_JSON, fd);
    return error == 0 ? 0 : -1;
}

void cw_report_path_values(const struct cw_view *view, char *const *env, struct cw_path_values *out)
{
    const struct cw_live_header *self = view->self;

    *out = (struct cw_path_values){.pid = self->pid,
                                   .host = cw_view_text(view, self->host),
                                   .program = cw_view_text(view, self->exe),
                                   .start_seconds = self->start_realtime_ns / 1000000000,
                                   .rank = cw_view_text(view, self->rank),
                                   .env = env};
}

static void prepare(struct cw_report_job *job, const struct cw_view *view,
                    const struct cw_report_request *request)
{
    job->request = request;
    job->live.view = view;
    job->live.symbols = &job->symbols;
    job->live.rules = &job->rules;
    job->live.process = request->process;
    job->live.version = request->version;
    job->live.tensors = request->tensors;
    cw_report_path_values(view, request->env, &job->values);
    /* If out of memory for names, the report has addresses. */
    cw_symbols_init(&job->symbols, view, request->demangle, request->demangle_arg);
    cw_symbols_use(&job->symbols, request->lines, request->sysroot);
}

/* The steps that need names and the user's file: classification, and with it whether there is
 * anything to report. */
static void classify(struct cw_report_job *job)
{
    uint64_t old_ns = job->request->old_ns != 0 ? job->request->old_ns : OLD_NS;
    uint64_t now_ns = snapshot_of(job)->duration_ns;
    struct cw_rules_fault said;

    cw_rules_init(&job->rules, job->request->suppressions,
                  job->request->knows_rules ? &said : NULL);
    cw_leak_want(snapshot_of(job), &job->symbols);
    cw_symbols_resolve(&job->symbols);
    cw_snapshot_growth_read(snapshot_of(job), now_ns);
    cw_leak_classify(snapshot_of(job), &job->symbols, &job->rules);
    cw_snapshot_ages(snapshot_of(job), now_ns, old_ns);
}

/* ---- classes that somebody acts upon ---- */

#define ACTS "leak checks fail and scopes leave the memory of new call sites"

/* Said once: the end of each scope asks again. */
static void say_rules(const struct cw_rules_fault *fault, int error)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (fault->text[0] != '\0')
        cw_log_once(&said, CW_LOG_WARN, "%s%s", fault->text,
                    error != 0 ? "; until they can be read, " ACTS : "");
}

static void say_no_memory(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    cw_log_once(&said, CW_LOG_WARN, "out of memory; " ACTS);
}

static void say_names(const struct cw_symbols *symbols)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (symbols->error != 0 && !symbols->unread)
        say_no_memory();
    else if (symbols->error != 0)
        cw_log_once(&said, CW_LOG_WARN,
                    "cannot read the names of functions in \"%s\": %s (errno %d); until they can "
                    "be read, " ACTS,
                    symbols->unread, cw_reason(symbols->error), symbols->error);
}

/* 0, or -1: without a rule or a name another's memory may seem the program's. Growth and age change
 * nothing. */
static int classify_to_act_upon(struct cw_report_job *job)
{
    struct cw_rules_fault fault;
    int rules = cw_rules_init(&job->rules, job->request->suppressions, &fault), names, classes;

    cw_leak_want(snapshot_of(job), &job->symbols);
    names = cw_symbols_resolve(&job->symbols);
    classes = cw_leak_classify(snapshot_of(job), &job->symbols, &job->rules);
    say_rules(&fault, rules);
    say_names(&job->symbols);
    if (classes != 0)
        say_no_memory();
    return rules == 0 && names == 0 && classes == 0 ? 0 : -1;
}

static int has_news(const struct cw_snapshot *snapshot)
{
    return snapshot->leaks.count > 0 || snapshot->summary.invalid_frees > 0 ||
           snapshot->summary.fatal_errors > 0;
}

/* With names and rules, a separately listed site may become a leak, and vice versa. */
static int may_have_news(const struct cw_snapshot *snapshot)
{
    return has_news(snapshot) || snapshot->library.count > 0 || snapshot->caches.count > 0;
}

static int write_job(struct cw_report_job *job, const struct cw_view *view,
                     const struct cw_report_request *request)
{
    int result = 0;

    prepare(job, view, request);
    classify(job);
    if (request->form != CW_REPORT_SHORT_IF_LEAKED || has_news(snapshot_of(job)))
        result = goes_to_fd(request) ? write_to_fd(job) : write_files(job);
    cw_rules_fini(&job->rules);
    cw_symbols_fini(&job->symbols);
    return result;
}

/* Of a process that runs; else 0. */
static uint64_t present(const struct cw_view *view, const struct cw_report_request *request)
{
    uint64_t start_ns = view->self->start_ns, now_ns = cw_clock_ns();

    return request->process == CW_REPORT_PROCESS_ALIVE && now_ns > start_ns ? now_ns - start_ns : 0;
}

static struct cw_report_job *create_job(const struct cw_view *view,
                                        const struct cw_report_request *request)
{
    struct cw_report_job *job = cw_mem_alloc(sizeof(*job));

    if (job && cw_snapshot_init(snapshot_of(job), view, present(view, request)) == 0) {
        if (request->is_to_act_upon)
            cw_snapshot_count_blocks(snapshot_of(job));
        cw_leak_classify(snapshot_of(job), NULL, NULL);
        return job;
    }
    cw_mem_free(job, sizeof(*job));
    return NULL;
}

static void destroy_job(struct cw_report_job *job)
{
    cw_snapshot_fini(snapshot_of(job));
    cw_mem_free(job, sizeof(*job));
}

/* A leak is live memory of a site, or memory reclaimed with its context. Most programs end without
 * either and without an error, which needs no snapshot to establish. */
static int has_leftovers(const struct cw_view *view)
{
    uint32_t count = cw_view_count(view, CW_TABLE_SITE);

    if (cw_view_header(view)->invalid_frees != 0 || cw_view_fatal_errors(view) != 0)
        return 1;
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

/* With the thread's floating point held, which report.h leaves as it was. */
static CW_NOINLINE int write_report(const struct cw_view *view,
                                    const struct cw_report_request *request)
{
    struct cw_report_job *job;
    int result = 0;

    if (request->form == CW_REPORT_NONE ||
        (request->form == CW_REPORT_SHORT_IF_LEAKED && !has_leftovers(view)))
        return 0;
    job = create_job(view, request);
    if (!job) {
        if (request->out_error != NULL)
            *request->out_error = ENOMEM;
        else
            cw_log(CW_LOG_WARN, "out of memory: no report is written");
        return -1;
    }
    if (request->form != CW_REPORT_SHORT_IF_LEAKED || may_have_news(snapshot_of(job)))
        result = write_job(job, view, request);
    destroy_job(job);
    return result;
}

int cw_report_write(const struct cw_view *view, const struct cw_report_request *request)
{
    struct cw_float_env env = cw_float_hold();
    int result = write_report(view, request);

    cw_float_release(&env);
    return result;
}

/* ---- a persistent model ---- */

static CW_NOINLINE struct cw_report_job *open_job(const struct cw_view *view,
                                                  const struct cw_report_request *request)
{
    struct cw_report_job *job = create_job(view, request);
    int rc = 0;

    if (!job) {
        if (request->is_to_act_upon)
            say_no_memory();
        return NULL;
    }
    prepare(job, view, request);
    if (request->is_to_act_upon)
        rc = classify_to_act_upon(job);
    else
        classify(job);
    if (rc != 0) {
        cw_report_close(job);
        return NULL;
    }
    cw_live_model_init(&job->live);
    return job;
}

struct cw_report_job *cw_report_open(const struct cw_view *view,
                                     const struct cw_report_request *request)
{
    struct cw_float_env env = cw_float_hold();
    struct cw_report_job *job = open_job(view, request);

    cw_float_release(&env);
    return job;
}

void cw_report_read_listed(struct cw_report_job *job, cw_report_list_fn list)
{
    list(&job->live.model, cw_live_model_want, &job->live);
    cw_live_model_resolve(&job->live);
}

void cw_report_read_stacks(struct cw_report_job *job, int is_for_text)
{
    struct cw_live_model *live = &job->live;

    if (is_for_text)
        cw_report_text_want(&live->model, &CW_TEXT_WHOLE, cw_live_model_want, live);
    else
        cw_live_model_want_all(live);
    cw_live_model_resolve(live);
}

struct cw_report_model *cw_report_of(struct cw_report_job *job)
{
    return &job->live.model;
}

void cw_report_close(struct cw_report_job *job)
{
    cw_live_model_fini(&job->live);
    cw_rules_fini(&job->rules);
    cw_symbols_fini(&job->symbols);
    destroy_job(job);
}
