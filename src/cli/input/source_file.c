/* SPDX-License-Identifier: MIT */
/* Telling live files from reports in JSON. See source_file.h. */
#include "cli/input/source_file.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/out.h"
#include "cli/input/file_kind.h"
#include "cli/input/foreign_file.h"
#include "cli/input/lines.h"
#include "cli/input/live_files.h"
#include "cli/ui/message.h"
#include "report/symbols/demangle.h"

#define WHY_MAX   256
#define LOOK_SIZE 4096 /* white space may precede JSON */
#define COPY_SIZE 65536

static int is_json(int fd)
{
    char begin[LOOK_SIZE];
    ssize_t len = pread(fd, begin, sizeof(begin), 0);
    ssize_t at = 0;

    while (at < len && isspace((unsigned char)begin[at]))
        at++;
    return at < len && begin[at] == '{';
}

/* What is neither JSON nor of a known kind: NULL if it may be a live file. */
static const char *what_else(int fd)
{
    uint64_t magic = 0;
    struct stat info;

    if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return "neither a file nor a pipe: name a live file or a report in JSON";
    if (pread(fd, &magic, sizeof(magic), offsetof(struct cw_live_header, magic)) > 0 &&
        magic != CW_LIVE_MAGIC)
        return "neither a live file nor a report in JSON";
    return NULL;
}

static enum cw_source read_live(struct cw_source_file *file)
{
    char why[WHY_MAX];
    int rc = cw_live_copy_read(file->fd, &file->image, why, sizeof(why));

    close(file->fd);
    file->fd = -1;
    if (rc != 0) {
        cw_cli_error("'%s' %s", file->path, why);
        return CW_SOURCE_NONE;
    }
    file->is_alive = file->image.is_locked == 1 ||
                     cw_live_file_is_mapped(cw_view_header(&file->image.view)->pid, file->path);
    return CW_SOURCE_LIVE;
}

/* Avoids descriptors 0 to 2, which may be closed. */
static int create_memory_file(void)
{
    int fd = memfd_create("cuwarden-report", MFD_CLOEXEC), high;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return high;
}

/* ---- pipes: they can be read only once, from the beginning ---- */

static int copy_all(int from, int to)
{
    static char buf[COPY_SIZE];
    ssize_t got;

    while ((got = read(from, buf, sizeof(buf))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        errno = cw_write(to, buf, (size_t)got, 0);
        if (errno)
            return -1;
    }
    return 0;
}

/* Copies everything from the pipe into file->fd. 0, or -1 with errno. */
static int drain(struct cw_source_file *file)
{
    int flags = fcntl(file->fd, F_GETFL);
    int memory = create_memory_file();
    int rc = -1, error;

    if (memory >= 0 && flags >= 0 && fcntl(file->fd, F_SETFL, flags & ~O_NONBLOCK) == 0)
        rc = copy_all(file->fd, memory);
    error = errno;
    close(file->fd);
    file->fd = memory;
    errno = error;
    return rc;
}

static int is_pipe(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

/* "-" is standard input; opening it anew gives a descriptor that we may change. */
static int open_source(const char *path)
{
    if (strcmp(path, "-") == 0)
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Replaces file->fd by its decompressed content. 0, or -1 after a message. */
static int gunzip(struct cw_source_file *file)
{
    int memory = create_memory_file();
    int rc = -1;

    if (memory >= 0)
        rc = cw_file_gunzip(file->fd, memory, file->path);
    else
        cw_cli_error("'%s': cannot decompress it in memory: %s", file->path, strerror(errno));
    close(file->fd);
    file->fd = memory;
    return rc;
}

enum cw_source cw_source_file_open_found(struct cw_source_file *file,
                                         const struct cw_live_name *name)
{
    char why[WHY_MAX];

    *file = (struct cw_source_file){.path = name->path};
    file->fd = cw_live_file_open(name, O_RDONLY, NULL, why, sizeof(why));
    if (file->fd >= 0)
        return read_live(file);
    if (why[0] == '\0' && errno == ENOENT)
        return CW_SOURCE_GONE;
    if (why[0])
        cw_cli_error("'%s' %s", name->path, why);
    else
        cw_cli_error("cannot read '%s': %s", name->path, strerror(errno));
    return CW_SOURCE_NONE;
}

enum cw_source cw_source_file_open(struct cw_source_file *file, const char *path, size_t named)
{
    char why[WHY_MAX] = "";
    const char *kind;

    *file = (struct cw_source_file){.path = path};
    file->fd = named == 0 ? open_source(path)
                          : cw_foreign_open(path, named, O_RDONLY, CW_FOREIGN_DIRECTORY, NULL, why,
                                            sizeof(why));
    if (why[0]) {
        cw_cli_error("'%s' %s", path, why);
        return CW_SOURCE_NONE;
    }
    if (file->fd < 0 && errno == ENOENT && named != 0)
        return CW_SOURCE_GONE;
    if (file->fd < 0 || (is_pipe(file->fd) && drain(file) != 0)) {
        cw_cli_error("cannot read '%s': %s", path, strerror(errno));
        return CW_SOURCE_NONE;
    }
    if (cw_file_is_gzip(file->fd) && gunzip(file) != 0)
        return CW_SOURCE_NONE;
    if (is_json(file->fd))
        return CW_SOURCE_JSON;
    kind = cw_file_kind(file->fd);
    if (!kind)
        kind = what_else(file->fd);
    if (!kind)
        return read_live(file);
    cw_cli_error("'%s' is %s", path, kind);
    return CW_SOURCE_NONE;
}

void cw_source_file_close(struct cw_source_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    cw_live_copy_free(&file->image);
}

static void *find_demangler(void)
{
    static void *library;

    if (!library)
        library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    return library ? dlsym(library, "__cxa_demangle") : NULL;
}

void cw_report_prepare(const struct cw_lines *lines, struct cw_report_request *report)
{
    report->demangle_arg = find_demangler();
    report->demangle = report->demangle_arg ? cw_demangle : NULL;
    if (!lines)
        return;
    report->lines = cw_debug_info_ops(lines->info);
    report->sysroot = lines->debug.sysroot;
}
