/* SPDX-License-Identifier: MIT */
/*
 * Finds processes and reads them repeatedly. See fleet.h.
 *
 * A process is identified by the path of its live file, whose name is random; of names that lead to
 * one file, which others can make, one counts. Ended processes are not read again. Files are open
 * only while they are read, so there may be more of them than descriptors.
 */
#include "cli/fleet/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/options/option_values.h"
#include "cli/ui/exit_status.h"
#include "cli/input/foreign_file.h"
#include "cli/input/live_files.h"
#include "cli/ui/message.h"

#define WHY_MAX 256
const char *cw_fleet_state_name(enum cw_fleet_state state)
{
    static const char *const names[] = {
        [CW_FLEET_RUNNING] = "running", [CW_FLEET_ENDED] = "ended", [CW_FLEET_DIED] = "died"};

    return names[state];
}

/* ---- one process ---- */

static void free_process(struct cw_fleet_process *process)
{
    cw_look_free(&process->look);
    free(process->path);
    free((char *)process->exe);
    free((char *)process->command);
    free((char *)process->host);
    free(process->device);
    for (uint32_t i = 0; i < process->budgets; i++)
        free(process->budget[i].pattern);
    free(process);
}

static int fail_memory(void)
{
    cw_cli_error("out of memory");
    return -1;
}

static int read_names(struct cw_fleet_process *process)
{
    const struct cw_view *view = &process->look.view;
    const struct cw_live_header *header = cw_view_header(view);

    process->pid = header->pid;
    process->ppid = header->ppid;
    process->is_in_other_pid_namespace = cw_foreign_is_elsewhere(header->pid_namespace);
    process->start_realtime_ns = header->start_realtime_ns;
    process->exe = strdup(cw_view_text(view, header->exe));
    process->command = strdup(cw_view_text(view, header->command));
    process->host = strdup(cw_view_text(view, header->host));
    return process->exe && process->command && process->host ? 0 : fail_memory();
}

/* Checks whether it runs before reading anything: a dead process writes nothing more. */
static enum cw_fleet_state state_of(const struct cw_fleet_process *process, int was_in_use)
{
    const struct cw_live_header *header = cw_view_header(&process->look.view);

    if (atomic_load(&header->exit_kind) != CW_EXIT_RUNNING)
        return CW_FLEET_ENDED;
    return was_in_use ? CW_FLEET_RUNNING : CW_FLEET_DIED;
}

/* 1: read; 0: unreadable, with the reason in `why`; -1 after a message. */
static int look_at(struct cw_fleet_process *process, int fd, uint32_t pid, char *why)
{
    unsigned tables =
        CW_LOOK_AT(CW_TABLE_SITE) | CW_LOOK_AT(CW_TABLE_BUCKET) | CW_LOOK_AT(CW_TABLE_TAG);
    int is_first = process->looked_ns == 0;
    int is_in_use = cw_live_file_is_in_use(fd, pid, process->path);
    uint64_t now = cw_clock_ns();

    if (is_first)
        tables |= CW_LOOK_AT(CW_TABLE_TEXT);
    if (cw_look_take(&process->look, fd, tables, why, WHY_MAX) != 0)
        return 0;
    if (is_first && read_names(process) != 0)
        return -1;
    if (cw_fleet_has_new_budget(process)) {
        if (!is_first &&
            cw_look_take(&process->look, fd, tables | CW_LOOK_AT(CW_TABLE_TEXT), why, WHY_MAX) != 0)
            return 0;
        if (cw_fleet_name_budgets(process) != 0)
            return fail_memory();
    }
    cw_fleet_read_budgets(process);
    process->state = state_of(process, is_in_use);
    process->invalid_frees = atomic_load(&cw_view_header(&process->look.view)->invalid_frees);
    if (cw_fleet_read_devices(process, now) != 0)
        return fail_memory();
    process->looked_ns = now;
    if (process->state !=
        CW_FLEET_RUNNING) /* its numbers are final; the copy is no longer needed */
        cw_look_free(&process->look);
    return 1;
}

/* ---- whom ---- */

