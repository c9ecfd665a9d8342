/* SPDX-License-Identifier: MIT */
/* What the files of the simulated GPU share: its objects, its lock and the rules between them.
 *
 * The library is one state machine behind one mutex, `sim.lock`. A trampoline in sim_table.c takes
 * the lock, asks sim_enter() whether the call is legal, runs the body (a function sim_cuXxx below)
 * and releases the lock; hence every body runs with the lock held, and none takes it itself.
 * A body that has to wait does so on a condition variable, which gives the lock away meanwhile.
 *
 * Always true: no application code runs with the lock held; every driver handle is a slot of
 * sim_object.c, so a stale or foreign handle can be told from a live one without reading it.
 */
#ifndef CUSIM_SIM_H
#define CUSIM_SIM_H

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL /* declares every spelling and renames none of them */
#endif
#include <cuda.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cusim.h"
#include "sim_world.h"
#include "sim_elsewhere.h"
/* cuda.h leaves "default" pushed; only the trampolines and the controls are to be exported. */
#pragma GCC visibility push(hidden)

#define SIM_UNIT 512 /* bytes are charged in these, and no device pointer is less aligned */

/* ---- objects: everything the driver hands out a pointer to ---- */

enum sim_type {
    SIM_CONTEXT = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_POOL,
    SIM_HANDLE, /* physical memory of cuMemCreate */
    SIM_ARRAY,
    SIM_MIPMAP,
    SIM_MODULE,
    SIM_FUNCTION,
    SIM_GRAPH,
    SIM_NODE,
    SIM_EXEC,
    SIM_CAPTURE,
    SIM_EXTERNAL,
    SIM_SEMAPHORE,
    SIM_GREEN,
    SIM_LINK,
    SIM_USER,
    SIM_TEXTURE,
    SIM_GRAPHICS, /* a buffer of OpenGL's, registered */
    SIM_NTYPES
};

struct sim_object {
    enum sim_type type;
    bool is_alive;
    uint64_t id; /* never used twice, unlike the address */
    struct sim_object *next_free;
};

void *sim_object_create(enum sim_type type);
void sim_object_destroy(void *object);
bool sim_object_is(const void *handle, enum sim_type type);
/* Calls visit for every living object of a type; visit may destroy the object it is given. */
void sim_object_visit(enum sim_type type, void (*visit)(void *object, void *argument),
                      void *argument);

/* ---- work: what a stream, or a node of a graph, can be asked to do ---- */

enum sim_place {
    SIM_PLACE_HOST,   /* any host address */
    SIM_PLACE_DEVICE, /* must lie in one living block */
    SIM_PLACE_ARRAY,
};

struct sim_side {
    enum sim_place place;
    uintptr_t base;          /* first byte of the whole object */
    struct sim_array *array; /* for SIM_PLACE_ARRAY */
    size_t pitch, height;    /* of the object: bytes per row, rows per slice */
    size_t x, y, z;          /* where the region starts: bytes, rows, slices */
};

struct sim_copy {
    struct sim_side from, to;
    size_t width, height, depth; /* bytes, rows, slices */
};

struct sim_set {
    uintptr_t address;
    size_t pitch, width, height; /* width in elements */
    unsigned element, value;     /* element size in bytes: 1, 2 or 4 */
};

struct sim_memop {
    uintptr_t address;
    uint64_t value;
    unsigned flags;
    bool is_wide, is_wait;
};

struct sim_call { /* one launch of a kernel */
    struct sim_function *function;
    uint64_t arguments[CUSIM_MAX_ARGUMENTS];
    CUDA_KERNEL_NODE_PARAMS_v2 shown; /* as cuGraphKernelNodeGetParams gives it back */
};

enum sim_task {
    SIM_NOTHING,
    SIM_DO_COPY,
    SIM_DO_SET,
    SIM_DO_CALL,
    SIM_DO_HOST,
    SIM_DO_CALLBACK,
    SIM_DO_MEMOP,
    SIM_DO_FREE,  /* the stream-ordered end of a block */
    SIM_DO_ALLOC, /* its stream-ordered begin; the address is known before */
    SIM_DO_RECORD,
};

