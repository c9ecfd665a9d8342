/* SPDX-License-Identifier: MIT */
/* What launchers say of a process in its environment. */
#include "base/launcher.h"

#include <criterion/criterion.h>

#include <string.h>

static struct cw_launcher launcher;

#define READ(...) cw_launcher_read(&launcher, (char *[]){__VA_ARGS__, NULL})

/* The n-th string that was kept, or "". */
static const char *kept(unsigned n)
{
    const char *at = launcher.env;

    if (n >= launcher.envc)
        return "";
    for (; n > 0; n--)
        at += strlen(at) + 1;
    return at;
}

Test(launcher, nothing_is_known_outside_of_a_job)
{
    cw_launcher_read(&launcher, NULL);
    cr_expect_str_eq(launcher.rank, "");
    READ("HOME=/root", "XRANK=1", "RANKS=2", "RANK");
    cr_expect_str_eq(launcher.rank, "");
    cr_expect_eq(launcher.size, 0u);
    cr_expect_eq(launcher.envc, 0u);
}

Test(launcher, every_launcher_is_known)
{
    static const struct {
        char *rank, *size;
    } launchers[] = {{"RANK=5", "WORLD_SIZE=8"},
                     {"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=8"},
                     {"PMI_RANK=5", "PMI_SIZE=8"},
                     {"SLURM_PROCID=5", "SLURM_NTASKS=8"},
                     {"PMIX_RANK=5", "SLURM_NPROCS=8"},
                     {"MV2_COMM_WORLD_RANK=5", "MV2_COMM_WORLD_SIZE=8"},
                     {"JSM_NAMESPACE_RANK=5", "JSM_NAMESPACE_SIZE=8"}};

    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        READ("A=1", launchers[i].rank, launchers[i].size);
        cr_expect_str_eq(launcher.rank, "5", "%s", launchers[i].rank);
        cr_expect_eq(launcher.size, 8u, "%s", launchers[i].size);
    }
}

Test(launcher, the_first_that_is_a_number_counts)
{
    READ("SLURM_PROCID=0", "SLURM_NTASKS=2", "RANK=11", "WORLD_SIZE=16");
    cr_expect_str_eq(launcher.rank, "11");
    cr_expect_eq(launcher.size, 16u);
    READ("SLURM_PROCID=3", "RANK=gold", "PMI_RANK=");
    cr_expect_str_eq(launcher.rank, "3");
}

Test(launcher, what_is_no_plain_number_is_none)
{
    static char *const bad[] = {"RANK=",  "RANK=-1", "RANK= 1",           "RANK=1 ",
                                "RANK=x", "RANK=1/", "RANK=123456789012", "RANK=../1"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        READ(bad[i], "WORLD_SIZE=two");
        cr_expect_str_eq(launcher.rank, "", "%s", bad[i]);
        cr_expect_eq(launcher.size, 0u);
    }
    READ("RANK=12345678901");
    cr_expect_str_eq(launcher.rank, "12345678901");
}

Test(launcher, variables_are_kept_in_one_order)
{
    READ("CUDA_VISIBLE_DEVICES=2,3", "LOCAL_RANK=", "X=1", "RANK=7");
    cr_expect_eq(launcher.envc, 3u);
    cr_expect_str_eq(kept(0), "RANK=7");
    cr_expect_str_eq(kept(1), "LOCAL_RANK=");
    cr_expect_str_eq(kept(2), "CUDA_VISIBLE_DEVICES=2,3");
    cr_expect_eq(launcher.env_len, strlen("RANK=7 LOCAL_RANK= CUDA_VISIBLE_DEVICES=2,3 "));
}

Test(launcher, a_value_without_room_is_left_out)
{
    static char devices[CW_LAUNCHER_ENV_MAX + 64];
    size_t begin = strlen("LOCAL_RANK=");

    memset(devices, 'x', sizeof(devices) - 1);
    memcpy(devices, "LOCAL_RANK=", begin);
    READ("RANK=1", devices, "CUDA_VISIBLE_DEVICES=0");
    cr_expect_eq(launcher.envc, 2u);
    cr_expect_str_eq(kept(1), "CUDA_VISIBLE_DEVICES=0");
    /* The longest that fits. */
    devices[CW_LAUNCHER_ENV_MAX - strlen("RANK=1 ") - 1] = '\0';
    READ("RANK=1", devices);
    cr_expect_eq(launcher.envc, 2u);
    cr_expect_eq(launcher.env_len, (size_t)CW_LAUNCHER_ENV_MAX);
    cr_expect_str_eq(kept(1), devices);
    strcat(devices, "x");
    READ("RANK=1", devices);
    cr_expect_eq(launcher.envc, 1u);
}
