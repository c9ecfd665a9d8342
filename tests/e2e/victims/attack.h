/* SPDX-License-Identifier: MIT */
/* What the files of the victim `attack` share. attack.c says what the program is.
 *
 * Objects belong to whoever has marked them busy or counts among their users; the marks, the counts
 * and the tables are guarded by attack.lock. No driver call is made under it. Every operation holds
 * attack.life for reading, what makes and ends contexts for writing: during an operation no context
 * comes or goes.
 */
#ifndef ATTACK_H
#define ATTACK_H

#include "bound.h"
#include "dice.h"
#include "victim.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

CUresult cuCtxSynchronize_v2(CUcontext context) __attribute__((weak));
/* Controls of the simulated GPU; absent on a real one. */
void cusim_set_lazy(unsigned long long seed) __attribute__((weak));
unsigned cusim_step(unsigned most) __attribute__((weak));
void cusim_set_pause(void (*pause)(void)) __attribute__((weak));
unsigned long long cusim_misuse_of(const char *kind) __attribute__((weak));
void cusim_write_report(const char *path) __attribute__((weak));

enum {
    MAX_THREADS = 4,
    MAX_CONTEXTS = 4,
    MAX_DEVICES = 2,
    MAX_STREAMS = 16,
    MAX_BLOCKS = 64,
    MAX_CHECKS = 1024,
    MAX_GRAPHS = 32,
    MAX_GONE = 64,
    MAX_SIZES = 3,
    HEAD_WORDS = 256, /* so much of a block, and its last TAIL_WORDS, is written and checked */
    TAIL_WORDS = 64,
};

enum kind { DEVICE, PITCHED, PINNED };

enum stream_kind { NO_STREAM, LEGACY, PER_THREAD, BLOCKING, NON_BLOCKING };

/* `event` is recorded after each piece of work, and outlives the stream. */
struct stream {
    CUstream handle;
    CUevent event;
    struct context *context;
    enum stream_kind kind;
    unsigned thread; /* whose, for PER_THREAD */
    unsigned users;
    bool is_gone, is_capturing;
};

struct check {
    unsigned operation, block;
    uint32_t pattern;
    CUdeviceptr address;
};

struct context {
    CUcontext handle;
    int device;
    bool is_alive, is_primary;
    unsigned generation;
    unsigned captures, blocking_captures; /* streams captured, and those the legacy one waits for */
    unsigned syncs;                       /* calls under way that wait for the context */
    CUmodule module;
    CUfunction fill, check, copy;
    CUdeviceptr ledger; /* a counter of mismatches per check */
    unsigned nchecks;
    struct check checks[MAX_CHECKS];
    struct stream streams[MAX_STREAMS];
};

struct block {
    unsigned serial;          /* 0 if the slot is empty */
    bool is_busy, is_leaving; /* leaving: about to be freed, its address may come back any time */
    enum kind kind;
    struct context *context;
    CUdeviceptr address;
    size_t size;
    struct stream *home; /* what follows this stream's event follows all work on the block */
    uint32_t head, tail; /* what its ends hold, in words; 0 if nobody knows */
    bool has_handle, has_memops; /* was exported; has an attribute set */
    CUipcMemHandle handle;
    unsigned users; /* graphs that may still be launched */
    unsigned nfills;
    unsigned host_flags;
};

struct graph {
    CUgraphExec exec;
    struct context *context;
    struct block *blocks[2];
    uint32_t pattern; /* what they hold after a launch */
    bool is_busy, is_retired;
};

/* A block that was freed. */
struct gone {
    CUdeviceptr address;
    size_t size;
    enum kind kind;
    bool has_handle, has_memops;
    CUipcMemHandle handle;
};

struct capture {
    struct context *context; /* not NULL from before it begins until it has ended */
    CUstreamCaptureMode mode;
    bool is_active, is_broken;
    bool is_doubtful; /* other threads may have broken it */
};

