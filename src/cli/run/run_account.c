/* SPDX-License-Identifier: MIT */
/*
 * Totals over processes. See run_account.h.
 *
 * A process is counted once, when nobody holds its live file any more; then the file is removed, so
 * that the directory contains running processes only. The process wrote its own report if the file
 * says how it ended; otherwise it was killed, crashed or executed another program, and its report
 * is written here, by the same code and to the same place.
 */
#include "cli/run/run_account.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>

#include "base/log.h"
#include "cli/input/source_file.h"
#include "report/path/path.h"
#include "cli/ui/exit_status.h"
#include "cli/input/live_files.h"
#include "cli/ui/message.h"

#define PATIENCE_MS 500 /* for processes that end at the same time as the program */
#define POLL_MS     10

/* ---- one process ---- */

/* Resolves a name relative to the process's directory, which may differ from ours. */
static void locate(const struct cw_view *view, const char *name, int is_template, char *path,
                   size_t cap)
{
    const char *from = cw_view_text(view, cw_view_header(view)->cwd);
    size_t len = 0;

    if (name[0] == '\0' || name[0] == '/' || strcmp(name, "-") == 0 || from[0] != '/') {
        snprintf(path, cap, "%s", name);
        return;
    }
    for (; *from && len + 2 < cap; from++) {
        if (*from == '%' && is_template)
            path[len++] = '%';
        path[len++] = *from;
    }
    snprintf(path + len, cap - len, "/%s", name);
}

/* 0, or -1 if out of memory. */
static int add_sums(struct cw_run_account *account, const struct cw_snapshot *snapshot)
{
    const struct cw_live_header *header = cw_view_header(snapshot->view);
    const struct cw_snapshot_summary *from = &snapshot->summary;
    struct cw_snapshot_summary *to = &account->sum;
    struct cw_run_span *span =
        reallocarray(account->span, account->processes + 1, sizeof(*account->span));

    if (!span)
        return -1;
    account->span = span;
    span[account->processes++] = (struct cw_run_span){
        .from_ns = header->start_ns,
        .to_ns = header->start_ns + snapshot->duration_ns,
        .peak_bytes = from->peak_bytes,
    };
    to->leaked_bytes += from->leaked_bytes;
    to->leaked_blocks += from->leaked_blocks;
    to->leak_sites += from->leak_sites;
    to->allocs += from->allocs;
    to->frees += from->frees;
    to->failed += from->failed;
    to->pool_hits += from->pool_hits;
    to->pool_misses += from->pool_misses;
    return 0;
}

/* Like the report, which has already printed its messages about the suppressions. */
static int add_process(struct cw_run_account *account, const struct cw_view *view)
{
    enum cw_log_level level = cw_log_get_level();
    char rules[CW_PATH_MAX];
    struct cw_report_request request = {.process = CW_REPORT_PROCESS_DEAD, .suppressions = rules};
    struct cw_report_job *job;
    int rc;

    locate(view, account->options->suppressions, 0, rules, sizeof(rules));
    cw_log_set_level(CW_LOG_OFF);
    job = cw_report_open(view, &request);
    cw_log_set_level(level);
    if (!job)
        return -1;
    rc = add_sums(account, &cw_report_of(job)->snapshot);
    cw_report_close(job);
    return rc;
}

static enum cw_report_form form_of(const struct cw_options *options)
{
    if (options->report[0] == '\0' && options->format == CW_FORMAT_TEXT)
        return CW_REPORT_SHORT_IF_LEAKED;
    if (options->format == CW_FORMAT_JSON)
        return CW_REPORT_JSON;
    return options->format == CW_FORMAT_BOTH ? CW_REPORT_BOTH : CW_REPORT_TEXT;
}

