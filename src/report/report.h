/* SPDX-License-Identifier: MIT */
/*
 * The report of one process, made from its live layout: by the process itself at exit, or by the
 * command from a live file. Because it runs during the program's exit, it uses no malloc, stdio,
 * locale, program locks or driver calls, and very little stack. It writes and renames files, and
 * never ends the process.
 */
#ifndef CW_REPORT_REPORT_H
#define CW_REPORT_REPORT_H

#include "live/view.h"
#include "report/model/model_live.h"
#include "report/path/path.h"
#include "report/text/text_form.h"

struct cw_options;
struct cw_symbol_ops;

enum cw_report_form {
    CW_REPORT_SHORT_IF_LEAKED, /* a short text, if something leaked or a memory error happened */
    CW_REPORT_TEXT,
    CW_REPORT_JSON,
    CW_REPORT_BOTH, /* that which does not fit the name gets ".json" or ".txt" appended */
    CW_REPORT_NONE, /* nothing at all */
};

struct cw_report_request {
    enum cw_report_form form;
    enum cw_report_process process;
    unsigned columns;        /* that the text's tables fit in; 0: 80 */
    int has_all_frames;      /* in the text's stacks; else those of frameworks are folded */
    int has_live_file;       /* from which 'cuwarden run' can tell more than a short text */
    const char *destination; /* template of a file name (report/path/path.h); NULL or "-": `fd` */
    int fd;                  /* 0: 2, stderr */
    int is_dump;             /* the process continues: no fallback if the file cannot be written */
    int *out_error;          /* gets the errno of what went wrong, in place of a warning; or NULL */
    char *const *env;        /* for %q{VAR}; may be NULL */
    const char *version;     /* of cuwarden; may be NULL */
    const char *suppressions; /* a file of rules (suppress.h); NULL or "": none */
    int knows_rules;          /* what is wrong with them has been said */
    uint64_t old_ns;          /* a live block of this age is old; 0: a minute; not if: */
    /* Somebody acts upon its classes: what is live is counted from blocks (snapshot.h), growth and
     * ages are left out, and there is none where memory lacks to tell a class, or where a file of
     * rules or names (symbol.h) cannot be read; a line says so, once. */
    int is_to_act_upon;
    /* Demangles a name (symbol.h), or NULL; must be NULL where malloc is forbidden. */
    const char *(*demangle)(const char *mangled, void *arg);
    void *demangle_arg;
    const struct cw_symbol_ops *lines; /* reads source lines (symbol.h); NULL: none */
    const char *sysroot;               /* the directory that contains the modules; may be NULL */
    const struct cw_report_tensors
        *tensors; /* of a framework; sites are those of the layout; may be NULL */
};

/* The form by the options REPORT and FORMAT. */
enum cw_report_form cw_report_form_of(const struct cw_options *options);

/* The values of the escapes in a report's name, except %n. */
void cw_report_path_values(const struct cw_view *view, char *const *env,
                           struct cw_path_values *out);

/*
 * Writes the report. 0 if it reached its destination, or there was nothing to write. -1 otherwise:
 * a destination that cannot be written causes one warning, and the text goes to `fd` instead, or
 * nowhere if it is a dump.
 */
int cw_report_write(const struct cw_view *view, const struct cw_report_request *request);

/*
 * A model of a live layout that is valid until it is closed. Uses only the request's fields about
 * content. NULL: out of memory, or see is_to_act_upon. The view and everything that the request
 * points to must outlive it.
 */
struct cw_report_job;
struct cw_report_job *cw_report_open(const struct cw_view *view,
                                     const struct cw_report_request *request);
struct cw_report_model *cw_report_of(struct cw_report_job *job);
/* Call once: adds the frames of all stacks, or only of those that the full text shows. */
void cw_report_read_stacks(struct cw_report_job *job, int is_for_text);
/* The same for the stacks that `list` names to its `want`. */
typedef void (*cw_report_list_fn)(const struct cw_report_model *model, cw_report_want_fn want,
                                  void *arg);
void cw_report_read_listed(struct cw_report_job *job, cw_report_list_fn list);
void cw_report_close(struct cw_report_job *job);

#endif
