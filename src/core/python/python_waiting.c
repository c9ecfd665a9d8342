/* SPDX-License-Identifier: MIT */
/*
 * The frames of the thread that waits for this one. See python_waiting.h.
 *
 * Owns the states of the threads that have walked, a slot each, and what the workers have seen of
 * them. Both are claimed by the thread's number; no lock. A state that is gone stays in its slot
 * until another thread needs it: whoever looks at it finds that its thread has ended, or that it is
 * not its state, or a thread that does not wait.
 */
#include "core/python/python_waiting.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sys.h"
#include "core/python/python_layout.h"
#include "core/python/python_read.h"
#include "live/layout.h"

#define THREADS_MAX   32
#define WORKERS_MAX   16
#define STATE_SIZE    256 /* more than what is read of each, in all versions */
#define FRAME_SIZE    128
#define CODE_SIZE     256
#define TEXT_SIZE     4352 /* a str with the longest path */
#define TABLE_MAX     ((uint64_t)1 << 20)
#define STEPS_PER_MAX 4 /* shims, for each frame that is asked for */
#define WORKER_NAME   "pt_autograd_"
/* What the kernel calls the processor time of a thread: the complement of its number, then these
 * bits (clock_getcpuclockid(3) does it for a process). */
#define CLOCK_OF_THREAD 6

static struct slot {
    _Atomic pid_t thread_number; /* 0: nobody's */
    _Atomic uintptr_t thread_id; /* pthread_self() */
    _Atomic uintptr_t state;
} slots[THREADS_MAX];

/* The calling thread's alone, from when its number is in it. */
struct cw_python_worker {
    _Atomic pid_t thread_number; /* 0: nobody's */
    uint64_t seen[THREADS_MAX];  /* when it was looked whether the slot's thread waits */
    int is_waiting[THREADS_MAX];
    /* The frames of one that does. */
    uint64_t walked;
    unsigned count, max;
    struct cw_python_frame frame[CW_DEPTH_MAX];
};
static struct cw_python_worker workers[WORKERS_MAX];

/* Where a thread waits for the workers: the end of the file's name, and the function. */
static const struct {
    const char *file, *function;
} waiting_places[] = {
    {"torch/autograd/graph.py", "_engine_run_backward"},
    {"torch/autograd/__init__.py", "backward"}, /* before PyTorch 2.3 */
    {"torch/autograd/__init__.py", "grad"},
};

/* What the functions below read with. */
struct reader {
    const struct cw_python_layout *layout;
    const struct cw_python_symbols *symbols;
};

/* ---- copies ---- */

static int copy(uintptr_t at, size_t size, void *out)
{
    int saved_errno = errno;
    struct iovec to = {out, size}, from = {(void *)at, size};
    int is_whole = at != 0 && at % sizeof(void *) == 0 &&
                   process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;

    errno = saved_errno;
    return is_whole;
}

static uintptr_t word_of(const void *copied, size_t at)
{
    return cw_read_word((uintptr_t)copied + at);
}

static int copy_code(const struct reader *reader, uintptr_t code, uint64_t *out)
{
    return cw_python_layout_code_size(reader->layout) <= CODE_SIZE &&
           copy(code, cw_python_layout_code_size(reader->layout), out) &&
           word_of(out, CW_PYTHON_TYPE) == (uintptr_t)reader->symbols->code_type;
}

static uint64_t text_size(const struct reader *reader, const uint64_t *copied)
{
    return cw_python_text_size(reader->layout, reader->symbols, (uintptr_t)copied);
}

/* A str and its characters. Between the two copies another object may have come to lie there, which
 * says that it is longer than what was copied. */
static int copy_text(const struct reader *reader, uintptr_t object, uint64_t *out)
{
    uint64_t size;

    if (!copy(object, reader->layout->compact, out))
        return 0;
    size = text_size(reader, out);
    return size <= TEXT_SIZE && copy(object, size, out) && text_size(reader, out) <= size;
}

/* ---- the threads ---- */

