/* SPDX-License-Identifier: MIT */
/*
 * The loader's list of objects, walked so that a fork cannot break it.
 *
 * dl_iterate_phdr holds a lock of the loader that glibc (2.36) does not set free in a forked child:
 * a child forked while another thread walks the list hangs in its next dlopen. So we count our
 * walks, and a fork waits until none is under way and keeps new ones out meanwhile.
 */
#ifndef CW_CORE_LOADER_H
#define CW_CORE_LOADER_H

#include <link.h>

/* As dl_iterate_phdr. No lock of ours may be held. */
int cw_loader_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg);

/* Around a fork, in the forking thread: before it, and after it in parent and child. */
void cw_loader_fork_begin(void);
void cw_loader_fork_end_parent(void);
void cw_loader_fork_end_child(void);

#endif
