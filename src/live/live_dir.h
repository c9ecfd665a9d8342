/* SPDX-License-Identifier: MIT */
/*
 * Where live files lie and what they are called; both sides, the library and the command, ask here.
 *
 * By default in a directory of the user's own, mode 0700, under /dev/shm, else under $TMPDIR; or in
 * one that the user names. A file is called PID-START-RANDOM.live, where START is in seconds since
 * 1970; while it is being filled its name begins with a dot.
 */
#ifndef CW_LIVE_LIVE_DIR_H
#define CW_LIVE_LIVE_DIR_H

#include <stddef.h>
#include <stdint.h>

#define CW_PLACE_DEFAULTS   2
#define CW_PLACE_MAX        1280 /* longest path of our directories and files, with its NUL */
#define CW_PLACE_PREFIX     "cuwarden-"
#define CW_PLACE_SUFFIX     ".live"
#define CW_PLACE_SUM_SUFFIX ".sum" /* live/group_file.h */

/* Bytes of the file that are locked (live/file_lock.h): by its process while it lives, by an asker.
 */
#define CW_LIVE_LOCK_PROCESS 0
#define CW_LIVE_LOCK_ASKER   1

struct cw_live_dir {
    const char *directory; /* the user's; NULL: the default ones, in their order */
    const char *tmpdir;    /* $TMPDIR; "": /tmp */
};

/* The default directory number `which` < CW_PLACE_DEFAULTS of a user. 0, or -1 when too long. */
int cw_live_dir_default(unsigned which, uint32_t uid, const char *tmpdir, char *buf, size_t cap);

/* 1: the default directory in `buf`, which comes before the one with the path `chosen`, is another
 * user's, or no directory. */
int cw_live_dir_passed_over(const char *chosen, const char *tmpdir, char *buf, size_t cap);

/*
 * The directory that CUWARDEN_LIVE names; NULL: the default ones. `buf` may hold it. Processes that
 * outlive their run still name the run's own directory, which is gone; another user may have made
 * one of that name, here or on another machine. They get the directory that the run's was in.
 */
const char *cw_live_dir_named(const char *live, char *buf, size_t cap);

/*
 * Opens the directory, making it if it is not there and not a run's own. `is_private`, or a run's:
 * it must be ours and no link, and becomes inaccessible to others. The descriptor, or -1 with errno
 * (EPERM: somebody else's).
 */
int cw_live_dir_open(const char *directory, int is_private);

/* Room for a new file there: 1/16 of what is free, in whole MiB. */
uint64_t cw_live_dir_room(int dir);

/* Of the default places the first is taken that has the first of these; if none has, the second.
 * /dev/shm of a container has 64 MiB, where a file would soon end, and TMPDIR mostly more. */
#define CW_LIVE_ROOM_GOOD  ((uint64_t)16 << 20)
#define CW_LIVE_ROOM_LEAST ((uint64_t)1 << 20)

/* A new name for this process. */
void cw_live_dir_name(char *buf, size_t cap);

/* Directories of runs (cli/input/run_live.h) lie beside the files, with files of their own. */
#define CW_LIVE_RUN_PREFIX "run-"
int cw_live_dir_is_run(const char *name);
int cw_live_dir_is_file(const char *name);
#define CW_LIVE_TORCH_PREFIX "torch." /* cli/run/torch.h */

/* Calls `look` with the name of each entry, until that returns 1. */
void cw_live_dir_each(int dir, int (*look)(void *self, const char *name), void *self);

/*
 * Takes away what dead processes left more than 24 hours ago, counted from when this first saw that
 * they were dead, sums that nobody had for as long, and reports of running processes (".dump-")
 * and what PyTorch said ("torch.") that are older than a week. Looks at no more than CW_PLACE_SWEPT
 * entries, each time at others; at some 500 where there are more than that.
 */
#define CW_PLACE_SWEPT 64
void cw_live_dir_sweep(int dir);

#endif
