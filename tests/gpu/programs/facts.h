/* SPDX-License-Identifier: MIT */
/*
 * What facts*.c share: each asks the driver what no document says, and prints
 * "fact NAME VALUE" for each answer; numbers alone are result codes of the driver. What cuwarden
 * takes each answer to be is in ../expected_facts, and every name must be there. A subject is a
 * process of its own with a time limit, since some break their context; `PROGRAM SUBJECT` is that
 * process. Built with a C compiler alone. Run without the library.
 */
#ifndef FACTS_H
#define FACTS_H

#include "cu.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define NON_BLOCKING 1
#define NO_TIMING    2
#define SPIN_US      100000
#define LIMIT_S      60

/* What only these programs call. */
#define MORE_FUNCTIONS(MORE)                                                                       \
    MORE(release, "cuDevicePrimaryCtxRelease_v2", (int))                                           \
    MORE(destroy, "cuCtxDestroy_v2", (void *))                                                     \
    MORE(id, "cuCtxGetId", (void *, unsigned long long *))                                         \
    MORE(current_device, "cuCtxGetDevice", (int *))                                                \
    MORE(exchange_mode, "cuThreadExchangeStreamCaptureMode", (int *))                              \
    MORE(alloc_pitch, "cuMemAllocPitch_v2", (cu_block *, size_t *, size_t, size_t, unsigned))      \
    MORE(copy_peer, "cuMemcpyPeerAsync", (cu_block, void *, cu_block, void *, size_t, void *))     \
    MORE(default_pool, "cuDeviceGetDefaultMemPool", (void **, int))                                \
    MORE(set_pool, "cuMemPoolSetAttribute", (void *, int, void *))                                 \
    MORE(make_pool, "cuMemPoolCreate", (void **, const void *))                                    \
    MORE(end_pool, "cuMemPoolDestroy", (void *))                                                   \
    MORE(alloc_from_pool, "cuMemAllocFromPoolAsync", (cu_block *, size_t, void *, void *))

static struct {
#define MORE_MEMBER(name, export, arguments) int(*name) arguments;
    MORE_FUNCTIONS(MORE_MEMBER)
#undef MORE_MEMBER
} more;

static void *context;
static struct cu_kernels kernels;

static inline void begin(void)
{
    context = cu_begin();
    kernels = cu_load_kernels();
#define MORE_FIND(name, export, arguments) *(void **)&more.name = dlsym(cu_library, export);
    MORE_FUNCTIONS(MORE_FIND)
#undef MORE_FIND
}

static inline void *new_stream(void)
{
    void *stream;

    MUST(cu.stream(&stream, NON_BLOCKING));
    return stream;
}

static inline void *new_event(void)
{
    void *event;

    MUST(cu.event(&event, NO_TIMING));
    return event;
}

static inline void *new_context(void)
{
    void *made;
    int device;

    MUST(cu.device(&device, 0));
    MUST(cu.create(&made, 0, device));
    return made;
}

/* Starts a kernel in `stream`; the event is that of its end. */
static inline void *start_kernel(void *stream)
{
    void *ended = new_event();

    MUST(cu_spin(&kernels, SPIN_US, stream));
    MUST(cu.record(ended, stream));
    return ended;
}

struct subject {
    const char *name;
    void (*ask)(void);
};

/* Whatever becomes of it, the others are asked. */
static inline int run_subject(const char *self, const char *name)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        alarm(LIMIT_S);
        execl(self, self, name, (char *)NULL);
        _exit(98);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status))
        say("fact %s-unfinished %s", name,
            WTERMSIG(status) == SIGALRM ? "gave up" : strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        say("fact %s-unfinished exit status %d", name, WEXITSTATUS(status));
    return status != 0;
}

static inline int facts_main(int argc, char **argv, const struct subject *subjects, size_t count)
{
    int unfinished = 0;

    for (size_t i = 0; i < count; i++) {
        if (argc < 2)
            unfinished += run_subject("/proc/self/exe", subjects[i].name);
        else if (strcmp(argv[1], subjects[i].name) == 0) {
            subjects[i].ask();
            return 0;
        }
    }
    if (argc > 1) {
        fprintf(stderr, "%s: there is no subject %s\n", argv[0], argv[1]);
        return 2;
    }
    return unfinished != 0;
}

#endif
