/* SPDX-License-Identifier: MIT */
/*
 * The destination of a report: the template of its name, and the file, which appears under that
 * name only once it is complete.
 */
#ifndef CW_REPORT_PATH_H
#define CW_REPORT_PATH_H

#include <stddef.h>
#include <stdint.h>

#define CW_PATH_MAX 4096

/* Values of the template's escapes. */
struct cw_path_values {
    uint32_t pid;           /* %p */
    const char *host;       /* %h */
    const char *program;    /* %e: a path, whose last component is used */
    uint64_t start_seconds; /* %t: since 1970 */
    uint32_t number;        /* %n */
    const char *rank;       /* %r: "0" if it is NULL or "" */
    char *const *env;       /* %q{VAR}; NULL: no variable is set */
};

/*
 * Expands %p %h %e %t %n %r %q{VAR} %%; any other %x is kept. An unset variable is empty. 0, or -1
 * if the result does not fit.
 */
int cw_path_expand(char *buf, size_t cap, const char *pattern, const struct cw_path_values *values);

/* 1 unless it is "", "-" or "off": the values of REPORT that are not names of files. */
int cw_path_names_file(const char *pattern);
/* 1 if the pattern ends in the extension, as in ".json". */
int cw_path_ends_in(const char *pattern, const char *extension);

/* 1 if it contains a %n. */
int cw_path_has_number(const char *pattern);

/* 1 if the processes of a parallel job would all write to one file: no escape that distinguishes
 * them (%p, %n, %r, %q of a rank variable), and not a device, FIFO or link. */
int cw_path_is_shared(const char *pattern);

/* 0 for a device, FIFO or link, which no file must replace. */
int cw_path_is_replaceable(const char *path);

/* Inserts `text` before the extension of the last component: "r.json" and ".2" make "r.2.json"; "r"
 * and "r.%p" get it appended. 0, or -1 if too long. */
int cw_path_insert(char *buf, size_t cap, const char *pattern, const char *text);

/* Creates the file and missing directories; flags as for open(2), with the kind of access. The
 * descriptor, or -1 with errno. */
int cw_report_path_create(char *path, int flags);
/* Creates the file of the pattern with `suffix` appended, empty, with the first number, from 1 on,
 * for which none exists, nor one with `other` appended (NULL: no such), stored in values->number.
 * path has room for CW_PATH_MAX. 0, or the errno. */
int cw_report_path_reserve(char *path, const char *pattern, const char *suffix, const char *other,
                           struct cw_path_values *values);

/* One file being written; allocate it with cw_mem_alloc, not on the stack. */
struct cw_report_file {
    int fd; /* -1: not open */
    int renames, reserved;
    char path[CW_PATH_MAX];
    char temporary[CW_PATH_MAX];
};

/*
 * Opens the file for the pattern with `suffix` appended, creating missing directories. With %n, the
 * number is the first, starting at 1, for which no file exists, nor one with the suffix `other` of
 * a second file that will follow (NULL: none will), stored in values->number. Output goes to a
 * temporary name in the same directory until it is closed; devices and FIFOs are written to
 * directly. 0, or the errno; `path` is what was tried.
 */
int cw_report_file_open(struct cw_report_file *file, const char *pattern, const char *suffix,
                        const char *other, struct cw_path_values *values);

/* Renames the file to its final name, or removes it if `error` is set. 0, or the errno. */
int cw_report_file_close(struct cw_report_file *file, int error);

#endif
