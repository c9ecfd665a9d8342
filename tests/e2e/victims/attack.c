/* SPDX-License-Identifier: MIT */
/* Random programs against the promise that memory never reaches a new owner while work of its old
 * owner may still touch it, and that a program sees what it would see without us.
 *
 *   attack [-v] [-d] [-m] [-i] SEED [COUNT]
 *
 * runs COUNT programs, one per seed, in one process; contexts and whatever the driver or a pool
 * keeps are handed on from some programs to the next. Each block holds a pattern of its owner,
 * written and checked by asynchronous work in all sorts of streams and contexts; blocks are freed
 * while such work is on its way, which is legal because cuMemFree waits. A wrong reuse shows as a
 * wrong pattern in the old owner's or the new owner's hands; everything else as a return code other
 * than expected.
 *
 *   -v  prints each operation
 *   -d  only programs whose return codes do not depend on time, and prints a hash of these codes
 *   -m  what cuMemGetInfo says must be what the blocks leave free
 *   -i  that, and addresses of freed blocks must be unknown to queries; a pool answers for those
 *       that lie inside a larger block which it keeps
 *
 * The first violation is printed with its seed and operation, and ends the process with status 1.
 */
#include "attack.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 400000
#define PAUSE_NS    5000000

struct attack attack = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .life = PTHREAD_RWLOCK_INITIALIZER,
    .addresses = PTHREAD_RWLOCK_INITIALIZER,
    .turns = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER,
              PTHREAD_COND_INITIALIZER},
    .hash = 0xcbf29ce484222325u,
};

bool is_loose(void)
{
    return attack.style == STEPS || attack.style == FREE;
}

/* ---- dice, words and sums ---- */

unsigned below(struct thread *self, unsigned n)
{
    return roll_below(self->rng, n);
}

bool chance(struct thread *self, unsigned percent)
{
    return below(self, 100) < percent;
}

void trace(struct thread *self, const char *format, ...)
{
    va_list arguments;

    if (!attack.is_verbose)
        return;
    flockfile(stdout);
    printf("  %u.%u: ", self->operation, self->index);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    funlockfile(stdout);
}

void violated(struct thread *self, const char *format, ...)
{
    static const char *const styles[] = {"one thread", "threads by turns", "threads by steps",
                                         "free threads"};
    uint64_t first = attack.chain < attack.seed ? attack.chain : attack.seed;
    va_list arguments;

    flockfile(stdout);
    printf("violation: seed %llu operation %u thread %u (%s): ", (unsigned long long)attack.seed,
           self->operation, self->index, styles[attack.style]);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nagain: attack %s-v %llu %llu\n", attack.is_deterministic ? "-d " : "",
           (unsigned long long)first, (unsigned long long)(attack.seed - first + 1));
    fflush(stdout);
    if (cusim_write_report && getenv("CUSIM_REPORT"))
        cusim_write_report(NULL);
    _exit(1);
}

static _Thread_local struct thread *running;
static _Thread_local struct cusim_here before;
static _Thread_local bool is_exempt;

void begin_note(bool exempt)
{
    is_exempt = exempt;
    bound_begin(&before);
}

CUresult end_note(CUresult code)
{
    char text[160];

    if (!is_exempt && bound_is_broken(&before, text, sizeof text))
        violated(running ? running : &attack.threads[0], "a call %s", text);
    if (!is_loose())
        attack.hash = (attack.hash ^ (unsigned)code) * 0x100000001b3u;
    return code;
}

void expect(struct thread *self, CUresult code, CUresult wanted, const char *what)
{
    if (code != wanted)
        violated(self, "%s returned %d, expected %d", what, (int)code, (int)wanted);
}

/* ---- turns ---- */

/* A thread that rests lets others do more than one thing before it goes on. */
static bool may_go(struct thread *thread)
{
    if (thread->rest > 0)
        thread->rest--;
    return !thread->is_done && thread->rest == 0;
}

/* The caller holds the lock and the turn. */
static void give_turn(struct thread *self)
{
    unsigned start = below(self, attack.nthreads), next = attack.nthreads;

    for (unsigned i = 0; i < attack.nthreads; i++) {
        unsigned which = (start + i) % attack.nthreads;

        if (may_go(&attack.threads[which]) && next == attack.nthreads)
            next = which;
    }
    for (unsigned i = 0; i < attack.nthreads && next == attack.nthreads; i++)
        if (!attack.threads[i].is_done)
            next = i;
    if (next == attack.nthreads)
        return; /* everybody is done */
    attack.holder = next;
    attack.nturns++;
    pthread_cond_signal(&attack.turns[next]);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_patience_over(struct thread *self)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_cond_timedwait(&attack.turns[self->index], &attack.lock, &until) != 0;
}

