/* SPDX-License-Identifier: MIT */
/*
 * What a program may ask of cuwarden: C11, also C++11 and later.
 *
 * There is nothing to link. The functions are inline and look once, by dlsym(3), for a table that
 * libcuwarden.so exports when it is preloaded (`cuwarden run -- PROGRAM`). Without it each function
 * does nothing and returns CUWARDEN_NOT_ACTIVE, at the cost of one load and one comparison, so a
 * program can ship with the calls in place. With CUWARDEN_MODE=off they return it, too. glibc
 * before 2.34 wants -ldl (`pkg-config --libs cuwarden`).
 *
 * What holds for all functions
 *   result   an enum cuwarden_error; results go to the last argument. Nothing is written on
 *            failure. cuwarden_error_text() says what happened, with the numbers.
 *   bytes    are bytes, times are nanoseconds, shares are 0 to 1.
 *   names    are UTF-8, terminated by NUL, and copied.
 *   threads  any thread may call any function at any time, unless it says otherwise. Tags belong to
 *            the calling thread. No lock of the library is held while it calls a function of the
 *            program's (callback), which may call CUDA and all functions here. A callback must
 *            return: no longjmp, no exception (C++'s functions of cuwarden.hpp see to that).
 *   signals  do not call them in a signal handler.
 *   fork     a forked child begins with an empty account; its tags are those of the thread that
 *            forked.
 *   memory   no function calls malloc.
 *   device   an ordinal of cudaGetDevice(), CUWARDEN_ALL_DEVICES, or CUWARDEN_HOST for pinned and
 *            registered host memory.
 *   cost     is that of one call on a processor of 2020, with the library, as `asks all` of
 *            tests/bench measures it; what is not said costs less than a microsecond.
 *
 * Versions. The table is struct cuwarden_table, exported as cuwarden_table_1. Its members and those
 * of all structures here are only ever appended; `size` tells how many are there. A program that
 * was built with a newer header than the library gets CUWARDEN_UNSUPPORTED from what the library
 * lacks, an older one does not see what is new. A change that is not of this kind would be
 * cuwarden_table_2, beside the first. Structures that the library fills are filled as far as the
 * program's header knows them; the rest of a larger one is zero.
 */
#ifndef CUWARDEN_CUWARDEN_H
#define CUWARDEN_CUWARDEN_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUWARDEN_TABLE "cuwarden_table_1"

#define CUWARDEN_ALL_DEVICES (-1) /* the host not among them */
#define CUWARDEN_HOST        (-2)

/* X(NAME, number, "what it means") */
#define CUWARDEN_ERRORS(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(NOT_ACTIVE, 1,                                                                               \
      "cuwarden is not active in this process: start it by 'cuwarden run -- PROGRAM'")             \
    X(NOT_STARTED, 2, "the program has not called CUDA yet; cudaFree(0) is enough")                \
    X(INVALID, 3, "an argument is invalid")                                                        \
    X(NOT_FOUND, 4, "there is no such thing")                                                      \
    X(NO_DEVICE, 5, "there is no such device")                                                     \
    X(UNUSED_DEVICE, 6, "the program does not use this device")                                    \
    X(OUT_OF_LIMIT, 7, "out of memory: the limit does not allow it")                               \
    X(OUT_OF_DEVICE, 8, "out of memory: the device has no more")                                   \
    X(OUT_OF_BUDGET, 9, "out of memory: the tag's budget does not allow it")                       \
    X(OUT_OF_HOST, 10, "out of host memory")                                                       \
    X(DRIVER, 11, "the driver refused")                                                            \
    X(BUSY, 12, "not now: ask again")                                                              \
    X(SYSTEM, 13, "the system refused")                                                            \
    X(UNSUPPORTED, 14, "this library does not do that")                                            \
    X(UNBALANCED, 15, "an end without its beginning")                                              \
    X(EXISTS, 16, "there is one of this name already")                                             \
    X(WRONG_SIZE, 17, "its elements are of another size")                                          \
    X(TOO_LARGE, 18, "more than its maximum")

enum cuwarden_error {
#define CUWARDEN_ERROR_(name, number, text) CUWARDEN_##name = number,
    CUWARDEN_ERRORS(CUWARDEN_ERROR_)
#undef CUWARDEN_ERROR_
};

/* One allocation. Texts are valid until the function that passed it returns. */
struct cuwarden_block {
    uint64_t id;          /* no other allocation of this process has it, before or after */
    uint64_t address;     /* or handle, as the program knows it */
    uint64_t bytes;       /* asked for */
    uint64_t held_bytes;  /* taken from the driver for it */
    uint64_t age_ns;      /* since it was allocated; ticks every few milliseconds */
    const char *kind;     /* "device", "pinned", ...: `kind` in docs/report-json.md */
    const char *function; /* that the program called, "cudaMalloc" */
    const char *tag;      /* of the thread then; "" */
    const char *name;     /* by cuwarden_block_name(); "" */
    int32_t device;       /* or CUWARDEN_HOST */
    uint32_t thread;      /* kernel's id of the thread that allocated it */
};

/* Called for one block; anything but 0 ends the visit. */
typedef int (*cuwarden_block_fn)(const struct cuwarden_block *block, void *arg);

/* Which blocks. All zero, with device CUWARDEN_ALL_DEVICES: all of all devices. */
struct cuwarden_filter {
    uint64_t since;         /* allocated after this mark (cuwarden_mark()); 0: any */
    uint64_t older_than_ns; /* of at least this age; 0: any */
    const char *tag;        /* with exactly this tag; NULL: any, "": none */
    int32_t device;         /* ALL_DEVICES includes memory of the host here */
    uint32_t unused;        /* 0 */
};

/* Of a device, of all, or of the host; or of a tag there. Counted since the first call of CUDA. */
struct cuwarden_stats {
    uint64_t allocations, frees;      /* that succeeded */
    uint64_t failures;                /* allocating calls that returned an error */
    uint64_t out_of_memory;           /* those of them for lack of memory */
    uint64_t live_blocks, live_bytes; /* what the program has now: asked for, and not freed */
    uint64_t allocated_bytes;         /* what is taken from the driver for live blocks */
    uint64_t total_bytes;             /* asked for in all allocations together */
    uint64_t peak_bytes; /* most that was live; of a tag an upper bound (see tag_stats) */
    /* A tag has no reserved, idle, device or limit bytes, utilisation or fragmentation: 0. */
    uint64_t reserved_bytes, peak_reserved_bytes; /* from the driver: allocated, idle, on its way */
    uint64_t idle_blocks, idle_bytes;             /* kept by the pool for later requests */
    uint64_t hits, misses;                        /* requests served by it; left to the driver */
    uint64_t fallbacks, fallback_bytes;           /* served from managed memory */
    uint64_t resizes;                             /* blocks replaced by larger ones */
    uint64_t resized_bytes;                       /* copied for that */
    uint64_t device_total_bytes;                  /* at the last look at the device; 0: none yet */
    uint64_t device_free_bytes;
    uint64_t limit_bytes; /* that this process may hold; 0: no limit */
    double hit_rate;      /* hits / (hits + misses); 0 without any */
    double utilisation;   /* allocated bytes / what may be used: the limit, else the device */
    double fragmentation; /* 1 - peak of live bytes / peak of reserved bytes */
    double efficiency;    /* live bytes / allocated bytes; 1 without any */
    const char *backend;  /* "pool": freed memory is kept; "track": it is not. Static. */
    uint64_t transfers, transfer_bytes; /* complete: downloads, copies over bridges, files */
    uint64_t transfer_ns;               /* that they took on the device */
    uint64_t transfer_waited_ns;        /* that the program waited for them */
    double transfer_overlap; /* the share of their time while it did not; 0 without any */
    /* Those of them that came to the device from another one (cuwarden_bridge_copy). */
    uint64_t peer_transfers, peer_bytes;     /* at once */
    uint64_t staged_transfers, staged_bytes; /* through pinned memory */
};

/* What a leak check found. */
struct cuwarden_leaks {
    uint64_t blocks, bytes;                 /* leaked */
    uint64_t excused_blocks, excused_bytes; /* also live: in caches, of libraries, suppressed */
};

enum cuwarden_level { CUWARDEN_LOW, CUWARDEN_MEDIUM, CUWARDEN_HIGH, CUWARDEN_CRITICAL };

/* How scarce memory is. */
struct cuwarden_pressure {
    double use;           /* largest of used / total, held / limit, and those of other limits */
    uint64_t used_bytes;  /* of the device, by anybody, when last looked at */
    uint64_t total_bytes; /* of the device; 0: not known yet */
    uint64_t held_bytes;  /* by this process, from the driver */
    uint64_t limit_bytes; /* that it may hold; 0: no limit */
    int32_t level;        /* enum cuwarden_level, as CUWARDEN_PRESSURE divides it */
    int32_t device;       /* the one that all this is about */
};

/* Called when the level of a device has changed. */
typedef void (*cuwarden_pressure_fn)(const struct cuwarden_pressure *now, int level_before,
                                     void *arg);

