/* SPDX-License-Identifier: MIT */
/* Telling live files from reports in JSON. See source_file.h. */
#include "cli/source_file.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define WHY_MAX   256
#define LOOK_SIZE 64 /* white space may stand in front of JSON */

/* Where the lock does not tell: whether the process still has the file mapped. */
static int is_mapped(uint32_t pid, const char *path)
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

static int is_json(int fd)
{
    char begin[LOOK_SIZE];
    ssize_t len = pread(fd, begin, sizeof(begin), 0);
    ssize_t at = 0;

    while (at < len && isspace((unsigned char)begin[at]))
        at++;
    return at < len && begin[at] == '{';
}

static enum cw_source read_live(struct cw_source_file *file)
{
    char why[WHY_MAX];
    int rc = cw_image_read(file->fd, &file->image, why, sizeof(why));

    close(file->fd);
    file->fd = -1;
    if (rc != 0) {
        cw_cli_error("'%s' %s", file->path, why);
        return CW_SOURCE_NONE;
    }
    file->is_alive =
        file->image.is_locked == 1 || is_mapped(cw_view_header(&file->image.view)->pid, file->path);
    return CW_SOURCE_LIVE;
}

enum cw_source cw_source_file_open(struct cw_source_file *file, const char *path)
{
    *file =
        (struct cw_source_file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file->fd < 0) {
        cw_cli_error("cannot read '%s': %s", path, strerror(errno));
        return CW_SOURCE_NONE;
    }
    return is_json(file->fd) ? CW_SOURCE_JSON : read_live(file);
}

void cw_source_file_close(struct cw_source_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    cw_image_free(&file->image);
}

typedef char *(*demangle_fn)(const char *mangled, char *buf, size_t *len, int *status);

static const char *demangle(const char *mangled, void *arg)
{
    static char *last;
    int status = -1;

    free(last);
    last = ((demangle_fn)arg)(mangled, NULL, NULL, &status);
    return status == 0 ? last : NULL;
}

static void *find_demangler(void)
{
    static void *library;

    if (!library)
        library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    return library ? dlsym(library, "__cxa_demangle") : NULL;
}

void cw_source_file_prepare(const struct cw_source_file *file, struct cw_report_request *report)
{
    (void)file;
    report->demangle_arg = find_demangler();
    report->demangle = report->demangle_arg ? demangle : NULL;
}
