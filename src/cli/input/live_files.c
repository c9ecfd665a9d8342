/* SPDX-License-Identifier: MIT */
/*
 * Finds live files by directory or process. Names follow live/live_dir.h; other files are ignored.
 * Files of programs under `cuwarden run` are one directory deeper, and those of a run inside a run
 * one more.
 */
#include "cli/input/live_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options/options.h"
#include "base/sys.h"
#include "cli/input/foreign_file.h"
#include "cli/input/run_live.h"
#include "live/file_lock.h"
#include "live/live_copy.h"
#include "live/live_dir.h"
#include "cli/ui/message.h"

#define WHY_MAX      256
#define SKIPPED_TOLD 10 /* one by one; others can make as many as they like */

/* Parses PID-START-RANDOM.live; 0, or -1 for any other name. */
static int parse_name(const char *name, struct cw_live_name *out)
{
    unsigned long long start;
    const char *suffix;
    unsigned pid;
    int len = 0;

    if (name[0] < '0' || name[0] > '9' ||
        sscanf(name, "%u-%llu-%*[0-9a-f]%n", &pid, &start, &len) != 2 || len == 0)
        return -1;
    suffix = name + len;
    if (strcmp(suffix, CW_PLACE_SUFFIX) != 0)
        return -1;
    *out = (struct cw_live_name){.pid = pid, .start = start};
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct cw_live_name *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? 1 : -1;
    return strcmp(x->path, y->path);
}

/* One directory, with the directories of runs in it. */
struct search {
    struct cw_live_files *files;
    size_t named; /* length of the directory's name */
    uint32_t pid; /* 0: all */
};

static int add(const struct search *search, const char *directory, const char *name,
               struct cw_live_name found)
{
    struct cw_live_files *files = search->files;
    struct cw_live_name *grown;
    char *path;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return -1;
    grown = reallocarray(files->file, files->count + 1, sizeof(*grown));
    if (!grown) {
        free(path);
        return -1;
    }
    found.path = path;
    found.named = search->named;
    files->file = grown;
    files->file[files->count++] = found;
    return 0;
}

static int add_all(const struct search *search, DIR *dir, const char *directory, unsigned runs);

static int add_run(const struct search *search, int parent, const char *directory, const char *name,
                   unsigned runs)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    char *inner = NULL;
    int rc = 0;

    if (dir && asprintf(&inner, "%s/%s", directory, name) < 0)
        rc = -1;
    else if (dir)
        rc = add_all(search, dir, inner, runs);
    else if (fd >= 0)
        close(fd);
    if (dir)
        closedir(dir);
    free(inner);
    return rc; /* a missing directory was removed with its run just now */
}

static int add_all(const struct search *search, DIR *dir, const char *directory, unsigned runs)
{
    const struct dirent *entry;
    struct cw_live_name found;
    int rc = 0;

    while (rc == 0 && (entry = readdir(dir))) {
        if (parse_name(entry->d_name, &found) == 0 &&
            (search->pid == 0 || found.pid == search->pid))
            rc = add(search, directory, entry->d_name, found);
        else if (runs > 0 && cw_live_dir_is_run(entry->d_name))
            rc = add_run(search, dirfd(dir), directory, entry->d_name, runs - 1);
    }
    return rc;
}

static int add_directory(const struct search *search, DIR *dir, const char *directory,
                         int with_runs)
{
    struct cw_live_files *files = search->files;
    int rc = add_all(search, dir, directory, with_runs ? CW_RUNS_MAX : 0);

    if (files->count > 1)
        qsort(files->file, files->count, sizeof(*files->file), compare);
    return rc;
}

int cw_live_files_add(struct cw_live_files *files, const char *directory, uint32_t pid,
                      int with_runs)
{
    struct search search = {.files = files, .named = strlen(directory), .pid = pid};
    DIR *dir = opendir(directory);
    int rc;

    if (!dir)
        return -1;
    rc = add_directory(&search, dir, directory, with_runs);
    closedir(dir);
    return rc;
}

static void say_where(char *where, size_t cap, const char *directory, const char *but)
{
    size_t len = strlen(where);

    snprintf(where + len, cap - len, "%s%s%s", len > 0 ? ", " : "", directory, but);
}

/* A default directory, which the library uses only if it is the user's own and no link: whoever
 * came first has made it otherwise. */
static void search_default(const struct search *search, const char *directory, uint32_t uid,
                           char *where, size_t cap)
{
    int fd = cw_sys_open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int is_missing = fd < 0 && errno == ENOENT, is_own = 0;
    struct stat info;
    DIR *dir = NULL;

    if (fd >= 0 && cw_sys_stat(fd, &info) == 0 && info.st_uid == uid) {
        is_own = 1;
        dir = fdopendir(fd);
    }
    if (dir)
        (void)add_directory(search, dir, directory, 1);
    say_where(where, cap, directory,
              is_missing || is_own ? "" : " (ignored: it is not the user's own directory)");
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
}

void cw_live_files_of(struct cw_live_files *files, uint32_t pid, char *where, size_t cap)
{
    struct search search = {.files = files, .pid = pid};
    char directory[CW_PLACE_MAX];
    const char *named;
    struct cw_options options;
    uint32_t uid = cw_foreign_owner_of(pid);

    cw_options_parse(environ, 1, &options, NULL);
    where[0] = '\0';
    named = cw_live_dir_named(options.live, directory, sizeof(directory));
    if (named && strcmp(named, "off") != 0) {
        (void)cw_live_files_add(files, named, pid, 1); /* a missing one has no files */
        say_where(where, cap, named, "");
    }
    for (unsigned i = 0; i < CW_PLACE_DEFAULTS; i++) {
        if (cw_live_dir_default(i, uid, options.tmpdir, directory, sizeof(directory)) != 0)
            continue;
        search.named = strlen(directory);
        search_default(&search, directory, uid, where, cap);
    }
}

