/* SPDX-License-Identifier: MIT */
/* Where results go. See destination.h. */
#include "cli/ui/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/links.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"
#include "report/path/path.h"

#define DEFAULT_PAGER "if command -v less >/dev/null; then less; else cat; fi"
/* A command that is not found has read nothing. */
#define PAGER_OR_CAT "eval \"$1\"; case $? in 126 | 127) cat ;; esac"
#define LETTERS      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LESS_FLAGS   "FRX" /* like git: quit if the text fits the screen, keep colours */

static int fail(struct cw_destination *destination)
{
    cw_cli_error("cannot write '%s': %s", destination->name ? destination->name : destination->path,
                 strerror(errno));
    destination->failed = 1;
    return -1;
}

void cw_destination_set_path(struct cw_destination *destination, const char *path)
{
    destination->path = strcmp(path, "-") == 0 ? NULL : path;
}

/* ---- the form ---- */

int cw_destination_is_strange(const char *name)
{
    static const char *const texts[] = {"txt", "log", "out", "err", "report", "rpt", "live"};
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strrchr(base, '.');
    size_t len = dot ? strlen(dot + 1) : 0;

    if (len < 2 || len > 6 || dot == base || strspn(dot + 1, LETTERS) != len)
        return 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(texts); i++)
        if (strcasecmp(dot + 1, texts[i]) == 0)
            return 0;
    return 1;
}

int cw_destination_form(const struct cw_destination *destination, const struct cw_named_form *forms,
                        const char **out_form)
{
    const char *path = destination->path;
    char list[128] = ".txt";
    size_t len = strlen(list);

    *out_form = NULL;
    for (const struct cw_named_form *form = forms; path && form->extension; form++) {
        if (cw_path_ends_in(path, form->extension)) {
            *out_form = form->form;
            return 0;
        }
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
                                form[1].extension ? ", " : " and ", form->extension);
    }
    if (!path || !cw_destination_is_strange(path))
        return 0;
    cw_cli_error("--output: '%s' ends in none of %s; choose one, or name the form with --format",
                 path, list);
    return -1;
}

/* ---- colours ---- */

void cw_destination_set_color(struct cw_destination *destination, const char *value)
{
    destination->color = strcmp(value, "always") == 0  ? CW_COLOR_ALWAYS
                         : strcmp(value, "never") == 0 ? CW_COLOR_NEVER
                                                       : CW_COLOR_AUTO;
}

static int is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

static int goes_to_terminal(const struct cw_destination *destination)
{
    return !destination->path && isatty(STDOUT_FILENO);
}

int cw_destination_has_color(const struct cw_destination *destination)
{
    const char *terminal = getenv("TERM");

    if (!destination->is_text || destination->color == CW_COLOR_NEVER)
        return 0;
    if (destination->color == CW_COLOR_ALWAYS)
        return 1;
    return goes_to_terminal(destination) && !is_set("NO_COLOR") && terminal &&
           strcmp(terminal, "dumb") != 0;
}

/* ---- the pager ---- */

static void run_pager(const char *pager, const int ends[2])
{
    dup2(ends[0], STDIN_FILENO);
    setenv("LESS", LESS_FLAGS, 0); /* keeps the user's value */
    execl("/bin/sh", "sh", "-c", PAGER_OR_CAT, "sh", pager, (char *)NULL);
    _exit(CW_EXIT_NOT_FOUND);
}

/* If the pager does not start, the text is printed directly. */
static int open_pager(struct cw_destination *destination, const char *pager)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    destination->out = fdopen(ends[1], "w");
    destination->pager = destination->out ? fork() : -1;
    if (destination->pager == 0)
        run_pager(pager, ends);
    close(ends[0]);
    if (destination->pager > 0) {
        signal(SIGPIPE, SIG_IGN); /* the user may quit it early */
        signal(SIGINT, SIG_IGN);  /* is the pager's, to end a search, and it stays in front */
        signal(SIGQUIT, SIG_IGN);
        return 0;
    }
    destination->pager = 0;
    if (destination->out)
        fclose(destination->out);
    else
        close(ends[1]);
    return -1;
}