/* Called when a request for so many bytes (0: not known) found no memory on a device. Returns
 * whether it has freed something: 1, and the request is tried again. */
typedef int (*cuwarden_memory_fn)(int device, uint64_t bytes, void *arg);

/* What goes back to the driver of what the pool keeps. */
enum cuwarden_trim_how {
    CUWARDEN_SHRINK,   /* half of it, the largest blocks first */
    CUWARDEN_CLEAR,    /* all that the device is done with */
    CUWARDEN_EMERGENCY /* all, and what the driver's own pools keep unused; waits for the device */
};

/* What happens to an allocation that a budget has no room for. */
enum cuwarden_budget_how {
    CUWARDEN_WARN,  /* it is made; one line on stderr, and a count in the report */
    CUWARDEN_REFUSE /* it returns out of memory */
};

/* What a scope did at its end. */
struct cuwarden_freed {
    uint64_t blocks, bytes;           /* freed */
    uint64_t left_blocks, left_bytes; /* of a kind that it does not free, or the driver refused */
};

/* How much memory a tag may have, and has. */
struct cuwarden_budget {
    uint64_t bytes;      /* that may be live at a time */
    uint64_t used_bytes; /* that are */
    uint64_t peak_bytes; /* that were at most since the budget was set, exactly */
    uint64_t refused;    /* calls that returned out of memory for it */
    uint64_t exceeded;   /* times that what is live went from within to beyond */
    int32_t how;         /* enum cuwarden_budget_how */
    uint32_t unused;     /* 0 */
};

/* Of a growable buffer. */
enum cuwarden_buffer_flags {
    CUWARDEN_ASYNCHRONOUS = 1, /* ensure_capacity does not wait for the copy that it orders, where
                                  the pool serves and the driver has events of contexts (12.5) */
    CUWARDEN_COPYING = 2       /* ordinary memory (for peers, IPC), though the device can map */
};

/* What a growable buffer is to be; 0 where it says so. */
struct cuwarden_buffer_spec {
    const char *name;       /* of at most 47 bytes; no two live buffers have the same */
    uint64_t element_bytes; /* size of one element */
    uint64_t count;         /* elements that it has room for from the start */
    uint64_t least_bytes;   /* that it begins with; 0: 4 KiB */
    uint64_t most_bytes;    /* that it may ever have; 0: all memory of the device */
    double growth;          /* factor by which it grows at least, 1 to 16; 0: 1.5 */
    uint32_t flags;         /* enum cuwarden_buffer_flags */
    uint32_t unused;        /* 0 */
};

/* A growable buffer. Texts are valid until the function that passed it returns. */
struct cuwarden_buffer {
    uint64_t id; /* no other buffer of this process has it, before or after */
    const char *name;
    uint64_t address;        /* on the device; 0: it has no memory */
    uint64_t element_bytes;  /* size of one element */
    uint64_t used;           /* elements: most ever ensured, or what cuwarden_buffer_use() said */
    uint64_t capacity;       /* elements that it has room for */
    uint64_t capacity_bytes; /* taken for it: in whole granules where it grows in place */
    uint64_t most_bytes;     /* that it may ever have */
    uint64_t resizes;        /* times that its capacity grew or shrank */
    uint64_t copies;         /* of them, to another address */
    uint64_t copied_bytes;   /* by these */
    uint64_t age_ns;         /* since it was made; ticks every few milliseconds */
    uint64_t unused_ns;      /* since the last ensure_capacity or use */
    double utilisation;      /* used / capacity; 0 without memory */
    int32_t device;
    int32_t is_in_place; /* 1: it never copies, and keeps its address */
};

/* Called for one buffer; anything but 0 ends the visit. */
typedef int (*cuwarden_buffer_fn)(const struct cuwarden_buffer *buffer, void *arg);

/* A frame that has come from the device: the program's until it releases it, or waits again. */
struct cuwarden_frame {
    const void *data;   /* in pinned memory */
    uint64_t bytes;     /* of this frame */
    uint64_t number;    /* that cuwarden_download_start() said */
    uint64_t waited_ns; /* for it, by the program */
};

/* A download. Its name is valid until it ends. */
struct cuwarden_download {
    uint64_t id; /* no other download of this process has it, before or after */
    const char *name;
    uint64_t most_bytes;  /* of a frame */
    uint64_t started;     /* number of the last frame that was started; 0: none */
    uint64_t taken;       /* frames that cuwarden_download_wait() gave */
    uint64_t skipped;     /* that a later one replaced before anybody took them */
    uint64_t refused;     /* starts that found no free half */
    uint64_t bytes;       /* of the frames that are complete */
    uint64_t transfer_ns; /* that these took on the device */
    uint64_t waited_ns;   /* that the program waited for them */
    double overlap;       /* the share of their time while it did not; 0 without any */
    int32_t device;
    uint32_t unused; /* 0 */
};

/* How bytes come from one device to another. */
enum cuwarden_way {
    CUWARDEN_LOCAL, /* they stay on the device */
    CUWARDEN_PEER,  /* from device to device */
    CUWARDEN_STAGED /* through pinned memory */
};

/* A bridge. Its name is valid until it ends. */
struct cuwarden_bridge {
    uint64_t id; /* no other bridge of this process has it, before or after */
    const char *name;
    uint64_t chunk_bytes;   /* of either half of its pinned memory */
    uint64_t started;       /* number of the last copy that was started; 0: none */
    uint64_t refused;       /* copies that found 16 on their way */
    uint64_t peer_copies;   /* complete, of the way CUWARDEN_PEER */
    uint64_t staged_copies; /* of the way CUWARDEN_STAGED */
    uint64_t bytes;         /* of all that are complete */
    uint64_t transfer_ns;   /* that these took on the devices */
    uint64_t waited_ns;     /* that the program waited for them */
    double overlap;         /* the share of their time while it did not; 0 without any */
    int32_t from_device, to_device;
    int32_t way;     /* enum cuwarden_way, of blocks that peers reach */
    uint32_t unused; /* 0 */
};

/* What a model is to do, beside inference. */
enum cuwarden_model_flags {
    CUWARDEN_TRAINING = 1,
    CUWARDEN_CHECKPOINTING = 2, /* of training: layers are computed again */
    CUWARDEN_MASTERLESS = 4     /* of training in 16 bits: no copy of the weights in 32 */
};

/* A decoder-only transformer, as its config.json has it, and what it is to do. 0: not given. */
struct cuwarden_model {
    uint64_t layers, hidden, heads, vocab; /* 0 in all four: only the weights are known */
    uint64_t kv_heads;                     /* 0: as many as heads */
    uint64_t head_dim;                     /* 0: hidden / heads */
    uint64_t ffn;                          /* size of the feed-forward network */
    uint64_t positions;                    /* longest context that it was made for */
    uint64_t window, window_layers;        /* tokens that sliding windows keep; 0: in all layers */
    uint64_t experts, experts_used;        /* in a layer; that a token uses */
    uint64_t expert_ffn, shared_ffn;       /* of one; of what all tokens use beside them */
    uint64_t dense_layers;                 /* without experts */
    uint64_t q_rank, kv_rank;              /* of MLA */
    uint64_t rope_dim, nope_dim, value_dim;
    uint64_t tied;              /* 1: the output uses the matrix of the embedding */
    uint64_t plain_ffn;         /* 1: two matrices in the feed-forward network, not three */
    uint64_t learned_positions; /* rows of a table of positions */
    uint64_t parameters;        /* 0: by the shape */
    uint64_t stored_bytes;      /* of the file with the weights; 0: by their format */
    uint64_t batch, context;    /* sequences, and tokens in each; 0: 1, and at most 4096 */
    uint64_t chunk;             /* tokens that inference computes at a time; 0: 2048 */
    uint64_t devices;           /* that share it, by tensor parallelism; 0: 1 */
    const char *weights;        /* format, as of `cuwarden estimate --dtype`; NULL: "bf16" */
    const char *cache;          /* NULL: "bf16", beside "fp32" that */
    const char *optimizer;      /* NULL: "adam" */
    uint32_t flags;             /* enum cuwarden_model_flags */
    uint32_t unused;            /* 0 */
    uint64_t full_kv_heads;     /* of layers without a window; 0: as the others. So the next */
    uint64_t full_head_dim;
    uint64_t full_keys_are_values; /* 1: these layers have one matrix for keys and values */
};

/* What it takes of each device, in bytes. */
struct cuwarden_estimate {
    uint64_t parameters, active_parameters; /* of the model; those that a token uses */
    uint64_t weights_bytes, cache_bytes, activations_bytes;
    uint64_t gradients_bytes, master_bytes, optimizer_bytes; /* of training */
    uint64_t total_bytes;                                    /* of all these */
    uint64_t reserve_bytes; /* what a device needs beside it: driver, context, 10 % */
    uint64_t token_bytes;   /* of the cache, while no window is full */
    int32_t device;         /* that has room for the total now; -1: none, or not known */
    int32_t is_partial;     /* 1: only the weights are known, and what belongs to them */
};

