/* SPDX-License-Identifier: MIT */
/*
 * Names of reports written while the process runs: that of the final report with ".dump-N" before
 * its extension. A name is reserved by creating its file, empty, so existing files are never
 * replaced.
 */
#ifndef CW_REPORT_DUMP_NAME_H
#define CW_REPORT_DUMP_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "report/path/path.h"

/* "r.json" becomes "r.dump-3.json"; "r" and "r.%p" get it appended. 0, or -1 if too long. */
int cw_dump_name_number(char *buf, size_t cap, const char *pattern, unsigned number);

/* Allocate it with cw_mem_alloc, not on the stack. */
struct cw_dump_name {
    char path[CW_PATH_MAX];
    char json[CW_PATH_MAX]; /* with FORMAT=both, else "" */
    char pattern[CW_PATH_MAX];
};

/*
 * Reserves the first number, starting at *number, for which neither file exists, and creates
 * missing directories. A %n of the pattern without a number yet (values->number) gets the first
 * free one, and keeps it. 0, or the errno; `path` is what was tried.
 */
int cw_dump_name_take(struct cw_dump_name *name, const char *pattern, int with_json,
                      unsigned *number, struct cw_path_values *values);
/* Removes the empty files if no report was written. */
void cw_dump_name_drop(const struct cw_dump_name *name);

/* The path as a pattern that expands to itself; cap 2 * CW_PATH_MAX is enough. */
void cw_dump_name_escape(char *buf, size_t cap, const char *path);

#endif
