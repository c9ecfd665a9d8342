/* SPDX-License-Identifier: MIT */
/* Telling live files from reports in JSON. See source_file.h. */
#include "cli/source_file.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/lines.h"

#define WHY_MAX   256
#define LOOK_SIZE 64 /* white space may stand in front of JSON */

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
    file->is_alive = file->image.is_locked == 1 ||
                     cw_live_file_is_mapped(cw_view_header(&file->image.view)->pid, file->path);
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
    report->demangle_arg = find_demangler();
    report->demangle = report->demangle_arg ? demangle : NULL;
    if (!file || !file->lines)
        return;
    report->lines = cw_debug_info_ops(file->lines->info);
    report->sysroot = file->lines->debug.sysroot;
}

int cw_source_file_write(const struct cw_source_file *file, const struct cw_model_request *request,
                         enum cw_report_form form, int fd)
{
    struct cw_report_request report = {
        .form = form,
        .process = file->is_alive ? CW_REPORT_PROCESS_ALIVE : CW_REPORT_PROCESS_DEAD,
        .fd = fd,
        .version = PACKAGE_VERSION,
        .suppressions = request->suppressions,
        .old_ns = request->old_ns,
    };

    cw_source_file_prepare(file, &report);
    return cw_report_write(&file->image.view, &report);
}

/* Not one of the numbers 0 to 2, whose owners may have closed them. */
static int create_memory_file(void)
{
    int fd = memfd_create("cuwarden-report", MFD_CLOEXEC), high;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return high;
}

int cw_source_file_make(const struct cw_source_file *file, const struct cw_model_request *request,
                        enum cw_report_form form)
{
    int fd = create_memory_file();

    if (fd >= 0 && cw_source_file_write(file, request, form, fd) == 0)
        return fd;
    cw_cli_error("'%s': no room in memory for its report", file->path);
    if (fd >= 0)
        close(fd);
    return -1;
}

int cw_source_file_to_json(struct cw_source_file *file, const struct cw_model_request *request)
{
    if (file->fd < 0)
        file->fd = cw_source_file_make(file, request, CW_REPORT_JSON);
    return file->fd < 0 ? -1 : 0;
}