/* The streams of a set. */
enum cuwarden_stream {
    CUWARDEN_COMPUTE, /* what the device computes */
    CUWARDEN_IN,      /* what comes to it */
    CUWARDEN_OUT      /* what it gives */
};

/* A stream set. Its name and streams are valid until it ends. */
struct cuwarden_streams {
    uint64_t id; /* no other stream set of this process has it, before or after */
    const char *name;
    void *compute, *in, *out;            /* CUstream, cudaStream_t; non-blocking */
    uint64_t age_ns;                     /* since it was made, or reset */
    uint64_t works;                      /* pieces of work that were seen to be done */
    uint64_t refused;                    /* that found 32 on their way */
    uint64_t compute_ns, in_ns, out_ns;  /* in which each stream had work */
    uint64_t busy_ns;                    /* in which any of them had */
    double compute_use, in_use, out_use; /* utilisation: their share of age_ns, 0 to 1 */
    double overlap; /* the share of their work that another's hid: 1 - busy_ns / sum of the three */
    int32_t device;
    uint32_t unused; /* 0 */
};

/* How far a file has come (cuwarden_prefetch_stage). */
enum cuwarden_stage {
    CUWARDEN_READING,  /* it is not read, or not all of it */
    CUWARDEN_ARRIVING, /* it is; the device has not copied all of it */
    CUWARDEN_ARRIVED   /* all is there, or the request has failed */
};

/* A prefetch. Its name is valid until it ends. */
struct cuwarden_prefetch {
    uint64_t id; /* no other prefetch of this process has it, before or after */
    const char *name;
    uint64_t chunk_bytes; /* of pinned memory; it has two */
    uint64_t started;     /* files; the number of the last one */
    uint64_t arrived;     /* that came as asked, or to the end of the file */
    uint64_t failed;
    uint64_t refused;     /* that found 16 on their way */
    uint64_t bytes;       /* of those that arrived */
    uint64_t transfer_ns; /* from the first chunk of each on the device to its last */
    uint64_t waited_ns;   /* that the program waited for them */
    double overlap;       /* the share of transfer_ns while it did not; 0 without any */
    int32_t device;
    uint32_t unused; /* 0 */
};

struct cuwarden_table {
    size_t size; /* of the table of the library that is there; 0: there is none */
    int (*is_active)(void);
    const char *(*version)(void);
    const char *(*error_text)(int error);
    int (*tag_push)(const char *name);
    int (*tag_pop)(void);
    int (*step)(const char *name);
    int (*stats)(int device, const char *tag, struct cuwarden_stats *out, size_t size);
    int (*block_find)(const void *address, struct cuwarden_block *out, size_t size);
    int (*block_name)(const void *address, const char *name);
    int (*mark)(uint64_t *out);
    int (*visit)(const struct cuwarden_filter *filter, size_t size, cuwarden_block_fn fn,
                 void *arg);
    int (*leaks)(uint64_t since, cuwarden_block_fn fn, void *arg, struct cuwarden_leaks *out,
                 size_t size);
    int (*report)(const char *path);
    int (*record_start)(const char *path);
    int (*record_stop)(void);
    int (*pressure)(int device, struct cuwarden_pressure *out, size_t size);
    int (*pressure_listen)(cuwarden_pressure_fn fn, void *arg, int is_on);
    int (*memory_listen)(cuwarden_memory_fn fn, void *arg, int is_on);
    int (*trim)(int device, int how, uint64_t *out_bytes);
    int (*limit)(int device, uint64_t bytes);
    int (*pool_max)(int device, uint64_t bytes);
    int (*batch_begin)(void);
    int (*batch_end)(void);
    int (*scope_begin)(const char *name);
    int (*scope_end)(struct cuwarden_freed *out, size_t size);
    int (*keep)(const void *address);
    int (*budget_set)(const char *tag, uint64_t bytes, int how);
    int (*budget_clear)(const char *tag);
    int (*budget_now)(const char *tag, struct cuwarden_budget *out, size_t size);
    int (*buffer_make)(const struct cuwarden_buffer_spec *spec, size_t size, uint64_t *out);
    int (*buffer_find)(const char *name, uint64_t element_bytes, uint64_t *out);
    int (*buffer_ensure)(uint64_t buffer, uint64_t count, void *stream, void **out_address);
    int (*buffer_use)(uint64_t buffer, uint64_t count);
    int (*buffer_now)(uint64_t buffer, struct cuwarden_buffer *out, size_t size);
    int (*buffer_visit)(cuwarden_buffer_fn fn, void *arg);
    int (*buffer_shrink)(uint64_t buffer, uint64_t *out_bytes);
    int (*buffer_clean)(uint64_t unused_ns, double below, uint64_t *out_bytes);
    int (*buffer_end)(uint64_t buffer);
    int (*download_make)(const char *name, uint64_t most_bytes, uint64_t *out);
    int (*download_start)(uint64_t download, const void *from, uint64_t bytes, void *stream,
                          uint64_t *out_number);
    int (*download_after)(uint64_t download, void *stream, void *event);
    int (*download_before)(uint64_t download, void *stream);
    int (*download_wait)(uint64_t download, uint64_t least, struct cuwarden_frame *out,
                         size_t size);
    int (*download_release)(uint64_t download);
    int (*download_now)(uint64_t download, struct cuwarden_download *out, size_t size);
    int (*download_end)(uint64_t download);
    int (*device_pick)(const char *name, uint64_t bytes, int32_t *out_device);
    int (*device_alloc)(const char *name, uint64_t bytes, int32_t *out_device, void **out);
    int (*bridge_make)(const char *name, int from_device, int to_device, uint64_t chunk_bytes,
                       int way, uint64_t *out);
    int (*bridge_copy)(uint64_t bridge, void *to, const void *from, uint64_t bytes, void *stream,
                       uint64_t *out_number, int32_t *out_way);
    int (*bridge_wait)(uint64_t bridge, uint64_t number);
    int (*bridge_now)(uint64_t bridge, struct cuwarden_bridge *out, size_t size);
    int (*bridge_end)(uint64_t bridge);
    int (*estimate)(const struct cuwarden_model *model, size_t model_size,
                    struct cuwarden_estimate *out, size_t size);
    int (*streams_make)(const char *name, int device, uint64_t *out);
    int (*streams_order)(uint64_t streams, int later, int earlier);
    int (*work_begin)(uint64_t streams, int which);
    int (*work_end)(uint64_t streams, int which);
    int (*streams_reset)(uint64_t streams);
    int (*streams_now)(uint64_t streams, struct cuwarden_streams *out, size_t size);
    int (*streams_end)(uint64_t streams);
    int (*prefetch_make)(const char *name, uint64_t chunk_bytes, uint64_t *out);
    int (*prefetch_start)(uint64_t prefetch, const char *path, int fd, uint64_t offset,
                          uint64_t bytes, void *to, void *stream, uint64_t *out_number);
    int (*prefetch_before)(uint64_t prefetch, uint64_t number, void *stream);
    int (*prefetch_stage)(uint64_t prefetch, uint64_t number, int32_t *out);
    int (*prefetch_wait)(uint64_t prefetch, uint64_t number, uint64_t *out_bytes);
    int (*prefetch_cancel)(uint64_t prefetch, uint64_t number);
    int (*prefetch_now)(uint64_t prefetch, struct cuwarden_prefetch *out, size_t size);
    int (*prefetch_end)(uint64_t prefetch);
};

/* ---- the way to the library ---- */

static inline const struct cuwarden_table *cuwarden_find_table_(const struct cuwarden_table **found)
{
    static struct cuwarden_table none; /* all zero */
    /* RTLD_DEFAULT, which dlfcn.h names only with _GNU_SOURCE. */
    const void *table = dlsym((void *)0, CUWARDEN_TABLE);

    if (table == (const void *)0) {
        (void)dlerror(); /* that it is not there is nobody's error */
        table = &none;
    }
    __atomic_store_n(found, (const struct cuwarden_table *)table, __ATOMIC_RELEASE);
    return (const struct cuwarden_table *)table;
}

/* The table; one of size 0 if the library is not there. Each source file finds it for itself. */
static inline const struct cuwarden_table *cuwarden_table_(void)
{
    static const struct cuwarden_table *found;
    const struct cuwarden_table *table = __atomic_load_n(&found, __ATOMIC_ACQUIRE);

    return table != (const struct cuwarden_table *)0 ? table : cuwarden_find_table_(&found);
}

/* 1 if this library's table has the member. */
#define CUWARDEN_HAS_(table, member) ((table)->size > offsetof(struct cuwarden_table, member))

/* What a function returns that the library, or this library, does not have. */
static inline int cuwarden_lacks_(const struct cuwarden_table *table)
{
    return table->size == 0 ? CUWARDEN_NOT_ACTIVE : CUWARDEN_UNSUPPORTED;
}

/* ---- whether, and what went wrong ---- */

/* 1 if the library is there and accounts for this process, or will from its first call of CUDA on;
 * 0 without it, with CUWARDEN_MODE=off, or if it had to stop (it has said why). 3 ns. */
static inline int cuwarden_is_active(void)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, is_active) && table->is_active();
}

