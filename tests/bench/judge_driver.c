/* SPDX-License-Identifier: MIT */
/*
 * A driver in virtual time: libcuda.so.1 for programs of one thread. Their figures are the same in
 * each run, whatever else the machine does.
 *
 * Each call moves one clock by what the call costs on an H100 (docs/gpu, 2026-11-28). A stream is
 * the time at which its last kernel ends, an event a copy of such a time, and a wait moves the
 * clock there. The device runs one kernel at a time. The linker finds this library before libc, so
 * the process reads its time here, and its sleeps and yields move the clock too. Calls that cost
 * nothing and are not counted are those of null_driver.c, which is linked in with weak names.
 */
#include "judge.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#define JUDGE __attribute__((visibility("default")))

#define DEVICE_BYTES ((uint64_t)80 << 30)
#define PAGE         ((uint64_t)2 << 20)
#define SHARED_MOST  ((uint64_t)1 << 20) /* a larger block has pages of its own */
#define STREAMS      8
#define BEGIN_NS     UINT64_C(1000000000000)

/* A kernel begins so long after its launch on an idle device: a strict pair of 1 MiB takes 6 us
 * longer with a fill in it. */
#define LATENCY_NS UINT64_C(4000)
/* The cost of a block in a page that has room: alloc-during-kernel-1MiB. */
#define SHARED_NS UINT64_C(11000)
/* Estimates for the host: a timer tick, a look at the clock, an empty system call, and how late a
 * sleep ends (timer slack and a switch). */
#define TICK_NS  UINT64_C(4000000)
#define LOOK_NS  UINT64_C(20)
#define YIELD_NS UINT64_C(600)
#define LATE_NS  UINT64_C(55000)

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_READY = 600 };

/* X(name, ns, is_own) for each function that is counted. Records and idle waits were measured. A
 * query and an id are what is left of the pairs of 4 KiB, strict and deferred; a launch is what
 * PyTorch's pairs take longer with a fill. */
#define CALLS(X)                                                                                   \
    X(cuMemAlloc_v2, 0, 0)                                                                         \
    X(cuMemFree_v2, 0, 0)                                                                          \
    X(cuMemGetInfo_v2, 9100, 0)                                                                    \
    X(cuCtxGetCurrent, 30, 0)                                                                      \
    X(cuCtxGetDevice, 30, 0)                                                                       \
    X(cuCtxGetId, 100, 0)                                                                          \
    X(cuCtxSynchronize, 830, 0)                                                                    \
    X(cuCtxRecordEvent, 330, 0)                                                                    \
    X(cuEventQuery, 200, 0)                                                                        \
    X(cuEventCreate, 400, 0)                                                                       \
    X(cuEventSynchronize, 830, 0)                                                                  \
    X(cuEventRecord, 330, 1)                                                                       \
    X(cuStreamWaitEvent, 330, 1)                                                                   \
    X(cuLaunchKernel, 1400, 1)

enum call {
#define X(name, ns, is_own) CALL_##name,
    CALLS(X)
#undef X
        CALL_COUNT
};

static struct judge_call calls[] = {
#define X(name, ns, is_own) {#name, 0, is_own},
    CALLS(X)
#undef X
};

static const uint64_t cost_ns[] = {
#define X(name, ns, is_own) ns,
    CALLS(X)
#undef X
};

/* A pair of cuMemAlloc and cuMemFree by the driver alone; each of the two is charged half of it. */
static const struct {
    uint64_t bytes, ns;
} pair_costs[] = {
    {0, 80685},
    {(uint64_t)64 << 10, 80685},
    {(uint64_t)1 << 20, 84638},
    {(uint64_t)2 << 20, 93020},
    {(uint64_t)16 << 20, 112383},
    {(uint64_t)64 << 20, 162291},
    {(uint64_t)256 << 20, 259757},
    {(uint64_t)1 << 30, 873734},
    {(uint64_t)4 << 30, 2995707},
    {(uint64_t)16 << 30, 42055331},
};

/* The address of a block tells its number. */
#define BLOCKS        8192
#define BLOCK_SHIFT   34
#define BLOCK_LARGEST ((uint64_t)1 << BLOCK_SHIFT)

