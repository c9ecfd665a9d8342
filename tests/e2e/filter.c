/* SPDX-License-Identifier: MIT */
/* filter kill|thread|errno|invalid|trap CALL... -- PROGRAM...: runs the program under a seccomp
 * filter that does this to whoever makes one of these system calls. "thread" kills the thread
 * alone; "errno" is EPERM, "invalid" EINVAL. The call "ofd" is a fcntl that has to do with a lock
 * of the open file: gVisor knows none. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
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
                   {"invalid", SECCOMP_RET_ERRNO | EINVAL},
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
    if (strcmp(name, "prctl") == 0)
        return SYS_prctl;
    if (strcmp(name, "ofd") == 0)
        return SYS_fcntl;
    if (strcmp(name, "process_vm_readv") == 0)
        return SYS_process_vm_readv;
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

/* Appends the rules for one call: six instructions. The commands of locks of the open file follow
 * each other. */
static void add(struct sock_fprog *program, const char *call, unsigned action)
{
    int is_ofd = strcmp(call, "ofd") == 0;
    unsigned command = offsetof(struct seccomp_data, args[1]); /* its lower half: little-endian */
    const struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call_of(call), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, is_ofd ? command : offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, is_ofd ? F_OFD_GETLK : 0, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, is_ofd ? F_OFD_SETLKW : UINT32_MAX, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, action)};

    memcpy(program->filter + program->len, rules, sizeof(rules));
    program->len += sizeof(rules) / sizeof(rules[0]);
}

int main(int argc, char **argv)
{
    struct sock_filter rules[64];
    struct sock_fprog program = {.filter = rules, .len = 0};
    int i;

    for (i = 2; i < argc && strcmp(argv[i], "--") != 0 && program.len < 50; i++)
        add(&program, argv[i], action_of(argv[1]));
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