/* Not by prctl(2), for which filters of system calls may kill. */
static int is_worker(void)
{
    char name[32];

    return cw_sys_read_text("/proc/thread-self/comm", name, sizeof(name)) == 0 &&
           strncmp(name, WORKER_NAME, strlen(WORKER_NAME)) == 0;
}

static int has_ended(pid_t thread)
{
    int saved_errno = errno;
    int answer = syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;

    errno = saved_errno;
    return answer;
}

/* Whether a place became the calling thread's: it was nobody's, or of a thread that has ended. */
static int claim(_Atomic pid_t *thread_number, pid_t thread)
{
    pid_t owner = atomic_load(thread_number);

    return owner == thread || ((owner == 0 || has_ended(owner)) &&
                               atomic_compare_exchange_strong(thread_number, &owner, thread));
}

/* The thread's own, or the first that is free: two would look like two threads that wait. */
static void claim_slot(pid_t thread, uintptr_t state, uintptr_t thread_id)
{
    struct slot *slot = NULL;

    for (unsigned i = 0; i < THREADS_MAX && slot == NULL; i++)
        if (atomic_load(&slots[i].thread_number) == thread)
            slot = &slots[i];
    for (unsigned i = 0; i < THREADS_MAX && slot == NULL; i++)
        if (claim(&slots[i].thread_number, thread))
            slot = &slots[i];
    if (slot == NULL)
        return;
    atomic_store(&slot->state, 0);
    atomic_store(&slot->thread_id, thread_id);
    atomic_store(&slot->state, state);
}

static struct cw_python_worker *claim_worker(pid_t thread)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        if (claim(&workers[i].thread_number, thread)) {
            memset(workers[i].seen, 0, sizeof(workers[i].seen));
            workers[i].walked = 0;
            return &workers[i];
        }
    return NULL;
}

struct cw_python_worker *cw_python_waiting_meet(uintptr_t state)
{
    const struct cw_python_symbols *symbols = cw_python_symbols_now();
    pid_t thread = (pid_t)syscall(SYS_gettid);
    int saved_errno = errno, is_one = is_worker();

    errno = saved_errno;
    if (is_one)
        return claim_worker(thread);
    if (symbols != NULL)
        claim_slot(thread, state, symbols->thread_self());
    return NULL;
}

void cw_python_waiting_forget(void)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        atomic_store(&slots[i].state, 0);
        atomic_store(&slots[i].thread_number, 0);
    }
}

/* ---- frames ---- */

/* Where the slot's thread is; 0: it is not known any more. */
static uintptr_t innermost(const struct reader *reader, const struct slot *slot)
{
    const struct cw_python_layout *layout = reader->layout;
    uint64_t state[STATE_SIZE / 8];
    uintptr_t at = atomic_load(&slot->state);

    if (cw_python_layout_thread_size(layout) > sizeof(state) ||
        !copy(at, cw_python_layout_thread_size(layout), state) ||
        word_of(state, layout->thread_id) != atomic_load(&slot->thread_id))
        return 0;
    at = word_of(state, layout->thread_frame);
    if (layout->cframe_frame == CW_PYTHON_NONE)
        return at;
    return at != 0 && copy(at + layout->cframe_frame, sizeof(at), &at) ? at : 0;
}

struct walk {
    struct cw_python_frame *out;
    unsigned count, max;
    uintptr_t next;      /* 0: that was the outermost */
    unsigned steps_left; /* what changes meanwhile may have no end */
};

/* One frame more, or none for a shim; 0: what is there is no frame. */
static int step(const struct reader *reader, struct walk *walk)
{
    const struct cw_python_layout *layout = reader->layout;
    uint64_t frame[FRAME_SIZE / 8], code[CODE_SIZE / 8];
    uintptr_t from;

    if (walk->steps_left-- == 0 || cw_python_layout_frame_size(layout) > sizeof(frame) ||
        !copy(walk->next, cw_python_layout_frame_size(layout), frame))
        return 0;
    walk->next = word_of(frame, layout->previous);
    if (cw_python_is_shim(layout, (uintptr_t)frame))
        return 1;
    from = cw_python_code_of(layout, (uintptr_t)frame);
    if (!copy_code(reader, from, code))
        return layout->minor >= 13; /* a frame that an extension pushed */
    if (cw_python_is_own_code(layout, (uintptr_t)code))
        return 1;
    walk->out[walk->count++] = (struct cw_python_frame){
        .code = from,
        .instr = cw_python_instr_of(layout, (uintptr_t)frame, from),
        .stamp = (uint32_t)cw_hash_mix(
            cw_hash_mix(word_of(code, layout->file), word_of(code, layout->function)),
            word_of(code, layout->line_table)),
        .is_entry = 1,
        .is_copied = 1,
    };
    return 1;
}

