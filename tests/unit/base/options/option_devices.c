/* SPDX-License-Identifier: MIT */
/* How devices are named in lists of sizes: whole GPUs and instances that were made with MIG. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/options/option_values.h"

#define GPU "GPU-00112233-4455-6677-8899-aabbccddeeff"
#define MIG "MIG-00112233-4455-6677-8899-aabbccddeeff"

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
