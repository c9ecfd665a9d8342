/* SPDX-License-Identifier: MIT */
/*
 * The file behind an arena, so that what the arena holds outlives the process.
 *
 * The arena is cut into steps of 1 MiB, the first MiB into steps of 64 KiB: a short process has no
 * more, and room is not free. Before anything is written into a step, the file gets room
 * for it and takes the place of its memory; a step that the file cannot take (full disk, limits)
 * stays memory, and so do all later ones: the process itself misses nothing, a reader of the file
 * has what came before. Where only a descriptor was missing the next step is tried again, and the
 * file has zeros for the one that was missed. Room is taken before it is used, so a full disk is an
 * error here and never a signal at a store.
 *
 * The process holds a lock on the file while it lives (live_dir.h). The mapping keeps the lock,
 * also when the program closes every descriptor; the descriptor keeps it where a file system maps
 * another file than was opened (overlayfs). Nothing is ever done to a descriptor that is not, at
 * that moment, known to be that of our file.
 *
 * Guarded by the arena's lock, but for cw_backing_unlink, which takes none: it only reads what does
 * not change once the file has its name, and `state`. A zeroed struct has no file.
 */
#ifndef CW_LIVE_BACKING_H
#define CW_LIVE_BACKING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "live/live_dir.h"

#define CW_STEP       ((size_t)1 << 20)
#define CW_STEP_FIRST ((size_t)64 << 10)
#define CW_STEPS_MAX  16384 /* 16 GiB */

enum cw_backing_state {
    CW_BACKING_NONE,
    CW_BACKING_GROWS,
    CW_BACKING_FULL,
    CW_BACKING_GONE, /* taken away at the end of the process */
};

struct cw_backing {
    _Atomic int state;     /* enum cw_backing_state */
    int fd;                /* ours unless the program closed it; -1: none */
    _Atomic int published; /* the file has its name */
    int stays;             /* in a directory of the user's: not removed at the end */
    unsigned missed;       /* steps that stay memory because no descriptor was free */
    uint64_t device, inode;
    uint64_t room, taken; /* bytes that the file may have, and has */
    size_t name;          /* where in `path` the file's name begins */
    char path[CW_PLACE_MAX];
    /* Which steps are settled: backed or missed, one bit each; bit 0 of `steps` is not used. */
    uint64_t steps[CW_STEPS_MAX / 64];
    uint32_t first_steps;
};

/*
 * Makes a file in the first of the places that takes it, not visible to readers yet, and puts it
 * behind the header at `base`, which is all zeros afterwards. 0, or -1 with errno: no place, no
 * file.
 */
int cw_backing_create(struct cw_backing *backing, void *base, const struct cw_live_dir *place);

/*
 * Before bytes [from, to) of the arena are written. 0, or the errno when some of them stay memory
 * from this call on: EMFILE and ENFILE concern these alone, after any other the file does not grow
 * any more. -1 when the memory itself is not usable.
 */
int cw_backing_reach(struct cw_backing *backing, void *base, uint64_t from, uint64_t to);

/* Gives the file its name, once readers can use it; size: bytes of the arena in use. No other
 * thread uses the arena yet. 0, or the errno; -1 when the memory itself is not usable. */
int cw_backing_publish(struct cw_backing *backing, void *base, uint64_t size);

/* Takes the file away; what is mapped stays. */
void cw_backing_remove(struct cw_backing *backing);

/* An orderly end: removes a file that must not stay. Without the lock: other threads may be growing
 * the file, and the ending thread may have been interrupted while it held the lock. */
void cw_backing_unlink(struct cw_backing *backing);

/* Closes the file, which stays; a forked child does not touch the parent's. The caller has unmapped
 * it, or soon does. */
void cw_backing_forget(struct cw_backing *backing);

#endif