int cw_fleet_add_pid(struct cw_fleet_choice *choice, const char *text)
{
    uint64_t pid;
    uint32_t *grown;

    if (cw_count_parse(text, &pid) != 0 || pid == 0 || pid > INT32_MAX) {
        cw_cli_error("'%s' is not a process id", text);
        return -1;
    }
    grown = reallocarray(choice->pid, choice->pids + 1, sizeof(*grown));
    if (!grown)
        return fail_memory();
    choice->pid = grown;
    choice->pid[choice->pids++] = (uint32_t)pid;
    return 0;
}

int cw_fleet_add_directory(struct cw_fleet_choice *choice, const char *path)
{
    struct stat info;
    struct stat other;
    const char **grown;

    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        cw_cli_error("--directory: '%s' is not a directory", path);
        return -1;
    }
    for (size_t i = 0; i < choice->directories; i++) /* by another name */
        if (stat(choice->directory[i], &other) == 0 && other.st_dev == info.st_dev &&
            other.st_ino == info.st_ino)
            return 0;
    grown = reallocarray(choice->directory, choice->directories + 1, sizeof(*grown));
    if (!grown)
        return fail_memory();
    choice->directory = grown;
    choice->directory[choice->directories++] = path;
    return 0;
}

void cw_fleet_choice_free(struct cw_fleet_choice *choice)
{
    free(choice->pid);
    free(choice->directory);
    *choice = (struct cw_fleet_choice){.pids = 0};
}

/* ---- all of them ---- */

static struct cw_fleet_process *find(const struct cw_fleet *fleet, const char *path)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (strcmp(fleet->process[i]->path, path) == 0)
            return fleet->process[i];
    }
    return NULL;
}

/* Whether the file was found in this refresh, under another name. */
static int is_repeated(const struct cw_fleet *fleet, const struct stat *file)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const struct cw_fleet_process *process = fleet->process[i];

        if (process->is_there && process->inode == file->st_ino && process->volume == file->st_dev)
            return 1;
    }
    return 0;
}

/* Asks only once for each user: the answer may come from far away. */
static void name_user(const struct cw_fleet *fleet, struct cw_fleet_process *process)
{
    const struct passwd *entry;

    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->process[i]->uid != process->uid)
            continue;
        memcpy(process->user, fleet->process[i]->user, sizeof(process->user));
        return;
    }
    entry = getpwuid(process->uid);
    if (entry)
        snprintf(process->user, sizeof(process->user), "%s", entry->pw_name);
    else
        snprintf(process->user, sizeof(process->user), "%u", (unsigned)process->uid);
}

static struct cw_fleet_process *add(struct cw_fleet *fleet, const struct cw_live_name *name,
                                    uint32_t uid)
{
    struct cw_fleet_process *process = calloc(1, sizeof(*process));
    struct cw_fleet_process **grown =
        reallocarray(fleet->process, fleet->count + 1, sizeof(struct cw_fleet_process *));

    if (grown)
        fleet->process = grown;
    if (process)
        *process =
            (struct cw_fleet_process){.path = strdup(name->path), .named = name->named, .uid = uid};
    if (!grown || !process || !process->path) {
        if (process)
            free(process->path);
        free(process);
        return NULL;
    }
    name_user(fleet, process);
    fleet->process[fleet->count++] = process;
    return process;
}

static int has_enough_of(const struct cw_fleet *fleet, uint32_t uid)
{
    size_t count = 0;

    for (size_t i = 0; uid != geteuid() && i < fleet->count; i++)
        count += fleet->process[i]->uid == uid;
    return count >= CW_FLEET_MOST_OF_OTHER;
}

static void note_unreadable(struct cw_fleet *fleet, const char *path, const char *why)
{
    if (fleet->unreadable++ == 0)
        snprintf(fleet->why, sizeof(fleet->why), "'%.240s' %s", path, why);
}

/* 1: read; 0: unreadable, with the reason in `why`; -1 after a message. */
static int look_into(struct cw_fleet *fleet, struct cw_fleet_process *process,
                     const struct cw_live_name *name, int fd, char *why)
{
    struct stat file;
    int rc;

    if (fstat(fd, &file) != 0 || is_repeated(fleet, &file))
        return 1;
    if (!process && has_enough_of(fleet, file.st_uid)) {
        snprintf(why, WHY_MAX, "is one of more than %u live files of user %u",
                 CW_FLEET_MOST_OF_OTHER, (unsigned)file.st_uid);
        return 0;
    }
    if (!process)
        process = add(fleet, name, file.st_uid);
    rc = process ? look_at(process, fd, name->pid, why) : fail_memory();
    if (rc == 1) {
        process->is_there = 1;
        process->uid = file.st_uid;
        process->volume = file.st_dev;
        process->inode = file.st_ino;
    }
    return rc;
}

