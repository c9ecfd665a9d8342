/* SPDX-License-Identifier: MIT */
/* Reports and recordings at the program's request. See api.h. */
#include "api/files.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/reason.h"
#include "core/process/host.h"
#include "report/path/dump_name.h"
#include "report/report.h"

static int check_path(const char *path, const char *what)
{
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (path == NULL || path[0] == '\0')
        return cw_api_fail(CUWARDEN_INVALID, "%s needs the name of a file; this one is %s", what,
                           path == NULL ? "NULL" : "empty");
    if (strlen(path) >= CW_PATH_MAX)
        return cw_api_fail(CUWARDEN_INVALID, "the name of a file is longer than %u bytes",
                           CW_PATH_MAX - 1);
    return CUWARDEN_OK;
}

static int system_failed(const char *what, const char *path, int error)
{
    return cw_api_fail(CUWARDEN_SYSTEM, "%s '%s': %s (errno %d)", what, path, cw_reason(error),
                       error);
}

/* ---- reports ---- */

struct report {
    struct cw_arena_copy copy;
    char pattern[2 * CW_PATH_MAX];
};

static int write_report(struct report *report, const char *path)
{
    int error = 0;
    struct cw_report_request request = {
        .form = cw_path_ends_in(path, ".json") ? CW_REPORT_JSON : CW_REPORT_TEXT,
        .process = CW_REPORT_PROCESS_ALIVE,
        .destination = report->pattern,
        .is_dump = 1,
        .out_error = &error,
        .version = PACKAGE_VERSION,
        .suppressions = cw_api_options()->suppressions,
        .old_ns = cw_api_options()->old,
        .has_all_frames = cw_api_options()->frames == CW_FRAMES_ALL};

    cw_dump_name_escape(report->pattern, sizeof(report->pattern), path);
    cw_arena_copy_begin(&cw_session.arena, &report->copy);
    (void)cw_report_write(&report->copy.view, &request);
    cw_arena_copy_end(&report->copy);
    return error;
}

int cw_api_report(const char *path)
{
    int saved = errno, error = check_path(path, "a report");
    struct report *report;
    unsigned depth;

    if (error != CUWARDEN_OK)
        return error;
    report = cw_mem_alloc(sizeof(*report));
    if (report == NULL)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST, "no memory for a report");
    depth = cw_api_enter();
    error = write_report(report, path);
    cw_api_leave(depth);
    cw_mem_free(report, sizeof(*report));
    errno = saved;
    return error == 0 ? CUWARDEN_OK : system_failed("cannot write the report", path, error);
}

/* ---- recordings ---- */

int cw_api_record_start(const char *path)
{
    int error = check_path(path, "a recording");

    if (error != CUWARDEN_OK)
        return error;
    if (cw_host->record == NULL)
        return cw_api_fail(CUWARDEN_UNSUPPORTED, "this host cannot record");
    error = cw_host->record(path);
    if (error == EBUSY)
        return cw_api_fail(CUWARDEN_BUSY, "a recording is under way; '%s' is not begun", path);
    return error == 0 ? CUWARDEN_OK : system_failed("cannot record to", path, error);
}

int cw_api_record_stop(void)
{
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (cw_host->end_record == NULL || cw_host->end_record() != 0)
        return cw_api_fail(CUWARDEN_UNBALANCED, "a stop without a start: nothing is recorded");
    return CUWARDEN_OK;
}
