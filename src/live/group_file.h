/* SPDX-License-Identifier: MIT */
/*
 * A sum over processes: what each of a group of processes of one user holds of something, in a file
 * that all of them map, so that together they stay within a maximum.
 *
 * Each has a slot, and keeps it by the lock (file_lock.h) of the byte of that number: the kernel
 * gives it back however the process ends, and whoever comes, finds no room, or is asked to
 * (cw_group_file_reap), takes what the dead have in their slots. There is no lock that a stopped
 * process could hold: a process shows what it wants before it adds up what all have shown, so of
 * two that compete at least one sees the other. One that was refused may have been refused for
 * another's wish that was withdrawn, so it looks again some times; the one with the lower slot
 * keeps its wish meanwhile.
 *
 * Nothing in the file is trusted for more than a number. A struct cw_group_file belongs to its
 * owner, who has a lock of its own for it.
 */
#ifndef CW_LIVE_GROUP_FILE_H
#define CW_LIVE_GROUP_FILE_H

#include <stdatomic.h>
#include <stdint.h>

#define CW_GROUP_SLOTS 512u

struct cw_group_slot {
    _Atomic uint64_t held;   /* what is wanted included */
    _Atomic uint64_t wanted; /* 0: nothing at the moment */
};

struct cw_group_file {
    struct cw_group_slot *slots; /* NULL: not open */
    int fd;                      /* ours, if it is of this file (own_fd.h) */
    uint64_t device, inode;
    unsigned slot;
    _Atomic int is_reaping;
};

/* Opens, or makes, the file of this key in the user's own directory of live files (live/live_dir.h)
 * and takes a slot. 0, or an errno; errno is preserved. */
int cw_group_file_open(struct cw_group_file *group, const char *tmpdir, uint64_t key);
/* Its slot is free from now on, unless a forked child's parent still has it. */
void cw_group_file_close(struct cw_group_file *group);

/* Shows what this process holds. */
void cw_group_file_show(struct cw_group_file *group, uint64_t held);
/* It holds `held` and wants so much more: 0 if all together then have at most `most`; else -1, and
 * it shows `held`. */
int cw_group_file_claim(struct cw_group_file *group, uint64_t held, uint64_t wanted, uint64_t most);
/* Takes what dead processes show; some microseconds, any thread. 0; -1: another is about it, or the
 * program has closed our descriptor: then others have to. */
int cw_group_file_reap(struct cw_group_file *group);
/* What the others show, and those that have died since. */
uint64_t cw_group_file_others(const struct cw_group_file *group);

#endif
