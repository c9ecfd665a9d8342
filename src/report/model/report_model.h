/* SPDX-License-Identifier: MIT */
/*
 * The model of a report: the data of one process's report, from which every form is written. It has
 * two fillers: model_live.c from a live layout, and cli/model/json_read.c from a report in JSON.
 * Equal models give equal output.
 *
 * Modules, stacks and tags have numbers from 1, and 0 is none; sites, frames and events have
 * indices, and CW_SITE_NONE is none. The filler owns strings; unknown ones are "" unless NULL is
 * allowed. Times are nanoseconds since the library was armed unless the name says otherwise.
 */
#ifndef CW_REPORT_MODEL_H
#define CW_REPORT_MODEL_H

#include <stdint.h>

#include "live/layout.h"
#include "report/leaks/holders.h"
#include "report/leaks/suppress.h"
#include "report/model/tensors.h"
#include "report/snapshot/snapshot.h"

struct cw_report_variable {
    const char *name, *value;
};

#define CW_END_RUNNING "running"
#define CW_END_KILLED  "killed"

struct cw_process_facts {
    uint32_t pid, ppid;
    const char *exe, *cwd, *host;
    const char *rank;    /* of a parallel job */
    const char *command; /* the arguments, separated by spaces */
    const char **argv;
    uint32_t argc;
    uint8_t is_argv_cut;            /* there are more */
    struct cw_report_variable *env; /* our variables that were set */
    uint32_t envc;
    uint64_t start_realtime_ns, end_realtime_ns; /* since 1970; 0: not known, not ended */
    const char *end; /* "exit", "_exit", "quick_exit", "died", "unknown" or one of those below */
    int32_t exit_code;
    uint8_t has_exit_code;
    uint8_t has_no_stacks; /* stacks were disabled */
    uint32_t driver_version;
    int32_t init_error;  /* the code with which the driver refused to start; 0: it did not */
    const char *unseen;  /* an object whose calls of CUDA are not in the account; NULL: none */
    uint8_t is_uncalled; /* and nobody else's are */
};

struct cw_report_module {
    const char *path, *build_id; /* build_id: hex */
    uint64_t base;
    uint32_t generation;
};

/* A function inlined into a frame's. */
struct cw_report_place {
    const char *function, *file; /* NULL: not known */
    uint32_t line;               /* 0: not known */
};

struct cw_report_frame {
    const char *function; /* NULL: not known */
    const char *file;     /* of the source; of Python with its directory; NULL: not known */
    uint32_t line;        /* 0: not known */
    uint32_t module;
    uint64_t offset;           /* of the call in the module's file */
    uint64_t address;          /* return address; 0: unknown */
    uint32_t inlined, inlines; /* its part of the places, innermost first */
    uint8_t is_python;
    uint8_t is_debug_name; /* only debug information has the function's name, not the library */
};

/* Its part of stack_frame, innermost first, and the visible part of that. */
struct cw_report_stack {
    uint32_t id; /* its number in a report in JSON, where they have no gaps */
    uint32_t first, count;
    uint32_t shown_first, shown; /* shown_first counts from `first` */
};

struct cw_report_tag {
    const char *label; /* "forward", "forward@domain" */
    uint8_t is_pattern;
    uint64_t begun; /* times entered */
    uint64_t steps; /* completed; the following fields need at least one */
    uint64_t first_ns, last_ns, first_bytes, last_bytes, least_bytes, most_bytes;
    uint8_t has_line; /* the next three are valid */
    uint8_t is_rising;
    double mean_ns, slope, r2; /* per step; slope: bytes held by the whole process */
};

struct cw_report_block {
    uint32_t site;
    uint32_t tid;
    uint64_t address, bytes, held, born_ns;
    uint64_t id;      /* of the allocation; 0: not known */
    const char *name; /* that the program has given it; NULL or "": none */
};

struct cw_report_old {
    uint32_t site;
    uint64_t blocks, bytes, oldest_age_ns;
};

/* What the share of a change of level is one of. */
enum cw_share_of { CW_SHARE_OF_DEVICE, CW_SHARE_OF_LIMIT, CW_SHARE_OF_BOUND };