struct thread {
    unsigned index;
    pthread_t id;
    struct rng *rng, own_rng;
    struct context *current;
    unsigned generation, operation, rest;
    bool is_done, keeps_turn;
    CUstreamCaptureMode mode;
    struct capture capture;
};

struct device {
    size_t capacity;    /* what cuMemGetInfo calls total */
    size_t exact, most; /* what all that lives takes at least, and what a pool may make of it */
    size_t peak;        /* of most_taken, in this program */
};

/* TURNS: one thread at a time, changing between operations; STEPS: changing within driver calls
 * too; FREE: all at once. */
enum style { ALONE, TURNS, STEPS, FREE };

struct attack {
    pthread_mutex_t lock;
    pthread_rwlock_t life;
    pthread_rwlock_t addresses; /* for writing: nobody gets a new address meanwhile */
    bool is_verbose, is_deterministic, is_summing, is_curious; /* options */
    bool is_limited; /* a limit may be in the way, of which the driver knows nothing */
    /* the running program */
    bool has_waiter;      /* thread 1 waits all the time, the others replace blocks */
    uint64_t seed, chain; /* chain: the first seed since all contexts were new */
    enum style style;
    struct rng rng;
    unsigned nthreads, noperations, operation, holder, nturns, serial;
    unsigned nsizes,
        waits; /* how many of them are used; how often in 100 operations a program waits */
    size_t sizes[MAX_SIZES],
        planes[2]; /* few, so that pools hit; a plane is width << 32 | height */
    struct thread threads[MAX_THREADS];
    pthread_cond_t turns[MAX_THREADS];
    unsigned captures;              /* under way */
    unsigned starts, global_starts; /* of captures so far */
    /* what programs hand on */
    struct device devices[MAX_DEVICES];
    struct context contexts[MAX_CONTEXTS];
    struct block blocks[MAX_BLOCKS];
    struct graph graphs[MAX_GRAPHS];
    struct gone gone[MAX_GONE];
    unsigned ngone;
    /* sums over all programs */
    uint64_t hash;
    unsigned long long allocs, frees, failed, leaked_blocks, leaked_bytes;
    unsigned long long refused;   /* calls that a capture forbade */
    unsigned long long bad_frees; /* deliberate */
    unsigned long long operations, checks;
};

extern struct attack attack;

/* An expression under attack.lock. */
#define LOCKED(...)                                                                                \
    (pthread_mutex_lock(&attack.lock), (__VA_ARGS__), pthread_mutex_unlock(&attack.lock))

/* ---- attack.c ---- */

unsigned below(struct thread *self, unsigned n);
bool chance(struct thread *self, unsigned percent);
void __attribute__((format(printf, 2, 3))) trace(struct thread *self, const char *format, ...);
void __attribute__((format(printf, 2, 3), noreturn))
violated(struct thread *self, const char *format, ...);
/* A call whose code does not depend on when the driver does its work: the code goes into the hash,
 * and what the library has made of the call is held against bound.h. note_end: the call may take as
 * long as it needs. */
#define note(call)     (begin_note(false), end_note(call))
#define note_end(call) (begin_note(true), end_note(call))
void begin_note(bool is_exempt);
CUresult end_note(CUresult code);
void expect(struct thread *self, CUresult code, CUresult wanted, const char *what);
#define WORKS(self, call) expect(self, note(call), CUDA_SUCCESS, #call)
#define ENDS(self, call)  expect(self, note_end(call), CUDA_SUCCESS, #call)
/* Whether other threads may do anything during a call of self. */
bool is_loose(void);
/* Lets other threads go on. */
void pass_turn(struct thread *self);

/* ---- attack_world.c ---- */

void world_begin(struct thread *self);
void world_end(struct thread *self);
void world_change(struct thread *self); /* ends or makes a context, if nobody is in the way */
void world_end_all(struct thread *self);
void enter(struct thread *self, struct context *context);
struct context *some_context(struct thread *self);
/* Waits for a context and looks what its checks have found. */
void verify(struct thread *self, struct context *context);
bool begin_sync(struct context *context); /* false if a capture is in the way */
void end_sync(struct context *context);

