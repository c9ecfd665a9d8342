/* SPDX-License-Identifier: MIT */
/* The audit: what two sides tell of the same memory, in any order, and what is left of it. */
#include "core/account/audit.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#include "core/account/tracker.h"
#include "fake_driver.h"

static void setup(void)
{
    core_start();
    cw_audit_begin(core_arena, 24);
}

TestSuite(audit, .init = setup, .fini = cw_audit_reset);

static const struct cw_live_audit *account(void)
{
    return &core_header()->audit;
}

static const struct cw_live_audit_row *row(enum cw_audit_class class, enum cw_audit_op op)
{
    return &account()->row[class][op];
}

static void tell(enum cw_audit_op op, enum cw_audit_class class, uint64_t address, uint64_t bytes)
{
    struct cw_audit_record record = {
        .op = op, .class = class, .address = address, .bytes = bytes, .source = "/lib/libother.so"};

    cw_audit_seen(&record);
}

static void tell_of(uint32_t context, enum cw_audit_op op, uint64_t address, uint64_t bytes)
{
    struct cw_audit_record record = {
        .op = op, .class = CW_AUDIT_DEVICE, .address = address, .bytes = bytes, .context = context};

    cw_audit_seen(&record);
}

static void drop(uint64_t key, enum cw_free_result result)
{
    cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, key), result);
}

static void expect_amount(struct cw_live_audit_amount amount, uint64_t count, uint64_t bytes)
{
    cr_expect_eq(amount.count, count, "count %llu", (unsigned long long)amount.count);
    cr_expect_eq(amount.bytes, bytes, "bytes %llu", (unsigned long long)amount.bytes);
}

static void expect_agreement(void)
{
    cw_audit_end();
    cr_expect_eq(account()->status, (uint32_t)CW_AUDIT_DONE);
    cr_expect_eq(account()->all_findings, 0u, "%llu findings",
                 (unsigned long long)account()->all_findings);
}

Test(audit, what_both_tell_is_settled_in_either_order)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0x1000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x2000, 100);
    core_put(site, 0x2000, 100);
    tell(CW_AUDIT_GIVEN, CW_AUDIT_DEVICE, 0x1000, 64);
    drop(0x1000, CW_FREE_DONE);
    expect_agreement();
    expect_amount(row(CW_AUDIT_DEVICE, CW_AUDIT_TAKEN)->both, 2, 164);
    expect_amount(row(CW_AUDIT_DEVICE, CW_AUDIT_GIVEN)->both, 1, 64);
}

Test(audit, an_address_that_comes_back_with_another_size_agrees)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0x1000, 64);
    drop(0x1000, CW_FREE_DONE);
    core_put(site, 0x1000, 128);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 64);
    tell(CW_AUDIT_GIVEN, CW_AUDIT_DEVICE, 0x1000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 128);
    expect_agreement();
    expect_amount(row(CW_AUDIT_DEVICE, CW_AUDIT_TAKEN)->both, 2, 192);
}

Test(audit, what_the_tool_has_not_seen_is_a_finding)
{
    uint32_t site = core_site("a", CW_KIND_PINNED, CW_DEVICE_HOST);
    const struct cw_live_audit_finding *finding = account()->finding;

    core_put(site, 0x1000, 64);
    cw_audit_end();
    cr_assert_eq(account()->findings, 1u);
    cr_expect_eq(finding->side, CW_AUDIT_OURS_ALONE);
    cr_expect_eq(finding->class, CW_AUDIT_PINNED);
    cr_expect_eq(finding->address, 0x1000u);
    cr_expect_eq(finding->bytes, 64u);
    cr_expect_eq(finding->source, 0u);
    expect_amount(row(CW_AUDIT_PINNED, CW_AUDIT_TAKEN)->ours, 1, 64);
}

Test(audit, what_only_the_tool_has_seen_is_a_finding_with_its_source)
{
    const struct cw_live_audit_finding *finding = account()->finding;
    struct cw_view view;

    tell(CW_AUDIT_TAKEN, CW_AUDIT_MANAGED, 0x3000, 5);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_MANAGED, 0x3000, 7);
    cw_audit_end();
    cr_assert_eq(account()->findings, 1u);
    cr_expect_eq(finding->side, CW_AUDIT_TOOL_ALONE);
    cr_expect_eq(finding->count, 2u);
    cw_arena_view(core_arena, &view);
    cr_expect_str_eq(cw_view_text(&view, finding->source), "/lib/libother.so");
    expect_amount(row(CW_AUDIT_MANAGED, CW_AUDIT_TAKEN)->tool, 2, 12);
}