struct cw_report_event {
    uint64_t t_ns; /* 0: the record is empty */
    uint64_t key, bytes, free_bytes, total_bytes, released;
    uint32_t site;
    uint32_t first_site; /* for a double free: the site of the first */
    uint32_t alloc_site; /* for an invalid free: of the block that was meant */
    int32_t code;
    uint32_t count;
    uint32_t share; /* in 1/10000 */
    uint8_t type, device, cause, level, level_before, rung, misuse;
    uint8_t share_of; /* enum cw_share_of */
    uint8_t bound;    /* enum cw_bound, of a share of one */
};

struct cw_report_oom {
    uint64_t t_ns;
    uint32_t event, site;
    int32_t code;
    uint8_t device, cause, unserved, is_fragmented;
    uint64_t bytes, fits, limit, min_free;
    uint64_t scope_others;              /* counted for the limit by other processes */
    uint64_t budget_bytes, budget_used; /* of cause BUDGET */
    uint64_t live, held, idle, spare, free_bytes, total_bytes, others;
    uint64_t rest_blocks, rest_bytes;
    struct cw_report_holder holder[CW_OOM_HOLDERS];
    uint32_t holders;
};

/* What the tags whose names match may have. */
struct cw_report_budget {
    const char *pattern;
    uint64_t bytes, live, peak, peak_ns, refused, exceeded;
    uint8_t refuses; /* else it warns */
    uint8_t is_set;  /* 0: it was taken away while the process ran */
};

/* A suppression rule and its use. */
struct cw_report_rule {
    uint32_t id;         /* as sites name it */
    uint32_t line;       /* of the file */
    const char *pattern; /* of one of the file's: the rule as it is printed */
    const char *source;  /* the file, or "built-in" */
    const char *owner;   /* of a built-in one: "cuBLAS"; else "" */
    uint8_t leak;        /* enum cw_leak_class of what it matches */
    struct cw_rule_use use;
};

/* A cache of a framework that has memory in the report (leaks/cache.h). */
struct cw_report_cache {
    uint32_t id; /* as sites name it */
    const char *owner, *memory, *keeps, *inside, *flag, *empties;
    uint64_t blocks, bytes; /* kept at the end, not counted as leaked */
};

struct cw_report_finding {
    uint64_t address, count, bytes, tool_bytes;
    const char *source;
    uint8_t side, class, op;
};

struct cw_report_static {
    const char *name;
    uint64_t bytes;
    uint8_t is_managed;
};

/* The findings of CUPTI, as in live/layout_audit.h. */
struct cw_report_audit {
    uint8_t status;
    uint32_t version;
    const char *why;
    uint64_t all_findings, dropped, not_kept, excused;
    struct cw_live_audit_row row[CW_AUDIT_CLASS_COUNT][CW_AUDIT_OP_COUNT];
    struct cw_report_finding finding[CW_AUDIT_FINDINGS];
    uint32_t findings;
    struct cw_live_audit_amount fixed; /* all loaded variables */
    struct cw_report_static variable[CW_AUDIT_VARIABLES];
    uint32_t variables; /* those in variable[] */
};

struct cw_report_diagnostic {
    const char *text;
    uint8_t is_loss; /* the account is incomplete; else only its stacks are */
};

struct cw_report_peak {
    const uint32_t *site; /* shown, largest first */
    uint32_t shown, count;
    uint64_t rest; /* bytes of the others */
};

struct cw_report_rank {
    uint32_t site;
    uint64_t value;
};

/* Set for a report on some of the call sites, or by another metric. The snapshot's lists are then
 * those of the selection. */
struct cw_report_selection {
    const uint32_t *site; /* to show, in order */
    uint32_t sites, of;
    int shows_all;                 /* lists are not truncated */
    const char *metric;            /* NULL: the default, live bytes */
    int is_count;                  /* the metric is a count, not bytes */
    struct cw_snapshot_list apart; /* other sites that do not count */
    struct cw_report_rank *rank;
    uint32_t ranks;
};

