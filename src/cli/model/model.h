/* SPDX-License-Identifier: MIT */
/*
 * What the command knows of one process, whether it comes from a live file or from a report in
 * JSON. Every form of output but text and json, every filter, comparison and view works on this.
 * There is one reader (model_json.c): a live file is first made into the JSON report that its
 * process would have written.
 *
 * Owns all that it points to until cw_model_free. Strings are UTF-8 as far
 * as the program's are, never NULL ("" for none). Bytes are bytes, times are nanoseconds since the
 * library was armed, unless their name says otherwise; CW_MODEL_NONE is no index.
 */
#ifndef CW_CLI_MODEL_H
#define CW_CLI_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "cli/model/model_whole.h"
#include "report/snapshot/trend.h"

struct cw_lines;
struct cw_source_file;

#define CW_MODEL_NONE UINT32_MAX
#define CW_MODEL_HOST 64 /* the device of pinned and registered host memory */

struct cw_model_module {
    const char *path;
    const char *build_id; /* hex */
    uint64_t base;
};

struct cw_model_frame {
    const char *function; /* "" if not known */
    const char *file;     /* of the source; "" */
    uint32_t line;        /* 0: not known */
    uint32_t module;      /* index, or CW_MODEL_NONE: Python, or nowhere */
    uint64_t offset;      /* in the module's file */
    uint64_t address;     /* where it returns to; 0: not known */
    uint8_t is_python;
    uint8_t is_inlined; /* into the next frame of the stack */
};

/* Frames that a reader wants to see, innermost first: `count` entries of model->stack_frame. */
struct cw_model_stack {
    uint32_t first, count;
};

struct cw_model_growth {
    double slope_bytes_per_s;
    double r2;
    uint32_t samples; /* 0: not worked out */
    uint64_t floor[CW_TREND_QUARTERS];
    uint8_t is_suspect;
    const char *step; /* the mark of whose steps it has step_bytes each; "": none */
    double step_bytes;
};

/* How the use of a device went on from quarter to quarter. */
struct cw_model_rise {
    uint64_t peak[CW_TREND_QUARTERS];
    uint8_t peak_rose;           /* the last is clearly above the others */
    struct cw_model_growth idle; /* of what the pool kept */
};

struct cw_model_site {
    uint32_t id;    /* stable across runs; the device and the tag have no part in it */
    uint32_t stack; /* index, or CW_MODEL_NONE */
    uint32_t device;
    const char *api;
    const char *kind;    /* JSON name: "device", "pinned", ... */
    const char *tag;     /* "" for none */
    const char *leak;    /* class: "lost", "growing", "library", ...; "" when nothing is left */
    uint8_t is_leak;     /* counted */
    uint8_t is_counted;  /* its bytes are in the sums */
    uint8_t is_past_cap; /* of its rule, which does not apply then */
    uint32_t rule;       /* of the report, which the suppressions name, or CW_MODEL_NONE */
    uint32_t owner;      /* module that asked for the memory: index, or CW_MODEL_NONE */
    uint8_t is_empty;    /* asked for nothing, and no error names it: it was called to free */
    struct cw_model_amount live, total, peak, at_peak, reclaimed;
    uint64_t held;
    uint64_t frees, failed, oom;
    uint64_t first_ns, last_ns; /* of allocations */
    uint64_t oldest_ns;         /* birth of the oldest live block, 0: none */
    uint64_t oldest_age_ns;     /* its age when the report was made */
    uint8_t has_age;            /* which is known */
    struct cw_model_growth growth;
    uint32_t series; /* first of model->samples entries of model->series_bytes, or CW_MODEL_NONE */
};

struct cw_model_point {
    uint64_t t_ns, live, held, idle, used;
};

struct cw_model_bucket {
    const char *kind;
    uint64_t size, hits, misses, kept, released, idle_blocks, idle_bytes;
};

struct cw_model_device {
    uint32_t ordinal;   /* CW_MODEL_HOST: the host */
    uint8_t is_listed;  /* among the devices; else only the pool, pressure or growth tells of it */
    uint8_t has_sample; /* driver_used and unattributed are known */
    const char *name;
    const char *uuid;
    uint64_t total; /* of memory, 0: not known */
    struct cw_model_amount live, idle, total_allocated;
    uint64_t held;
    uint64_t peak_bytes, peak_ns;
    uint64_t allocs, frees, failed;
    uint64_t driver_used, unattributed; /* when last sampled */
    uint64_t limit, min_free;           /* 0: none */
    const char *level;                  /* of pressure: "low", ... */
    uint64_t pool_hits, pool_misses;
    uint64_t ooms;
    struct cw_model_pool pool;
    struct cw_model_pressure pressure;
    struct cw_model_rise rise;
    uint32_t first_point, points;   /* its part of model->point, by time */
    uint32_t first_bucket, buckets; /* its part of model->bucket */
};

struct cw_model_block {
    uint32_t site; /* index */
    uint64_t address, bytes, held, born_ns;
    uint32_t tid;
};

