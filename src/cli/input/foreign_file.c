/* SPDX-License-Identifier: MIT */
/* Whose process it is. See foreign_file.h. Owns nothing. */
#include "cli/input/foreign_file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/live_copy.h"

#define UIDS 4 /* real, effective, saved, of the file system */

/* Not the owner of /proc/PID: that is root for a process that may not be dumped. 0, or -1 if there
 * is no such process, or none that may be seen. */
static int uids_of(uint32_t pid, unsigned uid[UIDS])
{
    char line[256];
    int rc = -1;
    FILE *status;

    snprintf(line, sizeof(line), "/proc/%u/status", (unsigned)pid);
    status = fopen(line, "re");
    while (status && rc != 0 && fgets(line, sizeof(line), status)) {
        if (sscanf(line, "Uid: %u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) == UIDS)
            rc = 0;
    }
    if (status)
        fclose(status);
    return rc;
}

uint32_t cw_foreign_owner_of(uint32_t pid)
{
    unsigned uids[UIDS];

    return uids_of(pid, uids) == 0 ? uids[1] : geteuid();
}

int cw_foreign_is_of_other(uint32_t pid, uint32_t uid)
{
    unsigned uids[UIDS];

    if (uid == geteuid() || uids_of(pid, uids) != 0)
        return 0;
    for (unsigned i = 0; i < UIDS; i++) {
        if (uids[i] == uid)
            return 0;
    }
    return 1;
}

/* 0: not known. */
static uint32_t own_namespace(void)
{
    struct stat info;

    return stat("/proc/self/ns/pid", &info) == 0 ? (uint32_t)info.st_ino : 0;
}

int cw_foreign_is_elsewhere(uint32_t pid_namespace)
{
    uint32_t space = own_namespace();

    return pid_namespace != 0 && space != 0 && pid_namespace != space;
}

int cw_foreign_check_process(uint32_t uid, uint32_t wanted, const struct cw_live_identity *identity,
                             char *why, size_t cap)
{
    if (wanted != 0 && identity->pid != wanted) {
        snprintf(why, cap, "is of process %u, not of the one in its name", (unsigned)identity->pid);
        return -1;
    }
    if (cw_foreign_is_elsewhere(identity->pid_namespace) ||
        !cw_foreign_is_of_other(identity->pid, uid))
        return 0;
    snprintf(why, cap, "belongs to user %u, but process %u does not", (unsigned)uid,
             (unsigned)identity->pid);
    return -1;
}
