/* SPDX-License-Identifier: MIT */
/*
 * The report of one process, made from its live layout: by the process itself as it ends, or by the
 * command from what a dead one left. The same code, so it works inside somebody else's exit: no
 * malloc, stdio, locale, lock of the program's or driver call, and next to no stack. It writes and
 * renames files, and never ends the process.
 */
#ifndef CW_REPORT_REPORT_H
#define CW_REPORT_REPORT_H

#include "live/view.h"
#include "report/model/model_live.h"
#include "report/path/path.h"

struct cw_symbol_ops;

enum cw_report_form {
    CW_REPORT_SHORT_IF_LEAKED, /* a short text; nothing at all when nothing leaked */
    CW_REPORT_TEXT,
    CW_REPORT_JSON,
    CW_REPORT_BOTH,        /* the JSON's name gets ".json" appended */
    CW_REPORT_SUGGESTIONS, /* of suppressions (suggest.h), to `fd` */
};

struct cw_report_request {
    enum cw_report_form form;
    enum cw_report_process process;
    const char *destination;  /* template of a file name (report/path/path.h); NULL or "-": `fd` */
    int fd;                   /* 0: 2, stderr */
    int is_dump;              /* the process runs on: what cannot be written goes nowhere else */
    char *const *env;         /* for %q{VAR}; may be NULL */
    const char *version;      /* of cuwarden; may be NULL */
    const char *suppressions; /* a file of rules (suppress.h); NULL or "": none */
    uint64_t old_ns;          /* from this age on a live block is old; 0: a minute */
    /* Makes a mangled name readable (symbol.h); NULL, as it must be where malloc may not be used.
     */
    const char *(*demangle)(const char *mangled, void *arg);
    void *demangle_arg;
    const struct cw_symbol_ops *lines; /* reads source lines (symbol.h); NULL: nobody does */
    const char *sysroot;               /* the directory under which the modules are; may be NULL */
};

/* What the escapes of a report's name stand for, but for %n. */
void cw_report_path_values(const struct cw_view *view, char *const *env,
                           struct cw_path_values *out);

/*
 * Writes the report. 0 when it is where it was asked for, or nothing was due. -1 when it is not: a
 * destination that cannot be written gets one warning, and the text goes to `fd` instead, or
 * nowhere if it is a dump.
 */
int cw_report_write(const struct cw_view *view, const struct cw_report_request *request);

/*
 * A model of a live layout that stays until it is closed, made by what of the request is about the
 * content. NULL: no memory. The view and all that the request points to must stay.
 */
struct cw_report_job;
struct cw_report_job *cw_report_open(const struct cw_view *view,
                                     const struct cw_report_request *request);
struct cw_report_model *cw_report_of(struct cw_report_job *job);
/* Once: gives the model the frames of all stacks, or of those alone that the full text shows. */
void cw_report_read_stacks(struct cw_report_job *job, int is_for_text);
void cw_report_close(struct cw_report_job *job);

#endif