/* Of the library, "0.1.0"; "" without it. Static. */
static inline const char *cuwarden_version(void)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, version) ? table->version() : "";
}

/* "OUT_OF_LIMIT"; "?" for a number that is none. Static. */
static inline const char *cuwarden_error_name(int error)
{
    switch (error) {
#define CUWARDEN_ERROR_(name, number, text)                                                        \
    case number:                                                                                   \
        return #name;
        CUWARDEN_ERRORS(CUWARDEN_ERROR_)
#undef CUWARDEN_ERROR_
    default:
        return "?";
    }
}

/* What the error is about, in one line with the numbers, if the calling thread's last call that
 * failed has failed with it; else what the number means. Valid until the thread's next call. */
static inline const char *cuwarden_error_text(int error)
{
    const struct cuwarden_table *table = cuwarden_table_();

    if (CUWARDEN_HAS_(table, error_text))
        return table->error_text(error);
    switch (error) {
#define CUWARDEN_ERROR_(name, number, text)                                                        \
    case number:                                                                                   \
        return text;
        CUWARDEN_ERRORS(CUWARDEN_ERROR_)
#undef CUWARDEN_ERROR_
    default:
        return "unknown error";
    }
}

/* ---- account ---- */

/*
 * What the calling thread allocates from here to the matching pop has this tag, until another push.
 * Tags are names like those of NVTX ranges, and both nest: the innermost counts. Of names that
 * differ only in digits each of the first 16 has a tag of its own; 1024 tags in all, the rest is
 * "(other)". At most 32 levels, NVTX's included, have a tag: what lies deeper keeps the one above.
 * Unlike an NVTX range it is not a step. INVALID: no name. Works before the first call of CUDA.
 * 10 ns.
 */
static inline int cuwarden_tag_push(const char *name)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, tag_push) ? table->tag_push(name) : cuwarden_lacks_(table);
}

/* Ends the calling thread's last push. UNBALANCED: there is none; nothing happens, not to NVTX's
 * ranges either. 5 ns. */
static inline int cuwarden_tag_pop(void)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, tag_pop) ? table->tag_pop() : cuwarden_lacks_(table);
}

/* One iteration of what has this name has ended: the report says whether live memory grows from
 * step to step. Not counted before the first call of CUDA. INVALID: no name. 45 ns. */
static inline int cuwarden_step(const char *name)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, step) ? table->step(name) : cuwarden_lacks_(table);
}

/*
 * Statistics of a device, CUWARDEN_ALL_DEVICES or CUWARDEN_HOST. All zero before the first call of
 * CUDA, and for a device that was not used. NO_DEVICE: there is no such device. Other threads may
 * be at work: each figure is right for some moment of the call. 20 ns for each call site and each
 * size of idle blocks.
 */
static inline int cuwarden_device_stats(int device, struct cuwarden_stats *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, stats) ? table->stats(device, (const char *)0, out, sizeof(*out))
                                       : cuwarden_lacks_(table);
}

/* The same of what was allocated with this tag; "": without any. Its peak is the sum of the peaks
 * of its call sites, so at least the true one. A resize counts for the tag of the larger block, a
 * transfer for that of the thread that started it. NOT_FOUND: nobody has used the tag. */
static inline int cuwarden_tag_stats(const char *tag, int device, struct cuwarden_stats *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    if (tag == (const char *)0)
        return CUWARDEN_INVALID;
    return CUWARDEN_HAS_(table, stats) ? table->stats(device, tag, out, sizeof(*out))
                                       : cuwarden_lacks_(table);
}

/* The live block that begins at this address. NOT_FOUND: none does; OUT_OF_HOST. Texts in it are
 * valid until the thread's next call of this function. 80 ns. */
static inline int cuwarden_block_find(const void *address, struct cuwarden_block *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, block_find) ? table->block_find(address, out, sizeof(*out))
                                            : cuwarden_lacks_(table);
}

/* What the live block that begins at this address is called ("positions"), in visits and reports,
 * until it is freed; "": nothing any more. NOT_FOUND: no block begins there. At most 119 bytes
 * count, and 4096 different names: OUT_OF_HOST beyond. 30 ns. */
static inline int cuwarden_block_name(const void *address, const char *name)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, block_name) ? table->block_name(address, name)
                                            : cuwarden_lacks_(table);
}

/* A moment: all ids given out before it are less than *out, all later ones are not. What other
 * threads allocate during the call may count either way. 4 ns. */
static inline int cuwarden_mark(uint64_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, mark) ? table->mark(out) : cuwarden_lacks_(table);
}

/* Calls fn for each live block that the filter lets pass, in no order. Blocks that come or go
 * meanwhile may be missing; none is told twice, none is told as another. NULL: all. 70 ns times
 * the highest number of blocks that were live at once, plus fn. In a child that fn has forked the
 * visit ends as fn returns. */
static inline int cuwarden_visit(const struct cuwarden_filter *filter, cuwarden_block_fn fn,
                                 void *arg)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, visit) ? table->visit(filter, sizeof(*filter), fn, arg)
                                       : cuwarden_lacks_(table);
}

/*
 * What would be a leak if the program ended now, of what was allocated after the mark (0: ever).
 * Live blocks that the report would not count (owned by libraries, frameworks' caches, suppressed)
 * are excused. fn, which may be NULL, is called for each leaked block; if it returns anything but
 * 0, the counts end there. OUT_OF_HOST: no memory, or the suppressions or function names that
 * decide ownership cannot be read now (no file descriptor is left, say). As long as a report takes:
 * 0.3 ms with 1000 live blocks of one place.
 */
static inline int cuwarden_leak_check(uint64_t since, cuwarden_block_fn fn, void *arg,
                                      struct cuwarden_leaks *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, leaks) ? table->leaks(since, fn, arg, out, sizeof(*out))
                                       : cuwarden_lacks_(table);
}

/* Writes a report of this moment, JSON if the name ends in .json, else text. An existing file is
 * replaced once the report is complete. NOT_STARTED; SYSTEM, with the errno. Milliseconds. */
static inline int cuwarden_report(const char *path)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, report) ? table->report(path) : cuwarden_lacks_(table);
}

/* From now on a line for each allocation and free goes to this new file (an existing one is
 * removed), as with CUWARDEN_TRACE, for `cuwarden replay`. NOT_STARTED; BUSY: one is being
 * recorded; SYSTEM, with the errno. Milliseconds; then 300 ns for each allocation and free. */
static inline int cuwarden_record_start(const char *path)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, record_start) ? table->record_start(path) : cuwarden_lacks_(table);
}

/* Ends the recording; the file is complete. UNBALANCED: there was none. CUWARDEN_TRACE's ends, too.
 */
static inline int cuwarden_record_stop(void)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, record_stop) ? table->record_stop() : cuwarden_lacks_(table);
}

/* ---- control ---- */

/* How scarce memory is on a device, or on the one of all devices where it is scarcest; from what
 * was last seen, without a call of the driver. NOT_STARTED; NO_DEVICE; UNUSED_DEVICE: the program
 * has nothing there, so nobody looks. 50 ns for each device. */
static inline int cuwarden_pressure_now(int device, struct cuwarden_pressure *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, pressure) ? table->pressure(device, out, sizeof(*out))
                                          : cuwarden_lacks_(table);
}

/*
 * From now on fn is called when the level of a device changes: by one of the program's threads, at
 * the end of a call of CUDA that allocates, frees or synchronises, so a moment later; changes that
 * cancel out are not told. One callback runs at a time; CUDA calls inside it do not wait for
 * another. Works before the first call of CUDA. OUT_OF_HOST: there are 8 already. INVALID: fn is
 * NULL.
 */
static inline int cuwarden_pressure_listen(cuwarden_pressure_fn fn, void *arg)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, pressure_listen) ? table->pressure_listen(fn, arg, 1)
                                                 : cuwarden_lacks_(table);
}

/* Unregisters fn with this arg. Waits until no thread is inside fn for it, so that both may be
 * destroyed; fn must not wait for the caller. From inside a listener it does not wait. NOT_FOUND:
 * they were not registered. */
static inline int cuwarden_pressure_unlisten(cuwarden_pressure_fn fn, void *arg)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, pressure_listen) ? table->pressure_listen(fn, arg, 0)
                                                 : cuwarden_lacks_(table);
}

/*
 * From now on fn is called when a request would fail for lack of memory and idle memory did not
 * help: inside the request, on its thread, once for each. It may free; if it says so, the request
 * is tried again. It may allocate, too: if that finds no memory, fn is not called again inside
 * itself. During a stream capture, and for requests larger than the device or the limit, nobody is
 * asked. OUT_OF_HOST: there are 8 already. INVALID: fn is NULL.
 */
static inline int cuwarden_memory_listen(cuwarden_memory_fn fn, void *arg)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, memory_listen) ? table->memory_listen(fn, arg, 1)
                                               : cuwarden_lacks_(table);
}

/* Unregisters fn with this arg, as cuwarden_pressure_unlisten() does. */
static inline int cuwarden_memory_unlisten(cuwarden_memory_fn fn, void *arg)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, memory_listen) ? table->memory_listen(fn, arg, 0)
                                               : cuwarden_lacks_(table);
}

