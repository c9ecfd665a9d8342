/* SPDX-License-Identifier: MIT */
/*
 * Names of reports that are made while the process runs: that of the report at the end with
 * ".dump-N" before its extension. A name is taken by creating its file, empty, so no file that is
 * there is ever replaced.
 */
#ifndef CW_REPORT_DUMP_NAME_H
#define CW_REPORT_DUMP_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "report/path/path.h"

/* "r.json" becomes "r.dump-3.json", "r" and "r.%p" get it at their end. 0, or -1: too long. */
int cw_dump_name_number(char *buf, size_t cap, const char *pattern, unsigned number);

/* For cw_mem_alloc rather than the stack. */
struct cw_dump_name {
    char path[CW_PATH_MAX];
    char json[CW_PATH_MAX]; /* of FORMAT=both, else "" */
    char pattern[CW_PATH_MAX];
};

/*
 * Takes the first number from *number on for which neither file is there, making directories that
 * are missing. A %n of the pattern that has no number yet (values->number) gets the first one that
 * is free, and keeps it. 0, or the errno; `path` tells what was tried.
 */
int cw_dump_name_take(struct cw_dump_name *name, const char *pattern, int with_json,
                      unsigned *number, struct cw_path_values *values);
/* Takes the empty files away: nothing came of it. */
void cw_dump_name_drop(const struct cw_dump_name *name);

/* The path as a pattern that stands for itself; cap 2 * CW_PATH_MAX is enough. */
void cw_dump_name_escape(char *buf, size_t cap, const char *path);

#endif