Test(audit, a_kind_that_differs_is_two_findings)
{
    core_put(core_site("a", CW_KIND_MANAGED, 0), 0x1000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 64);
    cw_audit_end();
    cr_expect_eq(account()->all_findings, 2u);
    expect_amount(row(CW_AUDIT_MANAGED, CW_AUDIT_TAKEN)->ours, 1, 64);
    expect_amount(row(CW_AUDIT_DEVICE, CW_AUDIT_TAKEN)->tool, 1, 64);
}

Test(audit, sizes_are_compared_where_there_are_addresses)
{
    core_put(core_site("a", CW_KIND_DEVICE, 0), 0x1000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 65);
    core_put(core_site("b", CW_KIND_MIPMAP, 0), 0x2000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_ARRAY, 0x7777, 4096);
    cw_audit_end();
    cr_expect_eq(account()->all_findings, 1u);
    cr_expect_eq(account()->finding[0].side, CW_AUDIT_SIZES);
    cr_expect_eq(account()->finding[0].tool_bytes, 65u);
    cr_expect_eq(row(CW_AUDIT_DEVICE, CW_AUDIT_TAKEN)->differing, 1u);
    expect_amount(row(CW_AUDIT_ARRAY, CW_AUDIT_TAKEN)->both, 1, 64);
    cr_expect_eq(row(CW_AUDIT_ARRAY, CW_AUDIT_TAKEN)->tool_bytes, 4096u);
}

Test(audit, what_went_with_a_context_may_be_told_of_or_not)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    for (uint64_t key = 0x1000; key <= 0x2000; key += 0x1000) {
        core_put(site, key, 64);
        tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, key, 64);
        drop(key, CW_FREE_RECLAIMED);
    }
    tell(CW_AUDIT_GIVEN, CW_AUDIT_DEVICE, 0x2000, 64);
    expect_agreement();
    cr_expect_eq(account()->excused, 1u);
}

/* What CUPTI of CUDA 13.0 tells on an H200 of a program that makes a second context, takes two
 * blocks in it, frees one, and destroys it. */
Test(audit, what_a_tool_tells_once_for_each_context_counts_once)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0xff00000, 30720);
    tell_of(1, CW_AUDIT_TAKEN, 0xff00000, 30720);
    tell_of(2, CW_AUDIT_TAKEN, 0xff00000, 30720); /* the context is made */
    core_put(site, 0xfe00000, 5000);
    tell_of(1, CW_AUDIT_TAKEN, 0xfe00000, 5000);
    tell_of(2, CW_AUDIT_TAKEN, 0xfe00000, 5000);
    core_put(site, 0x4800000, 3 << 20);
    tell_of(1, CW_AUDIT_TAKEN, 0x4800000, 3 << 20);
    tell_of(2, CW_AUDIT_TAKEN, 0x4800000, 3 << 20);
    drop(0x4800000, CW_FREE_DONE);
    tell_of(1, CW_AUDIT_GIVEN, 0x4800000, 3 << 20);
    tell_of(2, CW_AUDIT_GIVEN, 0x4800000, 3 << 20);
    drop(0xfe00000, CW_FREE_RECLAIMED); /* the context ends */
    tell_of(1, CW_AUDIT_GIVEN, 0xfe00000, 5000);
    tell_of(2, CW_AUDIT_GIVEN, 0xff00000, 30720);
    drop(0xff00000, CW_FREE_DONE);
    tell_of(1, CW_AUDIT_GIVEN, 0xff00000, 30720);
    core_put(site, 0xfe00000, 4096); /* the address comes back, in a third context */
    tell_of(3, CW_AUDIT_TAKEN, 0xfe00000, 4096);
    expect_agreement();
    expect_amount(row(CW_AUDIT_DEVICE, CW_AUDIT_TAKEN)->both, 4, 30720 + 5000 + (3 << 20) + 4096);
    expect_amount(row(CW_AUDIT_DEVICE, CW_AUDIT_GIVEN)->both, 2, 30720 + (3 << 20));
}

Test(audit, a_report_that_is_excused_is_no_finding)
{
    tell(CW_AUDIT_TAKEN, CW_AUDIT_POOL, 0, 0);
    cw_audit_excuse(CW_AUDIT_TAKEN, CW_AUDIT_POOL);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_POOL, 0, 0);
    cw_audit_end();
    cr_expect_eq(account()->all_findings, 1u);
    cr_expect_eq(account()->finding[0].count, 1u);
}

