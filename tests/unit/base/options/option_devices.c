/* SPDX-License-Identifier: MIT */
/* How devices are named in lists of sizes: whole GPUs and instances that were made with MIG. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "base/options/option_values.h"

#define GPU "GPU-00112233-4455-6677-8899-aabbccddeeff"
#define MIG "MIG-00112233-4455-6677-8899-aabbccddeeff"

#define MIB UINT64_C(1048576)
#define GIB (1024 * MIB)

Test(option_devices, both_forms_of_a_uuid_are_read)
{
    static const uint8_t wanted[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                       0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    uint8_t uuid[16];

    cr_expect_eq(cw_uuid_parse(GPU, uuid), 0);
    cr_expect_eq(memcmp(uuid, wanted, 16), 0);
    memset(uuid, 0, 16);
    cr_expect_eq(cw_uuid_parse(MIG, uuid), 0);
    cr_expect_eq(memcmp(uuid, wanted, 16), 0);
    cr_expect_eq(cw_uuid_parse(GPU ":1", uuid), -1);
    cr_expect_eq(cw_uuid_parse(GPU " ", uuid), -1);
    cr_expect_eq(cw_uuid_parse(&GPU[4], uuid), -1);
    cr_expect_eq(cw_uuid_parse("", uuid), -1);
}

Test(option_devices, an_instance_keeps_its_prefix)
{
    struct cw_device_sizes sizes = {.count = 0};
    char text[128];
    struct cw_out out;

    cr_assert_eq(cw_sizes_parse(MIG ":1G," GPU ":2G", 0, &sizes), -1); /* one and the same uuid */
    cr_assert_eq(cw_sizes_parse(MIG ":1G,2G", 0, &sizes), 0);
    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_sizes_print(&sizes, &out);
    text[out.len] = '\0';
    cr_expect_str_eq(text, MIG ":1G,2G");
}

Test(option_devices, usable_is_a_device_less_what_driver_and_context_take)
{
    static const struct {
        uint64_t total, usable;
    } cases[] = {
        {80 * GIB, 78 * GIB}, /* 2 GiB at most */
        {8000 * MIB, 6600 * MIB},
        {1024 * MIB, 512 * MIB}, /* half at least */
        {3, 2},
        {0, 0},
    };
    struct cw_device_sizes sizes = {.count = 0};
    char text[64];
    struct cw_out out;
    uint64_t bytes;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cr_expect_eq(cw_sizes_parse("usable", CW_SIZE_TAKES_NONE, &sizes), -1);
    cr_assert_eq(cw_sizes_parse("1:usable,8G", CW_SIZE_TAKES_USABLE, &sizes), 0);
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        cr_expect_eq(cw_sizes_for(&sizes, 1, NULL, cases[i].total, &bytes), 1);
        cr_expect_eq(bytes, cases[i].usable, "%ju of %ju", (uintmax_t)bytes,
                     (uintmax_t)cases[i].total);
    }
    cr_expect_eq(cw_sizes_have_zero(&sizes), 0);
    cw_sizes_print(&sizes, &out);
    text[out.len] = '\0';
    cr_expect_str_eq(text, "1:usable,8G");
}
