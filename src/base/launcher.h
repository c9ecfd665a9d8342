/* SPDX-License-Identifier: MIT */
/*
 * What a launcher of parallel jobs (torchrun, mpirun, srun, jsrun) puts into a process's
 * environment: which rank it is, of how many, and the variables that tell one rank from another.
 */
#ifndef CW_BASE_LAUNCHER_H
#define CW_BASE_LAUNCHER_H

#include <stddef.h>
#include <stdint.h>

#define CW_RANK_MAX         12 /* digits, with a NUL */
#define CW_LAUNCHER_ENV_MAX 2048

struct cw_launcher {
    char rank[CW_RANK_MAX]; /* as the launcher spells it; "": none is known */
    uint64_t size;          /* processes of the job; 0: not known */
    unsigned envc;          /* strings "NAME=VALUE" in env, one after the other */
    size_t env_len;
    char env[CW_LAUNCHER_ENV_MAX];
};

/* env: as environ; may be NULL. A value that finds no room is left out. */
void cw_launcher_read(struct cw_launcher *launcher, char *const *env);

#endif
