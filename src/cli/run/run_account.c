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
#include <signal.h>
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
#include "cli/ui/exit_status.h"
#include "cli/input/foreign_file.h"
#include "cli/fleet/gpus.h"
#include "cli/input/live_files.h"
#include "cli/ui/message.h"
#include "cli/ui/screen.h"

#define PATIENCE_MS 500 /* for processes that end at the same time as the program */
#define POLL_MS     10
#define OTHERS_MAX  96
#define WHY_MAX     256

/* ---- one process ---- */

/* 0, or -1 if out of memory. */
static int add_span(struct cw_run_account *account, const struct cw_snapshot *snapshot)
{
    const struct cw_live_header *header = cw_view_header(snapshot->view);
    struct cw_run_span *span =
        reallocarray(account->span, account->processes + 1, sizeof(*account->span));

    if (!span)
        return -1;
    account->span = span;
    span[account->processes++] = (struct cw_run_span){
        .from_ns = header->start_ns,
        .to_ns = header->start_ns + snapshot->duration_ns,
        .peak_bytes = snapshot->summary.peak_bytes,
    };
    return 0;
}

static int add_process(struct cw_run_account *account, const struct cw_view *view)
{
    struct cw_report_request request = {.process = account->reports.process,
                                        .suppressions = account->options->suppressions,
                                        .knows_rules = 1,
                                        .tensors = account->reports.tensors};
    struct cw_report_job *job;
    int rc = 0;

    cw_report_prepare(&account->reports.lines, &request);
    job = cw_report_open(view, &request);
    if (!job)
        return -1;
    if (!account->is_quiet)
        cw_report_read_listed(job, cw_verdict_want);
    if (cw_verdict_add(&account->verdict, cw_report_of(job)))
        rc = add_span(account, &cw_report_of(job)->snapshot);
    cw_report_close(job);
    return rc;
}

/* ---- what is said of one ---- */

/* Once, however many programs the process was. */
static void say_death(struct cw_run_account *account, uint32_t pid)
{
    int number = WIFSIGNALED(account->wait_status) ? WTERMSIG(account->wait_status) : 0;

    if (account->is_quiet || account->has_said_death || number == 0 ||
        pid != (uint32_t)account->child)
        return;
    account->has_said_death = 1;
    fprintf(stderr, "cuwarden: process %u was killed by signal %d (%s)\n", (unsigned)pid, number,
            strsignal(number));
}

/* ---- one file ---- */

/*
 * Of a process without an end of its own. While the program that we run goes on, or if it has ended
 * in order, another process ended this one, as pools do with their workers, or it crashed and that
 * was coped with. If a signal ended the program, it ended them all, and all of them count.
 */
static enum cw_report_process end_of(const struct cw_run_account *account,
                                     const struct cw_live_header *header)
{
    if (WIFSIGNALED(account->wait_status))
        return CW_REPORT_PROCESS_DEAD;
    if (header->pid == (uint32_t)account->child)
        return CW_REPORT_PROCESS_EXITED;
    return account->counts_killed ? CW_REPORT_PROCESS_DEAD : CW_REPORT_PROCESS_KILLED;
}

static int is_reported_by_other(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && (info.st_mode & 0777) == CW_RUN_LIVE_REPORTED;
}

static void take_in(struct cw_run_account *account, struct cw_source_file *file)
{
    const struct cw_view *view = &file->image.view;
    const struct cw_live_header *header = cw_view_header(view);
    int has_ended = atomic_load(&header->exit_kind) != CW_EXIT_RUNNING;
    struct cw_report_tensors *tensors = cw_torch_read(&account->torch, view);
    int wrote = 0;

    account->reports.tensors = tensors;
    account->reports.process = has_ended ? CW_REPORT_PROCESS_DEAD : end_of(account, header);
    if (!is_reported_by_other(file->path)) {
        if (!has_ended)
            say_death(account, header->pid);
        wrote = cw_run_reports_write(&account->reports, file, has_ended);
    }
    if (add_process(account, view) != 0) {
        cw_cli_error("not enough memory to read '%s'; it is not included in the SUMMARY",
                     file->path);
        account->unreadable++;
    }
    account->reports.tensors = NULL;
    cw_torch_free(tensors);
    cw_run_live_settle(&account->live, file->path, wrote || !has_ended);
}

/* It is another program now, or not yet reaped. Its report waits for those of its later programs,
 * which the library would write over it. */