static int is_text_at(const struct reader *reader, uintptr_t object, const char *end, int is_all)
{
    uint64_t text[TEXT_SIZE / 8];
    struct cw_python_chars chars;
    size_t length = strlen(end);

    return copy_text(reader, object, text) &&
           cw_python_find_chars(reader->layout, reader->symbols, (uintptr_t)text, &chars) == 0 &&
           chars.width == 1 && chars.count >= length && (!is_all || chars.count == length) &&
           memcmp((const char *)chars.at + chars.count - length, end, length) == 0;
}

static CW_NOINLINE int is_waiting_place(const struct reader *reader, uintptr_t at)
{
    uint64_t code[CODE_SIZE / 8];

    if (!copy_code(reader, at, code))
        return 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(waiting_places); i++)
        if (is_text_at(reader, word_of(code, reader->layout->function), waiting_places[i].function,
                       1) &&
            is_text_at(reader, word_of(code, reader->layout->file), waiting_places[i].file, 0))
            return 1;
    return 0;
}

/* The innermost frame alone. */
static int begin(const struct reader *reader, const struct slot *slot, struct walk *walk)
{
    walk->count = 0;
    walk->steps_left = walk->max * STEPS_PER_MAX;
    walk->next = innermost(reader, slot);
    while (walk->next != 0 && walk->count == 0)
        if (!step(reader, walk))
            return 0;
    return walk->count == 1;
}

static int is_waiting(const struct reader *reader, const struct slot *slot)
{
    struct cw_python_frame frame;
    struct walk walk = {.out = &frame, .max = 1};

    return begin(reader, slot, &walk) && is_waiting_place(reader, frame.code);
}

/* ---- what does not change ---- */

/* Which thread it is and how long it has run; 0: it has ended. As long as this stays the same the
 * thread has done nothing at all, and its frames are what they were. */
static uint64_t moment_of(const struct slot *slot)
{
    pid_t thread = atomic_load(&slot->thread_number);
    clockid_t clock = (clockid_t)(~(unsigned)thread << 3 | CLOCK_OF_THREAD);
    int saved_errno = errno;
    struct timespec time;
    uint64_t moment = 0;

    if (syscall(SYS_clock_gettime, clock, &time) == 0)
        moment =
            cw_hash_mix((uint64_t)thread, (uint64_t)time.tv_sec << 30 | (uint64_t)time.tv_nsec);
    errno = saved_errno;
    return moment;
}

/* The one thread that waits. */
static const struct slot *find_waiting(const struct reader *reader, struct cw_python_worker *worker)
{
    const struct slot *found = NULL;

    for (unsigned i = 0; i < THREADS_MAX; i++) {
        uint64_t moment = atomic_load(&slots[i].state) != 0 ? moment_of(&slots[i]) : 0;

        if (moment == 0)
            continue;
        if (worker->seen[i] != moment)
            worker->is_waiting[i] = is_waiting(reader, &slots[i]);
        worker->seen[i] = moment;
        if (worker->is_waiting[i] && found != NULL)
            return NULL;
        if (worker->is_waiting[i])
            found = &slots[i];
    }
    return found;
}

/* A thread that is still on its way into the wait runs; but it has left none of its frames if it is
 * where it was. */
static int is_still_at(const struct reader *reader, const struct slot *slot,
                       const struct cw_python_frame *frame)
{
    struct cw_python_frame now;
    struct walk walk = {.out = &now, .max = 1};

    return begin(reader, slot, &walk) && now.code == frame->code && now.instr == frame->instr;
}