/* ---- attack_stream.c ---- */

void open_streams(struct thread *self, struct context *context);
void tidy_streams(struct thread *self, struct context *context);
/* A stream that self may use until it puts it back; legacy ones only if allowed. */
struct stream *take_stream(struct thread *self, struct context *context);
struct stream *take_legacy(struct thread *self, struct context *context); /* or NULL */
/* For a capture: one that nobody else uses, or NULL. */
struct stream *take_for_capture(struct thread *self, struct context *context);
void put_captured(struct stream *stream);
void put_stream(struct stream *stream);
CUstream handle_of(struct thread *self, const struct stream *stream);
void make_stream(struct thread *self);
void drop_stream(struct thread *self);
void wait_for(struct thread *self); /* host waits of all sorts */
void wait_for_all(struct thread *self);

/* ---- attack_block.c ---- */

/* A block that nobody else has, of this context if it is not NULL; or NULL. */
struct block *take_block(struct thread *self, struct context *context);
void put_block(struct block *block);
void allocate(struct thread *self);
void replace(struct thread *self,
             struct block *block); /* frees it, and allocates the like; takes it over */
/* Returns it taken, or NULL. */
struct block *obtain(struct thread *self, struct context *context, enum kind kind, size_t size);
void squeeze(struct thread *self);
void release(struct thread *self, struct block *block); /* takes it over */
void forget(struct thread *self, struct block *block);  /* its context is about to end */
void choose_sizes(struct thread *self);
size_t head_words(const struct block *block);
size_t tail_words(const struct block *block);
CUdeviceptr tail_address(const struct block *block);

bool is_covered(CUdeviceptr address);           /* by something alive; the caller holds the lock */
size_t most_of(size_t size);                    /* what a pool may make of a request */
size_t most_taken(const struct device *device); /* and of all that lives */

/* ---- attack_work.c ---- */

void follow(struct thread *self, struct stream *stream, struct block *block);
void stay(struct thread *self, struct stream *stream, struct block *block);
CUresult launch_fill(struct thread *self, struct stream *stream, CUdeviceptr to, uint32_t value,
                     size_t words);
CUresult launch_check(struct thread *self, struct stream *stream, struct block *block,
                      CUdeviceptr from, uint32_t value, size_t words);
CUresult launch_copy(struct thread *self, struct stream *stream, CUdeviceptr to, CUdeviceptr from,
                     size_t words);
uint32_t new_pattern(struct block *block);
void fill(struct thread *self, struct block *block);
void check(struct thread *self, struct block *block);
void spoil(struct thread *self, struct block *block); /* just before it is freed */
void work(struct thread *self, struct block *block);  /* any of it */

/* ---- attack_capture.c ---- */

/* Whether a call that captures may forbid is so now, and whether its code says so. */
struct guard {
    bool is_forbidden, is_uncertain, has_others;
    unsigned starts;
};
struct guard guard_begin(struct thread *self);
/* True if the call was carried out; otherwise it was refused, as it had to be or may have been. */
bool guard_end(struct thread *self, const struct guard *guard, CUresult code, const char *what);

void capture(struct thread *self);
void wait_in_vain(struct thread *self); /* for a context that is captured in */
void relaunch(struct thread *self);
void drop_graphs(struct thread *self, struct context *context); /* all of them if NULL */

/* ---- attack_probe.c ---- */

void probe(struct thread *self);                             /* asks about addresses */
void export_block(struct thread *self, struct block *block); /* by IPC or otherwise */
void check_new(struct thread *self, struct block *block);    /* against what was exported before */
void misfree(struct thread *self);                           /* frees what cannot be freed */
void count_misuse(struct thread *self);                      /* what the simulated driver says */

#endif