/*
 * Gives memory that the pool keeps back to the driver, by enum cuwarden_trim_how; *out_bytes,
 * unless it is NULL, says how much. What the program has stays. NOT_STARTED; INVALID; NO_DEVICE;
 * UNUSED_DEVICE: the program has nothing there; BUSY: a stream is captured, or a context ends. As
 * long as the driver takes for its frees, each of which may wait for the device.
 */
static inline int cuwarden_trim(int device, enum cuwarden_trim_how how, uint64_t *out_bytes)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, trim) ? table->trim(device, (int)how, out_bytes)
                                      : cuwarden_lacks_(table);
}

/* Sets what this process may hold on a device, as CUWARDEN_LIMIT does; 0: no limit. What is live
 * beyond it stays, idle memory is released at once. The same errors; a device that is not used yet
 * is limited all the same. */
static inline int cuwarden_limit_set(int device, uint64_t bytes)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, limit) ? table->limit(device, bytes) : cuwarden_lacks_(table);
}

/* How much idle memory the pool may keep there from now on, as CUWARDEN_POOL_MAX has it; of
 * CUWARDEN_HOST: of pinned memory. What is beyond goes at once where no free has to wait for the
 * device, and the rest once that is done with it: in the program's next frees, waits and
 * allocations that the driver serves, or while it makes no calls and more than 32 MiB are idle by
 * the library's thread (CUWARDEN_THREAD). This call does not wait for the device. On drivers before
 * 12.5, which cannot say what they are doing, all of it goes in those next calls. UNSUPPORTED:
 * CUWARDEN_MODE=track has no pool. */
static inline int cuwarden_pool_max_set(int device, uint64_t bytes)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, pool_max) ? table->pool_max(device, bytes) : cuwarden_lacks_(table);
}

/*
 * How much device memory may be live with exactly this tag from now on, as CUWARDEN_BUDGET has it:
 * bytes asked for, on all devices together. What is live already counts, and stays if it is more
 * (not that of the 17th and later of names that differ only in digits: it has the tag of them all);
 * what other threads allocate during the call may count or not. A range inside another, or a tag
 * pushed on another, counts for itself only. A refused call returns what it does beyond a limit,
 * after the functions of cuwarden_memory_listen() were asked; idle memory does not count. Another
 * call for the same tag replaces the budget. Works before the first call of CUDA, and a forked
 * child keeps it. INVALID: no name, or no such `how`. OUT_OF_HOST: there are 16 of other tags
 * already, or have been. A budget below what is live is said on stderr. A microsecond, plus 10 ns
 * times the highest number of blocks that were live at once; no other thread allocates meanwhile.
 * From then on an allocation of the tag and its free take 6 ns longer together (20 where frees are
 * deferred), those of other tags 3.
 */
static inline int cuwarden_budget_set(const char *tag, uint64_t bytes, enum cuwarden_budget_how how)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, budget_set) ? table->budget_set(tag, bytes, (int)how)
                                            : cuwarden_lacks_(table);
}

/* Removes the budget of exactly this tag; one that is set afterwards starts anew. NOT_FOUND: it has
 * none of its own. */
static inline int cuwarden_budget_clear(const char *tag)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, budget_clear) ? table->budget_clear(tag) : cuwarden_lacks_(table);
}

/* The budget that counts this tag: its own, else the first of CUWARDEN_BUDGET whose pattern
 * matches; then the figures are of all tags that it counts. NOT_FOUND: none does. used_bytes
 * includes requests that are under way. Half a microsecond. */
static inline int cuwarden_budget_now(const char *tag, struct cuwarden_budget *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, budget_now) ? table->budget_now(tag, out, sizeof(*out))
                                            : cuwarden_lacks_(table);
}

/* ---- batches and scopes ---- */

/*
 * The calling thread's frees from here to the matching end share one wait for the device, which the
 * end of the outermost batch makes, for the context that is current then. Their memory can be
 * reused after it; errors that a free would have returned are returned by that end. Where the
 * driver has no events of whole contexts (before 12.5), and without a pool, each free waits as
 * ever. 5 ns.
 */
static inline int cuwarden_batch_begin(void)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, batch_begin) ? table->batch_begin() : cuwarden_lacks_(table);
}

/* UNBALANCED: the thread has no batch to end. DRIVER: what the wait returned. As long as the device
 * needs for what was submitted. */
static inline int cuwarden_batch_end(void)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, batch_end) ? table->batch_end() : cuwarden_lacks_(table);
}

/*
 * What the calling thread allocates from here to the matching end, and neither frees nor keeps, is
 * freed there: device, pitched, managed, stream-ordered and pinned memory. Other kinds are left,
 * and counted, and so is what a leak check excuses, such as what a library or a framework's cache
 * allocates when it is first used. The end waits for the device before it frees
 * stream-ordered memory, which it leaves during a capture. Without the library nothing is freed, so
 * a program that relies on scopes looks at cuwarden_is_active(). Scopes nest, 16 deep at most:
 * INVALID. OUT_OF_HOST. The name is for messages. 50 ns.
 */
static inline int cuwarden_scope_begin(const char *name)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, scope_begin) ? table->scope_begin(name) : cuwarden_lacks_(table);
}

/* Ends the thread's last scope; *out, unless it is NULL, says what was freed, and so does a line
 * with CUWARDEN_LOG=info. UNBALANCED: there is none. In a forked child nothing of the parent's is
 * freed. Memory whose owner cannot be told now (suppressions or function names that cannot be read)
 * is left and counted. 2 ns times the highest number of blocks that were live at once, the frees,
 * and a leak check for a call site that the thread's scopes have not met. */
static inline int cuwarden_scope_end(struct cuwarden_freed *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, scope_end) ? table->scope_end(out, sizeof(*out))
                                           : cuwarden_lacks_(table);
}

/* The live block that begins at this address is freed by no scope. NOT_FOUND: none does. 10 ns. */
static inline int cuwarden_keep(const void *address)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, keep) ? table->keep(address) : cuwarden_lacks_(table);
}

static inline void cuwarden_scope_left_(const int *begun)
{
    if (*begun == CUWARDEN_OK)
        cuwarden_scope_end((struct cuwarden_freed *)0);
}

/* A scope that ends with the block of C that it stands in, for gcc and clang. */
#define CUWARDEN_SCOPE(name)                                                                       \
    __attribute__((cleanup(cuwarden_scope_left_), unused)) const int CUWARDEN_JOIN_(               \
        cuwarden_scope_at_, __LINE__) = cuwarden_scope_begin(name)
#define CUWARDEN_JOIN_(a, b)   CUWARDEN_JOINED_(a, b)
#define CUWARDEN_JOINED_(a, b) a##b

/* ---- growable buffers ---- */

/* What a simulation has many of: bytes of an element, factor, maximum. */
enum cuwarden_buffer_preset {
    CUWARDEN_POSITIONS,  /* 12, 1.3, 512 MiB, asynchronous */
    CUWARDEN_VELOCITIES, /* the same */
    CUWARDEN_EDGES,      /* 32, 2.0, 2 GiB */
    CUWARDEN_CELLS       /* of a grid: 8, 1.5, 256 MiB */
};

/* The description of such a buffer, which may be changed before the buffer is made. Works without
 * the library. */
static inline struct cuwarden_buffer_spec cuwarden_preset(enum cuwarden_buffer_preset preset,
                                                          const char *name)
{
    struct cuwarden_buffer_spec spec = {name, 12, 0, 0, UINT64_C(512) << 20, 1.3, 0, 0};

    switch (preset) {
    case CUWARDEN_POSITIONS:
    case CUWARDEN_VELOCITIES:
        spec.flags = CUWARDEN_ASYNCHRONOUS;
        break;
    case CUWARDEN_EDGES:
        spec.element_bytes = 32;
        spec.most_bytes = UINT64_C(2) << 30;
        spec.growth = 2;
        break;
    case CUWARDEN_CELLS:
        spec.element_bytes = 8;
        spec.most_bytes = UINT64_C(256) << 20;
        spec.growth = 1.5;
        break;
    }
    return spec;
}

/*
 * Makes a buffer in device memory of the calling thread's current context, with room for
 * spec->count elements, and at least for spec->least_bytes. Where the device maps memory (CUDA's
 * virtual memory management), addresses for most_bytes are reserved and memory is put there as it
 * grows, in granules of the device (2 MiB): it never copies, and its address stays. Such memory is
 * for the device itself and for copies; peers and other processes do not reach it. Elsewhere, and
 * with CUWARDEN_COPYING, it is memory of cuMemAlloc, and growing means copying to a larger block.
 * Either is in the account as if the program had taken it here: limits, budgets and tags count it,
 * its blocks have its name, and what is not ended is a leak. Scopes leave it alone. Without the
 * library there are no buffers: a program that must run without has memory of its own then.
 * INVALID; EXISTS: there is a buffer of this name; TOO_LARGE: count is more than most_bytes;
 * NOT_STARTED: no context is current; OUT_OF_LIMIT, OUT_OF_BUDGET, OUT_OF_DEVICE; OUT_OF_HOST:
 * there are 1024 already; BUSY: a stream is captured, or a context ends; DRIVER. As long as the
 * driver takes.
 */
