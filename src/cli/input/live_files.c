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
#include "cli/input/run_live.h"
#include "live/live_dir.h"
#include "cli/ui/message.h"

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

static int add(struct cw_live_files *files, const char *directory, const char *name,
               struct cw_live_name found)
{
    struct cw_live_name *grown;

    if (asprintf(&found.path, "%s/%s", directory, name) < 0)
        return -1;
    grown = reallocarray(files->file, files->count + 1, sizeof(*grown));
    if (!grown) {
        free(found.path);
        return -1;
    }
    files->file = grown;
    files->file[files->count++] = found;
    return 0;
}

static int add_all(struct cw_live_files *files, DIR *dir, const char *directory, uint32_t pid,
                   unsigned runs);

static int add_run(struct cw_live_files *files, int parent, const char *directory, const char *name,
                   uint32_t pid, unsigned runs)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    char *inner = NULL;
    int rc = 0;

    if (dir && asprintf(&inner, "%s/%s", directory, name) < 0)
        rc = -1;
    else if (dir)
        rc = add_all(files, dir, inner, pid, runs);
    else if (fd >= 0)
        close(fd);
    if (dir)
        closedir(dir);
    free(inner);
    return rc; /* a missing directory was removed with its run just now */
}

static int add_all(struct cw_live_files *files, DIR *dir, const char *directory, uint32_t pid,
                   unsigned runs)
{
    const struct dirent *entry;
    struct cw_live_name found;
    int rc = 0;

    while (rc == 0 && (entry = readdir(dir))) {
        if (parse_name(entry->d_name, &found) == 0 && (pid == 0 || found.pid == pid))
            rc = add(files, directory, entry->d_name, found);
        else if (runs > 0 && cw_run_live_is_name(entry->d_name))
            rc = add_run(files, dirfd(dir), directory, entry->d_name, pid, runs - 1);
    }
    return rc;
}

int cw_live_files_add(struct cw_live_files *files, const char *directory, uint32_t pid,
                      int with_runs)
{
    DIR *dir = opendir(directory);
    int rc;

    if (!dir)
        return -1;
    rc = add_all(files, dir, directory, pid, with_runs ? CW_RUNS_MAX : 0);
    closedir(dir);
    if (files->count > 1)
        qsort(files->file, files->count, sizeof(*files->file), compare);
    return rc;
}

/* The user that owns the process, or the caller if the process is gone. */
static uint32_t owner_of(uint32_t pid)
{
    char path[32];
    struct stat status;

    snprintf(path, sizeof(path), "/proc/%u", pid);
    return stat(path, &status) == 0 ? status.st_uid : geteuid();
}

static void search(struct cw_live_files *files, uint32_t pid, const char *directory, char *where,
                   size_t cap)
{
    size_t len = strlen(where);

    (void)cw_live_files_add(files, directory, pid, 1); /* a missing directory has no files */
    snprintf(where + len, cap - len, "%s%s", len > 0 ? ", " : "", directory);
}

void cw_live_files_of(struct cw_live_files *files, uint32_t pid, char *where, size_t cap)
{
    char directory[CW_PLACE_MAX];
    struct cw_options options;
    uint32_t uid = owner_of(pid);

    cw_options_parse(environ, 1, &options, NULL);
    where[0] = '\0';
    if (strcmp(options.live, "auto") != 0 && strcmp(options.live, "off") != 0)
        search(files, pid, options.live, where, cap);
    for (unsigned i = 0; i < CW_PLACE_DEFAULTS; i++) {
        if (cw_live_dir_default(i, uid, options.tmpdir, directory, sizeof(directory)) == 0)
            search(files, pid, directory, where, cap);
    }
}

/* A process that called exec leaves a file of the previous program: the newest one counts, but a
 * file whose process is running takes precedence. */
static const char *choose(const struct cw_live_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        int fd = open(files->file[i].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int is_locked = fd >= 0 && cw_live_dir_is_locked(fd) == 1;

        if (fd >= 0)
            close(fd);
        if (is_locked)
            return files->file[i].path;
    }
    return files->count > 0 ? files->file[0].path : NULL;
}

const char *cw_live_files_of_process(struct cw_live_files *files, const char *number)
{
    unsigned long pid = strtoul(number, NULL, 10);
    char where[4 * PATH_MAX];
    const char *path;

    if (strlen(number) > 10 || pid == 0 || pid > UINT32_MAX) {
        cw_cli_error("'%s' is not a process id; for a file of that name use ./%s", number, number);
        return NULL;
    }
    cw_live_files_of(files, (uint32_t)pid, where, sizeof(where));
    path = choose(files);
    if (!path)
        cw_cli_error(
            "no live file of process %s in %s; it is removed when the process ends normally, and "
            "is elsewhere if CUWARDEN_LIVE was set: name the file or its directory",
            number, where);
    return path;
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
    return cw_live_dir_is_locked(fd) == 1 || cw_live_file_is_mapped(pid, path);
}

void cw_live_files_free(struct cw_live_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->file[i].path);
    free(files->file);
    *files = (struct cw_live_files){.count = 0};
}
