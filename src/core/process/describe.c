/* SPDX-License-Identifier: MIT */
/* Name, arguments, place and rank of the process. See describe.h. */
#include "core/process/describe.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/own_path.h"
#include "base/sys.h"
#include "core/process/session.h"

#define COMMAND_MAX 4096

static uint32_t text_of_own_path(void)
{
    char path[PATH_MAX];

    return cw_own_path(path, sizeof(path)) == 0
               ? cw_arena_text(&cw_session.arena, path, strlen(path))
               : 0;
}

/* The arguments as the kernel has them: argv of main is not ours to read. */
static void describe_command(struct cw_live_header *header)
{
    char buf[COMMAND_MAX];
    int fd = cw_sys_open("/proc/self/cmdline", O_RDONLY, 0);
    size_t len = fd >= 0 ? cw_sys_read_at(fd, buf, sizeof(buf), 0) : 0;

    if (fd >= 0)
        cw_sys_close(fd);
    header->is_argv_cut = len == sizeof(buf);
    len -= header->is_argv_cut;
    if (cw_session.options->argv == CW_ARGV_OFF) {
        size_t name = strnlen(buf, len) + 1;

        header->is_argv_cut |= name < len;
        len = name < len ? name : len;
    }
    if (len == 0) {
        header->command = header->exe; /* better than no name at all */
        return;
    }
    buf[len] = '\0';
    header->argv = cw_arena_text(&cw_session.arena, buf, len);
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != '\0')
            continue;
        header->argc++;
        if (i + 1 < len)
            buf[i] = ' ';
    }
    header->command = cw_arena_text(&cw_session.arena, buf, strlen(buf));
}

static void describe_rank(struct cw_live_header *header, const struct cw_launcher *launcher)
{
    if (!launcher)
        return;
    if (launcher->rank[0] != '\0')
        header->rank = cw_arena_text(&cw_session.arena, launcher->rank, strlen(launcher->rank));
    if (launcher->envc > 0)
        header->env = cw_arena_text(&cw_session.arena, launcher->env, launcher->env_len - 1);
    if (header->env != 0)
        header->envc = launcher->envc;
}

/* So that a reader elsewhere does not take another process for this one. */
static uint32_t own_namespace(void)
{
    int fd = cw_sys_open("/proc/self/ns/pid", O_RDONLY, 0);
    struct stat info = {.st_ino = 0};

    if (fd < 0)
        return 0;
    (void)cw_sys_stat(fd, &info);
    cw_sys_close(fd);
    return (uint32_t)info.st_ino;
}

#define RUN(field, end)                                                                            \
    {                                                                                              \
        offsetof(struct cw_live_header, field), offsetof(struct cw_live_header, end)               \
    }

/* All that is filled here, for readers. */
static void show(const struct cw_live_header *header)
{
    static const struct {
        size_t from, to;
    } runs[] = {RUN(pid, end_ns), RUN(driver_version, untracked_frees), RUN(is_argv_cut, python),
                RUN(rank, audit), RUN(pid_namespace, unseen)};

    for (size_t i = 0; i < CW_ARRAY_LEN(runs); i++)
        cw_arena_show(&cw_session.arena, (const char *)header + runs[i].from,
                      runs[i].to - runs[i].from);
}

#undef RUN

void cw_describe_process(const struct cw_launcher *launcher, unsigned driver_version)
{
    struct cw_live_header *header = cw_arena_own(&cw_session.arena, cw_session.arena.header);
    struct utsname system;
    char cwd[PATH_MAX];

    cw_session.pid = getpid();
    cw_session.start_ns = cw_session.ops->now_ns();
    cw_session.start_realtime_ns = cw_clock_real_ns();
    cw_session.driver_version = driver_version;
    header->pid = (uint32_t)cw_session.pid;
    header->ppid = (uint32_t)getppid();
    header->pid_namespace = own_namespace();
    header->start_realtime_ns = cw_session.start_realtime_ns;
    header->start_ns = cw_session.start_ns;
    header->driver_version = driver_version;
    header->stacks_mode = (uint32_t)cw_session.options->stacks;
    header->exe = text_of_own_path();
    describe_command(header);
    describe_rank(header, launcher);
    if (getcwd(cwd, sizeof(cwd)) != NULL)
        header->cwd = cw_arena_text(&cw_session.arena, cwd, strlen(cwd));
    if (uname(&system) == 0)
        header->host = cw_arena_text(&cw_session.arena, system.nodename, strlen(system.nodename));
    show(header);
}