static inline int cuwarden_buffer_make(const struct cuwarden_buffer_spec *spec, uint64_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_make) ? table->buffer_make(spec, sizeof(*spec), out)
                                             : cuwarden_lacks_(table);
}

/* The buffer of this name. NOT_FOUND: there is none; WRONG_SIZE: its elements have another size
 * (element_bytes 0: any will do). 100 ns, and 2 for each buffer. */
static inline int cuwarden_buffer_find(const char *name, uint64_t element_bytes, uint64_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_find) ? table->buffer_find(name, element_bytes, out)
                                             : cuwarden_lacks_(table);
}

/*
 * Makes room for count elements, if there is none, and writes where they are. Contents stay: the
 * first `used` elements, that is, of the largest count that was ever ensured, spec->count among
 * them (or of what cuwarden_buffer_use() said since). It grows to at least its factor, unless only
 * the count itself fits the memory that is left, and never beyond its maximum. It grows in any
 * thread, whatever context is current there. stream: a CUstream or cudaStream_t of the buffer's
 * context, NULL for the default stream. A copy runs there, after what was submitted there before;
 * what other streams do with the buffer must be done, or be ordered by events. It is waited for,
 * unless the buffer is asynchronous: then later work of this stream finds the contents. The old
 * block is freed after the copy, so an address from before is no longer valid. In place, nothing
 * waits for the stream. out_address may be NULL. Calls that find room may run at once in any number
 * of threads. TOO_LARGE, OUT_OF_LIMIT, OUT_OF_BUDGET, OUT_OF_DEVICE, BUSY (also: another thread is
 * changing this buffer), DRIVER, NOT_FOUND: nothing has changed. 10 ns with room (30 in the
 * first 100 ms of a process, while times are exact); else as long as the driver takes.
 */
static inline int cuwarden_ensure_capacity(uint64_t buffer, uint64_t count, void *stream,
                                           void **out_address)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_ensure)
               ? table->buffer_ensure(buffer, count, stream, out_address)
               : cuwarden_lacks_(table);
}

/* Only the first count elements hold something from now on: what is kept when it grows or shrinks.
 * NOT_FOUND; TOO_LARGE: it has no room for so many. 10 ns. */
static inline int cuwarden_buffer_use(uint64_t buffer, uint64_t count)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_use) ? table->buffer_use(buffer, count)
                                            : cuwarden_lacks_(table);
}

/* The state and counters of a buffer. NOT_FOUND. Its name is valid until it is ended. */
static inline int cuwarden_buffer_now(uint64_t buffer, struct cuwarden_buffer *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_now) ? table->buffer_now(buffer, out, sizeof(*out))
                                            : cuwarden_lacks_(table);
}

/* Calls fn for each buffer, in no order; it may end the buffer, and make others. */
static inline int cuwarden_buffer_visit(cuwarden_buffer_fn fn, void *arg)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_visit) ? table->buffer_visit(fn, arg)
                                              : cuwarden_lacks_(table);
}

/*
 * Gives back what the used elements do not need; *out_bytes, unless it is NULL, says how much.
 * Waits for the buffer's context. In place, whole pieces go (each of what it grew by, or 64 MiB).
 * Elsewhere the elements are copied to a smaller block: the address changes. Without used elements
 * all memory goes, and comes back with the next ensure_capacity. NOT_FOUND, BUSY, DRIVER, and where
 * it copies what OUT_OF_... there is: nothing has changed.
 */
static inline int cuwarden_buffer_shrink(uint64_t buffer, uint64_t *out_bytes)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_shrink) ? table->buffer_shrink(buffer, out_bytes)
                                               : cuwarden_lacks_(table);
}

/* Shrinks all buffers that were not used for so long and whose utilisation is less than `below` (1:
 * all that are not full), as cuwarden_buffer_shrink() does: no other thread may use their addresses
 * meanwhile. What another thread is changing, or ends, is left as it is. Goes on after a failure,
 * and returns the last; INVALID: below is not 0 to 1. */
static inline int cuwarden_buffer_clean(uint64_t unused_ns, double below, uint64_t *out_bytes)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_clean) ? table->buffer_clean(unused_ns, below, out_bytes)
                                              : cuwarden_lacks_(table);
}

/* Frees a buffer, after a wait for its context, whose memory must no longer be used. NOT_FOUND,
 * BUSY: nothing has changed. DRIVER: the driver refused to free its memory (the program may have
 * freed it): the buffer is gone all the same. */
static inline int cuwarden_buffer_end(uint64_t buffer)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, buffer_end) ? table->buffer_end(buffer) : cuwarden_lacks_(table);
}

/* ---- the best device ---- */

/*
 * The device with most room: what is free there and what the pool keeps, as far as limits leave it.
 * Those at level HIGH and more (cuwarden_pressure()) come last, and for a second those that gave
 * cuwarden_device_alloc() no context. A name, of at most 47 bytes, gets the device that it had
 * last, as long as it has the room and memory there is not scarce; the last 256 names are
 * remembered. NULL or "": no name. A device where the process has no context is taken to be free
 * but for what a context and the driver take (at most 2 GiB): what others use there only a context
 * would tell, and this makes none. Nothing is reserved: who allocates at once by
 * cuwarden_device_alloc() is told by the driver. OUT_OF_LIMIT, OUT_OF_DEVICE: none has the room,
 * and the text says what each has; NOT_STARTED; NO_DEVICE; INVALID; BUSY: a stream is captured, or
 * a context ends. 8 ns for up to 64 MiB, 10 with the name that the thread gave last, while the
 * clock has not ticked (1 to 4 ms) and the thread has taken and freed little since its last one;
 * else 0.2 us and 30 ns for each device, and 0.5 us for another name. Ten times a second it asks
 * the driver.
 */
static inline int cuwarden_device_pick(const char *name, uint64_t bytes, int32_t *out_device)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, device_pick) ? table->device_pick(name, bytes, out_device)
                                             : cuwarden_lacks_(table);
}

/*
 * Allocates there: as cuMemAlloc() does in a context of that device, by which it is counted,
 * limited and reported, and as which it is freed. If the driver refuses the memory, the next device
 * that has the room is tried; if none has, the first, so that what the pool, neighbours or the
 * program itself can give back is tried there. If it refuses a context, as where another process
 * has the device for itself, the next one is tried in any case. *out_device, unless it is NULL,
 * says which it is. The context is the current one if it is of the device, else the primary one,
 * which is the runtime's; where the process has none it is made, and stays unless nothing could be
 * allocated. What is current stays current. The same errors, OUT_OF_BUDGET, and DRIVER. Takes 3 ns
 * more than cuMemAlloc() where the last choice holds and the pool has a block, else the choice
 * more; and a context (hundreds of milliseconds) where it is the first.
 */
static inline int cuwarden_device_alloc(const char *name, uint64_t bytes, int32_t *out_device,
                                        void **out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, device_alloc) ? table->device_alloc(name, bytes, out_device, out)
                                              : cuwarden_lacks_(table);
}

/* ---- estimates ---- */

/*
 * How much memory a transformer takes of each device: what `cuwarden estimate` computes, from plain
 * numbers (docs/estimate.md has the rules). INVALID: a shape that cannot be, one that lacks a
 * number, a format or an optimizer that is not known; the text names it. Works before the first
 * call of CUDA: then, and while a stream is captured or a context ends, `device` is -1. Else it is
 * what cuwarden_device_pick() says of the total. Reads no files. 5 us, and the pick.
 */
static inline int cuwarden_estimate_make(const struct cuwarden_model *model,
                                         struct cuwarden_estimate *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, estimate)
               ? table->estimate(model, sizeof(*model), out, sizeof(*out))
               : cuwarden_lacks_(table);
}

/* ---- asynchronous downloads ---- */

/* For cuwarden_download_start(): the copy waits for no stream by itself. */
#define CUWARDEN_NO_STREAM ((void *)(intptr_t)-1)

/*
 * Makes a download: two halves of pinned memory for frames of at most most_bytes, and a stream of
 * its own, in the calling thread's current context. Frames are copied to the halves in turn while
 * the program computes, and looks at the one before. The name, of at most 47 bytes, is that of the
 * pinned memory in reports; no two live downloads have the same, and what is not ended is a leak.
 * Scopes leave it alone. Without the library there are no downloads: a program that must run
 * without copies by itself then. INVALID; EXISTS; NOT_STARTED: no context is current; OUT_OF_HOST:
 * no pinned memory, or there are 64 already; BUSY: a stream is captured, or a context ends; DRIVER.
 * As long as the driver takes to pin memory.
 */
static inline int cuwarden_download_make(const char *name, uint64_t most_bytes, uint64_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_make) ? table->download_make(name, most_bytes, out)
                                               : cuwarden_lacks_(table);
}