/* Into the worker. */
static void walk_all(const struct reader *reader, const struct slot *slot, uint64_t moment,
                     unsigned max, struct cw_python_worker *worker)
{
    struct walk walk = {.out = worker->frame, .max = max};
    int is_good = begin(reader, slot, &walk), has_run;

    while (is_good && walk.next != 0 && walk.count < max)
        is_good = step(reader, &walk);
    has_run = moment_of(slot) != moment;
    if (is_good && has_run)
        is_good = is_still_at(reader, slot, &worker->frame[0]);
    worker->walked = has_run ? 0 : moment;
    worker->max = max;
    worker->count = is_good ? walk.count : 0;
}

unsigned cw_python_waiting_walk(struct cw_python_worker *worker, struct cw_python_frame *out,
                                unsigned max)
{
    struct reader reader;
    const struct slot *slot;
    unsigned count;
    uint64_t moment;

    reader.layout = cw_python_layout_now(&reader.symbols);
    slot = reader.layout != NULL ? find_waiting(&reader, worker) : NULL;
    if (slot == NULL)
        return 0;
    moment = worker->seen[slot - slots];
    if (worker->walked != moment || worker->max < max)
        walk_all(&reader, slot, moment, max < CW_DEPTH_MAX ? max : CW_DEPTH_MAX, worker);
    count = worker->count < max ? worker->count : max;
    memcpy(out, worker->frame, count * sizeof(*out));
    return count;
}

/* ---- what they show ---- */

/* A code object with what it refers to, as far as it is described. */
struct shadow {
    uint64_t code[CODE_SIZE / 8], file[TEXT_SIZE / 8], function[TEXT_SIZE / 8];
    void *table;
    uint64_t table_size;
};

static void refer(struct shadow *shadow, uint16_t field, const void *to)
{
    uintptr_t at = (uintptr_t)to;

    memcpy((char *)shadow->code + field, &at, sizeof(at));
}

static void take_table(struct shadow *shadow, uintptr_t object)
{
    uint64_t head[CW_PYTHON_BYTES / 8];

    if (!copy(object, sizeof(head), head) || word_of(head, CW_PYTHON_SIZE) > TABLE_MAX)
        return;
    shadow->table_size = CW_PYTHON_BYTES + word_of(head, CW_PYTHON_SIZE);
    shadow->table = cw_mem_alloc(shadow->table_size);
    if (shadow->table == NULL)
        return;
    if (copy(object, shadow->table_size, shadow->table) &&
        word_of(shadow->table, CW_PYTHON_SIZE) == word_of(head, CW_PYTHON_SIZE))
        return;
    cw_mem_free(shadow->table, shadow->table_size);
    shadow->table = NULL;
}

static int describe(const struct reader *reader, const struct cw_python_frame *frame,
                    struct shadow *shadow, struct cw_python_text *out)
{
    const struct cw_python_layout *layout = reader->layout;
    int has_file, has_function, result;

    if (!copy_code(reader, (uintptr_t)frame->code, shadow->code))
        return -1;
    has_file = copy_text(reader, word_of(shadow->code, layout->file), shadow->file);
    has_function = copy_text(reader, word_of(shadow->code, layout->function), shadow->function);
    take_table(shadow, word_of(shadow->code, layout->line_table));
    refer(shadow, layout->file, has_file ? shadow->file : NULL);
    refer(shadow, layout->function, has_function ? shadow->function : NULL);
    refer(shadow, layout->line_table, shadow->table);
    result = cw_python_describe(
        &(struct cw_python_frame){.code = (uintptr_t)shadow->code, .instr = frame->instr}, out);
    if (shadow->table != NULL)
        cw_mem_free(shadow->table, shadow->table_size);
    return result;
}

int cw_python_waiting_describe(const struct cw_python_frame *frame, struct cw_python_text *out)
{
    struct reader reader;
    struct shadow *shadow = cw_mem_alloc(sizeof(*shadow));
    int result = -1;

    reader.layout = cw_python_layout_now(&reader.symbols);
    if (shadow != NULL && reader.layout != NULL)
        result = describe(&reader, frame, shadow, out);
    if (shadow != NULL)
        cw_mem_free(shadow, sizeof(*shadow));
    return result;
}
