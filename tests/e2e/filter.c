/* SPDX-License-Identifier: MIT */
/* filter kill|thread|errno|trap CALL... -- PROGRAM...: runs the program under a seccomp filter that
 * does this to whoever makes one of these system calls. "thread" kills the thread alone. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned action_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned action;
    } actions[] = {{"kill", SECCOMP_RET_KILL_PROCESS},
                   {"thread", SECCOMP_RET_KILL},
                   {"errno", SECCOMP_RET_ERRNO | EPERM},
                   {"trap", SECCOMP_RET_TRAP}};

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(actions[i].name, name) == 0)
            return actions[i].action;
    exit(99);
}

static unsigned call_of(const char *name)
{
    if (strcmp(name, "membarrier") == 0)
        return SYS_membarrier;
    if (strcmp(name, "mknodat") == 0)
        return SYS_mknodat;
#ifdef SYS_mknod
    if (strcmp(name, "mknod") == 0)
        return SYS_mknod;
#else
    if (strcmp(name, "mknod") == 0)
        return SYS_mknodat;
#endif
    exit(99);
}

int main(int argc, char **argv)
{
    struct sock_filter rules[64] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {.filter = rules, .len = 1};
    int i;

    for (i = 2; i < argc && strcmp(argv[i], "--") != 0 && program.len < 60; i++) {
        rules[program.len++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call_of(argv[i]), 0, 1);
        rules[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action_of(argv[1]));
    }
    rules[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (i + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("filter");
        return 99;
    }
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 99;
}