/* ---- opening ---- */

struct cw_live_name cw_live_name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct cw_live_name found = {.pid = 0};

    if (parse_name(name, &found) != 0)
        found.pid = 0;
    found.path = path;
    found.named = 0;
    return found;
}

int cw_live_file_open(const struct cw_live_name *name, int flags, uint32_t *out_uid, char *why,
                      size_t cap)
{
    struct cw_live_identity identity;
    uint32_t uid;
    int fd = cw_foreign_open(name->path, name->named, flags, CW_FOREIGN_OWN, &uid, why, cap);

    if (fd < 0)
        return -1;
    if (cw_live_copy_check(fd, &identity, why, cap) == 0 &&
        cw_foreign_check_process(uid, name->pid, &identity, why, cap) == 0) {
        if (out_uid)
            *out_uid = uid;
        return fd;
    }
    close(fd);
    errno = EPERM;
    return -1;
}

/* Opens a file in which the process with this id, as it counts here, may be looked for: not one of
 * another user, whatever its header says of namespaces. The descriptor, or -1 and why not. */
static int open_candidate(const struct cw_live_name *name, uint32_t *out_uid, char *why, size_t cap)
{
    int fd = cw_foreign_open(name->path, name->named, O_RDONLY, CW_FOREIGN_OWN, out_uid, why, cap);

    if (fd >= 0 && cw_foreign_is_of_other(name->pid, *out_uid)) {
        snprintf(why, cap, "belongs to user %u, but process %u does not", (unsigned)*out_uid,
                 (unsigned)name->pid);
        close(fd);
        errno = EPERM;
        fd = -1;
    } else if (fd < 0 && why[0] == '\0') {
        snprintf(why, cap, "cannot be read: %s", strerror(errno));
    }
    return fd;
}

/* A process that called exec leaves a file of the previous program: the newest one counts, but a
 * file whose process is running takes precedence. Of processes that are gone nothing tells whose
 * file is true: *out_other is one of another user than the newest's (only root reads both), or
 * NULL. */
static const struct cw_live_name *choose(const struct cw_live_files *files,
                                         const struct cw_live_name **out_other)
{
    const struct cw_live_name *newest = NULL;
    uint32_t newest_uid = 0;
    size_t skipped = 0;
    char why[WHY_MAX];

    *out_other = NULL;
    for (size_t i = 0; i < files->count; i++) {
        uint32_t uid;
        int fd = open_candidate(&files->file[i], &uid, why, sizeof(why));
        int is_locked = fd >= 0 && cw_file_lock_is_claimed(fd) == 1;

        if (fd < 0 && errno == ENOENT)
            continue; /* removed just now */
        if (fd < 0) {
            if (skipped++ < SKIPPED_TOLD)
                cw_cli_warn("'%s' %s; skipped", files->file[i].path, why);
            continue;
        }
        close(fd);
        if (is_locked) {
            *out_other = NULL;
            newest = &files->file[i];
            break;
        }
        if (newest && uid != newest_uid)
            *out_other = &files->file[i];
        newest_uid = newest ? newest_uid : uid;
        newest = newest ? newest : &files->file[i];
    }
    if (skipped > SKIPPED_TOLD)
        cw_cli_warn("%zu more files were skipped", skipped - SKIPPED_TOLD);
    return newest;
}

const struct cw_live_name *cw_live_files_of_process(struct cw_live_files *files, const char *number)
{
    unsigned long pid = strtoul(number, NULL, 10);
    const struct cw_live_name *name, *other;
    char where[4 * PATH_MAX];

    if (strlen(number) > 10 || pid == 0 || pid > UINT32_MAX) {
        cw_cli_error("'%s' is not a process id; for a file of that name use ./%s", number, number);
        return NULL;
    }
    cw_live_files_of(files, (uint32_t)pid, where, sizeof(where));
    name = choose(files, &other);
    if (name && other) {
        cw_cli_error("'%s' and '%s' belong to different users; name one of them", name->path,
                     other->path);
        return NULL;
    }
    if (!name)
        cw_cli_error(
            "no live file of process %s in %s; it is removed when the process ends normally, and "
            "is elsewhere if CUWARDEN_LIVE was set: name the file or its directory",
            number, where);
    return name;
}

/* Whether the process still maps the file, for when the lock does not tell. */
int cw_live_file_is_mapped(uint32_t pid, const char *path)
{
    const char *slash = strrchr(path, '/');
    char line[PATH_MAX + 128];
    int is_there = 0;
    FILE *maps;

    snprintf(line, sizeof(line), "/proc/%u/maps", pid);
    maps = fopen(line, "re");
    if (!maps)
        return 0;
    while (!is_there && fgets(line, sizeof(line), maps))
        is_there = strstr(line, slash ? slash + 1 : path) != NULL;
    fclose(maps);
    return is_there;
}

int cw_live_file_is_in_use(int fd, uint32_t pid, const char *path)
{
    return cw_file_lock_is_claimed(fd) == 1 || cw_live_file_is_mapped(pid, path);
}

void cw_live_files_free(struct cw_live_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free((char *)files->file[i].path);
    free(files->file);
    *files = (struct cw_live_files){.count = 0};
}