static void write_report(const struct cw_run_account *account, const struct cw_source_file *file,
                         const char *destination)
{
    char rules[CW_PATH_MAX];
    struct cw_report_request report = {
        .form = form_of(account->options),
        .process = CW_REPORT_PROCESS_DEAD,
        .destination = destination[0] ? destination : NULL,
        .env = environ,
        .version = PACKAGE_VERSION,
        .suppressions = rules,
        .old_ns = account->options->old,
    };

    locate(&file->image.view, account->options->suppressions, 0, rules, sizeof(rules));
    cw_report_prepare(NULL, &report);
    (void)cw_report_write(&file->image.view, &report); /* it has said what went wrong */
}

/* ---- what is said of one ---- */

static void say_death(const struct cw_run_account *account, uint32_t pid)
{
    int number = WIFSIGNALED(account->wait_status) ? WTERMSIG(account->wait_status) : 0;

    if (account->is_quiet || number == 0 || pid != (uint32_t)account->child)
        return;
    fprintf(stderr, "cuwarden: process %u was killed by signal %d (%s)\n", (unsigned)pid, number,
            strsignal(number));
}

/* 1 if the path has been named before; otherwise remembers it. */
static int is_named(struct cw_run_account *account, const char *path)
{
    for (unsigned i = 0; i < account->named; i++)
        if (account->name[i] && strcmp(account->name[i], path) == 0)
            return 1;
    account->name[account->named] = strdup(path);
    return 0;
}

static void name_file(struct cw_run_account *account, uint32_t pid, const char *path)
{
    if (access(path, F_OK) != 0)
        return;
    if (account->named >= CW_RUN_NAMED_MAX)
        account->unnamed++;
    else if (is_named(account, path))
        account->overwritten++;
    else {
        account->named++;
        fprintf(stderr, "cuwarden: report of process %u: %s\n", (unsigned)pid, path);
    }
}

/* Prints the path of the report. The number for %n is not known. */
static void name_report(struct cw_run_account *account, const struct cw_view *view,
                        const char *destination)
{
    int has_json = account->options->format == CW_FORMAT_BOTH;
    uint32_t pid = cw_view_header(view)->pid;
    char path[CW_PATH_MAX + sizeof(".json")];
    struct cw_path_values values;

    if (account->is_quiet || destination[0] == '\0' || strcmp(destination, "-") == 0 ||
        cw_path_has_number(destination))
        return;
    cw_report_path_values(view, environ, &values);
    if (cw_path_expand(path, CW_PATH_MAX, destination, &values) != 0)
        return;
    name_file(account, pid, path);
    if (has_json)
        name_file(account, pid, strcat(path, ".json"));
}

/* ---- one file ---- */

static int is_reported_by_other(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && (info.st_mode & 0777) == CW_RUN_LIVE_REPORTED;
}

static void take_in(struct cw_run_account *account, const struct cw_source_file *file)
{
    const struct cw_view *view = &file->image.view;
    const struct cw_live_header *header = cw_view_header(view);
    int has_ended = atomic_load(&header->exit_kind) != CW_EXIT_RUNNING;
    int needs_report = !has_ended && !is_reported_by_other(file->path);
    char destination[CW_PATH_MAX];

    locate(view, account->options->report, 1, destination, sizeof(destination));
    if (needs_report) {
        say_death(account, header->pid);
        write_report(account, file, destination);
    }
    if (add_process(account, view) != 0) {
        cw_cli_error("not enough memory to read '%s'; it is not included in the SUMMARY",
                     file->path);
        account->unreadable++;
    }
    name_report(account, view, destination);
    cw_run_live_settle(&account->live, file->path, !has_ended);
}

/* 1 if its process has not ended. */
static int look_at(struct cw_run_account *account, const char *path)
{
    struct cw_source_file file;
    enum cw_source source = cw_source_file_open(&file, path);
    int is_alive = source == CW_SOURCE_LIVE && file.is_alive;

    if (source == CW_SOURCE_LIVE && !is_alive) {
        take_in(account, &file);
    } else if (source != CW_SOURCE_LIVE) {
        account->unreadable++;
        cw_run_live_settle(&account->live, path, 0);
    }
    cw_source_file_close(&file);
    return is_alive;
}