/*
 * Enqueues the copy of a frame from device memory, and returns: it never waits. The copy begins
 * after what was submitted to `stream` before (a CUstream or cudaStream_t of the download's
 * context, NULL for the default stream, CUWARDEN_NO_STREAM for none), and after what
 * cuwarden_download_after() named. What is submitted later to any stream may overtake it: who
 * writes to the same memory again calls cuwarden_download_before() first. The memory may be freed:
 * cuMemFree() waits for the copy as for all work, cuMemFreeAsync() if cuwarden_download_before()
 * named its stream. *out_number, unless it is NULL, is the frame's number: 1 more than the last
 * one's. It goes to a half that nobody needs, else to the older of those whose frame is complete
 * and was not taken: that frame is skipped, since the last one counts. BUSY: both halves are on
 * their way or held (also: another thread submits, a stream is captured, a context ends); nothing
 * was started. INVALID: no address, or no bytes; TOO_LARGE; NOT_FOUND; DRIVER: a frame in whose
 * place it would have come is kept. As long as the driver takes for five calls that order
 * something: microseconds.
 */
static inline int cuwarden_download_start(uint64_t download, const void *from, uint64_t bytes,
                                          void *stream, uint64_t *out_number)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_start)
               ? table->download_start(download, from, bytes, stream, out_number)
               : cuwarden_lacks_(table);
}

/* Frames that are started later wait for one more writer: for `event` (a CUevent or cudaEvent_t
 * that was recorded), or if it is NULL for what was submitted to `stream` until now. NOT_FOUND,
 * BUSY, DRIVER. Does not wait itself. */
static inline int cuwarden_download_after(uint64_t download, void *stream, void *event)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_after) ? table->download_after(download, stream, event)
                                                : cuwarden_lacks_(table);
}

/* What is submitted to `stream` from now on begins after the frames that were started, and may
 * write where they are copied from. NOT_FOUND, BUSY, DRIVER. Does not wait itself. */
static inline int cuwarden_download_before(uint64_t download, void *stream)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_before) ? table->download_before(download, stream)
                                                 : cuwarden_lacks_(table);
}

/*
 * The last complete frame, of at least this number (0: any) and never older than one that was given
 * before. Waits only if none is complete: for the first that is on its way. Gives the frame that is
 * held again if there is no later one. The frame before is released: its memory is no longer the
 * program's. In any thread, also while another starts frames; of two threads that wait at once the
 * second releases the first one's frame. NOT_FOUND: none with such a number was started, or it was
 * released; DRIVER: the copy has failed; BUSY: a stream is captured, or a context ends, before or
 * during the wait, which then holds that up for 60 ms at most; nothing is lost.
 */
static inline int cuwarden_download_wait(uint64_t download, uint64_t least,
                                         struct cuwarden_frame *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_wait)
               ? table->download_wait(download, least, out, sizeof(*out))
               : cuwarden_lacks_(table);
}

/* The frame that is held is no longer needed: the next may be copied to its half. UNBALANCED: none
 * is held. NOT_FOUND. 50 ns. */
static inline int cuwarden_download_release(uint64_t download)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_release) ? table->download_release(download)
                                                  : cuwarden_lacks_(table);
}

/* The state and counters of a download. NOT_FOUND. Times and bytes, and those of the statistics,
 * are those of frames that a start, a wait or the end has seen to be complete. */
static inline int cuwarden_download_now(uint64_t download, struct cuwarden_download *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_now) ? table->download_now(download, out, sizeof(*out))
                                              : cuwarden_lacks_(table);
}

/* Waits for what is on its way, and frees all. NOT_FOUND, BUSY (also: another thread is at work on
 * it): nothing has changed. DRIVER: the driver refused something: it is gone all the same. */
static inline int cuwarden_download_end(uint64_t download)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, download_end) ? table->download_end(download)
                                              : cuwarden_lacks_(table);
}

/* ---- from device to device ---- */

/*
 * Makes a bridge, over which bytes come from one device to another, or stay on one. way:
 * CUWARDEN_PEER: as peers where the devices can; access is then on in the far device's context, and
 * stays, so that the program's own cuCtxEnablePeerAccess() there is told so (704). CUWARDEN_STAGED:
 * never. Where they cannot, and for blocks of virtual memory and of stream-ordered pools, which
 * peers do not reach by themselves, copies go in chunks of chunk_bytes (0: 4 MiB; at most 1 GiB)
 * through two halves of pinned memory, which is there from the first such copy on. On either device
 * the context is the current one if it is there, else one that the program has. The name, of at
 * most 47 bytes, is that of the pinned memory in reports. Without the library there are no bridges.
 * INVALID; EXISTS; NO_DEVICE; UNUSED_DEVICE: the program has no context there; OUT_OF_HOST: no
 * pinned memory, or there are 64 already; NOT_STARTED; BUSY: a stream is captured, or a context
 * ends; DRIVER. As long as the driver takes for two streams and 38 events.
 */
static inline int cuwarden_bridge_make(const char *name, int from_device, int to_device,
                                       uint64_t chunk_bytes, int way, uint64_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, bridge_make)
               ? table->bridge_make(name, from_device, to_device, chunk_bytes, way, out)
               : cuwarden_lacks_(table);
}

/*
 * Enqueues a copy from a block of the near device to one of the far device; both addresses may lie
 * inside. It begins after what was submitted to `stream` before, and what is submitted there later
 * begins after it. The stream (a CUstream or cudaStream_t, NULL for the default stream of the
 * current context) is of either context; with CUWARDEN_NO_STREAM the copy waits for no stream, and
 * the call for the copy. A bridge carries one copy after the other, in the order of the calls, so a
 * later one waits for an earlier one's stream, too. *out_number and *out_way (enum cuwarden_way),
 * unless they are NULL, are the copy's: each number is more than the last. NOT_FOUND: there is no
 * bridge of this number, or no block at an address; TOO_LARGE: a block has not so many bytes there;
 * INVALID: no bytes, a block of the host, of another device or context, ranges that overlap, a
 * stream of neither context; BUSY: 16 copies are on their way (also: another thread submits, a
 * stream is captured, a context ends); OUT_OF_HOST: no pinned memory. Nothing was started then,
 * unless a number is written: if a stream is captured, or a context ends, while the call waits for
 * the copy, it is BUSY, too, and cuwarden_bridge_wait() waits for the rest. DRIVER: a part of it
 * may be started. 12 calls of the driver that ask or enqueue, staged 8 more for each chunk:
 * microseconds, unless the driver's queue, of about a thousand, is full.
 */
static inline int cuwarden_bridge_copy(uint64_t bridge, void *to, const void *from, uint64_t bytes,
                                       void *stream, uint64_t *out_number, int32_t *out_way)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, bridge_copy)
               ? table->bridge_copy(bridge, to, from, bytes, stream, out_number, out_way)
               : cuwarden_lacks_(table);
}

/* Waits for the copy of this number (0: the last one), and all before it. NOT_FOUND: none with such
 * a number was started; DRIVER: one of them has failed; BUSY: a stream is captured, or a context
 * ends, before or during the wait, which then holds that up for 60 ms at most; nothing is lost. In
 * any thread, also while another starts copies. */
static inline int cuwarden_bridge_wait(uint64_t bridge, uint64_t number)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, bridge_wait) ? table->bridge_wait(bridge, number)
                                             : cuwarden_lacks_(table);
}

/* The state and counters of a bridge. NOT_FOUND. Times and bytes, and those of the statistics (of
 * the far device), are those of copies that a copy, a wait or the end has seen to be complete. */
static inline int cuwarden_bridge_now(uint64_t bridge, struct cuwarden_bridge *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, bridge_now) ? table->bridge_now(bridge, out, sizeof(*out))
                                            : cuwarden_lacks_(table);
}

/* Waits for what is on its way, and frees all. NOT_FOUND, BUSY (also: another thread is at work on
 * it): nothing has changed. DRIVER: the driver refused something: it is gone all the same. */
static inline int cuwarden_bridge_end(uint64_t bridge)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, bridge_end) ? table->bridge_end(bridge) : cuwarden_lacks_(table);
}

/* ---- streams for computing, in and out ---- */

/*
 * Makes three streams of a device that do not wait for the default stream: one to compute in, one
 * for what comes in, one for what goes out; cuwarden_streams_now() tells which. They are the
 * program's to use, and go with the set: it does not destroy them. The context is the current one
 * if it is on the device, else one that the program has there. The name has at most 47 bytes.
 * Without the library there are no sets. INVALID; EXISTS; NO_DEVICE; UNUSED_DEVICE: the program has
 * no context there; OUT_OF_HOST: there are 16 already; NOT_STARTED; BUSY: a stream is captured, or
 * a context ends; DRIVER. As long as the driver takes for three streams and 196 events.
 */
static inline int cuwarden_streams_make(const char *name, int device, uint64_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, streams_make) ? table->streams_make(name, device, out)
                                              : cuwarden_lacks_(table);
}

