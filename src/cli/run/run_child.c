/* SPDX-License-Identifier: MIT */
/*
 * Running a program as a child. See run_child.h.
 *
 * The child stays in our process group, so that the shell sees one job and the terminal's signals
 * reach both of us. All signals are blocked here and taken synchronously, so there are no handlers
 * and nothing is interrupted. Signals that are not passed on:
 *   - those from the kernel for the terminal's keys, size and job control: the child gets them too;
 *   - those that the child sends to its group or its parent;
 *   - SIGCONT to a child that is not stopped: it has received it, or does not need it.
 * A signal sent to the whole group by kill(2) cannot be distinguished from one for us alone, and
 * reaches the child twice.
 *
 * When we are killed, so is the child (PR_SET_PDEATHSIG): whoever kills the command means the
 * program, as timeout -s KILL does, and an unnoticed survivor would hold its device. Only SIGKILL
 * ends us before the child, so a hangup, nohup or setsid never causes this.
 *
 * Only the child holds the pipes and sockets that it inherited: when it closes one, the other end
 * notices. We keep stderr for the final lines, and other files, because closing them would release
 * locks (lockf) that we inherited through exec.
 *
 * We may also have to reap processes other than our child: as the first process of a container, or
 * if a shell with children executed us.
 */
#include "cli/run/run_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/sys.h"

#define TICK_NS UINT64_C(2000000000)

static const int of_terminal[] = {SIGINT,  SIGQUIT,  SIGTSTP, SIGTTIN,
                                  SIGTTOU, SIGWINCH, SIGCONT, SIGHUP};
static const int that_end_us[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM};

/* ---- its start ---- */

static void __attribute__((noreturn))
become_program(const struct cw_run_child *child, char **argv, pid_t parent, int failure)
{
    int error;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent was killed before it was set */
        _exit(EXIT_FAILURE);
    sigaction(SIGCHLD, &child->ending, NULL);
    sigprocmask(SIG_SETMASK, &child->mask, NULL);
    execvp(argv[0], argv);
    error = errno;
    if (write(failure, &error, sizeof(error)) < 0)
        _exit(EXIT_FAILURE);
    _exit(EXIT_SUCCESS);
}

/* 1 if it is a pipe or socket that the program inherited: our own files are close-on-exec. */
static int is_given_link(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    struct stat info;

    return flags >= 0 && !(flags & FD_CLOEXEC) && fstat(fd, &info) == 0 &&
           (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

/* The standard descriptors stay in use, so that no other file gets them. */
static void let_go(int fd, int null)
{
    if (fd > STDERR_FILENO)
        close(fd);
    else if (fd != STDERR_FILENO && null >= 0)
        dup3(null, fd, 0);
}

static void let_go_of_links(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);

        if (entry->d_name[0] != '.' && is_given_link(fd))
            let_go(fd, null);
    }
    if (dir)
        closedir(dir);
    if (null >= 0)
        close(null);
}

static void take_signals(struct cw_run_child *child)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &child->mask);
    sigaction(SIGCHLD, &usual, &child->ending); /* if ignored, there would be no status */
}

int cw_run_child_start(struct cw_run_child *child, char **argv, int keeps_files)
{
    pid_t parent = getpid();
    int failure[2];

    if (pipe2(failure, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    take_signals(child);
    child->failure = failure[0];
    child->pid = fork();
    if (child->pid == 0)
        become_program(child, argv, parent, failure[1]);
    close(failure[1]);
    if (child->pid > 0) {
        if (!keeps_files)
            let_go_of_links();
        return 0;
    }
    close(failure[0]);
    sigaction(SIGCHLD, &child->ending, NULL);
    sigprocmask(SIG_SETMASK, &child->mask, NULL);
    return -1;
}

/* ---- signals ---- */

static int is_one_of(int number, const int *list, size_t count)
{
    while (count > 0)
        if (list[--count] == number)
            return 1;
    return 0;
}

/* A terminal's hangup is sent to its session leader only. */
static int comes_from_terminal(const siginfo_t *info)
{
    if (info->si_code != SI_KERNEL ||
        !is_one_of(info->si_signo, of_terminal, CW_ARRAY_LEN(of_terminal)))
        return 0;
    return info->si_signo != SIGHUP || getsid(0) != getpid();
}

/* 1 if one of the events has happened to the child since the last one reported. */
static int has_event(const struct cw_run_child *child, int events)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)child->pid, &info, events | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
}