static int lives_on(const struct cw_source_file *file)
{
    const struct cw_live_header *header = cw_view_header(&file->image.view);

    return atomic_load(&header->exit_kind) == CW_EXIT_RUNNING && kill((pid_t)header->pid, 0) == 0;
}

/* 1 if its process has not ended. */
static int look_at(struct cw_run_account *account, const struct cw_live_name *name, int is_last)
{
    const char *path = name->path;
    struct cw_source_file file;
    enum cw_source source = cw_source_file_open(&file, path, name->named);
    int is_alive = source == CW_SOURCE_LIVE && file.is_alive;

    if (source == CW_SOURCE_LIVE && !is_alive) {
        if (is_last || !lives_on(&file))
            take_in(account, &file);
    } else if (source != CW_SOURCE_LIVE) {
        if (source == CW_SOURCE_GONE)
            cw_cli_error("cannot read '%s': somebody has removed it", path);
        account->unreadable++;
        cw_run_live_settle(&account->live, path, 0);
    }
    cw_source_file_close(&file);
    return is_alive;
}

/* Checks only the lock: files of running processes may be large. */
static int is_held(const struct cw_live_name *file)
{
    char why[WHY_MAX];
    int fd =
        cw_foreign_open(file->path, file->named, O_RDONLY, CW_FOREIGN_OWN, NULL, why, sizeof(why));
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
            running += (uint64_t)look_at(account, &files.file[i], is_last);
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

/* The same keys as in the report, summed up. */
static void print_sums(const struct cw_run_account *account)
{
    struct cw_snapshot_summary sum = account->verdict.sum;

    sum.peak_bytes = peak_of(account);
    fprintf(stderr, "cuwarden: SUMMARY: processes=%" PRIu64, account->processes);
#define X(key, member, unit, meaning) fprintf(stderr, " " key "=%" PRIu64, sum.member);
    CW_SUMMARY_KEYS(X)
#undef X
    fputc('\n', stderr);
}

int cw_run_account_is_inner(const struct cw_run_account *account)
{
    const char *slash = strrchr(account->live.home, '/');

    return slash && cw_live_dir_is_run(slash + 1);
}

/* Who else is on the device that was full; NULL if nobody, or it is not known. */
static const char *find_others(const struct cw_run_account *account, char *buf, size_t cap)
{
    static const struct cw_fleet nobody;
    static struct cw_gpus gpus;

    if (account->verdict.oom_uuid[0] == '\0')
        return NULL;
    cw_gpus_look(&gpus, &nobody);
    return *cw_gpus_others(&gpus, account->verdict.oom_uuid, buf, cap) ? buf : NULL;
}

static void print_verdict(struct cw_run_account *account, int has_reports)
{
    char others[OTHERS_MAX];
    struct cw_verdict_ending ending = {.peak_bytes = peak_of(account),
                                       .prefix = "cuwarden: ",
                                       .columns = cw_screen_columns(stderr)};

    ending.is_patched = account->options->deepbind == CW_DEEPBIND_PATCH;
    ending.others = find_others(account, others, sizeof(others));
    if (cw_verdict_is_bad(&account->verdict) && !has_reports)
        ending.next = account->next;
    cw_verdict_print(&account->verdict, &ending, stderr);
    cw_lines_tell(&account->reports.lines);
    if (account->torch.is_wanted && account->torch.processes == 0)
        cw_cli_warn("--torch: no process used PyTorch on a GPU, or Python was told by -E, -I or -S "
                    "not to read PYTHONPATH");
}

void cw_run_account_print(struct cw_run_account *account)
{
    size_t reports = cw_run_reports_finish(&account->reports, account->is_quiet);

    if (account->is_quiet)
        return;
    if (account->running > 0)
        cw_cli_warn("%s: %" PRIu64 "; see 'cuwarden report %s'",
                    account->processes > 0
                        ? "processes still running, not included in the SUMMARY"
                        : "no SUMMARY, because the processes that called CUDA are still running",
                    account->running, account->live.directory);
    if (account->live.directory[0] == '\0') {
        fprintf(stderr, "cuwarden: SUMMARY: unknown: there was no directory for live files\n");
    } else if (account->processes > 0) {
        if (!cw_run_account_is_inner(account))
            print_verdict(account, reports > 0);
        print_sums(account);
    } else if (account->verdict.refused + account->verdict.uncalled > 0) {
        print_verdict(account, reports > 0);
    }
}

void cw_run_account_free(struct cw_run_account *account)
{
    cw_verdict_free(&account->verdict);
    cw_run_reports_free(&account->reports);
    free(account->span);
    account->span = NULL;
    account->processes = 0;
}
