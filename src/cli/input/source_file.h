/* SPDX-License-Identifier: MIT */
/* A file about a process: its live file or its report in JSON, optionally compressed with gzip. */
#ifndef CW_CLI_SOURCE_FILE_H
#define CW_CLI_SOURCE_FILE_H

#include "live/live_copy.h"
#include "report/report.h"

struct cw_lines;

enum cw_source { CW_SOURCE_NONE, CW_SOURCE_GONE, CW_SOURCE_LIVE, CW_SOURCE_JSON };

struct cw_source_file {
    const char *path;
    int fd;                    /* JSON, to be read from the beginning; -1: none yet */
    struct cw_live_copy image; /* of a live file */
    int is_alive;              /* the live file's process runs */
};

/* Opens and identifies it; CW_SOURCE_NONE after a message that names the file and the reason. Close
 * it in any case. `named`: how much of the path is a directory in which the file was found
 * (foreign_file.h); 0: the user named the file, which may be anything that can be read.
 * CW_SOURCE_GONE, without a message: it was found there, and has been removed since. */
enum cw_source cw_source_file_open(struct cw_source_file *file, const char *path, size_t named);
/* The same for the live file of a process that was found by its id: root reads everybody's, if it
 * is the process's. */
struct cw_live_name;
enum cw_source cw_source_file_open_found(struct cw_source_file *file,
                                         const struct cw_live_name *name);
void cw_source_file_close(struct cw_source_file *file);

/* Fills in what only the command can add to a report: demangled C++ names, and source lines unless
 * `lines` (lines.h) is NULL. */
void cw_report_prepare(const struct cw_lines *lines, struct cw_report_request *report);

#endif
