/* SPDX-License-Identifier: MIT */
/*
 * Names of reports, and atomic file creation. See path.h.
 *
 * With %n, the name is reserved by creating an empty file, so that two processes never get the same
 * number; the finished report then replaces it.
 */
#include "report/path/path.h"

#include <errno.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/links.h"
#include "base/out.h"
#include "base/random.h"
#include "base/sys.h"

#define NUMBER_MAX 1000000

/* ---- the template ---- */

/* What is filled in is one component of the path at most, and no other directory than it is in. */
static void put_component(struct cw_out *out, const char *name)
{
    int is_directory = name[strspn(name, ".")] == '\0';

    for (; *name; name++)
        cw_out_char(out, *name == '/' || is_directory ? '_' : *name);
}

static const char *find_variable(char *const *env, const char *name, size_t len)
{
    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return "";
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Starts at the letter after '%'; returns the position after the escape, or NULL if it is not
 * one. */
static const char *put_escape(struct cw_out *out, const char *at,
                              const struct cw_path_values *values)
{
    const char *close;

    switch (*at) {
    case 'p':
        cw_out_printf(out, "%u", values->pid);
        return at + 1;
    case 'h':
        put_component(out, values->host ? values->host : "");
        return at + 1;
    case 'e':
        put_component(out, values->program ? last_component(values->program) : "");
        return at + 1;
    case 't':
        cw_out_printf(out, "%ju", (uintmax_t)values->start_seconds);
        return at + 1;
    case 'n':
        cw_out_printf(out, "%u", values->number);
        return at + 1;
    case 'r':
        put_component(out, values->rank && values->rank[0] ? values->rank : "0");
        return at + 1;
    case '%':
        cw_out_char(out, '%');
        return at + 1;
    case 'q':
        close = at[1] == '{' ? strchr(at, '}') : NULL;
        if (!close)
            return NULL;
        put_component(out, find_variable(values->env, at + 2, (size_t)(close - at - 2)));
        return close + 1;
    default:
        return NULL;
    }
}

int cw_path_expand(char *buf, size_t cap, const char *pattern, const struct cw_path_values *values)
{
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap - 1);
    while (*pattern) {
        const char *rest = *pattern == '%' ? put_escape(&out, pattern + 1, values) : NULL;

        if (!rest) {
            cw_out_char(&out, *pattern);
            rest = pattern + 1;
        }
        pattern = rest;
    }
    buf[out.len] = '\0';
    return out.truncated ? -1 : 0;
}

int cw_path_names_file(const char *pattern)
{
    return pattern[0] != '\0' && strcmp(pattern, "-") != 0 && strcmp(pattern, "off") != 0;
}

int cw_path_ends_in(const char *pattern, const char *extension)
{
    size_t len = strlen(pattern), wants = strlen(extension);

    return len > wants && strcmp(pattern + len - wants, extension) == 0;
}

int cw_path_has_number(const char *pattern)
{
    for (; *pattern; pattern++) {
        if (*pattern != '%' || pattern[1] == '\0')
            continue;
        pattern++;
        if (*pattern == 'n')
            return 1;
    }
    return 0;
}

/* ---- what tells processes apart ---- */

/* Launcher variables: RANK, PMI_RANK, SLURM_PROCID and the like. */
static int is_name_of_rank(const char *name, size_t len)
{
    static const char *const parts[] = {"RANK", "PROCID"};

    for (size_t i = 0; i < CW_ARRAY_LEN(parts); i++)
        if (memmem(name, len, parts[i], strlen(parts[i])) != NULL)
            return 1;
    return 0;
}

/* Starts at the letter after '%'. */
static int tells_apart(const char *at)
{
    const char *close;

    if (*at != 'q')
        return *at == 'p' || *at == 'n' || *at == 'r';
    close = at[1] == '{' ? strchr(at, '}') : NULL;
    return close && is_name_of_rank(at + 2, (size_t)(close - at - 2));
}

int cw_path_is_replaceable(const char *path)
{
    struct stat info;

    return cw_sys_stat_path(path, &info) != 0 || S_ISREG(info.st_mode);
}

int cw_path_is_shared(const char *pattern)
{
    for (const char *at = strchr(pattern, '%'); at && at[1] != '\0'; at = strchr(at + 2, '%'))
        if (tells_apart(at + 1))
            return 0;
    return cw_path_is_replaceable(pattern);
}

/* ---- the extension ---- */

/* Only letters and digits: an escape is part of the name. */
static int is_extension(const char *text)
{
    if (*text == '\0')
        return 0;
    for (; *text != '\0'; text++)
        if (!((*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
              (*text >= 'A' && *text <= 'Z')))
            return 0;
    return 1;
}

/* The beginning of the last component's extension, or the end. */
static size_t extension_of(const char *pattern)
{
    const char *slash = strrchr(pattern, '/'), *name = slash ? slash + 1 : pattern;
    const char *dot = strrchr(name, '.');

    if (dot != NULL && dot != name && is_extension(dot + 1))
        return (size_t)(dot - pattern);
    return strlen(pattern);
}

int cw_path_insert(char *buf, size_t cap, const char *pattern, const char *text)
{
    size_t at = extension_of(pattern);
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap - 1);
    cw_out_write(&out, pattern, at);
    cw_out_string(&out, text);
    cw_out_string(&out, pattern + at);
    buf[out.len] = '\0';
    return out.truncated ? -1 : 0;
}