/*
 * Work submitted to the stream `later` of a set (enum cuwarden_stream) from now on begins after all
 * that was submitted to `earlier`. A round is: fill in; order COMPUTE after IN; compute; order OUT
 * after COMPUTE; give out; and before the next one, order IN after OUT, or after COMPUTE if what
 * goes out has memory of its own. INVALID: no such stream, or one after itself; NOT_FOUND; BUSY: a
 * stream is captured, or a context ends; DRIVER. Never waits for the device: two calls of the
 * driver, after those of another thread that is at work on the set.
 */
static inline int cuwarden_streams_order(uint64_t streams, int later, int earlier)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, streams_order) ? table->streams_order(streams, later, earlier)
                                               : cuwarden_lacks_(table);
}

/*
 * What this stream of a set is given until cuwarden_work_end() is a piece of work, whose time on
 * the device counts as its utilisation. UNBALANCED: one has begun there, and not ended; BUSY: 32
 * are on their way there, and this one is not counted (also: a stream is captured, a context ends);
 * INVALID; NOT_FOUND; DRIVER. The program's work is the same in each case. Never waits for the
 * device: an event, and a question for each piece of work that may be done, after another thread
 * that is at work on the set.
 */
static inline int cuwarden_work_begin(uint64_t streams, int which)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, work_begin) ? table->work_begin(streams, which)
                                            : cuwarden_lacks_(table);
}

/* Ends it. UNBALANCED: none has begun; BUSY: a stream is captured, or a context ends: it goes on
 * until this is called again, or is not counted if the next one begins; INVALID; NOT_FOUND; DRIVER:
 * it is not counted. */
static inline int cuwarden_work_end(uint64_t streams, int which)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, work_end) ? table->work_end(streams, which)
                                          : cuwarden_lacks_(table);
}

/* Times and counts of a set begin anew; work that has begun before is not counted. NOT_FOUND. */
static inline int cuwarden_streams_reset(uint64_t streams)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, streams_reset) ? table->streams_reset(streams)
                                               : cuwarden_lacks_(table);
}

/*
 * The state of a set: its streams, and the time in which each had work, of all that is done. Never
 * waits. Where more than 64 pieces of work in one stream are done during one in another, those
 * before the last 64 count as if they were apart: busy_ns is too much then, and may be more than
 * age_ns, and overlap is too little. While another thread is at work on the set, a stream is
 * captured, or its context has ended, it is what was seen before. NOT_FOUND; DRIVER: work has
 * failed.
 */
static inline int cuwarden_streams_now(uint64_t streams, struct cuwarden_streams *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, streams_now) ? table->streams_now(streams, out, sizeof(*out))
                                             : cuwarden_lacks_(table);
}

/* Waits for what is on its way, and destroys the streams. NOT_FOUND, BUSY (also: another thread is
 * at work on it): nothing has changed. DRIVER: the driver refused something: it is gone all the
 * same. */
static inline int cuwarden_streams_end(uint64_t streams)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, streams_end) ? table->streams_end(streams) : cuwarden_lacks_(table);
}

/* ---- files to the device ---- */

/*
 * Makes a prefetch, which brings files to memory of the device while the program does other work:
 * two chunks of pinned memory (chunk_bytes each, 0: 4 MiB; rounded up to 4 KiB, at most 1 GiB), and
 * a stream of the current context. While one chunk is read, the other is copied. The name, of at
 * most 47 bytes, is that of the pinned memory in reports; no two live prefetches have the same, and
 * what is not ended is a leak. Scopes leave it alone. Without the library there are no prefetches:
 * a program that must run without reads the file itself. Needs a context that is current. INVALID;
 * EXISTS; OUT_OF_HOST: no memory, or there are 16 already; NOT_STARTED; BUSY: a stream is captured,
 * or a context ends; DRIVER. As long as the driver takes for the memory, a stream and 50 events.
 */
static inline int cuwarden_prefetch_make(const char *name, uint64_t chunk_bytes, uint64_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_make) ? table->prefetch_make(name, chunk_bytes, out)
                                               : cuwarden_lacks_(table);
}

/*
 * Has `bytes` of a file, from `offset` on, brought to `to`, which is memory of the prefetch's
 * device. The file is the one at `path`, which is opened later, so that this never waits for a
 * disk; with path NULL it is the one that is open as `fd`, of which the library keeps a duplicate,
 * and whose position stays as it is. The first copy begins after what was submitted to `stream`
 * before (a CUstream or cudaStream_t of the prefetch's context, NULL for the default stream,
 * CUWARDEN_NO_STREAM for none). Requests of a prefetch are served in their order, those of several
 * ones in turn, all by one thread of the library's, which is there while files are read and for a
 * second after; it takes no signals, and makes no driver call while a stream is captured.
 * Where a block is freed before its file is read, the rest does not come; the end of the context
 * waits for the chunk that is being read. Of what has been in the file is copied what is there when
 * it is read: do not write to it meanwhile. 0 bytes are a request that only opens the file.
 * *out_number (or NULL): the number of the request, 1 for the first.
 * NOT_FOUND: no such prefetch, or the program has no block there; TOO_LARGE: the block ends before;
 * INVALID: no file, an offset beyond all files, memory of the host or of another device; SYSTEM: no
 * such descriptor; BUSY: 16 are on their way (also: another thread starts one, a stream is
 * captured, a context ends); OUT_OF_HOST: no thread can be made; DRIVER. Some microseconds, the
 * first also for a thread.
 */
static inline int cuwarden_prefetch_start(uint64_t prefetch, const char *path, int fd,
                                          uint64_t offset, uint64_t bytes, void *to, void *stream,
                                          uint64_t *out_number)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_start)
               ? table->prefetch_start(prefetch, path, fd, offset, bytes, to, stream, out_number)
               : cuwarden_lacks_(table);
}

/*
 * What is submitted to `stream` (of the prefetch's context) from now on begins after the request of
 * this number (0: the last one) has arrived. Waits for the disk if the file is not read yet
 * (cuwarden_prefetch_stage() tells), as no stream can be held back for a copy that the driver does
 * not have; never for the device. Fails as cuwarden_prefetch_wait() does.
 */
static inline int cuwarden_prefetch_before(uint64_t prefetch, uint64_t number, void *stream)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_before) ? table->prefetch_before(prefetch, number, stream)
                                                 : cuwarden_lacks_(table);
}

/* How far the request of this number (0: the last one) is (enum cuwarden_stage). Never waits.
 * NOT_FOUND: none was started, or 16 later ones were; BUSY: a stream is captured, or a context
 * ends; DRIVER: its context has ended. */
static inline int cuwarden_prefetch_stage(uint64_t prefetch, uint64_t number, int32_t *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_stage) ? table->prefetch_stage(prefetch, number, out)
                                                : cuwarden_lacks_(table);
}

/*
 * Waits until the request of this number (0: the last one) has arrived, and says how many bytes
 * came: fewer than were asked for if the file ends before, or if it was cancelled. *out_bytes may
 * be NULL. SYSTEM: the file cannot be opened or read (the text names it, and the errno); NOT_FOUND:
 * there is no such prefetch or request, 16 later ones were started (so it has arrived, or failed),
 * or the block was freed before its file was read; OUT_OF_HOST: there is no thread to read it any
 * more; DRIVER: the driver refused, or the context has ended; BUSY: a stream is captured, or a
 * context ends, before or during the wait, which then holds that up for 60 ms at most; nothing is
 * lost; NOT_ACTIVE: the process ends. After a failure some of the bytes may have come. In any
 * thread, also while another starts one. It looks from time to time, so it may return late by a few
 * per cent of what the request takes.
 */
static inline int cuwarden_prefetch_wait(uint64_t prefetch, uint64_t number, uint64_t *out_bytes)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_wait) ? table->prefetch_wait(prefetch, number, out_bytes)
                                               : cuwarden_lacks_(table);
}

/* Nothing more is read for the request of this number (0: for all of the prefetch's); a chunk that
 * is being read or copied may still come. What has arrived stays. Never waits. NOT_FOUND: there is
 * no such prefetch. */
static inline int cuwarden_prefetch_cancel(uint64_t prefetch, uint64_t number)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_cancel) ? table->prefetch_cancel(prefetch, number)
                                                 : cuwarden_lacks_(table);
}

/* The state and counters of a prefetch. NOT_FOUND. Times and bytes, and those of the statistics,
 * are those of requests that another one's start, a stage, a wait or the end has seen to have
 * arrived. */
static inline int cuwarden_prefetch_now(uint64_t prefetch, struct cuwarden_prefetch *out)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_now) ? table->prefetch_now(prefetch, out, sizeof(*out))
                                              : cuwarden_lacks_(table);
}

/* Cancels what is not read, waits for the chunk that is being read and for the device, and frees
 * all. NOT_FOUND, BUSY (also: another thread is at work on it): nothing has changed. DRIVER: the
 * driver refused something: it is gone all the same. */
static inline int cuwarden_prefetch_end(uint64_t prefetch)
{
    const struct cuwarden_table *table = cuwarden_table_();

    return CUWARDEN_HAS_(table, prefetch_end) ? table->prefetch_end(prefetch)
                                              : cuwarden_lacks_(table);
}

#ifdef __cplusplus
}
#endif

#endif
