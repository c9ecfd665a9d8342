/* SPDX-License-Identifier: MIT */
/*
 * The control group (v2) of this process, and what it allows of a device's memory by the kernel's
 * controller dmem (Linux 6.14, Documentation/admin-guide/cgroup-v2.rst, "DMEM").
 *
 * In a namespace, or in a container that sees its own part of the tree only, what is above is out
 * of sight; then the mount itself is the group. A group without the controller's files counts with
 * the nearest one above that has them; and a maximum above holds for all groups below it. Reads
 * /proc and /sys; no lock; errno is preserved.
 */
#ifndef CW_BASE_CGROUP_H
#define CW_BASE_CGROUP_H

#include <stddef.h>
#include <stdint.h>

#define CW_CGROUP_MAX 1024 /* longest path of a group, with its NUL */

/* The group's directory, "/sys/fs/cgroup/a/b". 0, or -1: there is none in sight. root: before /proc
 * and /sys, "" for the real ones. */
int cw_cgroup_path(const char *root, char *buf, size_t cap);

struct cw_cgroup_dmem {
    uint64_t hard, hard_used; /* the maximum that is used up most, and by how much; 0: none */
    uint64_t soft, soft_used; /* what is guaranteed, by the nearest group; 0: nothing */
};

/* Of the GPU with this PCI address ("0000:41:00.0"), whose region is nvidia/ADDRESS/... 1 if it has
 * one in the files of any group in sight; 0: none; -1: a file could not be read for want of a
 * descriptor or of memory. */
int cw_cgroup_dmem(const char *root, const char *bus, struct cw_cgroup_dmem *out);

#endif
