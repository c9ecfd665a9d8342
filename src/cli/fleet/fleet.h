/* SPDX-License-Identifier: MIT */
/*
 * All processes of the user that run under the library, or died and left a live file: the data of
 * `top` and `metrics`. Each refresh reads little (cli/input/live_look.h), so it can happen every
 * second.
 *
 * Owns everything it points to. Strings come from the program: any bytes, never NULL. Counters are
 * read while the process runs, so sums may be off by a call in flight.
 */
#ifndef CW_CLI_FLEET_H
#define CW_CLI_FLEET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/input/live_look.h"

struct cw_fleet_kind {
    uint64_t live_bytes, live_blocks, allocs, frees, failed;
};

struct cw_fleet_device {
    uint32_t ordinal; /* CW_DEVICE_HOST: pinned and registered host memory */
    char name[96];    /* "" if unknown */
    char uuid[48];    /* "GPU-...", "" if unknown */
    uint64_t live, idle, held, peak, peak_held;
    uint64_t limit, min_free;           /* 0: none */
    uint64_t driver_total, driver_used; /* of the whole device, when last asked; total 0: never */
    unsigned level;                     /* enum cw_level */
    double pressure; /* share of device or limit in use when last looked at; negative: unknown */
    double
        oom_eta; /* seconds until its room is used up, if that is foreseen; negative: it is not */
    uint64_t fallbacks, fallback_bytes; /* requests served from managed memory */
    /* Idle blocks given back to the driver. */
    uint64_t trimmed_bytes[CW_RELEASE_COUNT], all_trimmed_bytes;
    /* Requests between processes for idle memory, as in struct cw_live_neighbours; and what came of
     * those of this process. */
    uint64_t neighbours_asked, neighbours_silent, neighbours_served, neighbours_bytes;
    /* Sums over the counted kinds, as in the report. */
    uint64_t live_blocks, allocs, frees, failed;
    uint64_t hits, misses;         /* of the pool */
    uint64_t ooms[CW_CAUSE_COUNT]; /* returned to the program */
    struct cw_fleet_kind kind[CW_KIND_COUNT];
    /* Since the last refresh; at the first one, over the whole life. */
    double alloc_rate; /* a second */
    double hit_share;  /* of the pool, 0 to 1; negative: no requests */
    /* Negative if undefined. Efficiency: live over held minus idle. Fragmentation: idle and
     * rounding over held; the same for the peaks. */
    double efficiency, fragmentation, peak_fragmentation;
};

/* Of a tag, over all devices. */
struct cw_fleet_budget {
    char *pattern; /* NULL: another budget of the process has the same one */
    uint64_t bytes, live, peak;
    uint64_t refused, exceeded; /* calls; times that live bytes went beyond */
    uint8_t refuses;            /* else it warns */
    uint8_t is_set;             /* 0: not any more */
};

enum cw_fleet_state {
    CW_FLEET_RUNNING,
    CW_FLEET_ENDED, /* in an orderly way; its file stays if LIVE names a directory */
    CW_FLEET_DIED,  /* without recording it */
};

struct cw_fleet_process {
    char *path;   /* of its live file */
    size_t named; /* how much of it is the searched directory */
    dev_t volume; /* the file has these two under whatever name */
    ino_t inode;
    uint32_t uid;                  /* the file's owner */
    char user[32];                 /* their name, or the number */
    int is_in_other_pid_namespace; /* the id is not that of a process here */
    uint32_t pid, ppid;
    const char *exe, *command, *host;
    uint64_t start_realtime_ns;
    uint64_t invalid_frees;
    enum cw_fleet_state state;
    struct cw_fleet_device *device; /* devices that it used, by ordinal; the host last */
    uint32_t devices;
    struct cw_fleet_budget budget[CW_BUDGETS];
    uint32_t budgets;
    struct cw_look look;
    uint64_t looked_ns; /* CLOCK_MONOTONIC, 0: never */
    int is_there;       /* its file was found in this refresh */
};

/* Which processes to show; zeroed: all of the user. */
struct cw_fleet_choice {
    uint32_t *pid;
    size_t pids;
    const char **directory; /* instead of the library's directories; not owned */
    size_t directories;
};

/* Each 0, or -1 after a message. */
int cw_fleet_add_pid(struct cw_fleet_choice *choice, const char *text);
int cw_fleet_add_directory(struct cw_fleet_choice *choice, const char *path);
void cw_fleet_choice_free(struct cw_fleet_choice *choice);

struct cw_fleet {
    struct cw_fleet_process **process; /* running first, then newest first */
    size_t count;
    size_t unreadable; /* files and directories unreadable in this refresh; the reason for one */
    char why[512];
    int has_lost; /* a directory is among them, and the reason is a directory's: what is in it is
                     not known */
};

/* Of another user's live files so many are read: they cost memory and time of who looks. */
#define CW_FLEET_MOST_OF_OTHER 1000

const char *cw_fleet_state_name(enum cw_fleet_state state);

/* Refreshes all of them. `fleet` is zeroed before the first call. 0, or -1 after a message if out
 * of memory. */
int cw_fleet_look(struct cw_fleet *fleet, const struct cw_fleet_choice *choice);
void cw_fleet_free(struct cw_fleet *fleet);

/* fleet_device.c: updates the process's devices from the current refresh. */
int cw_fleet_read_devices(struct cw_fleet_process *process, uint64_t now_ns);

/* fleet_budget.c: the same for its budgets, with the sites and the tags, and if there is a new one
 * first its name, with the texts: 0, or -1 if out of memory. */
int cw_fleet_has_new_budget(const struct cw_fleet_process *process);
int cw_fleet_name_budgets(struct cw_fleet_process *process);
void cw_fleet_read_budgets(struct cw_fleet_process *process);
/* Live over budget of the one where that is most; negative: none is set. */
double cw_fleet_fullest_budget(const struct cw_fleet_process *process);

#endif
