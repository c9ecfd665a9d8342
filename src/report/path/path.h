/* SPDX-License-Identifier: MIT */
/*
 * Where a report goes: the template of its name, and the file that appears under that name only
 * when it is complete.
 */
#ifndef CW_REPORT_PATH_H
#define CW_REPORT_PATH_H

#include <stddef.h>
#include <stdint.h>

#define CW_PATH_MAX 4096

/* What the template's escapes stand for. */
struct cw_path_values {
    uint32_t pid;           /* %p */
    const char *host;       /* %h */
    const char *program;    /* %e: a path, of which the last component is taken */
    uint64_t start_seconds; /* %t: since 1970 */
    uint32_t number;        /* %n */
    const char *rank;       /* %r: "0" if it is NULL or "" */
    char *const *env;       /* %q{VAR}; NULL: no variable is set */
};

/*
 * Expands %p %h %e %t %n %r %q{VAR} %%; any other %x stays as it is. An unset variable is empty. 0,
 * or -1 when the result does not fit.
 */
int cw_path_expand(char *buf, size_t cap, const char *pattern, const struct cw_path_values *values);

/* 1 if it has a %n. */
int cw_path_has_number(const char *pattern);

/* 1 if the processes of a parallel job would all write to one file: no escape that tells them apart
 * (%p, %n, %r, %q of a variable that is called a rank), and no device, FIFO or link. */
int cw_path_is_shared(const char *pattern);

/* `text` goes before the extension of the last component: "r.json" and ".2" make "r.2.json", "r"
 * and "r.%p" get it at their end. 0, or -1: too long. */
int cw_path_insert(char *buf, size_t cap, const char *pattern, const char *text);

/* Opens the file for writing, creating it and directories that are missing; flags as for open(2).
 * The descriptor, or -1 with errno. */
int cw_report_path_create(char *path, int flags);

/* One file that is being written; for cw_mem_alloc rather than the stack. */
struct cw_report_file {
    int fd; /* -1: not open */
    int renames, reserved;
    char path[CW_PATH_MAX];
    char temporary[CW_PATH_MAX];
};

/*
 * Opens the file for the pattern with `suffix` behind it, making directories that are missing. With
 * %n the number is the first, from 1 on, for which there is no such file; values->number says which
 * it became. What is written lies under another name in the same directory until it is closed; a
 * device or a FIFO is written to directly. 0, or the errno; `path` tells what was tried.
 */
int cw_report_file_open(struct cw_report_file *file, const char *pattern, const char *suffix,
                        struct cw_path_values *values);

/* Gives the file its name, or takes it away when `error` is set. 0, or the errno. */
int cw_report_file_close(struct cw_report_file *file, int error);

#endif