struct moment {
    uint64_t ns; /* the end of the work that a stream or an event stands for */
};

static uint64_t now = BEGIN_NS;
static struct moment streams[STREAMS]; /* the first is the default stream */
static unsigned streams_made = 1;
static uint64_t device_end;    /* the end of the last kernel in any stream */
static uint64_t sizes[BLOCKS]; /* 0 where no block lives */
static uint64_t pages, shared; /* bytes of blocks with pages of their own, and of the others */
static uint64_t held_most;
static int is_ideal;

/* ---- for the programs ---- */

JUDGE void judge_make_ideal(void)
{
    is_ideal = 1;
}

JUDGE uint64_t judge_now(void)
{
    return now;
}

JUDGE void judge_work(uint64_t ns)
{
    now += ns;
}

JUDGE uint64_t judge_held_most(void)
{
    return held_most;
}

JUDGE void judge_reset_calls(void)
{
    for (unsigned i = 0; i < CALL_COUNT; i++)
        calls[i].count = 0;
}

JUDGE const struct judge_call *judge_call_at(unsigned number)
{
    return number < CALL_COUNT ? &calls[number] : NULL;
}

/* ---- time ---- */

static void enter(enum call call)
{
    calls[call].count++;
    now += cost_ns[call];
}

static void wait_until(uint64_t ns)
{
    if (now < ns)
        now = ns;
}

/* All clocks show the virtual time; the coarse ones only move with a timer tick. */
JUDGE int clock_gettime(clockid_t clock, struct timespec *out)
{
    int is_coarse = clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_REALTIME_COARSE;
    uint64_t seen;

    now += LOOK_NS;
    seen = is_coarse ? now / TICK_NS * TICK_NS : now;
    out->tv_sec = (time_t)(seen / 1000000000);
    out->tv_nsec = (long)(seen % 1000000000);
    return 0;
}

JUDGE int sched_yield(void)
{
    now += YIELD_NS;
    return 0;
}

static void sleep_for(const struct timespec *rest)
{
    now += (uint64_t)rest->tv_sec * 1000000000 + (uint64_t)rest->tv_nsec + LATE_NS;
}