struct cw_model_event {
    const char *type; /* JSON name: "oom", "invalid-free", "pressure", "trim", "limit", ... */
    uint64_t t_ns;
    uint32_t device;
    uint32_t site; /* index, or CW_MODEL_NONE */
    uint64_t bytes;
    const char *level, *level_before; /* of pressure */
    const char *share_of;             /* "device" or "limit" */
    double share;                     /* 0..1 */
    const char *cause, *rung;
    uint64_t released, free, total;
    const char *address; /* of an invalid free, "" for none */
    uint32_t first_site; /* that freed the block before: index, or CW_MODEL_NONE */
    int code;
    uint32_t count;
};

/* What the program marks, a range or a mark of NVTX of one name. */
struct cw_model_step {
    const char *name;
    uint64_t steps, first_ns, last_ns, first_bytes, last_bytes;
    double slope_bytes, r2; /* of what the whole process holds, a step */
    uint8_t is_rising;
};

/* Blocks of a site that were replaced by larger ones, with a copy. */
struct cw_model_regrowth {
    uint32_t site; /* index */
    uint64_t resizes, copied_bytes, capacity_bytes, chains;
    double factor;
};

struct cw_model_process {
    uint32_t pid, ppid;
    const char *exe, *command, *cwd, *host;
    uint64_t start_realtime_ns;
    uint64_t duration_ns;
    const char *end; /* "exit", "_exit", "running", "died", ... */
    int has_exit_code;
    int exit_code;
    uint32_t driver_version;
    const char *mode;      /* of the pool: "pool" or "track" */
    const char *free_sync; /* "strict", "deferred"; "" without a pool */
    const char *rank;      /* of a parallel job, "" if none is known */
    const char *version;   /* of cuwarden that wrote it */
    uint8_t has_no_stacks; /* they were switched off */
};

struct cw_model_summary {
    uint64_t leaked_bytes, leaked_blocks, leak_sites;
    uint64_t peak_bytes;
    uint64_t allocs, frees, failed;
    uint64_t pool_hits, pool_misses;
};

struct cw_model {
    const char *source; /* the file it came from */
    int is_alive;       /* the process runs */
    struct cw_model_process process;
    struct cw_model_summary summary;
    struct cw_model_device *device; /* those that the process used; the host last, if it has any */
    uint32_t devices;
    struct cw_model_point *point;
    uint32_t points;
    struct cw_model_bucket *bucket;
    uint32_t buckets;
    struct cw_model_module *module;
    uint32_t modules;
    struct cw_model_frame *frame;
    uint32_t frames;
    uint32_t *stack_frame;
    struct cw_model_stack *stack;
    uint32_t stacks;
    struct cw_model_site *site;
    uint32_t sites;
    uint32_t sites_of; /* of the process that are not empty: some may have been left out */
    struct cw_model_block *block; /* leaked ones; may be cut, see blocks_left_out */
    uint32_t blocks;
    uint64_t blocks_left_out;
    struct cw_model_event *event; /* by time */
    uint32_t events;
    uint64_t *sample_ns; /* moments of the sites' series, by time */
    uint32_t samples;
    uint64_t *series_bytes;
    struct cw_model_step *step;
    uint32_t steps;
    struct cw_model_regrowth *regrowth;
    uint32_t regrowths;
    uint32_t *suspect; /* sites that grew steadily, by index, that which grew most first */
    uint32_t suspects;
    uint64_t growth_end_ns; /* to which growth was watched */
    struct cw_model_audit audit;
    struct cw_model_rule *rule; /* in the order in which they are asked */
    uint32_t rules;
    struct cw_model_old *old; /* most bytes first */
    uint32_t olds;
    uint64_t old_ns; /* from which age a block is old */
    struct cw_model_oom *oom;
    uint32_t ooms;
    struct cw_model_holder *holder;
    uint32_t holders;
    uint64_t invalid_frees; /* of which the events are the last ones */
    struct cw_model_diagnostic *diagnostic;
    uint32_t diagnostics;
    struct cw_model_pages *pages; /* what it owns */
};

/* How the report of a live file is made; zeroed but for the first two is well. */
struct cw_model_request {
    const char *suppressions; /* a file of rules, "" for none */
    uint64_t old_ns;
    const struct cw_lines *lines; /* where source lines come from (lines.h); NULL: from nowhere */
};

/*
 * Reads a live file or a report in JSON, whichever it is. 0, or -1 after a message that names the
 * file and the reason.
 */
int cw_model_read(struct cw_model *model, const char *path, const struct cw_model_request *request);
/* The same of a file that is open, and stays so with its JSON in file->fd. */
int cw_model_read_file(struct cw_model *model, struct cw_source_file *file,
                       const struct cw_model_request *request);
void cw_model_free(struct cw_model *model);

/* For the readers: a copy that lives as long as the model. NULL only after a message: no memory. */
const char *cw_model_text(struct cw_model *model, const char *text, size_t len);

/* What a frame is called in a list: the function, else "libfoo.so+0x1a2b", else "?". */
const char *cw_model_frame_name(const struct cw_model *model, const struct cw_model_frame *frame,
                                char *buf, size_t cap);
/* Where its bytes are counted: a device, CW_MODEL_HOST, or CW_MODEL_NONE: nowhere. */
uint32_t cw_model_site_home(const struct cw_model_site *site);

/* The first of the frames that were inlined into this one, one after the other, the innermost
 * first; the frame itself when there are none. */
uint32_t cw_model_first_inlined(const struct cw_model *model, uint32_t frame);
/* The last component of the module's path. */
const char *cw_model_module_name(const struct cw_model *model, uint32_t module);

#endif
