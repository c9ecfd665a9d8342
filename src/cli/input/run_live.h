/* SPDX-License-Identifier: MIT */
/*
 * The directory in which the processes under one `cuwarden run` leave their live files, so that
 * what each of them did is known at the end, however it ended.
 *
 * It is private, and lies in one of the directories where live files lie by default, or in the one
 * that the user has named. It is locked (flock) while its run lives.
 */
#ifndef CW_CLI_RUN_LIVE_H
#define CW_CLI_RUN_LIVE_H

#include "base/options/options.h"
#include "live/live_dir.h"

/* Inside each other, as far as they are followed: each takes a descriptor. */
#define CW_RUNS_MAX 8

struct cw_run_live {
    char directory[CW_PLACE_MAX]; /* "": none could be made */
    char home[CW_PLACE_MAX];      /* the user's own: files go there, and none is removed; else "" */
    int lock;
};

/* 1 if a directory of this name is one. */
int cw_run_live_is_name(const char *name);

/* Makes it. 0, or -1 and in `why` what stands in the way. */
int cw_run_live_make(struct cw_run_live *live, const struct cw_options *options, char *why,
                     size_t cap);

/* The mode of a file whose process could not write its report, and whose run has: for a run around
 * that one. In live/live_dir.c it says that the process was seen dead. */
#define CW_RUN_LIVE_REPORTED 0400

/* A file of it has been read: it goes, or goes home. is_reported: the run has written its report.
 */
void cw_run_live_settle(const struct cw_run_live *live, const char *path, int is_reported);

/* 1 if the file is of another run, inside this one, that is still there to read it. */
int cw_run_live_is_of_other(const struct cw_run_live *live, const char *path);

/* Takes the directory away, unless a process that still runs has its file there, or a run inside
 * this one goes on. */
void cw_run_live_end(struct cw_run_live *live);

#endif