/* ---- the file ---- */

static void make_directories(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* any obstacle shows when the file is opened */
        *slash = '/';
    }
}

int cw_report_path_create(char *path, int flags)
{
    int fd = cw_sys_open(path, O_CREAT | O_NONBLOCK | flags, 0666);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    make_directories(path);
    return cw_sys_open(path, O_CREAT | O_NONBLOCK | flags, 0666);
}

static int build_name(char *path, const char *pattern, const char *suffix,
                      const struct cw_path_values *values)
{
    size_t len;

    if (cw_path_expand(path, CW_PATH_MAX, pattern, values) != 0)
        return ENAMETOOLONG;
    len = strlen(path);
    if (len == 0)
        return ENOENT;
    if (len + strlen(suffix) + 1 > CW_PATH_MAX)
        return ENAMETOOLONG;
    memcpy(path + len, suffix, strlen(suffix) + 1);
    return 0;
}

static int is_there(const char *path)
{
    struct stat info;

    return cw_sys_stat_path(path, &info) == 0;
}

int cw_report_path_reserve(char *path, const char *pattern, const char *suffix, const char *other,
                           struct cw_path_values *values)
{
    for (values->number = 1; values->number < NUMBER_MAX; values->number++) {
        int error = other != NULL ? build_name(path, pattern, other, values) : 0;
        int is_taken = error == 0 && other != NULL && is_there(path), fd;

        if (error == 0)
            error = build_name(path, pattern, suffix, values);
        if (error != 0)
            return error;
        if (is_taken)
            continue;
        fd = cw_report_path_create(path, O_WRONLY | O_EXCL);
        if (fd >= 0) {
            cw_sys_close(fd);
            return 0;
        }
        if (errno != EEXIST)
            return errno;
    }
    return EEXIST;
}

/* Nobody can have made it before, or foretold its name. */
static int open_temporary(struct cw_report_file *file)
{
    size_t len = cw_format(file->temporary, sizeof(file->temporary), "%s.tmp.%016jx", file->path,
                           (uintmax_t)cw_random());

    if (len >= sizeof(file->temporary)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return cw_report_path_create(file->temporary, O_WRONLY | O_EXCL | O_NOFOLLOW);
}

/* There is no temporary file: its room is for the name. */
static int open_in_place(struct cw_report_file *file)
{
    return cw_links_open(file->path, O_WRONLY | O_TRUNC | O_NONBLOCK, file->temporary,
                         sizeof(file->temporary));
}

/* A FIFO, a device, or a link. */
static int open_stream(struct cw_report_file *file)
{
    return cw_links_open_stream(file->path, O_WRONLY | O_NONBLOCK, file->temporary,
                                sizeof(file->temporary));
}

/* What is there would be gone, and no room for what replaces it. */
static int is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

static int open_for_writing(struct cw_report_file *file)
{
    int error = ENOENT;

    if (cw_path_is_replaceable(file->path)) {
        file->fd = open_temporary(file);
        file->renames = file->fd >= 0;
        error = errno;
        if (file->fd < 0 && !is_full(error)) /* in a directory where nothing can be made */
            file->fd = open_in_place(file);
    } else {
        file->fd = open_stream(file);
    }
    if (file->fd >= 0)
        return 0;
    return errno != ENOENT ? errno : error;
}

int cw_report_file_open(struct cw_report_file *file, const char *pattern, const char *suffix,
                        const char *other, struct cw_path_values *values)
{
    int error;

    memset(file, 0, sizeof(*file));
    file->fd = -1;
    if (cw_path_has_number(pattern) && values->number == 0) {
        error = cw_report_path_reserve(file->path, pattern, suffix, other, values);
        file->reserved = error == 0;
    } else {
        error = build_name(file->path, pattern, suffix, values);
    }
    if (error == 0)
        error = open_for_writing(file);
    if (error != 0 && file->reserved)
        unlink(file->path);
    return error;
}

/* Where the file is another machine's, what did not fit is said here first (close(2), ENOSPC). */
static int close_file(int fd)
{
    return syscall(SYS_close, fd) != 0 && errno != EINTR ? -1 : 0;
}

int cw_report_file_close(struct cw_report_file *file, int error)
{
    if (file->fd < 0)
        return error;
    if (close_file(file->fd) != 0 && error == 0)
        error = errno;
    file->fd = -1;
    if (error == 0 && file->renames && rename(file->temporary, file->path) != 0)
        error = errno;
    if (error != 0 && file->renames)
        unlink(file->temporary);
    if (error != 0 && file->reserved)
        unlink(file->path);
    return error;
}
