/* SPDX-License-Identifier: MIT */
/*
 * Reports while the process runs. See dump.h.
 *
 * Owns the number of the next dump and the pending requests; atomics, no lock. Large structures lie
 * in one job from cw_mem: this may run on a small stack, inside a call of the program. The report
 * is made from the arena as it is at that moment, while other threads change it; no driver call.
 */
#include "hook/services/dump.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/reason.h"
#include "base/sys.h"
#include "core/process/due.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "hook/settings.h"
#include "hook/services/background_thread.h"
#include "live/live_dir.h"
#include "report/path/dump_name.h"
#include "report/report.h"

struct job {
    struct cw_arena_copy copy;
    struct cw_dump_name name;
    struct cw_path_values values;
    char path[CW_PATH_MAX];
    char pattern[2 * CW_PATH_MAX];
};

/* How long the program's threads leave a report to the background thread. */
#define HELPER_NS UINT64_C(5000000000)

static _Atomic unsigned asked;    /* bits of enum cw_dump_cause */
static _Atomic uint64_t asked_ns; /* since when there are any */
static _Atomic unsigned next = 1; /* number to try first */
static _Atomic uint32_t chosen;   /* for %n of REPORT, 0: not yet */

void cw_dump_reset(void)
{
    atomic_store(&asked, 0);
    atomic_store(&next, 1);
    atomic_store(&chosen, 0);
}

/* ---- where it goes ---- */

/* The name of a device, a FIFO or a link to one gets no numbers. */
static int is_file(const char *path)
{
    int fd = cw_sys_open(path, O_PATH, 0); /* follows links, does not wait at a FIFO */
    struct stat info;
    int is_one = fd < 0 || cw_sys_stat(fd, &info) != 0 || S_ISREG(info.st_mode);

    if (fd >= 0)
        cw_sys_close(fd);
    return is_one;
}

/* 1 if REPORT names a file, next to which dumps can lie. */
static int is_beside_report(struct job *job)
{
    const char *report = cw_session.options->report;

    if (!cw_path_names_file(report))
        return 0;
    return cw_path_expand(job->path, sizeof(job->path), report, &job->values) == 0 &&
           is_file(job->path);
}

static int take_name(struct job *job, const char *pattern)
{
    unsigned number = atomic_load(&next);
    int error;

    job->values.number = atomic_load(&chosen);
    error = cw_dump_name_take(&job->name, pattern, cw_session.options->format == CW_FORMAT_BOTH,
                              &number, &job->values);
    if (error != 0)
        return error;
    atomic_store(&next, number + 1);
    atomic_store(&chosen, job->values.number);
    return 0;
}

/* REPORT=off and the short text are about the end of the process: who asks now gets a report. */
static enum cw_report_form form(void)
{
    enum cw_report_form form = cw_report_form_of(cw_session.options);

    return form == CW_REPORT_JSON || form == CW_REPORT_BOTH ? form : CW_REPORT_TEXT;
}

/* EPERM: the directory is somebody else's. */
static int take_private_name(struct job *job)
{
    const struct cw_options *options = cw_session.options;
    const char *extension = form() == CW_REPORT_JSON ? "json" : "txt";
    size_t len;
    int dir;

    job->name.path[0] = '\0';
    if (cw_live_dir_default(CW_PLACE_DEFAULTS - 1, (uint32_t)geteuid(), options->tmpdir, job->path,
                            CW_PLACE_MAX) != 0)
        return ENAMETOOLONG;
    dir = cw_live_dir_open(job->path, 1);
    if (dir < 0) {
        memcpy(job->name.path, job->path, CW_PLACE_MAX);
        return errno;
    }
    cw_live_dir_sweep(dir);
    cw_sys_close(dir);
    cw_dump_name_escape(job->pattern, sizeof(job->pattern), job->path);
    len = strlen(job->pattern);
    cw_format(job->pattern + len, sizeof(job->pattern) - len, "/%%e.%%p.%s", extension);
    return take_name(job, job->pattern);
}

/* ---- writing ---- */

static int fill(struct job *job)
{
    const struct cw_options *options = cw_session.options;
    struct cw_report_request request = {.form = form(),
                                        .process = CW_REPORT_PROCESS_ALIVE,
                                        .destination = job->pattern,
                                        .is_dump = 1,
                                        .env = cw_settings_environment(),
                                        .version = PACKAGE_VERSION,
                                        .suppressions = options->suppressions,
                                        .old_ns = options->old,
                                        .has_all_frames = options->frames == CW_FRAMES_ALL};

    cw_dump_name_escape(job->pattern, sizeof(job->pattern), job->name.path);
    if (cw_report_write(&job->copy.view, &request) == 0)
        return 0;
    cw_dump_name_drop(&job->name);
    return EIO;
}

static void complain(const struct job *job, int error)
{
    cw_log(CW_LOG_WARN, "cannot write a report to \"%s\": %s (errno %d)", job->name.path,
           cw_reason(error), error);
}

/* Creates a file and fills it; if that fails, tries the private directory, so that the
 * report is not lost. */
static int write_somewhere(struct job *job)
{
    int error = EIO;

    if (is_beside_report(job)) {
        error = take_name(job, cw_session.options->report);
        if (error == 0)
            error = fill(job);
        else
            complain(job, error);
    }
    if (error == 0)
        return 0;
    error = take_private_name(job);
    if (error == 0)
        return fill(job);
    complain(job, error);
    return error;
}

int cw_dump_write(char *name, size_t cap)
{
    int saved = errno, error;
    struct job *job = cw_mem_alloc(sizeof(*job));

    name[0] = '\0';
    if (job == NULL) {
        cw_log(CW_LOG_WARN, "no memory for a report while the program runs: there is none");
        errno = saved;
        return ENOMEM;
    }
    cw_arena_copy_begin(&cw_session.arena, &job->copy);
    cw_report_path_values(&job->copy.view, cw_settings_environment(), &job->values);
    error = write_somewhere(job);
    if (error == 0) {
        atomic_fetch_add(&cw_session.arena.header->control.dumps, 1);
        cw_format(name, cap, "%s", job->name.path);
    }
    cw_arena_copy_end(&job->copy);
    cw_mem_free(job, sizeof(*job));
    errno = saved;
    return error;
}

/* ---- what asks for them ---- */

void cw_dump_ask(enum cw_dump_cause cause)
{
    if (atomic_fetch_or(&asked, 1u << cause) == 0)
        atomic_store(&asked_ns, cw_session_now());
    cw_due_set(CW_DUE_DUMP);
}

int cw_dump_is_here(void)
{
    return cw_thread.is_helper || !cw_background_thread_runs() ||
           cw_session_now() > atomic_load(&asked_ns) + HELPER_NS;
}

void cw_dump_serve(void)
{
    unsigned causes = atomic_exchange(&asked, 0);
    char name[CW_LOG_LINE_MAX];

    if (causes == 0 || cw_dump_write(name, sizeof(name)) != 0)
        return;
    cw_log_note("report written to %s (%s)", name,
                (causes & 1u << CW_DUMP_SIGNAL) != 0 ? "signal" : "interval");
}

int cw_dump_for_process(uint32_t asker, char *text, size_t cap)
{
    int error = cw_dump_write(text, cap);

    if (error == 0)
        cw_log_note("report written to %s (asked by process %u)", text, (unsigned)asker);
    else
        cw_format(text, cap, "no report could be written (%s); its standard error says more",
                  cw_reason(error));
    return error;
}