struct sim_work {
    enum sim_task task;
    union {
        struct sim_copy copy;
        struct sim_set set;
        struct sim_call call;
        struct {
            CUhostFn function;
            void *argument;
        } host;
        struct {
            CUstreamCallback function;
            CUstream stream;
            void *argument;
        } callback;
        struct sim_memop memop;
        struct sim_block *block;
        struct sim_event *event;
    };
    void *owned; /* a staging copy, freed with the operation */
};

/* One piece of work on its way: a node of the directed graph that sim_engine.c works off. */
struct sim_op {
    struct sim_work work;
    struct sim_context *ctx;
    const struct sim_row *row; /* the call that asked for it, for misuse messages */
    struct sim_stream *stream; /* may be NULL; compared, never followed */
    struct sim_op **waiters;   /* operations that wait for this one */
    struct sim_op *next;       /* in the list of spare operations or of host functions */
    unsigned nwaiters, room, pending, refs;
    bool is_done, is_instant, is_submitted, is_awaited;
    uint64_t due_ns, done_ns, sequence, mark;
    uint64_t ids[3]; /* of the blocks it was meant for when it was submitted; 0 for none */
};

struct sim_op *sim_op_create(struct sim_context *ctx, const struct sim_work *work);
void sim_op_depend(struct sim_op *op, struct sim_op *on); /* on may be NULL or done */
void sim_op_submit(struct sim_op *op);                    /* gives the caller's reference away */
struct sim_op *sim_op_ref(struct sim_op *op);
void sim_op_unref(struct sim_op *op); /* op may be NULL */
void sim_op_wait(struct sim_op *op);  /* op may be NULL */
bool sim_op_is_done(const struct sim_op *op);
uint64_t sim_now_ns(void);
void sim_engine_stop(void);
void sim_engine_wake(void);
void sim_engine_forget(void); /* in a forked child: its threads do not exist */
void sim_engine_settle(void); /* returns once no operation is outstanding */

/* Executes one piece of work at once; returns a sticky error or CUDA_SUCCESS. */
CUresult sim_work_execute(struct sim_op *op);
CUresult sim_work_check(const struct sim_work *work);
/* True if a waiting memop is satisfied. */
bool sim_work_is_ready(const struct sim_work *work);
uint64_t sim_work_spin_ns(const struct sim_work *work);
void sim_work_identify(const struct sim_work *work, uint64_t ids[3]);

/* ---- devices and contexts ---- */

struct sim_device {
    size_t total, used, peak;
    size_t graph_used, graph_reserved, graph_used_high, graph_reserved_high;
    struct sim_arena *arena;
    struct sim_pool *default_pool, *pool;
    struct sim_context *primary, *primary_slot; /* NULL while inactive; its handle */
    unsigned primary_refs, primary_flags;
    char name[64];
};

struct sim_context {
    struct sim_object head;
    int device;
    bool is_primary, is_dead;
    unsigned flags, api, refs, ncaptures;
    CUresult sticky;
    struct sim_stream *streams; /* every stream, the legacy one first */
    struct sim_stream *legacy;
    struct sim_green *green;
    size_t limits[CU_LIMIT_MAX];
    size_t live_ops;        /* operations not yet done */
    struct sim_op *orphan;  /* held: the end of streams destroyed while busy */
    struct sim_op *barrier; /* held: what cuCtxWaitEvent makes new streams wait for */
    struct sim_op *freeing; /* what the last free that waits is waiting for */
    uint64_t peers;         /* a bit per device whose memory it may use */
    CUfunc_cache cache;
    CUsharedconfig shared;
};
struct sim_context *sim_context_current(void);
CUresult sim_context_create(struct sim_context **out, int device, unsigned flags);
void sim_context_destroy(struct sim_context *ctx);
CUresult sim_context_synchronize(struct sim_context *ctx);
void sim_context_wait(struct sim_context *ctx); /* the same with no error and no capture check */
struct sim_op *sim_context_join(struct sim_context *ctx);
struct sim_device *sim_device(int device); /* NULL if there is none such */
/* Takes what the pools of the process keep unused, if there is not enough without. */
bool sim_device_charge(int device, size_t bytes);
void sim_device_discharge(int device, size_t bytes);

