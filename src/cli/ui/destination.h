/* SPDX-License-Identifier: MIT */
/*
 * The destination of a command's result: standard output, a pager if a person reads it, or a file,
 * which gets its name once it is complete. Nothing is created or truncated before there is
 * something to write.
 */
#ifndef CW_CLI_DESTINATION_H
#define CW_CLI_DESTINATION_H

#include <stdio.h>
#include <sys/types.h>

enum cw_color { CW_COLOR_AUTO, CW_COLOR_ALWAYS, CW_COLOR_NEVER };

/* Zeroed: standard output. */
struct cw_destination {
    const char *noun; /* what it is, for messages: "report" */
    const char *path; /* NULL: standard output */
    const char *name; /* that the user gave, for messages; NULL: the path */
    int is_text;      /* may use a pager and colours */
    enum cw_color color;
    int without_pager;
    int makes_directories; /* creates missing directories, as the library does */
    FILE *out;             /* NULL: not open yet */
    char *target;          /* the file's name, without symbolic links */
    char *temporary;       /* renamed to `target` at the end; NULL: written in place */
    pid_t pager;           /* 0: none */
    int failed;            /* after a message: the file is not renamed */
};

/* The value of --output: a file, or "-". */
void cw_destination_set_path(struct cw_destination *destination, const char *path);

/* A form by the end of a file's name; a table of them ends with {NULL, NULL}. */
struct cw_named_form {
    const char *extension, *form; /* ".pb.gz", "pprof" */
};

/* The form of the output by its name: the first of the table that fits, or NULL for text. 0, or -1
 * after a message if the name seems to ask for another form. */
int cw_destination_form(const struct cw_destination *destination, const struct cw_named_form *forms,
                        const char **out_form);
/* 1 for letters after the last dot that stand for no text, as in "report.xml". */
int cw_destination_is_strange(const char *name);

/* "always", "never" or "auto". */
void cw_destination_set_color(struct cw_destination *destination, const char *value);

/* Whether the output will have colours; callable before and after it is opened. */
int cw_destination_has_color(const struct cw_destination *destination);

/* 0 (also if it is already open), or -1 after a message. */
int cw_destination_open(struct cw_destination *destination);

/* Flushes; -1 after a message. A pager that has quit is not an error. */
int cw_destination_flush(struct cw_destination *destination);
/* For a writer that failed: the output is incomplete. Prints a message unless there was one. -1, or
 * 0 if the pager has quit. */
int cw_destination_fail(struct cw_destination *destination);

/* Renames the file, or waits for the pager. 0, or -1 after a message. */
int cw_destination_close(struct cw_destination *destination);

#endif
