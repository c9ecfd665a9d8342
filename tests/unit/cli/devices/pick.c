/* SPDX-License-Identifier: MIT */
/* Which device is chosen, and what CUDA_VISIBLE_DEVICES leaves. */
#include "cli/devices/pick.h"

#include <criterion/criterion.h>

#include <string.h>

#define GIB    ((uint64_t)1 << 30)
#define SECOND UINT64_C(1000000000)

static struct cw_devices devices;
static struct cw_picks picks;
static struct cw_pick pick;
static char why[320];

static void setup(void)
{
    static const struct cw_device_memory all[] = {
        {.index = 0, .uuid = "GPU-aaaa-0", .name = "A", .total = 24 * GIB, .free = 10 * GIB},
        {.index = 1, .uuid = "GPU-aabb-1", .name = "A", .total = 24 * GIB, .free = 20 * GIB},
        {.index = 2, .uuid = "GPU-cccc-2", .name = "A", .total = 24 * GIB, .free = 20 * GIB},
        {.index = 3, .is_mig = 1, .uuid = "MIG-dddd-3", .total = 40 * GIB, .free = 30 * GIB},
        {.index = 3, .is_mig = 1, .uuid = "MIG-eeee-3", .total = 40 * GIB, .free = 12 * GIB},
    };

    memcpy(devices.device, all, sizeof(all));
    devices.count = sizeof(all) / sizeof(*all);
    picks.count = 0;
}

TestSuite(pick, .init = setup);

static int choose(uint64_t bytes, unsigned count)
{
    return cw_pick_choose(&devices, &picks, bytes, count, &pick);
}

Test(pick, the_one_with_most_room_is_chosen_and_the_first_of_equals)
{
    cr_assert_eq(choose(8 * GIB, 1), 0);
    cr_expect_eq(pick.device[0], 3);
    devices.count = 3;
    cr_assert_eq(choose(8 * GIB, 1), 0);
    cr_expect_eq(pick.device[0], 1);
    cr_expect_null(pick.doubt.uuid);
    cr_expect_eq(choose(20 * GIB, 1), 0);
    cr_expect_neq(choose(20 * GIB + 1, 1), 0);
}

Test(pick, several_are_different_and_no_instances)
{
    cr_assert_eq(choose(8 * GIB, 3), 0);
    cr_expect_eq(pick.count, 3);
    cr_expect(pick.device[0] == 1 && pick.device[1] == 2 && pick.device[2] == 0);
    cr_expect_neq(choose(8 * GIB, 4), 0);
    cr_expect_neq(choose(11 * GIB, 3), 0);
}

Test(pick, what_was_just_chosen_counts_as_taken_but_refuses_nothing)
{
    devices.count = 3;
    for (unsigned i = 0; i < 5; i++) {
        static const unsigned turns[] = {1, 2, 1, 2, 0};

        cr_assert_eq(choose(9 * GIB, 1), 0);
        cr_expect_eq(pick.device[0], turns[i], "turn %u: %u", i, pick.device[0]);
        cr_expect_null(pick.doubt.uuid, "turn %u", i);
        cw_picks_note(&picks, &devices, &pick, 9 * GIB, (i + 1) * SECOND);
    }
    cr_assert_eq(choose(9 * GIB, 1), 0); /* all have been given away: the one with most left */
    cr_assert_str_eq(pick.doubt.uuid, "GPU-aabb-1");
    cr_expect_eq(pick.doubt.starts, 2);
    cr_expect_eq(pick.doubt.bytes, 18 * GIB);
    cr_expect_eq(pick.doubt.time_ns, 3 * SECOND);
}

Test(pick, a_choice_is_forgotten)
{
    devices.count = 3;
    cr_assert_eq(choose(9 * GIB, 1), 0);
    cw_picks_note(&picks, &devices, &pick, 9 * GIB, SECOND);
    cw_picks_note(&picks, &devices, &(struct cw_pick){.count = 0}, 0, SECOND + CW_PICK_MEMORY_NS);
    cr_expect_eq(picks.count, 0);
    cw_picks_note(&picks, &devices, &pick, 9 * GIB, 9 * SECOND);
    cw_picks_note(&picks, &devices, &(struct cw_pick){.count = 0}, 0, 8 * SECOND);
    cr_expect_eq(picks.count, 0, "a note from the future stays");
    for (unsigned i = 0; i < 2 * CW_PICKS_MAX; i++)
        cw_picks_note(&picks, &devices, &pick, 9 * GIB, SECOND);
    cr_expect_eq(picks.count, CW_PICKS_MAX);
}

static void expect_kept(const char *visible, const char *kept)
{
    char uuids[512];

    setup();
    cr_assert_eq(cw_devices_keep(&devices, visible, why, sizeof(why)), 0, "'%s' %s", visible, why);
    pick.count = devices.count;
    for (unsigned i = 0; i < devices.count; i++)
        pick.device[i] = i;
    cr_expect_str_eq(cw_pick_uuids(&devices, &pick, uuids, sizeof(uuids)), kept, "'%s': %s",
                     visible, uuids);
}

static void expect_refused(const char *visible, const char *words)
{
    setup();
    cr_expect_neq(cw_devices_keep(&devices, visible, why, sizeof(why)), 0, "'%s'", visible);
    cr_expect_str_eq(why, words);
}

/* CUDA C Programming Guide, "Environment Variables". */
Test(pick, visible_devices_are_read_as_cuda_reads_them)
{
    expect_kept("1", "GPU-aabb-1");
    expect_kept("2,0", "GPU-cccc-2,GPU-aaaa-0");
    expect_kept(" 2 , 0 ", "GPU-cccc-2,GPU-aaaa-0");
    expect_kept("0,-1,1", "GPU-aaaa-0");
    expect_kept("0,,1", "GPU-aaaa-0");
    expect_kept("1,1", "GPU-aabb-1");
    expect_kept("GPU-cccc-2", "GPU-cccc-2");
    expect_kept("GPU-c,0", "GPU-cccc-2,GPU-aaaa-0");
    expect_kept("MIG-eeee-3", "MIG-eeee-3");
    expect_kept("3", "MIG-dddd-3");
}

Test(pick, devices_that_are_not_there_are_named)
{
    expect_refused("4", "names '4', but there are only GPUs 0, 1, 2, 3");
    expect_refused("one", "names 'one', but there are only GPUs 0, 1, 2, 3");
    expect_refused(
        "GPU-aa",
        "names 'GPU-aa', which is no device here, or several; 'nvidia-smi -L' lists them");
    expect_refused(
        "0,MIG-x",
        "names 'MIG-x', which is no device here, or several; 'nvidia-smi -L' lists them");
    expect_refused("", "is '', which leaves no device");
    expect_refused("-1", "is '-1', which leaves no device");
    expect_refused("99999999999999999999",
                   "names '99999999999999999999', but there are only GPUs 0, 1, 2, 3");
}

Test(pick, the_room_is_the_need_and_the_reserve)
{
    cr_expect_eq(cw_pick_room(14 * GIB, UINT64_MAX),
                 14 * GIB + 14 * GIB / 10 + ((uint64_t)600 << 20));
    cr_expect_eq(cw_pick_room(14 * GIB, 0), 14 * GIB);
    cr_expect_eq(cw_pick_room(UINT64_MAX, UINT64_MAX), UINT64_MAX);
}
