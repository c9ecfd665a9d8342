/* SPDX-License-Identifier: MIT */
/*
 * Leaks from stacks of every shape, each block of a size of its own, and says which functions its
 * stack has: stack BYTES NAME<NAME<...   (stack_claims.py)
 */
#include "victim.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* No tail call, and nothing that follows is merged with what another function has. */
#define STAY() __asm__ volatile("" ::: "memory")

static CUcontext context;
static _Atomic size_t next_size = 1000;

static NOINLINE size_t leak(void)
{
    size_t bytes = next_size++;
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, bytes));
    return bytes;
}

/* ---- depth ---- */

static NOINLINE size_t descend(int levels) /* NOLINT(misc-no-recursion) */
{
    size_t bytes = levels == 0 ? leak() : descend(levels - 1);

    STAY();
    return bytes;
}

static void run_deep(void)
{
    static const int depths[] = {10, 31, 32, 10000, 9999};

    for (int i = 0; i < 5; i++) {
        size_t bytes = descend(depths[i]);

        printf("stack %zu leak", bytes);
        for (int level = 0; level <= depths[i] && level < 31; level++)
            printf("<descend");
        say("%s", depths[i] < 31 ? "<run_deep<..." : "<...");
    }
}

/* ---- chains: every pattern of bits is a stack of its own ---- */

static NOINLINE size_t left(unsigned bits, int count);
static NOINLINE size_t right(unsigned bits, int count);

static NOINLINE size_t step(unsigned bits, int count) /* NOLINT(misc-no-recursion) */
{
    size_t bytes;

    if (count == 0)
        bytes = leak();
    else
        bytes = bits & 1 ? right(bits >> 1, count - 1) : left(bits >> 1, count - 1);
    STAY();
    return bytes;
}

static size_t left(unsigned bits, int count) /* NOLINT(misc-no-recursion) */
{
    size_t bytes = step(bits, count);

    STAY();
    return bytes;
}

static size_t right(unsigned bits, int count) /* NOLINT(misc-no-recursion) */
{
    volatile char room[48];
    size_t bytes;

    room[bits % sizeof(room)] = 1;
    bytes = step(bits, count);
    STAY();
    return bytes;
}

#define CHAIN 5

/* What goes on outside of the chain is `from`. */
static void tell(size_t bytes, unsigned bits, const char *from)
{
    printf("stack %zu leak<step", bytes);
    for (int i = CHAIN; i-- > 0;)
        printf("<%s<step", bits >> i & 1 ? "right" : "left");
    say("<%s", from);
}

/* ---- threads ---- */

#define THREADS 200

static void *run_thread(void *number)
{
    unsigned bits = (unsigned)(uintptr_t)number;

    MUST(cuCtxSetCurrent(context));
    return (void *)step(bits, CHAIN);
}

static void run_threads(void)
{
    pthread_t thread[THREADS];
    void *bytes;

    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, run_thread, (void *)(i % 32));
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &bytes);
        tell((size_t)bytes, i % 32, "run_thread<...");
    }
}

/* ---- longjmp ---- */

static jmp_buf point;
static size_t last_bytes;

static NOINLINE void leak_and_jump(unsigned bits)
{
    last_bytes = step(bits, CHAIN);
    longjmp(point, 1);
}

static NOINLINE void jump_back(unsigned bits)
{
    if (setjmp(point) == 0)
        leak_and_jump(bits);
    STAY();
}

static void run_jumps(void)
{
    for (unsigned i = 0; i < 64; i++) {
        jump_back(i % 32);
        tell(last_bytes, i % 32, "leak_and_jump<jump_back<run_jumps<...");
    }
}

/* ---- signal handlers on stacks of their own ---- */

static void on_signal(int number)
{
    (void)number;
    last_bytes = step(21, CHAIN);
    STAY();
}

static NOINLINE void be_interrupted(void)
{
    raise(SIGUSR1);
    STAY();
}

