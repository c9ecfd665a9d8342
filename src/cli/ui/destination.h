/* SPDX-License-Identifier: MIT */
/*
 * Where the result of a command goes: to standard output, through a pager where a person reads it,
 * or to a file, which has its name only when all of it is written. Nothing is made or emptied
 * before there is something to write.
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
    int is_text;      /* a pager may show it, and colours are of use */
    enum cw_color color;
    int without_pager;
    int makes_directories; /* those of the path that are missing, as the library does */
    FILE *out;             /* NULL: not open yet */
    char *target;          /* the file's name, without symbolic links */
    char *temporary;       /* gets that name at the end; NULL: written in place */
    pid_t pager;           /* 0: none */
    int failed;            /* after a message: the file does not get its name */
};

/* The value of --output: a file, or "-". */
void cw_destination_set_path(struct cw_destination *destination, const char *path);
/* "always", "never" or "auto". */
void cw_destination_set_color(struct cw_destination *destination, const char *value);

/* Whether it will have colours; before or after it is open. */
int cw_destination_has_color(const struct cw_destination *destination);

/* 0, at once if it is open; -1 after a message. */
int cw_destination_open(struct cw_destination *destination);

/* What is buffered goes out; -1 after a message. A pager that was left has read enough. */
int cw_destination_flush(struct cw_destination *destination);
/* For a writer that could not: what is there is not whole. A message, unless there was one, or a
 * pager was left. -1, or 0 for a pager that was left. */
int cw_destination_fail(struct cw_destination *destination);

/* Gives the file its name, or waits for the pager. 0, or -1 after a message. */
int cw_destination_close(struct cw_destination *destination);

#endif
