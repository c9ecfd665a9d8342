/* SPDX-License-Identifier: MIT */
/* Whether a live file that was opened (live/foreign_open.h) is of the process that it names. */
#ifndef CW_CLI_FOREIGN_FILE_H
#define CW_CLI_FOREIGN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "live/foreign_open.h"

/*
 * Whether the live file of the user `uid`, which says to be of process `pid` of that PID namespace,
 * may be believed. `wanted` is the process id in its name, 0 if the name has none. Where the
 * process is not visible from here (it ended, or is in another namespace), the file's owner
 * decides. 0, or -1 with the words in `why`.
 */
struct cw_live_identity;
int cw_foreign_check_process(uint32_t uid, uint32_t wanted, const struct cw_live_identity *identity,
                             char *why, size_t cap);
/* 1 if ids in that PID namespace, as a live file names it, are not those of processes here. */
int cw_foreign_is_elsewhere(uint32_t pid_namespace);
/* The user of the process; the caller if it is not visible from here. */
uint32_t cw_foreign_owner_of(uint32_t pid);
/* 1 if a process with this id is visible and does not belong to the user; root's own files pass. */
int cw_foreign_is_of_other(uint32_t pid, uint32_t uid);

#endif