/* In the midst of a call a turn may have gone to a thread that must wait for the end of this very
 * call; hence it is taken back if nothing happens for a while. It is also if much happens: a thread
 * that is kept from the driver's checks for longer than gate.c waits is not what is tried here. */
static void await_turn(struct thread *self)
{
    uint64_t end = now_ns() + PAUSE_NS;

    while (attack.holder != self->index) {
        unsigned nturns = attack.nturns;

        if (attack.style != STEPS)
            pthread_cond_wait(&attack.turns[self->index], &attack.lock);
        else if ((is_patience_over(self) && attack.nturns == nturns) || now_ns() > end)
            attack.holder = self->index;
    }
}

void pass_turn(struct thread *self)
{
    if (attack.style != TURNS && attack.style != STEPS)
        return;
    if (self->keeps_turn)
        return;
    pthread_mutex_lock(&attack.lock);
    give_turn(self);
    await_turn(self);
    pthread_mutex_unlock(&attack.lock);
}

/* Programs differ: many short interruptions, or few long ones. */
static void pause_call(void)
{
    struct thread *self = running;

    if (!self || attack.style != STEPS)
        return;
    if (attack.seed % 2 == 0) {
        if (!chance(self, 15))
            return;
        self->rest = 1 + below(self, 16);
    }
    pass_turn(self);
}

/* ---- one program ---- */

static void use_some(struct thread *self, void (*use)(struct thread *, struct block *))
{
    struct block *block = take_block(self, NULL);

    if (!block)
        return;
    use(self, block);
    put_block(block);
}

static void free_some(struct thread *self)
{
    struct block *block = take_block(self, NULL);

    if (block)
        release(self, block);
}

static void replace_some(struct thread *self)
{
    struct block *block = take_block(self, NULL);

    if (block)
        replace(self, block);
}

static void operate(struct thread *self)
{
    unsigned what = below(self, 100);

    if (attack.has_waiter && self->index == 1 && chance(self, 70))
        wait_for_all(self);
    else if (attack.has_waiter && chance(self, 30))
        replace_some(self);
    else if (chance(self, attack.waits))
        wait_for(self);
    else if (what < 23)
        allocate(self);
    else if (what < 38)
        free_some(self);
    else if (what < 50)
        replace_some(self);
    else if (what < 70)
        use_some(self, work);
    else if (what < 78)
        use_some(self, check);
    else if (what < 81)
        capture(self);
    else if (what < 84)
        relaunch(self);
    else if (what < 86)
        make_stream(self);
    else if (what < 88)
        drop_stream(self);
    else if (what < 91)
        use_some(self, export_block);
    else if (what < 95)
        probe(self);
    else if (what < 98)
        misfree(self);
    else
        squeeze(self);
}

static bool begin_operation(struct thread *self)
{
    bool is_left;

    pthread_mutex_lock(&attack.lock);
    is_left = attack.operation < attack.noperations;
    if (is_left)
        self->operation = ++attack.operation;
    pthread_mutex_unlock(&attack.lock);
    return is_left;
}

static void work_off(struct thread *self)
{
    running = self;
    while (begin_operation(self)) {
        if (chance(self, 2))
            world_change(self);
        pthread_rwlock_rdlock(&attack.life);
        operate(self);
        pthread_rwlock_unlock(&attack.life);
        if (cusim_step && chance(self, 3))
            cusim_step(1 + below(self, 3));
        pass_turn(self);
    }
    pthread_mutex_lock(&attack.lock);
    self->is_done = true;
    running = NULL;
    if (attack.style == TURNS || attack.style == STEPS)
        give_turn(self);
    pthread_mutex_unlock(&attack.lock);
}

static void *run_thread(void *argument)
{
    struct thread *self = argument;

    if (attack.style == TURNS || attack.style == STEPS) {
        LOCKED(await_turn(self));
    }
    work_off(self);
    return NULL;
}