static void pass_on(struct cw_run_child *child, const siginfo_t *info)
{
    int number = info->si_signo;

    if (comes_from_terminal(info))
        return;
    if (info->si_code <= 0 && (info->si_pid == child->pid || info->si_pid == getpid()))
        return;
    if (number == SIGCONT && !child->has_stopped_alone && !has_event(child, WSTOPPED))
        return;
    if (number == SIGCONT)
        child->has_stopped_alone = 0;
    if (info->si_code == SI_QUEUE)
        sigqueue(child->pid, number, info->si_value);
    else
        kill(child->pid, number);
}

/* 1 if the signal was pending. */
static int take(int number)
{
    static const struct timespec now;
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, number);
    return sigtimedwait(&one, NULL, &now) == number;
}

/* Stops with the child, so that the shell sees the job stopped, and continues it when we are
 * continued, unless it was continued with us and stopped again meanwhile. Uses SIGSTOP, whatever
 * stopped the child: the other signals stay blocked, so that a second one cannot stop us
 * unnoticed.
 *
 * The terminal may stop the group again between our last look at the child and our SIGCONT, which
 * would undo that stop for good. Its signal is then pending here, since the SIGCONT that continued
 * us discarded all earlier ones; the child gets it again. */
static void stop_too(const struct cw_run_child *child)
{
    static const int any = WEXITED | WSTOPPED | WCONTINUED;
    static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};

    if (has_event(child, any))
        return;
    if (!take(SIGCONT))
        raise(SIGSTOP);
    (void)take(SIGCONT);
    if (has_event(child, any))
        return;
    kill(child->pid, SIGCONT);
    for (size_t i = 0; i < CW_ARRAY_LEN(stops); i++)
        if (take(stops[i]))
            kill(child->pid, stops[i]);
}

/* A SIGSTOP to the program alone, from a debugger or cpulimit, ends with a SIGCONT to it alone, of
 * which we would hear nothing if we had stopped. Without a terminal there is no shell, either, that
 * waits for the job to stop. */
static int is_for_the_job(int status)
{
    int terminal;

    if (WSTOPSIG(status) != SIGSTOP)
        return 1;
    terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return 0;
    close(terminal);
    return 1;
}

/* Reaps ended processes other than our child. */
static void reap_others(const struct cw_run_child *child)
{
    siginfo_t info = {.si_pid = 0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
           info.si_pid != child->pid) {
        (void)waitpid(info.si_pid, NULL, WNOHANG);
        info.si_pid = 0;
    }
}

/* Until a signal comes, which is in *out, or it is time. 0: it is time. */
static int wait_until(uint64_t moment_ns, siginfo_t *out)
{
    uint64_t now = cw_clock_ns(), left = moment_ns > now ? moment_ns - now : 0;
    struct timespec rest = {.tv_sec = (time_t)(left / 1000000000),
                            .tv_nsec = (long)(left % 1000000000)};
    sigset_t all;

    sigfillset(&all);
    return left != 0 && sigtimedwait(&all, out, &rest) >= 0;
}

int cw_run_child_wait(struct cw_run_child *child, void (*idle)(void *arg), void *arg)
{
    uint64_t next_ns = cw_clock_ns() + TICK_NS;
    siginfo_t info;
    int status;

    for (;;) {
        pid_t pid = waitpid(child->pid, &status, WNOHANG | WUNTRACED);

        if (pid == child->pid && !WIFSTOPPED(status))
            return status;
        if (pid == child->pid) {
            child->has_stopped_alone = !is_for_the_job(status);
            if (!child->has_stopped_alone)
                stop_too(child);
            continue;
        }
        reap_others(child);
        if (wait_until(next_ns, &info)) {
            if (info.si_signo != SIGCHLD)
                pass_on(child, &info);
        } else if (cw_clock_ns() >= next_ns) {
            idle(arg);
            next_ns = cw_clock_ns() + TICK_NS;
        }
    }
}

/* ---- its end ---- */

int cw_run_child_failure(const struct cw_run_child *child)
{
    int error;

    return read(child->failure, &error, sizeof(error)) == sizeof(error) ? error : 0;
}

void cw_run_child_release(const struct cw_run_child *child)
{
    static const struct timespec now;
    sigset_t set;

    close(child->failure);
    sigfillset(&set);
    while (sigtimedwait(&set, NULL, &now) > 0)
        continue;
    sigemptyset(&set);
    for (size_t i = 0; i < CW_ARRAY_LEN(that_end_us); i++)
        if (!sigismember(&child->mask, that_end_us[i]))
            sigaddset(&set, that_end_us[i]);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void cw_run_child_die(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    struct rlimit none = {.rlim_cur = 0};
    sigset_t one;

    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0); /* a core piped to a program ignores the limit */
    sigaction(number, &usual, NULL);
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    kill(getpid(), number);
    _exit(128 + number);
}