/* The context that speaks for a block of another's ends; a third one is made before the free. */
Test(audit, a_speaker_that_ends_before_the_block_leaves_no_finding)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0x1000, 64);
    tell_of(1, CW_AUDIT_TAKEN, 0x1000, 64);
    tell_of(2, CW_AUDIT_TAKEN, 0x1000, 64);
    tell_of(1, CW_AUDIT_GIVEN, 0x1000, 64); /* context 1 ends */
    tell_of(3, CW_AUDIT_TAKEN, 0x1000, 64); /* context 3 is made */
    drop(0x1000, CW_FREE_DONE);
    tell_of(2, CW_AUDIT_GIVEN, 0x1000, 64);
    tell_of(3, CW_AUDIT_GIVEN, 0x1000, 64);
    expect_agreement();
}

/* A free that all contexts have told of is no doubtful one: if we miss the next, that is a finding.
 */
Test(audit, a_free_told_by_all_contexts_excuses_nothing)
{
    for (uint32_t context = 1; context <= 2; context++)
        tell_of(context, CW_AUDIT_TAKEN, 0x1000, 64);
    core_put(core_site("a", CW_KIND_DEVICE, 0), 0x1000, 64);
    for (uint32_t context = 1; context <= 2; context++)
        tell_of(context, CW_AUDIT_GIVEN, 0x1000, 64);
    cw_audit_end();
    cr_expect_eq(account()->all_findings, 1u);
    cr_expect_eq(account()->finding[0].op, CW_AUDIT_GIVEN);
}

Test(audit, stream_ordered_memory_may_be_freed_in_another_context)
{
    uint32_t site = core_site("a", CW_KIND_ASYNC, 0);

    for (int i = 0; i < 2; i++) {
        struct cw_audit_record record = {
            .op = CW_AUDIT_TAKEN, .class = CW_AUDIT_ASYNC, .address = 0x1000, .bytes = 64};

        core_put(site, 0x1000, 64);
        record.context = 1;
        cw_audit_seen(&record);
        drop(0x1000, CW_FREE_DONE);
        record.op = CW_AUDIT_GIVEN;
        record.context = 2;
        cw_audit_seen(&record);
    }
    expect_agreement();
}

Test(audit, an_address_may_be_registered_and_then_pinned)
{
    core_put(core_site("a", CW_KIND_REGISTERED, CW_DEVICE_HOST), 0x1000, 4096);
    drop(0x1000, CW_FREE_DONE);
    core_put(core_site("b", CW_KIND_PINNED, CW_DEVICE_HOST), 0x1000, 1 << 20);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_PINNED, 0x1000, 4096);
    tell(CW_AUDIT_GIVEN, CW_AUDIT_PINNED, 0x1000, 4096);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_PINNED, 0x1000, 1 << 20);
    expect_agreement();
}

Test(audit, a_mipmapped_array_excuses_no_arrays)
{
    core_put(core_site("a", CW_KIND_MIPMAP, 0), 0x1000, 10240);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_ARRAY, 0x777000, 10240);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_ARRAY, 0x778000, 1 << 20);
    cw_audit_end();
    cr_expect_eq(account()->all_findings, 1u);
}

/* The same CUPTI tells of registered memory as pinned, and of each level of a mipmapped array. */
Test(audit, what_a_tool_may_tell_of_or_not)
{
    core_put(core_site("a", CW_KIND_REGISTERED, CW_DEVICE_HOST), 0x1000, 8192);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_PINNED, 0x1000, 8192);
    core_put(core_site("b", CW_KIND_REGISTERED, CW_DEVICE_HOST), 0x8000, 8192);
    core_put(core_site("c", CW_KIND_MIPMAP, 0), 0x2000, 10240);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_ARRAY, 0x777000, 8192);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_ARRAY, 0x778000, 2048);
    expect_agreement();
    cr_expect_eq(account()->excused, 0u);
    expect_amount(row(CW_AUDIT_ARRAY, CW_AUDIT_TAKEN)->both, 1, 10240);
    cr_expect_eq(row(CW_AUDIT_ARRAY, CW_AUDIT_TAKEN)->tool_bytes, 10240u);
    expect_amount(row(CW_AUDIT_PINNED, CW_AUDIT_TAKEN)->both, 0, 0);
}

Test(audit, a_free_that_the_driver_refused_is_none)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0x1000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 64);
    drop(0x1000, CW_FREE_REFUSED);
    expect_agreement();
    expect_amount(row(CW_AUDIT_DEVICE, CW_AUDIT_GIVEN)->both, 0, 0);
}