struct cw_report_model {
    const char *schema, *tool, *version; /* version: of cuwarden that watched, or wrote */
    const char *source;                  /* the file that was read, "" in the process */
    uint8_t is_alive;                    /* the process is running */
    uint8_t is_killed;  /* it was ended by a signal: what it had then may not be a leak */
    uint8_t has_no_ids; /* of sites, while the process runs (report_oom.h) */
    struct cw_process_facts process;
    struct cw_report_module *module; /* by number - 1 */
    uint32_t modules;
    struct cw_report_frame *frame;
    uint32_t frames;
    struct cw_report_place *place;
    uint32_t places;
    uint32_t *stack_frame;
    uint32_t stack_frames;
    struct cw_report_stack *stack; /* by number - 1; without frames unless requested */
    uint32_t stacks;
    struct cw_report_tag *tag; /* by number - 1 */
    uint32_t tags;
    struct cw_report_block *block; /* leaked ones */
    uint32_t blocks;
    uint64_t blocks_left_out;
    struct cw_report_old *old; /* most bytes first */
    uint32_t olds;
    struct cw_report_event *event; /* by time */
    uint32_t events;
    struct cw_report_oom *oom;
    uint32_t ooms;
    struct cw_report_budget *budget;
    uint32_t budgets;
    struct cw_report_rule *rule; /* the file's rules, and built-in ones that were used */
    uint32_t rules;
    struct cw_report_cache *cache;
    uint32_t caches;
    uint64_t invalid_frees; /* at least the number of events */
    struct cw_report_diagnostic *diagnostic;
    uint32_t diagnostics;
    struct cw_report_audit audit;
    struct cw_report_tensors tensors;
    struct cw_report_peak peak[CW_DEVICES];
    uint32_t sites_of;                     /* non-empty sites of the process: some may be omitted */
    struct cw_report_selection *selection; /* NULL: everything */
    struct cw_snapshot snapshot;           /* last: what stands before it is made anew of it */
};

static inline const struct cw_snapshot_site *cw_report_site(const struct cw_report_model *model,
                                                            uint32_t site)
{
    return site < model->snapshot.sites ? &model->snapshot.site[site] : NULL;
}

/* NULL for 0 and for unknown numbers. */
const struct cw_report_stack *cw_report_stack(const struct cw_report_model *model, uint32_t stack);
/* A visible frame of a stack, counted from 0. */
const struct cw_report_frame *cw_report_shown_frame(const struct cw_report_model *model,
                                                    const struct cw_report_stack *stack,
                                                    uint32_t at);
/* The path of a module, and its last component; "" for none. */
const char *cw_report_module_path(const struct cw_report_model *model, uint32_t module);
const char *cw_report_module_name(const struct cw_report_model *model, uint32_t module);
/* A frame's display name: the function, else "libfoo.so+0x1a2b" in buf, else "?". */
const char *cw_report_frame_name(const struct cw_report_model *model,
                                 const struct cw_report_frame *frame, char *buf, size_t cap);
/* "forward", "forward@domain"; "" for none. */
const char *cw_report_tag_label(const struct cw_report_model *model, uint32_t tag);
/* The rule with this number in sites, or NULL. */
const struct cw_report_rule *cw_report_rule_at(const struct cw_report_model *model, uint32_t id);
/* The device that counts a site's bytes: a device, CW_DEVICE_HOST, or CW_SITE_NONE for none. */
uint32_t cw_report_site_home(const struct cw_snapshot_site *site);
/* Whether the report has data on the device. */
int cw_report_has_device(const struct cw_report_model *model, uint32_t device);
/* The indices of the sites that held most until Python ended, at most `max`; returns how many sites
 * held anything. */
uint32_t cw_report_held(const struct cw_report_model *model, uint32_t *site, uint32_t max);
/* By the fillers, once they know the process's end: whether it runs, or was ended. */
void cw_report_note_end(struct cw_report_model *model);
/* What a process has that runs may yet be freed, and one that was ended could not free it. */
int cw_report_has_leaks(const struct cw_report_model *model);
/* The sums, in which such memory is not leaked. */
struct cw_snapshot_summary cw_report_summary(const struct cw_report_model *model);
/* Calls that returned out of memory. */
uint64_t cw_report_oom_calls(const struct cw_report_model *model);
/* Called last by the fillers: marks empty sites, and counts the others unless a larger count is
 * known. */
void cw_report_find_empty(struct cw_report_model *model);

#endif
