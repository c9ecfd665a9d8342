/* SPDX-License-Identifier: MIT */
/*
 * Running a program as a child. See run_child.h.
 *
 * The child stays in our process group, so that the shell sees one job and the terminal's signals
 * reach both of us: these are not passed on. All signals are blocked here and taken one by one, so
 * there are no handlers and nothing is interrupted. What is not passed on:
 *   - what the kernel sends for the terminal's keys, size and job control: the child has it too;
 *   - what the child sends to its group or its parent;
 *   - SIGCONT to a child that is not stopped: it has had it, or does not need it.
 * A signal that somebody sends to the whole group by kill(2) looks like one for us alone, and
 * reaches the child twice.
 *
 * When we are killed the child is too (PR_SET_PDEATHSIG): who kills the command means the program,
 * as timeout -s KILL does, and one that goes on unseen would hold its device. Nothing less than
 * SIGKILL ends us before the child, so no hangup, nohup or setsid comes to this.
 *
 * The child alone holds the pipes and sockets that it was given: when it closes one, whoever is at
 * the other end sees that. We keep stderr, on which there is something to say at the end; and other
 * files, because a lock (lockf) that came to us by exec would go with them.
 *
 * Processes that are not our child may become ours to wait for: where we are the first process of a
 * container, and where a shell that had children became us.
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

#include "base/sys.h"

#define TICK_SECONDS 2

static const int of_terminal[] = {SIGINT,  SIGQUIT,  SIGTSTP, SIGTTIN,
                                  SIGTTOU, SIGWINCH, SIGCONT, SIGHUP};
static const int that_end_us[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- its start ---- */

static void __attribute__((noreturn))
become_program(const struct cw_run_child *child, char **argv, pid_t parent, int failure)
{
    int error;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* we were killed before it was set */
        _exit(EXIT_FAILURE);
    sigaction(SIGCHLD, &child->ending, NULL);
    sigprocmask(SIG_SETMASK, &child->mask, NULL);
    execvp(argv[0], argv);
    error = errno;
    if (write(failure, &error, sizeof(error)) < 0)
        _exit(EXIT_FAILURE);
    _exit(EXIT_SUCCESS);
}

/* 1 if it has another end and the program was given it: what we open does not outlive an exec. */
static int is_given_link(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    struct stat info;

    return flags >= 0 && !(flags & FD_CLOEXEC) && fstat(fd, &info) == 0 &&
           (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

/* The numbers of the standard files stay taken, so that nothing else gets them. */
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
    sigaction(SIGCHLD, &usual, &child->ending); /* ignored, there would be no status */
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

/* The hangup of a terminal is told to the leader of its session alone. */
static int comes_from_terminal(const siginfo_t *info)
{
    if (info->si_code != SI_KERNEL || !is_one_of(info->si_signo, of_terminal, COUNT(of_terminal)))
        return 0;
    return info->si_signo != SIGHUP || getsid(0) != getpid();
}

/* 1 if one of the events has happened to the child since we have last been told of it. */
static int has_event(const struct cw_run_child *child, int events)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)child->pid, &info, events | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
}

static void pass_on(const struct cw_run_child *child, const siginfo_t *info)
{
    int number = info->si_signo;

    if (comes_from_terminal(info))
        return;
    if (info->si_code <= 0 && (info->si_pid == child->pid || info->si_pid == getpid()))
        return;
    if (number == SIGCONT && !has_event(child, WSTOPPED))
        return;
    if (info->si_code == SI_QUEUE)
        sigqueue(child->pid, number, info->si_value);
    else
        kill(child->pid, number);
}

/* 1 if the signal was waiting. */
static int take(int number)
{
    static const struct timespec now;
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, number);
    return sigtimedwait(&one, NULL, &now) == number;
}

/* The shell shall see the job stopped, and who continues us means the child. That may have been
 * continued with us, and stopped once more: then it is to stay so. By SIGSTOP, whatever stopped the
 * child: the others stay blocked, so that a second one does not stop us unnoticed. */
static void stop_too(const struct cw_run_child *child)
{
    static const int any = WEXITED | WSTOPPED | WCONTINUED;

    if (has_event(child, any))
        return;
    if (!take(SIGCONT))
        raise(SIGSTOP);
    (void)take(SIGCONT);
    if (!has_event(child, any))
        kill(child->pid, SIGCONT);
}

/* Those that have ended and are not our child. */
static void reap_others(const struct cw_run_child *child)
{
    siginfo_t info = {.si_pid = 0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
           info.si_pid != child->pid) {
        (void)waitpid(info.si_pid, NULL, WNOHANG);
        info.si_pid = 0;
    }
}

int cw_run_child_wait(struct cw_run_child *child, void (*idle)(void *arg), void *arg)
{
    static const struct timespec tick = {.tv_sec = TICK_SECONDS};
    siginfo_t info;
    sigset_t all;
    int status;

    sigfillset(&all);
    for (;;) {
        pid_t pid = waitpid(child->pid, &status, WNOHANG | WUNTRACED);

        if (pid == child->pid && !WIFSTOPPED(status))
            return status;
        if (pid == child->pid) {
            stop_too(child);
            continue;
        }
        reap_others(child);
        if (sigtimedwait(&all, &info, &tick) < 0)
            idle(arg);
        else if (info.si_signo != SIGCHLD)
            pass_on(child, &info);
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
    for (size_t i = 0; i < COUNT(that_end_us); i++)
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
    prctl(PR_SET_DUMPABLE, 0); /* a core that goes to a program knows no limit */
    sigaction(number, &usual, NULL);
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    kill(getpid(), number);
    _exit(128 + number);
}