Test(audit, kinds_that_the_tool_does_not_tell_of_are_left_out)
{
    core_put(core_site("a", CW_KIND_REGISTERED, CW_DEVICE_HOST), 0x1000, 64);
    core_put(core_site("b", CW_KIND_IPC, 0), 0x2000, 64);
    core_put(core_site("c", CW_KIND_VMM, 0), 0x3000, 64);
    expect_agreement();
}

Test(audit, after_the_close_only_the_tool_may_tell)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);

    core_put(site, 0x1000, 64);
    cw_audit_close();
    core_put(site, 0x2000, 64);
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 64);
    expect_agreement();
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x5000, 64);
    cw_audit_variable("late", 1, 0);
    cr_expect_eq(account()->fixed.count, 0u);
    cr_expect_eq(account()->all_findings, 0u);
}

Test(audit, of_many_findings_the_first_are_kept_and_all_are_counted)
{
    for (uint64_t i = 1; i <= CW_AUDIT_FINDINGS + 5; i++)
        tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, i << 12, i);
    for (unsigned i = 0; i < CW_AUDIT_VARIABLES + 5; i++)
        cw_audit_variable(i == 0 ? NULL : "variable", 10, i == 1);
    cw_audit_end();
    cr_expect_eq(account()->findings, (uint32_t)CW_AUDIT_FINDINGS);
    cr_expect_eq(account()->all_findings, CW_AUDIT_FINDINGS + 5u);
    cr_expect_eq(account()->variables, (uint32_t)CW_AUDIT_VARIABLES);
    expect_amount(account()->fixed, CW_AUDIT_VARIABLES + 5, 10 * (CW_AUDIT_VARIABLES + 5));
    cr_expect_eq(account()->variable[0].name, 0u);
    cr_expect_eq(account()->variable[1].is_managed, 1u);
}

Test(audit, what_others_write_as_its_length_is_not_followed)
{
    core_header()->audit.findings = UINT32_MAX;
    core_header()->audit.variables = UINT32_MAX;
    tell(CW_AUDIT_TAKEN, CW_AUDIT_DEVICE, 0x1000, 4096);
    cw_audit_variable("table", 4096, 0);
    cw_audit_end();
    cr_expect_eq(account()->findings, 1u);
    cr_expect_eq(account()->finding[0].address, 0x1000u);
    cr_expect_eq(account()->variables, 1u);
    cr_expect_eq(account()->variable[0].bytes, 4096u);
}

Test(audit, one_that_is_cut_short_has_no_figures)
{
    core_put(core_site("a", CW_KIND_DEVICE, 0), 0x1000, 64);
    cw_audit_cut();
    cr_expect_eq(account()->status, (uint32_t)CW_AUDIT_CUT);
    cr_expect_neq(account()->why, 0u);
    cr_expect_eq(account()->all_findings, 0u);
}

/* Any order of what the two sides tell, in which each keeps its own, agrees. */
Test(audit, shuffled_batches_agree)
{
    uint32_t site = core_site("a", CW_KIND_DEVICE, 0);
    uint64_t bytes[64] = {0}, told = 0, queue_key[4096], queue_bytes[4096];
    uint8_t queue_op[4096];
    unsigned queued = 0;

    srand(7);
    for (unsigned i = 0; i < 4000; i++) {
        unsigned slot = (unsigned)rand() % 64;
        uint64_t key = 0x100000 + slot * 0x1000;

        queue_key[queued] = key;
        queue_op[queued] = bytes[slot] == 0 ? CW_AUDIT_TAKEN : CW_AUDIT_GIVEN;
        if (bytes[slot] == 0) {
            bytes[slot] = 1 + (uint64_t)rand() % 100;
            queue_bytes[queued++] = bytes[slot];
            core_put(site, key, bytes[slot]);
        } else {
            queue_bytes[queued++] = bytes[slot];
            bytes[slot] = 0;
            drop(key, CW_FREE_DONE);
        }
        while (rand() % 300 == 0 && told < queued)
            for (unsigned n = (unsigned)rand() % 400; n > 0 && told < queued; n--, told++)
                tell(queue_op[told], CW_AUDIT_DEVICE, queue_key[told], queue_bytes[told]);
    }
    for (; told < queued; told++)
        tell(queue_op[told], CW_AUDIT_DEVICE, queue_key[told], queue_bytes[told]);
    expect_agreement();
    cr_expect_eq(row(CW_AUDIT_DEVICE, CW_AUDIT_TAKEN)->both.count +
                     row(CW_AUDIT_DEVICE, CW_AUDIT_GIVEN)->both.count,
                 4000u);
}
