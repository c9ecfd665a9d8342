/* SPDX-License-Identifier: MIT */
/* Reading what launchers leave in the environment. See launcher.h. Owns nothing; no lock. */
#include "base/launcher.h"

#include <string.h>

#include "base/compiler.h"

/* The first that is a number counts: a launcher of one program inside another's job comes first. */
static const char *const ranks[] = {
    "RANK",         "OMPI_COMM_WORLD_RANK", "PMI_RANK",          "PMIX_RANK",
    "SLURM_PROCID", "MV2_COMM_WORLD_RANK",  "JSM_NAMESPACE_RANK"};
static const char *const sizes[] = {
    "WORLD_SIZE",   "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",          "SLURM_NTASKS",
    "SLURM_NPROCS", "MV2_COMM_WORLD_SIZE",  "JSM_NAMESPACE_SIZE"};
static const char *const kept[] = {"RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES"};

static const char *find(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

/* The length of a plain number that fits a rank, else 0. */
static size_t digits(const char *text)
{
    size_t len = 0;

    while (text && text[len] >= '0' && text[len] <= '9')
        len++;
    return text && text[len] == '\0' && len < CW_RANK_MAX ? len : 0;
}

static void read_rank(struct cw_launcher *launcher, char *const *env)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(ranks); i++) {
        const char *value = find(env, ranks[i]);
        size_t len = digits(value);

        if (len == 0)
            continue;
        memcpy(launcher->rank, value, len + 1);
        return;
    }
}

static uint64_t number(const char *text)
{
    uint64_t value = 0;

    for (; *text; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

/* The largest: a program may be started on one rank of several, and have several of its own. */
static void read_size(struct cw_launcher *launcher, char *const *env)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(sizes); i++) {
        const char *value = find(env, sizes[i]);

        if (digits(value) > 0 && number(value) > launcher->size)
            launcher->size = number(value);
    }
}

static void keep(struct cw_launcher *launcher, const char *name, const char *value)
{
    size_t name_len = strlen(name), len = strlen(value);

    if (name_len + len + 2 > sizeof(launcher->env) - launcher->env_len)
        return;
    memcpy(launcher->env + launcher->env_len, name, name_len);
    launcher->env[launcher->env_len + name_len] = '=';
    memcpy(launcher->env + launcher->env_len + name_len + 1, value, len + 1);
    launcher->env_len += name_len + len + 2;
    launcher->envc++;
}

void cw_launcher_read(struct cw_launcher *launcher, char *const *env)
{
    *launcher = (struct cw_launcher){.envc = 0};
    read_rank(launcher, env);
    read_size(launcher, env);
    for (size_t i = 0; i < CW_ARRAY_LEN(kept); i++) {
        const char *value = find(env, kept[i]);

        if (value)
            keep(launcher, kept[i], value);
    }
}