static const char *pager_of(const struct cw_destination *destination)
{
    const char *pager = getenv("PAGER");

    if (!destination->is_text || destination->without_pager || !goes_to_terminal(destination))
        return NULL;
    if (!pager)
        return DEFAULT_PAGER;
    return *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

static int open_stdout(struct cw_destination *destination)
{
    const char *pager = pager_of(destination);

    if (!pager || open_pager(destination, pager) != 0)
        destination->out = stdout;
    return 0;
}

/* ---- files ---- */

/* Not descriptors 0 to 2, which may be closed. */
static int above_standard(int fd)
{
    int high;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return high;
}

/* The permissions of the user's existing file, or else those of a new one: another user must not
 * choose who may read and write ours. */
static mode_t mode_for(const struct stat *status)
{
    mode_t mask;

    if (status && status->st_uid == geteuid())
        return status->st_mode & 0777;
    mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int open_in_place(struct cw_destination *destination)
{
    char file[PATH_MAX];
    int fd = cw_links_open_stream(destination->path, O_WRONLY, file, sizeof(file));

    destination->out = fd < 0 ? NULL : fdopen(fd, "w");
    return destination->out ? 0 : fail(destination);
}

/* Any obstacle shows when the file is created. */
static void make_directories(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}

/* `target` was allocated, or is NULL. */
static int open_temporary(struct cw_destination *destination, char *target,
                          const struct stat *status)
{
    int fd;

    destination->target = target;
    if (!destination->target ||
        asprintf(&destination->temporary, "%s.XXXXXX", destination->target) < 0) {
        destination->temporary = NULL;
        return fail(destination);
    }
    if (destination->makes_directories)
        make_directories(destination->target);
    fd = above_standard(mkostemp(destination->temporary, O_CLOEXEC));
    if (fd < 0) {
        free(destination->temporary);
        destination->temporary = NULL;
        return fail(destination);
    }
    (void)fchmod(fd, mode_for(status)); /* otherwise it is private to the user */
    destination->out = fdopen(fd, "w");
    if (destination->out)
        return 0;
    fail(destination);
    close(fd);
    return -1;
}

static int refuse_strange(struct cw_destination *destination, const char *what, const char *way_out)
{
    cw_cli_error("'%s' is a %s that another user made; name %s", destination->path, what, way_out);
    destination->failed = 1;
    return -1;
}

/* Devices, FIFOs and what procfs names (/dev/stdout, to which others write, too) are written to
 * directly. */
static int open_file(struct cw_destination *destination)
{
    char file[PATH_MAX];
    enum cw_links_end end;
    struct stat status;
    int is_there;

    if (cw_links_follow(destination->path, file, sizeof(file), &end) != 0) {
        if (errno != EPERM)
            return fail(destination);
        return refuse_strange(destination, "symbolic link", "its file");
    }
    is_there = end == CW_LINKS_KERNEL ? stat(file, &status) == 0 : lstat(file, &status) == 0;
    if (is_there && S_ISLNK(status.st_mode)) { /* since just now */
        errno = ELOOP;
        return fail(destination);
    }
    if (is_there && end == CW_LINKS_FILE && S_ISFIFO(status.st_mode) &&
        cw_links_is_of_other(&status))
        return refuse_strange(destination, "FIFO", "another file");
    if (is_there && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return fail(destination);
    }
    if (is_there && access(file, W_OK) != 0)
        return fail(destination);
    if (end == CW_LINKS_KERNEL || (is_there && !S_ISREG(status.st_mode)))
        return open_in_place(destination);
    return open_temporary(destination, strdup(file), is_there ? &status : NULL);
}

static void forget_names(struct cw_destination *destination)
{
    free(destination->temporary);
    free(destination->target);
    destination->temporary = destination->target = NULL;
}

int cw_destination_open(struct cw_destination *destination)
{
    if (destination->failed)
        return -1;
    if (destination->out)
        return 0;
    if ((destination->path ? open_file(destination) : open_stdout(destination)) == 0)
        return 0;
    if (destination->temporary)
        unlink(destination->temporary);
    forget_names(destination);
    return -1;
}

/* An earlier write error, which stays in errno because nothing else sets it. */
static int past_error(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO ? errno : 0;
}

static void say_incomplete(struct cw_destination *destination, int error)
{
    cw_cli_error("cannot write all of the %s to %s%s%s", destination->noun,
                 destination->path ? destination->path : "standard output", error ? ": " : "",
                 error ? strerror(error) : "");
    destination->failed = 1;
}

int cw_destination_flush(struct cw_destination *destination)
{
    int past;

    if (!destination->out || destination->failed)
        return destination->failed ? -1 : 0;
    past = past_error();
    errno = 0;
    if (fflush(destination->out) == 0 && !ferror(destination->out))
        return 0;
    if (destination->pager > 0 && errno == EPIPE) {
        clearerr(destination->out);
        return 0;
    }
    say_incomplete(destination, errno ? errno : past);
    __fpurge(destination->out); /* not reported again at the end */
    clearerr(destination->out);
    return -1;
}

/* The reader of a pipe may have read enough, as in a shell pipeline: end silently. */
static void leave_broken_pipe(const struct cw_destination *destination)
{
    struct pollfd end = {.fd = fileno(destination->out), .events = POLLOUT};

    if (destination->out == stdout && poll(&end, 1, 0) == 1 && end.revents & POLLERR)
        raise(SIGPIPE);
}

int cw_destination_fail(struct cw_destination *destination)
{
    int past = past_error();

    errno = past;
    if (cw_destination_flush(destination) != 0)
        return -1;
    if (destination->pager > 0)
        return 0;
    leave_broken_pipe(destination);
    say_incomplete(destination, past);
    return -1;
}

static int name_file(struct cw_destination *destination)
{
    int rc = 0;

    if (destination->failed)
        unlink(destination->temporary);
    else if (rename(destination->temporary, destination->target) != 0) {
        rc = fail(destination);
        unlink(destination->temporary);
    }
    return rc;
}

int cw_destination_close(struct cw_destination *destination)
{
    int rc = cw_destination_flush(destination);

    if (destination->out && destination->out != stdout && fclose(destination->out) != 0 &&
        destination->pager == 0 && rc == 0)
        rc = fail(destination);
    destination->out = NULL;
    while (destination->pager > 0 && waitpid(destination->pager, NULL, 0) < 0 && errno == EINTR)
        ;
    destination->pager = 0;
    if (destination->temporary && name_file(destination) != 0)
        rc = -1;
    forget_names(destination);
    return rc;
}
