/* SPDX-License-Identifier: MIT */
/*
 * Opens the file of the trace. See trace_file.h.
 *
 * The file is always new: another process may have the old one mapped, and would be killed if it
 * were truncated. Owns the name, which stays for the life of the process; the first caller after a
 * start or fork makes it.
 */
#include "hook/services/trace_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "base/out.h"
#include "base/reason.h"
#include "base/sys.h"
#include "core/process/session.h"
#include "core/account/trace.h"
#include "hook/settings.h"
#include "report/path/path.h"
#include "report/report.h"

#define NUMBER_MAX 1000000u
/* The lowest descriptor of the file: a program may rely on the numbers of its own. */
#define HIGH_FD 512

static _Atomic int opened;
static _Atomic int opening; /* at the program's request */
static int is_child;
static char path[CW_PATH_MAX];

void cw_trace_file_forked(void)
{
    atomic_store(&opened, 0);
    atomic_store(&opening, 0);
    is_child = 1;
}

static int move_high(int fd)
{
    int high = cw_sys_fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

    if (high < 0)
        return fd;
    cw_sys_close(fd);
    return high;
}

/* 0, or the errno; EINVAL if it is not a regular file. */
static int clear_name(void)
{
    struct stat info;

    if (cw_sys_stat_path(path, &info) != 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    if (!S_ISREG(info.st_mode))
        return EINVAL;
    return unlink(path) == 0 ? 0 : errno;
}

/* The descriptor, or -1 with errno. */
static int create(void)
{
    int fd = cw_report_path_create(path, O_RDWR | O_EXCL);

    return fd < 0 ? -1 : move_high(fd);
}

static int create_numbered(const char *pattern, struct cw_path_values *values)
{
    for (values->number = 1; values->number < NUMBER_MAX; values->number++) {
        int fd;

        if (cw_path_expand(path, sizeof(path), pattern, values) != 0) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = create();
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    errno = EEXIST;
    return -1;
}

static int create_named(const char *pattern, const struct cw_path_values *values)
{
    errno = ENAMETOOLONG;
    if (cw_path_expand(path, sizeof(path), pattern, values) != 0)
        return -1;
    errno = clear_name();
    return errno != 0 ? -1 : create();
}

static int has_process_id(const char *pattern)
{
    for (const char *at = strchr(pattern, '%'); at != NULL && at[1] != '\0'; at = strchr(at, '%')) {
        if (at[1] == 'p')
            return 1;
        at += 2;
    }
    return 0;
}

static void complain(int error)
{
    if (error == EINVAL)
        cw_log(CW_LOG_WARN,
               "no trace: '%s' is not a regular file, or its file system does not support mmap; "
               "CUWARDEN_TRACE=FILE names another",
               path);
    else
        cw_log(CW_LOG_WARN,
               "no trace: '%s' cannot be written: %s (errno %d); CUWARDEN_TRACE=FILE names another",
               path, cw_reason(error), error);
}

static int begin(int fd)
{
    int error = fd < 0 ? errno : cw_trace_begin(&cw_session.arena, fd, path);

    if (error != 0 && fd >= 0) {
        cw_sys_close(fd);
        unlink(path);
    }
    return error;
}

int cw_trace_file_start(const char *name)
{
    int saved = errno, error;

    if (cw_trace_has_file() || atomic_exchange(&opening, 1))
        return EBUSY;
    cw_format(path, sizeof(path), "%s", name);
    error = clear_name();
    if (error == 0)
        error = begin(create());
    atomic_store(&opening, 0);
    errno = saved;
    return error;
}

void cw_trace_file_open(const struct cw_options *options)
{
    const char *pattern = options->trace;
    int has_number = cw_path_has_number(pattern), saved = errno, fd, error;
    struct cw_path_values values;
    struct cw_view view;

    if (!cw_path_names_file(pattern) || atomic_exchange(&opened, 1) ||
        (is_child && !has_number && !has_process_id(pattern)))
        return;
    cw_arena_view(&cw_session.arena, &view);
    cw_report_path_values(&view, cw_settings_environment(), &values);
    fd = has_number ? create_numbered(pattern, &values) : create_named(pattern, &values);
    error = begin(fd);
    if (error != 0)
        complain(error == ENODEV ? EINVAL : error);
    errno = saved;
}