struct sim_green {
    struct sim_object head;
    struct sim_context *ctx;
    CUdevResource resource;
};

/* ---- streams, events ---- */

struct sim_stream {
    struct sim_object head;
    struct sim_context *ctx;
    struct sim_stream *next;
    struct sim_op *tail;
    unsigned flags;
    int priority;
    size_t charged;
    bool is_legacy, is_per_thread;
    uint64_t thread; /* whose default stream it is */
    struct sim_capture *capture;
    struct sim_node **deps; /* of the next captured operation; owned */
    size_t ndeps;
};

struct sim_event {
    struct sim_object head;
    struct sim_context *ctx;
    unsigned flags;
    struct sim_op *op; /* the last record; NULL before the first */
    struct sim_capture *capture;
    uint64_t capture_id;
    struct sim_node **deps;
    size_t ndeps;
};

/* Turns a handle, special ones included, into a stream of the current context or an error. */
CUresult sim_stream_find(struct sim_stream **out, CUstream handle);
CUresult sim_stream_check(struct sim_stream **out,
                          CUstream handle); /* and refuses implicit capture */
CUresult sim_stream_submit(struct sim_stream *stream, const struct sim_work *work);
/* The operation is appended and returned with a reference; never for a capturing stream. */
struct sim_op *sim_stream_append(struct sim_stream *stream, const struct sim_work *work);
/* Makes op come after what the stream holds and before what follows. */
void sim_stream_order(struct sim_stream *stream, struct sim_op *op);
CUresult sim_stream_run(struct sim_stream *stream, const struct sim_work *work); /* and wait */
struct sim_stream *sim_stream_create(struct sim_context *ctx, unsigned flags, int priority);
/* For the program, at the price of CUSIM_STREAM_BYTES. */
CUresult sim_stream_open(CUstream *out, struct sim_context *ctx, unsigned flags, int priority);
void sim_stream_destroy(struct sim_stream *stream);
void sim_event_settle(struct sim_event *event, struct sim_op *op);
void sim_event_destroy(struct sim_event *event);

/* ---- captures and graphs ---- */

struct sim_capture {
    struct sim_object head;
    struct sim_graph *graph;
    struct sim_stream *origin;
    struct sim_context *ctx;
    CUstreamCaptureMode mode;
    uint64_t thread;
    bool is_invalid, owns_graph;
};

bool sim_capture_forbids(void); /* whether this thread may not make an unsafe call now */
void sim_capture_invalidate_visible(void);
void sim_capture_invalidate_context(struct sim_context *ctx);
bool sim_capture_blocks_legacy(struct sim_context *ctx);
CUresult sim_capture_add(struct sim_stream *stream, const struct sim_work *work);
void sim_capture_set_deps(struct sim_stream *stream, struct sim_node *const *deps, size_t n);
CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, unsigned flags);
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event, unsigned flags);
CUresult sim_capture_alloc(CUdeviceptr *out, size_t bytes, int device, struct sim_stream *stream);
CUresult sim_capture_free(CUdeviceptr address, struct sim_stream *stream);
void sim_capture_leave(struct sim_stream *stream); /* the stream is being destroyed */

struct sim_node {
    struct sim_object head;
    struct sim_graph *graph;
    struct sim_node *next;
    struct sim_node **deps;
    size_t ndeps, room;
    CUgraphNodeType type;
    struct sim_work work;
    struct sim_graph *child;
    struct sim_node *origin; /* what it was cloned from */
    bool is_disabled;
    struct sim_node *sorted_next; /* scratch of the sort */
    size_t index;                 /* scratch of a walk */
};