static long kernel_call(long number, const long a[6])
{
    long result;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    result = x0;
#endif
    if (result >= -4095 && result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* Skips a sleep that has an end, and passes all other calls to the kernel. */
JUDGE long syscall(long number, ...)
{
    long a[6];
    va_list list;
    int is_wait;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    is_wait = number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && a[3] != 0;
    if (number == SYS_nanosleep || is_wait) {
        sleep_for((const struct timespec *)a[is_wait ? 3 : 0]);
        errno = is_wait ? ETIMEDOUT : errno;
        return is_wait ? -1 : 0;
    }
    return kernel_call(number, a);
}

/* ---- memory ---- */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static uint64_t held(void)
{
    return pages + round_up(shared, PAGE);
}

/* Interpolates between two rows of the table. */
static uint64_t half_pair(uint64_t bytes)
{
    unsigned i = 1;

    while (bytes > pair_costs[i].bytes)
        i++;
    return (pair_costs[i - 1].ns + (pair_costs[i].ns - pair_costs[i - 1].ns) *
                                       ((bytes - pair_costs[i - 1].bytes) >> 9) /
                                       ((pair_costs[i].bytes - pair_costs[i - 1].bytes) >> 9)) /
           2;
}

/* Counts the block in (sign 1) or out (-1), and charges for it. */
static void move_block(uint64_t bytes, uint64_t sign)
{
    uint64_t before = held();

    if (bytes > SHARED_MOST)
        pages += sign * round_up(bytes, PAGE);
    else
        shared += sign * round_up(bytes, 512);
    if (held() > held_most)
        held_most = held();
    if (!is_ideal)
        now += held() != before ? half_pair(bytes) : SHARED_NS;
}

JUDGE CUresult cuMemAlloc_v2(uint64_t *dptr, size_t bytes)
{
    uint64_t number = 0;

    enter(CALL_cuMemAlloc_v2);
    if (bytes == 0)
        return INVALID_VALUE;
    while (number < BLOCKS && sizes[number] != 0)
        number++;
    if (number == BLOCKS || bytes > BLOCK_LARGEST || bytes > DEVICE_BYTES - held())
        return OUT_OF_MEMORY;
    sizes[number] = bytes;
    *dptr = (number + 1) << BLOCK_SHIFT;
    move_block(bytes, 1);
    return SUCCESS;
}

/* Waits for the device, as the driver's own does (free-during-kernel-*). */
JUDGE CUresult cuMemFree_v2(uint64_t dptr)
{
    uint64_t number = (dptr >> BLOCK_SHIFT) - 1;

    enter(CALL_cuMemFree_v2);
    if (number >= BLOCKS || sizes[number] == 0)
        return INVALID_VALUE;
    if (!is_ideal)
        wait_until(device_end);
    move_block(sizes[number], (uint64_t)-1);
    sizes[number] = 0;
    return SUCCESS;
}

JUDGE CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    enter(CALL_cuMemGetInfo_v2);
    *free_bytes = DEVICE_BYTES - held();
    *total = DEVICE_BYTES;
    return SUCCESS;
}

/* ---- the only context, that of null_driver.c ---- */

JUDGE CUresult cuCtxGetCurrent(void **ctx)
{
    enter(CALL_cuCtxGetCurrent);
    return cuDevicePrimaryCtxRetain(ctx, 0);
}

JUDGE CUresult cuCtxGetDevice(int *device)
{
    enter(CALL_cuCtxGetDevice);
    *device = 0;
    return SUCCESS;
}

JUDGE CUresult cuCtxGetId(void *ctx, unsigned long long *id)
{
    (void)ctx;
    enter(CALL_cuCtxGetId);
    *id = 1;
    return SUCCESS;
}

JUDGE CUresult cuCtxSynchronize(void)
{
    enter(CALL_cuCtxSynchronize);
    wait_until(device_end);
    return SUCCESS;
}

JUDGE CUresult cuCtxRecordEvent(void *ctx, void *event)
{
    (void)ctx;
    enter(CALL_cuCtxRecordEvent);
    ((struct moment *)event)->ns = device_end;
    return SUCCESS;
}

/* ---- streams and events ---- */

JUDGE CUresult cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    if (streams_made == STREAMS)
        return OUT_OF_MEMORY;
    *stream = &streams[streams_made++];
    return SUCCESS;
}

static struct moment *stream_of(void *stream)
{
    return stream != NULL ? stream : &streams[0];
}

JUDGE CUresult cuStreamSynchronize(void *stream)
{
    wait_until(stream_of(stream)->ns);
    return SUCCESS;
}

JUDGE CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    struct moment *from = stream_of(stream), *to = event;

    (void)flags;
    enter(CALL_cuStreamWaitEvent);
    if (from->ns < to->ns)
        from->ns = to->ns;
    return SUCCESS;
}

JUDGE CUresult cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned bytes,
                              void *stream, void **parameters, void **extra)
{
    struct moment *in = stream_of(stream);
    uint64_t begin;

    (void)kernel, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)bytes, (void)extra;
    enter(CALL_cuLaunchKernel);
    begin = now + LATENCY_NS;
    if (begin < in->ns)
        begin = in->ns;
    if (begin < device_end)
        begin = device_end;
    in->ns = device_end = begin + *(const uint64_t *)parameters[0];
    return SUCCESS;
}

JUDGE CUresult cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    enter(CALL_cuEventCreate);
    *event = calloc(1, sizeof(struct moment));
    return *event != NULL ? SUCCESS : OUT_OF_MEMORY;
}

JUDGE CUresult cuEventRecord(void *event, void *stream)
{
    enter(CALL_cuEventRecord);
    ((struct moment *)event)->ns = stream_of(stream)->ns;
    return SUCCESS;
}

JUDGE CUresult cuEventQuery(void *event)
{
    enter(CALL_cuEventQuery);
    return ((struct moment *)event)->ns <= now ? SUCCESS : NOT_READY;
}

JUDGE CUresult cuEventSynchronize(void *event)
{
    enter(CALL_cuEventSynchronize);
    wait_until(((struct moment *)event)->ns);
    return SUCCESS;
}
