/* SPDX-License-Identifier: MIT */
/*
 * The directory for the live files of the processes under one `cuwarden run`, from which the run
 * can report on each process, however it ended.
 *
 * The directory is private. It is in one of the default directories for live files, or in the one
 * that the user named. It is locked (flock) while its run is alive.
 */
#ifndef CW_CLI_RUN_LIVE_H
#define CW_CLI_RUN_LIVE_H

#include "base/options/options.h"
#include "live/live_dir.h"

/* Maximum nesting that is followed: each level takes a descriptor. */
#define CW_RUNS_MAX 8

struct cw_run_live {
    char directory[CW_PLACE_MAX]; /* "": it could not be created */
    char home[CW_PLACE_MAX]; /* the user's directory: files move there and are kept; "": none */
    int lock;
};

/* Creates it. 0, or -1 with the reason in `why`. */
int cw_run_live_make(struct cw_run_live *live, const struct cw_options *options, char *why,
                     size_t cap);

/* Prints a warning if another user keeps it from the first default directory. */
void cw_run_live_warn(const struct cw_run_live *live, const struct cw_options *options,
                      int is_quiet);

/* The mode of a file whose report was written by its run instead of its process; tells an outer
 * run. In live/live_dir.c it means that the process was seen dead. */
#define CW_RUN_LIVE_REPORTED 0400

/* Removes a file that was read, or moves it home. is_reported: the run wrote its report. */
void cw_run_live_settle(const struct cw_run_live *live, const char *path, int is_reported);

/* 1 if the file belongs to a nested run that is still alive to read it. */
int cw_run_live_is_of_other(const struct cw_run_live *live, const char *path);

/* Removes the directory, unless a running process has its file there, or a nested run continues. */
void cw_run_live_end(struct cw_run_live *live);

#endif