static void run_signals(void)
{
    size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 16384;
    stack_t other = {.ss_sp = malloc(size), .ss_size = size};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    for (int round = 0; round < 3; round++) {
        if (round == 1)
            sigaltstack(&other, NULL);
        sigaction(SIGUSR1, &action, NULL);
        be_interrupted();
        tell(last_bytes, 21, "on_signal<...");
    }
    other.ss_flags = SS_DISABLE;
    sigaltstack(&other, NULL);
    free(other.ss_sp);
}

/* ---- coroutines: many, on few stacks, so that frames of other calls lie where those of a former
 * one lay ---- */

#define COROUTINES 4
#define STACK_SIZE ((size_t)64 << 10)

static ucontext_t scheduler, coroutine[COROUTINES];
static size_t coroutine_bytes[COROUTINES][2];

static void even(unsigned number, unsigned bits)
{
    coroutine_bytes[number][0] = step(bits, CHAIN);
    swapcontext(&coroutine[number], &scheduler);
    coroutine_bytes[number][1] = step(bits ^ 7, CHAIN);
    STAY();
}

static void odd(unsigned number, unsigned bits)
{
    coroutine_bytes[number][0] = step(bits, CHAIN);
    swapcontext(&coroutine[number], &scheduler);
    coroutine_bytes[number][1] = step(bits ^ 7, CHAIN);
    STAY();
}

static void make_coroutine(unsigned number, char *stack, unsigned bits, int is_odd)
{
    getcontext(&coroutine[number]);
    coroutine[number].uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_SIZE};
    coroutine[number].uc_link = &scheduler;
    makecontext(&coroutine[number], (void (*)(void))(is_odd ? odd : even), 2, number, bits);
}

static void run_coroutines(void)
{
    char *stacks = malloc(COROUTINES * STACK_SIZE);

    for (unsigned round = 0; round < 32; round++) {
        for (unsigned i = 0; i < COROUTINES; i++)
            make_coroutine(i, stacks + (i + round) % COROUTINES * STACK_SIZE,
                           (round / 8 * 5 + i * 3) % 32, round & 4);
        for (unsigned turn = 0; turn < 2; turn++)
            for (unsigned i = 0; i < COROUTINES; i++)
                swapcontext(&scheduler, &coroutine[i]);
        for (unsigned i = 0; i < COROUTINES; i++) {
            unsigned bits = (round / 8 * 5 + i * 3) % 32;
            const char *from = round & 4 ? "odd<..." : "even<...";

            tell(coroutine_bytes[i][0], bits, from);
            tell(coroutine_bytes[i][1], bits ^ 7, from);
        }
    }
    free(stacks);
}

/* ---- frames that nobody describes ---- */

typedef size_t (*call_fn)(size_t (*function)(void));

static NOINLINE size_t be_called(void)
{
    size_t bytes = leak();

    STAY();
    return bytes;
}

/* Machine code without a table: it moves the stack, calls, and returns what was returned. */
#if defined(__x86_64__)
static const unsigned char made[] = {
    0x48, 0x83, 0xec, 0x48, /* sub rsp, 72 */
    0xff, 0xd7,             /* call rdi */
    0x48, 0x83, 0xc4, 0x48, /* add rsp, 72 */
    0xc3,                   /* ret */
};
#elif defined(__aarch64__)
static const unsigned made[] = {
    0xa9bb7bfd, /* stp x29, x30, [sp, -80]! */
    0xd63f0000, /* blr x0 */
    0xa8c57bfd, /* ldp x29, x30, [sp], 80 */
    0xd65f03c0, /* ret */
};
#endif

static void run_made(void)
{
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (code == MAP_FAILED)
        exit(97);
    memcpy(code, made, sizeof(made));
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code, code + sizeof(made));
    for (int i = 0; i < 3; i++)
        say("stack %zu leak<be_called<...", ((call_fn)(uintptr_t)code)(be_called));
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"deep", run_deep},       {"threads", run_threads},       {"jumps", run_jumps},
    {"signals", run_signals}, {"coroutines", run_coroutines}, {"made", run_made},
};

int main(int argc, char **argv)
{
    context = use_device(0);
    for (int i = 1; i < argc; i++)
        for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
            if (strcmp(ways[way].name, argv[i]) == 0)
                ways[way].run();
    return 0;
}
