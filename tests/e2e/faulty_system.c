/* SPDX-License-Identifier: MIT */
/*
 * What libcuwarden.so asks of the system fails once: preloaded behind it, this stands in front of
 * the C library for it alone, tells its calls from all others by the return address, and counts
 * them in the file FAULT_FILE. The call number FAULT_NTH fails with FAULT_ERRNO. The file has three
 * numbers of 8 bytes: these calls, 1 if the one that failed was to remove a file, and how many
 * descriptors were open at the end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static uintptr_t first, end;
enum { CALLS, REMOVALS, DESCRIPTORS, NUMBERS };
static _Atomic uint64_t *count;
static uint64_t nth;
static int code;

#define REAL(symbol) ((__typeof__(&symbol))dlsym(RTLD_NEXT, #symbol))

static int note_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (strstr(info->dlpi_name, "libcuwarden.so") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            first = first ? first : info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static void __attribute__((constructor)) begin(void)
{
    const char *file = getenv("FAULT_FILE"), *number = getenv("FAULT_NTH"),
               *error = getenv("FAULT_ERRNO");
    int fd = file ? open(file, O_RDWR) : -1;

    dl_iterate_phdr(note_library, NULL);
    nth = number ? strtoull(number, NULL, 10) : 0;
    code = error ? atoi(error) : ENOMEM;
    if (fd >= 0) {
        count =
            REAL(mmap)(NULL, NUMBERS * sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
}

/* After the library's exit handlers, which were registered later. */
static void __attribute__((destructor)) finish(void)
{
    for (int fd = 0; count != NULL && fd < 1024; fd++)
        count[DESCRIPTORS] += fcntl(fd, F_GETFD) != -1;
}

/* 1: this call is the library's, and fails. */
static int fails(const void *caller)
{
    if ((uintptr_t)caller < first || (uintptr_t)caller >= end || count == NULL ||
        atomic_fetch_add(&count[CALLS], 1) + 1 != nth)
        return 0;
    errno = code;
    return 1;
}

#define FAILS fails(__builtin_return_address(0))

long syscall(long number, ...)
{
    static const long never[] = {SYS_futex, SYS_gettid, SYS_close,     SYS_rt_sigprocmask,
                                 SYS_wait4, SYS_munmap, SYS_exit_group};
    long argument[6];
    int may_fail = 1;
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        may_fail &= number != never[i];
    if (may_fail && FAILS) {
        count[REMOVALS] = number == SYS_unlinkat;
        return -1;
    }
    return REAL(syscall)(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                         argument[5]);
}

#define FAILING(type, symbol, failed, parameters, arguments)                                       \
    type symbol parameters                                                                         \
    {                                                                                              \
        if (FAILS)                                                                                 \
            return failed;                                                                         \
        return REAL(symbol) arguments;                                                             \
    }

FAILING(void *, mmap, MAP_FAILED,
        (void *at, size_t len, int protection, int flags, int fd, off_t offset),
        (at, len, protection, flags, fd, offset))
FAILING(int, mprotect, -1, (void *at, size_t len, int protection), (at, len, protection))
FAILING(int, madvise, -1, (void *at, size_t len, int advice), (at, len, advice))
FAILING(int, msync, -1, (void *at, size_t len, int flags), (at, len, flags))
FAILING(int, access, -1, (const char *path, int mode), (path, mode))
FAILING(int, fstatfs, -1, (int fd, struct statfs *out), (fd, out))
FAILING(char *, getcwd, NULL, (char *buf, size_t size), (buf, size))
FAILING(int, getrlimit, -1, (__rlimit_resource_t resource, struct rlimit *out), (resource, out))
FAILING(int, mkdir, -1, (const char *path, mode_t mode), (path, mode))
FAILING(ssize_t, readlink, -1, (const char *path, char *buf, size_t size), (path, buf, size))
FAILING(int, rename, -1, (const char *from, const char *to), (from, to))
FAILING(int, uname, -1, (struct utsname * out), (out))
FAILING(int, sigaction, -1, (int number, const struct sigaction *new, struct sigaction *old),
        (number, new, old))
FAILING(int, on_exit, -1, (void (*function)(int, void *), void *arg), (function, arg))
FAILING(int, pthread_create, code,
        (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg),
        (thread, attributes, start, arg))

int unlink(const char *path)
{
    if (FAILS) {
        count[REMOVALS] = 1;
        return -1;
    }
    return REAL(unlink)(path);
}
