/* SPDX-License-Identifier: MIT */
/* Variables of modules: each counts once, and goes with its module. */
#include "core/device/variable.h"

#include <criterion/criterion.h>

#include "core/account/tracker.h"
#include "fake_driver.h"

#define MODULE 0x5000u

static uint32_t site;

static void setup(void)
{
    core_start();
    site = core_site("cuModuleLoad", CW_KIND_MODULE, 0);
}

TestSuite(variable, .init = setup);

static uint32_t load(uint64_t handle)
{
    struct cw_request request = core_request(CW_KIND_MODULE, 0, handle, 0);

    request.space = CW_SPACE_MODULE;
    return cw_tracker_insert(&request, site, 1);
}

static void unload(uint64_t handle)
{
    cw_tracker_finish(cw_tracker_take(CW_SPACE_MODULE, handle), CW_FREE_DONE);
}

static uint64_t bytes_of(uint32_t block)
{
    return cw_tracker_at(block)->bytes;
}

CoreTest(variable, each_counts_once)
{
    uint32_t module = load(MODULE);

    cw_variable_seen(MODULE, 0x100, 40);
    cw_variable_seen(MODULE, 0x200, 60);
    cw_variable_seen(MODULE, 0x100, 40);
    cr_expect_eq(bytes_of(module), 100u);
    unload(MODULE);
    cr_expect_eq(core_check(), 0);
}

CoreTest(variable, of_an_unknown_module_is_nobodys)
{
    cw_variable_seen(MODULE, 0x100, 40);
    cr_expect_eq(bytes_of(load(MODULE)), 0u);
}

CoreTest(variable, an_address_given_out_again_is_another_variable)
{
    uint32_t module = load(MODULE), other;

    cw_variable_seen(MODULE, 0x100, 40);
    unload(MODULE);
    module = load(MODULE);
    cr_expect_eq(bytes_of(module), 0u);
    cw_variable_seen(MODULE, 0x100, 30);
    cr_expect_eq(bytes_of(module), 30u);
    other = load(MODULE + 1);
    cw_variable_seen(MODULE + 1, 0x100, 7);
    cr_expect_eq(bytes_of(other), 7u);
}