/* Checks only the lock: files of running processes may be large. */
static int is_held(const struct cw_live_name *file)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int is_in_use = fd >= 0 && cw_live_file_is_in_use(fd, file->pid, file->path);

    if (fd >= 0)
        close(fd);
    return is_in_use;
}

/* ---- all ---- */

/* Returns the number of running processes. */
static uint64_t look_at_all(struct cw_run_account *account, int is_last)
{
    struct cw_live_files files = {.count = 0};
    uint64_t running = 0;

    if (cw_live_files_add(&files, account->live.directory, 0, is_last) != 0)
        files.count = 0;
    for (size_t i = files.count; i-- > 0;) { /* oldest first */
        if (is_held(&files.file[i]))
            running++;
        else if (!cw_run_live_is_of_other(&account->live, files.file[i].path))
            running += (uint64_t)look_at(account, files.file[i].path);
    }
    cw_live_files_free(&files);
    return running;
}

void cw_run_account_collect(struct cw_run_account *account, int is_last)
{
    static const struct timespec moment = {.tv_nsec = POLL_MS * 1000000};

    if (account->live.directory[0] == '\0')
        return;
    account->running = look_at_all(account, is_last);
    for (int waited = 0; is_last && account->running > 0 && waited < PATIENCE_MS;
         waited += POLL_MS) {
        nanosleep(&moment, NULL);
        account->running = look_at_all(account, is_last);
    }
}

/* The largest sum of peaks over processes that existed at the same time: at least what they held
 * together, and for consecutive processes the largest peak. */
static uint64_t peak_of(const struct cw_run_account *account)
{
    uint64_t most = 0;

    for (uint64_t i = 0; i < account->processes; i++) {
        uint64_t moment = account->span[i].from_ns, sum = 0;

        for (uint64_t k = 0; k < account->processes; k++)
            if (account->span[k].from_ns <= moment && moment <= account->span[k].to_ns)
                sum += account->span[k].peak_bytes;
        most = sum > most ? sum : most;
    }
    return most;
}

static void print_sums(const struct cw_run_account *account)
{
    const struct cw_snapshot_summary *sum = &account->sum;

    fprintf(
        stderr,
        "cuwarden: SUMMARY: processes=%" PRIu64 " leaked_bytes=%" PRIu64 " leaked_blocks=%" PRIu64
        " leak_sites=%" PRIu64 " peak_bytes=%" PRIu64 " allocs=%" PRIu64 " frees=%" PRIu64
        " failed=%" PRIu64 " pool_hits=%" PRIu64 " pool_misses=%" PRIu64 "\n",
        account->processes, sum->leaked_bytes, sum->leaked_blocks, sum->leak_sites,
        peak_of(account), sum->allocs, sum->frees, sum->failed, sum->pool_hits, sum->pool_misses);
}

void cw_run_account_print(const struct cw_run_account *account)
{
    if (account->is_quiet)
        return;
    if (account->unnamed > 0)
        fprintf(stderr, "cuwarden: and %u more reports\n", account->unnamed);
    if (account->overwritten > 0)
        cw_cli_warn("reports overwritten by later ones in the same file: %u; use %%n in the name "
                    "to keep all",
                    account->overwritten);
    if (account->running > 0)
        cw_cli_warn("processes still running, not included in the SUMMARY: %" PRIu64
                    "; see 'cuwarden report %s'",
                    account->running, account->live.directory);
    if (account->live.directory[0] == '\0')
        fprintf(stderr, "cuwarden: SUMMARY: unknown: there was no directory for live files\n");
    else if (account->processes > 0)
        print_sums(account);
}

void cw_run_account_free(struct cw_run_account *account)
{
    for (unsigned i = 0; i < account->named; i++)
        free(account->name[i]);
    account->named = 0;
    free(account->span);
    account->span = NULL;
    account->processes = 0;
}