static void choose_style(struct thread *self)
{
    static const enum style styles[] = {ALONE, TURNS, ALONE, STEPS, STEPS, FREE};

    attack.style = styles[below(self, attack.is_deterministic ? 2 : 6)];
    attack.nthreads = attack.style == ALONE ? 1 : 2 + below(self, MAX_THREADS - 1);
    attack.has_waiter = attack.nthreads > 1 && chance(self, 40);
    attack.noperations = 30 + below(self, 91);
    attack.operation = attack.serial = attack.holder = 0;
    attack.starts = attack.global_starts = 0;
    for (unsigned i = 0; i < attack.nthreads; i++) {
        struct thread *thread = &attack.threads[i];

        thread->index = i;
        thread->is_done = thread->keeps_turn = false;
        thread->operation = thread->rest = 0;
        thread->mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (i > 0)
            thread->current = NULL;
        seed_dice(&thread->own_rng, attack.seed * MAX_THREADS + i + 77);
        thread->rng = is_loose() ? &thread->own_rng : &attack.rng;
    }
}

static void run_program(uint64_t seed)
{
    struct thread *self = &attack.threads[0];

    attack.seed = seed;
    seed_dice(&attack.rng, seed);
    self->rng = &attack.rng;
    choose_style(self);
    if (cusim_set_lazy && !getenv("CUSIM_DELAY_US"))
        cusim_set_lazy(seed + 1);
    if (attack.is_verbose)
        printf("program %llu: %u operations, %u threads, style %d\n", (unsigned long long)seed,
               attack.noperations, attack.nthreads, attack.style);
    world_begin(self);
    for (unsigned i = 1; i < attack.nthreads; i++)
        if (pthread_create(&attack.threads[i].id, NULL, run_thread, &attack.threads[i]) != 0)
            violated(self, "no thread");
    work_off(self);
    for (unsigned i = 1; i < attack.nthreads; i++)
        pthread_join(attack.threads[i].id, NULL);
    self->rng = &attack.rng;
    attack.operations += attack.operation;
    world_end(self);
    count_misuse(self);
}

/* ---- the process ---- */

static void be_gpu(void)
{
    setenv("CUSIM_MEMORY", "192M", 0);
    setenv("CUSIM_DEVICES", "2", 0);
    setenv("CUSIM_CONTEXT_BYTES", "16M", 1);
    setenv("CUSIM_FREE_WAITS", "2", 0);
}

static void look_at_devices(void)
{
    MUST(cuInit(0));
    for (int i = 0; i < MAX_DEVICES; i++)
        MUST(cuDeviceTotalMem(&attack.devices[i].capacity, i));
}

static void summarise(uint64_t programs)
{
    say("%llu programs, %llu operations, %llu checks", (unsigned long long)programs,
        attack.operations, attack.checks);
    if (attack.is_deterministic)
        say("hash %016llx", (unsigned long long)attack.hash);
    say("expect allocs=%llu frees=%llu failed=%llu leaked_blocks=%llu leaked_bytes=%llu",
        attack.allocs, attack.frees, attack.failed, attack.leaked_blocks, attack.leaked_bytes);
}

int main(int argc, char **argv)
{
    uint64_t first, count;
    int option;

    while ((option = getopt(argc, argv, "vdmi")) != -1) {
        if (option == '?')
            return 2;
        attack.is_verbose |= option == 'v';
        attack.is_deterministic |= option == 'd';
        attack.is_summing |= option == 'm' || option == 'i';
        attack.is_curious |= option == 'i';
    }
    if (optind == argc) {
        fprintf(stderr, "usage: attack [-v] [-d] [-m] [-i] SEED [COUNT]\n");
        return 2;
    }
    first = strtoull(argv[optind], NULL, 0);
    count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 0) : 1;
    be_gpu();
    attack.is_limited = getenv("CUWARDEN_LIMIT") || getenv("CUWARDEN_MIN_FREE");
    look_at_devices();
    if (cusim_set_pause)
        cusim_set_pause(pause_call);
    attack.chain = first;
    for (uint64_t i = 0; i < count; i++) {
        run_program(first + i);
        if ((i + 1) % 1000 == 0)
            say("%llu programs", (unsigned long long)(i + 1));
    }
    pthread_rwlock_wrlock(&attack.life);
    world_end_all(&attack.threads[0]);
    pthread_rwlock_unlock(&attack.life);
    summarise(count);
    return 0;
}
