/* SPDX-License-Identifier: MIT */
/*
 * All processes of the user that run under the library, or died and left a live file: what `top`
 * and `metrics` show. A look at all of them reads little (cli/input/live_look.h), so it can be
 * taken every second.
 *
 * Owns all that it points to. Strings are as the program has them: any bytes, never NULL. Sums of
 * one process are of counters that are read while it runs: they may differ by a call in flight.
 */
#ifndef CW_CLI_FLEET_H
#define CW_CLI_FLEET_H

#include <stddef.h>
#include <stdint.h>

#include "cli/input/live_look.h"

struct cw_fleet_kind {
    uint64_t live_bytes, allocs, frees, failed;
};

struct cw_fleet_device {
    uint32_t ordinal; /* CW_DEVICE_HOST: pinned and registered host memory */
    char name[96];    /* "" if not known */
    char uuid[48];    /* "GPU-...", "" if not known */
    uint64_t live, idle, held, peak, peak_held;
    uint64_t limit, min_free; /* 0: none */
    unsigned level;           /* enum cw_level */
    /* Of the counted kinds, as the report sums them up. */
    uint64_t allocs, frees, failed;
    uint64_t hits, misses;         /* of the pool */
    uint64_t ooms[CW_CAUSE_COUNT]; /* that the program got to see */
    struct cw_fleet_kind kind[CW_KIND_COUNT];
    /* Since the last look; at the first one, of the whole life. */
    double alloc_rate; /* a second */
    double hit_share;  /* of the pool, 0 to 1; below 0: it was not asked */
    /* Below 0 where there is nothing to divide by. Efficiency: live over held and not idle.
     * Fragmentation: idle and rounding over held; that of the peaks. */
    double efficiency, fragmentation, peak_fragmentation;
};

enum cw_fleet_state {
    CW_FLEET_RUNNING,
    CW_FLEET_ENDED, /* in order; its file stays where LIVE names a directory */
    CW_FLEET_DIED,  /* without a chance to say so */
};

struct cw_fleet_process {
    char *path; /* of its live file */
    uint32_t pid, ppid;
    const char *exe, *command, *host;
    uint64_t start_realtime_ns;
    uint64_t invalid_frees;
    enum cw_fleet_state state;
    struct cw_fleet_device *device; /* those that it used, by ordinal; the host last */
    uint32_t devices;
    struct cw_look look;
    uint64_t looked_ns; /* CLOCK_MONOTONIC, 0: never */
    int is_there;       /* its file was found in this look */
};

/* Whom to look at; zeroed: all of the user. */
struct cw_fleet_choice {
    uint32_t *pid;
    size_t pids;
    const char **directory; /* in place of those where the library puts live files; not owned */
    size_t directories;
};

/* Each 0, or -1 after a message. */
int cw_fleet_add_pid(struct cw_fleet_choice *choice, const char *text);
int cw_fleet_add_directory(struct cw_fleet_choice *choice, const char *path);
void cw_fleet_choice_free(struct cw_fleet_choice *choice);

struct cw_fleet {
    struct cw_fleet_process **process; /* running ones first, then newest first */
    size_t count;
    size_t unreadable; /* live files that could not be read in this look; why, for one of them */
    char why[512];
};

const char *cw_fleet_state_name(enum cw_fleet_state state);

/* Looks at all of them once more. `fleet` is zeroed before the first look. 0, or -1 after a
 * message: no memory. */
int cw_fleet_look(struct cw_fleet *fleet, const struct cw_fleet_choice *choice);
void cw_fleet_free(struct cw_fleet *fleet);

/* fleet_device.c: what the look that was just taken says of the process's devices. */
int cw_fleet_read_devices(struct cw_fleet_process *process, uint64_t now_ns);

#endif