struct sim_graph {
    struct sim_object head;
    struct sim_node *first, *last;
    size_t nnodes;
    struct sim_share *shares; /* of user objects */
};

struct sim_exec {
    struct sim_object head;
    struct sim_graph *graph;
    unsigned long long flags;
    int device;
    size_t charged;
    struct sim_op *last; /* of the newest launch */
};

struct sim_node *sim_graph_add(struct sim_graph *graph, CUgraphNodeType type,
                               struct sim_node *const *deps, size_t ndeps);
CUgraphNodeType sim_graph_type_of(enum sim_task task);
struct sim_graph *sim_graph_create(void);
void sim_graph_destroy(struct sim_graph *graph);
void sim_graph_destroy_node(struct sim_node *node); /* unlinking it is the caller's part */
struct sim_graph *sim_graph_copy(struct sim_graph *graph);
void sim_graph_depend(struct sim_node *node, struct sim_node *on);
/* An allocation node's memory: an address that is charged and alive only while a launch uses it. */
struct sim_block *sim_graph_block(size_t bytes, int device);
void sim_graph_block_release(struct sim_block *block);
void sim_graph_block_unref(struct sim_block *block); /* a node that held it is gone */
CUresult sim_copy_parse(struct sim_copy *copy, const CUDA_MEMCPY3D_v2 *region);
CUresult sim_call_parse(struct sim_call *call, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
CUresult sim_set_parse(struct sim_set *set, const CUDA_MEMSET_NODE_PARAMS *params);

/* ---- memory ---- */

enum sim_kind {
    SIM_MEM_DEVICE = CUSIM_DEVICE,
    SIM_MEM_MANAGED = CUSIM_MANAGED,
    SIM_MEM_HOST = CUSIM_HOST,
    SIM_MEM_REGISTERED = CUSIM_REGISTERED,
    SIM_MEM_ASYNC = CUSIM_ASYNC,
    SIM_MEM_GRAPH = CUSIM_GRAPH,
    SIM_MEM_ARRAY = CUSIM_ARRAY,
    SIM_MEM_GLOBAL = CUSIM_GLOBAL,
    SIM_MEM_IMPORT = CUSIM_IMPORT,
    SIM_MEM_EXTERNAL = CUSIM_EXTERNAL,
    SIM_MEM_MAPPING = CUSIM_MAPPING,
    SIM_MEM_PHYSICAL = CUSIM_PHYSICAL,
    SIM_MEM_GRAPHICS = CUSIM_GRAPHICS,
    SIM_MEM_NKINDS = CUSIM_NKINDS
};

enum sim_state {
    SIM_FREE,    /* a tombstone: the address may be handed out again */
    SIM_LIVE,    /* the application's */
    SIM_FREEING, /* freed in stream order, not there yet */
    SIM_CACHED,  /* in a pool: reserved but unused */
    SIM_IDLE,    /* an allocation of a graph that is not running */
};

/* A range of addresses the driver knows. Records of an arena outlive the allocation: a freed range
 * stays in the tree as SIM_FREE, which makes reuse cheap and tells a double free from a wild one.
 */
struct sim_block {
    uintptr_t start;
    size_t span; /* bytes of address space */
    size_t size; /* bytes asked for */
    size_t charged;
    enum sim_kind kind;
    enum sim_state state;
    int device;
    uint64_t id;
    uint64_t ctx_id;
    struct sim_context *ctx; /* who dies with it; NULL if nobody */
    struct sim_arena *arena;
    struct sim_block *next, *prev; /* in the free list, pool or the owner's list */
    struct sim_pool *pool;
    struct sim_handle *handle; /* of a mapping */
    struct sim_stream *freer;  /* whose free is in flight; compared, never followed */
    struct sim_op *free_op;    /* held while SIM_FREEING or SIM_CACHED */
    struct sim_op *alloc_op;   /* held: when the contents begin */
    unsigned flags, refs;      /* of host memory and imports; nodes that own a graph's block */
    unsigned skip_frees;       /* frees in flight that a newer launch has overtaken */
    uintptr_t device_address;  /* of host memory as devices see it */
    size_t offset;             /* in what a mapping or import shows */
    bool sync_memops, is_touched;
    int preferred;   /* of managed memory: a device, or a name of cusim.h */
    uint64_t access; /* VMM: bit per device that may write; managed: that was advised to */
    char key[64];    /* CUipcMemHandle of an import or export */
};

struct sim_arena {
    int fd, device;
    uintptr_t base;
    size_t span, top, end; /* fresh ranges are cut from top to end */
    struct sim_block **bins;
};

struct sim_handle { /* cuMemCreate and whatever else has bytes of its own */
    struct sim_object head;
    int fd, device;
    size_t size, charged;
    unsigned refs, maps;
    CUmemAllocationProp prop;
};

struct sim_pool {
    struct sim_object head;
    CUmemPoolProps props;
    int device;
    bool is_default, is_dead, is_told; /* told: an observer knows of it */
    uint64_t used, reserved, used_high, reserved_high, threshold;
    int policies[3];
    CUmemAccess_flags access[SIM_MAX_DEVICES];
    struct sim_block *cached; /* doubly linked, the newest first */
};

struct sim_array {
    struct sim_object head;
    CUDA_ARRAY3D_DESCRIPTOR_v2 desc;
    struct sim_block *block;
    struct sim_context *ctx;
    struct sim_array *whole;              /* of a level or plane */
    size_t pitch, height, depth, element; /* pitch in bytes */
    uintptr_t base;
    bool is_part;
};

size_t sim_round(size_t bytes, size_t unit);
struct sim_block *sim_block_find(uintptr_t address); /* live or tombstone, NULL if never seen */
struct sim_block *sim_block_live(uintptr_t address); /* whatever may still be accessed */
struct sim_block *sim_block_base(uintptr_t address); /* the living block that starts there */
/* A fresh block of an arena, charged to the device if it has one; NULL when out of memory. */
struct sim_block *sim_block_create(enum sim_kind kind, int device, size_t size, bool is_charged);
void sim_block_destroy(struct sim_block *block);
/* A block at an address that somebody else provides. */
struct sim_block *sim_block_insert(enum sim_kind kind, uintptr_t start, size_t span);
void sim_block_remove(struct sim_block *block);
void sim_block_visit(void (*visit)(struct sim_block *block, void *argument), void *argument);
void sim_block_own(struct sim_block *block, struct sim_context *ctx);
/* Says in a misuse line why an address cannot be freed, and returns the driver's error. */
CUresult sim_block_refuse(uintptr_t address, const char *what);
bool sim_range_is_live(uintptr_t address, size_t bytes, const char *what);
void sim_block_count(struct sim_block *block, int sign);
int sim_memory_file(size_t bytes);

void sim_pool_release(struct sim_block *block); /* its free has been carried out */
void sim_pool_trim(struct sim_pool *pool, uint64_t keep);
void sim_pool_trim_all(int device);  /* what a synchronisation does */
bool sim_pool_trim_some(int device); /* on memory pressure: true if it helped */
void sim_pool_init(int device);
CUresult sim_free_now(struct sim_block *block);
CUresult sim_free_later(struct sim_block *block, struct sim_stream *stream);

/* ---- modules ---- */

#define SIM_MAX_NAME 128

struct sim_function {
    struct sim_object head;
    struct sim_module *module;
    char name[SIM_MAX_NAME];
    const struct sim_kernel *kernel; /* NULL: does nothing */
    struct sim_function *next;
    bool is_loaded; /* needed before */
    size_t charged;
};

struct sim_module {
    struct sim_object head;
    struct sim_context *ctx;           /* NULL for a library not yet used */
    bool is_library, is_text, is_open; /* open: any function exists */
    struct sim_function *functions;
    struct sim_global *globals;
    struct sim_module *instance; /* of a library */
    int device;
    size_t charged;
};

struct sim_kernel {
    const char *name;
    unsigned narguments;
    unsigned char sizes[CUSIM_MAX_ARGUMENTS];
    CUresult (*run)(const uint64_t *arguments, const char *who);
    unsigned pointers;           /* a bit per argument that is one */
    bool is_long, is_persistent; /* arguments: its microseconds; a word, and what that ends at */
    void (*run_own)(const struct cusim_launch *launch); /* of the program, instead of run */
};

const struct sim_kernel *sim_kernel_find(const char *name);
CUresult sim_function_load(struct sim_function *function); /* before it is needed first */
void sim_module_forget(struct sim_context *ctx);

/* ---- the table of entry points ---- */

enum sim_flavour { SIM_PLAIN, SIM_PTSZ, SIM_PTDS };

enum sim_guard {
    SIM_NEEDS_NOTHING = 0,
    SIM_NEEDS_INIT = 1,
    SIM_NEEDS_CONTEXT = 2, /* and that it is not broken by a sticky error */
    SIM_UNSAFE = 4,        /* refused where a capture forbids "potentially unsafe" calls */
    SIM_ALLOCATES = 8,     /* costs what CUSIM_COST_NS says for all such calls */
    SIM_FREES = 16,        /* quiet after teardown counts as misuse all the same */
};

struct sim_row {
    const char *symbol, *base;
    int since;
    enum sim_flavour flavour;
    unsigned guard;
};

struct sim_tally {
    atomic_ullong calls;
    unsigned long long cost_ns, failed; /* failed: by a rule */
    struct sim_rule *rules;
};

extern const struct sim_row sim_rows[];
extern struct sim_tally sim_tallies[];
extern const unsigned sim_nrows;
void *sim_row_export(unsigned index);
void *sim_row_private(unsigned index);
int sim_row_find(const char *symbol); /* negative if there is none */

CUresult sim_enter(unsigned index, const void *caller);
CUresult sim_leave(CUresult status);

/* ---- threads and the process ---- */

#define SIM_STACK 64

struct sim_thread {
    uint64_t id;
    const struct sim_row *row;
    const void *caller;              /* where the running call returns to */
    bool is_callback, is_per_thread; /* the running call treats stream 0 as the per-thread one */
    CUstreamCaptureMode mode;
    struct cusim_here here;
    unsigned depth;
    struct {
        struct sim_context *ctx;
        uint64_t id;
    } stack[SIM_STACK];
};

struct sim_thread *sim_thread(void);

struct sim_config {
    int ndevices, driver_version, number[SIM_MAX_DEVICES]; /* the machine's device behind each */
    size_t memory[SIM_MAX_DEVICES], alloc_granularity, free_waits_from;
    size_t context_bytes, granularity, module_bytes, stream_bytes, graph_bytes, lazy_load_bytes;
    long delay_us, free_waits;
    bool is_private, is_lazy, is_managed, is_integrated, has_vmm, has_peers, has_sites, ends_own;
    char report[512];
};

struct sim_state_all {
    pthread_mutex_t lock;
    pthread_cond_t done; /* an operation or a host function has ended */
    struct sim_config config;
    struct sim_device devices[SIM_MAX_DEVICES];
    bool is_configured, is_initialised, is_down, is_forked;
    uint64_t next_id;
};

extern struct sim_state_all sim;

void sim_config_load(void);
void sim_counter_fini(void);
void sim_misuse(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_live_bytes_add(enum sim_kind kind, int device, int64_t bytes, int64_t blocks);

CUresult sim_cu_unsupported(void);

#define OWN(symbol, base, since, flavour, guard) __typeof__(symbol) sim_##symbol;
#define SAME(symbol, body, base, since, flavour, guard)
#define NONE(symbol, base, since, flavour)
#include "sim_api.def"
#undef OWN
#undef SAME
#undef NONE

#pragma GCC visibility pop

#endif