/* 0, or -1 after a message. */
static int visit(struct cw_fleet *fleet, const struct cw_live_name *name)
{
    struct cw_fleet_process *process = find(fleet, name->path);
    char why[WHY_MAX] = "";
    struct stat file;
    int fd, rc = 0;

    if (process && (process->is_there || (process->looked_ns && process->state))) {
        process->is_there = 1; /* found twice, or already ended */
        return 0;
    }
    if (lstat(name->path, &file) == 0 && is_repeated(fleet, &file))
        return 0;
    fd = cw_live_file_open(name, O_RDONLY, NULL, why, sizeof(why));
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd >= 0) {
        rc = look_into(fleet, process, name, fd, why);
        close(fd);
    } else if (why[0] == '\0') {
        snprintf(why, sizeof(why), "cannot be read: %s", strerror(errno));
    }
    if (rc == 0)
        note_unreadable(fleet, name->path, why);
    return rc < 0 ? -1 : 0;
}

/* Before any file, so that the reason given is this one. */
static void note_lost(struct cw_fleet *fleet, const char *directory)
{
    if (fleet->unreadable++ == 0)
        snprintf(fleet->why, sizeof(fleet->why), "cannot read '%.240s': %s", directory,
                 strerror(errno));
    fleet->has_lost = 1;
}

static void find_files(struct cw_fleet *fleet, struct cw_live_files *files,
                       const struct cw_fleet_choice *choice)
{
    static const uint32_t anybody;
    const uint32_t *pid = choice->pids ? choice->pid : &anybody;
    size_t pids = choice->pids ? choice->pids : 1;
    char where[4 * PATH_MAX];

    for (size_t i = 0; i < pids; i++) {
        if (choice->directories == 0)
            cw_live_files_of(files, pid[i], where, sizeof(where));
        for (size_t k = 0; k < choice->directories; k++)
            if (cw_live_files_add(files, choice->directory[k], pid[i], 1) != 0 && i == 0 &&
                errno != ENOENT) /* it was there at the start: what has gone has no files */
                note_lost(fleet, choice->directory[k]);
    }
}

static void drop_gone(struct cw_fleet *fleet)
{
    size_t kept = 0;

    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->process[i]->is_there)
            fleet->process[kept++] = fleet->process[i];
        else
            free_process(fleet->process[i]);
    }
    fleet->count = kept;
}

static int compare(const void *a, const void *b)
{
    const struct cw_fleet_process *x = *(struct cw_fleet_process *const *)a;
    const struct cw_fleet_process *y = *(struct cw_fleet_process *const *)b;
    int x_ended = x->state != CW_FLEET_RUNNING, y_ended = y->state != CW_FLEET_RUNNING;

    if (x_ended != y_ended)
        return x_ended - y_ended;
    if (x->start_realtime_ns != y->start_realtime_ns)
        return x->start_realtime_ns < y->start_realtime_ns ? 1 : -1;
    return strcmp(x->path, y->path);
}

int cw_fleet_look(struct cw_fleet *fleet, const struct cw_fleet_choice *choice)
{
    struct cw_live_files files = {.count = 0};
    int rc = 0;

    fleet->unreadable = 0;
    fleet->has_lost = 0;
    for (size_t i = 0; i < fleet->count; i++)
        fleet->process[i]->is_there = 0;
    find_files(fleet, &files, choice);
    for (size_t i = 0; rc == 0 && i < files.count; i++)
        rc = visit(fleet, &files.file[i]);
    cw_live_files_free(&files);
    drop_gone(fleet);
    if (fleet->count > 1)
        qsort(fleet->process, fleet->count, sizeof(struct cw_fleet_process *), compare);
    return rc;
}

void cw_fleet_free(struct cw_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++)
        free_process(fleet->process[i]);
    free(fleet->process);
    *fleet = (struct cw_fleet){.count = 0};
}
