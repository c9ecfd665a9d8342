/* SPDX-License-Identifier: MIT */
/* The reader of reports in JSON: what it makes of a report, of a damaged one, and of one that lies.
 */
#include "cli/model/model.h"

#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command_fixture.h"

#define HEAD "{\"schema\":\"cuwarden-report/1\","

static struct cw_model model;
static int has_model;

static int read_text(const char *text, size_t len)
{
    static const struct cw_model_request request = {.suppressions = ""};
    char path[32];
    int fd = memfd_create("report", 0);
    int rc;

    cr_assert_eq(write(fd, text, len), (ssize_t)len);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (has_model)
        cw_model_free(&model);
    has_model = 0;
    rc = cw_model_read(&model, path, &request);
    has_model = rc == 0;
    close(fd);
    return rc;
}

static void expect_read(const char *text)
{
    cr_assert_eq(read_text(text, strlen(text)), 0, "%s", command_said);
}

/* One line that names the file. */
static void expect_refused(const char *text, const char *why)
{
    command_errors = 0;
    cr_assert_eq(read_text(text, strlen(text)), -1, "%s", text);
    cr_expect_eq(command_errors, 1, "%u messages", command_errors);
    cr_expect_not_null(strstr(command_said, "'/proc/self/fd/"), "%s", command_said);
    cr_expect_not_null(strstr(command_said, why), "no \"%s\" in: %s", why, command_said);
}

static void forget(void)
{
    if (has_model)
        cw_model_free(&model);
    has_model = 0;
}

TestSuite(model, .init = command_listen, .fini = forget);

static const char whole[] = HEAD
    "\"tool\":{\"name\":\"cuwarden\",\"version\":\"0.1.0\"},"
    "\"process\":{\"pid\":4711,\"ppid\":1,\"exe\":\"/bin/train\",\"argv\":[\"./train\",\"-x\"],"
    "\"start_ns\":1000000,\"duration_ns\":9000,\"exit\":{\"kind\":\"exit\",\"code\":3}},"
    "\"devices\":[{\"ordinal\":0,\"name\":\"H200\",\"total\":1024,\"live\":{\"count\":2,\"bytes\":"
    "30},"
    "\"held\":40,\"allocs\":5,\"frees\":3,\"total_bytes\":70,\"peak\":{\"bytes\":50,\"t_ns\":700}}]"
    ","
    "\"host\":{\"live\":{\"count\":0,\"bytes\":0},\"allocs\":1},"
    "\"pool\":{\"mode\":\"pool\",\"devices\":[{\"device\":0,\"hits\":4,\"misses\":6,"
    "\"buckets\":[{\"kind\":\"device\",\"size_bytes\":512,\"hits\":4,\"misses\":6}]}]},"
    "\"pressure\":{\"devices\":[{\"device\":0,\"level\":\"high\",\"limit\":900}]},"
    "\"modules\":[{\"id\":7,\"path\":\"/bin/train\",\"build_id\":\"abcd\"}],"
    "\"frames\":[{\"id\":10,\"module\":7,\"offset\":32,\"func\":\"take\",\"file\":\"a.c\",\"line\":"
    "5,"
    "\"inlined\":[{\"func\":\"in\",\"file\":\"a.h\",\"line\":1},{\"func\":\"mid\"}]},"
    "{\"id\":11,\"module\":7,\"offset\":64},"
    "{\"id\":12,\"func\":\"step\",\"file\":\"t.py\",\"line\":9,\"lang\":\"python\"}],"
    "\"stacks\":[{\"id\":3,\"frames\":[11,10,12],\"shown\":[1,2]},{\"id\":4,\"frames\":[11]}],"
    "\"sites\":[{\"id\":0,\"key\":\"0000beef\",\"stack\":3,\"api\":\"cudaMalloc\",\"kind\":"
    "\"device\","
    "\"device\":0,\"tag\":\"fwd\",\"class\":\"lost\",\"live\":{\"count\":2,\"bytes\":30},"
    "\"total\":{\"count\":5,\"bytes\":70},\"at_device_peak\":{\"count\":3,\"bytes\":50},"
    "\"reclaimed\":{\"count\":1,\"bytes\":8},\"oldest_age_ns\":4000,"
    "\"growth\":{\"slope_bps\":12.5,\"r2\":0.99,\"n\":2,\"suspect\":true,\"bytes\":[10,30]}},"
    "{\"id\":1,\"key\":\"12345678\",\"stack\":4,\"api\":\"cuMemAlloc\",\"kind\":\"pinned\","
    "\"device\":64,"
    "\"class\":\"library\"}],"
    "\"leaks\":[{\"site\":1,\"ptr\":\"0x7f00aa\",\"bytes\":12,\"held\":16,\"t_ns\":5,\"tid\":9}],"
    "\"leaks_truncated\":77,"
    "\"growth\":{\"t_ns\":[100,200]},"
    "\"timeline\":{\"columns\":[\"t_ns\"],\"series\":[{\"device\":0,\"points\":[[1,2,3,4,5],[6,7,8,"
    "9,10]]}]},"
    "\"tags\":[{\"tag\":\"step\",\"steps\":4,\"rising\":true,\"slope_bytes\":1.5}],"
    "\"regrowth\":[{\"site\":0,\"resizes\":3,\"factor\":2.0}],"
    "\"events\":[{\"type\":\"oom\",\"t_ns\":50,\"device\":0,\"site\":1,\"bytes\":99}],"
    "\"diagnostics\":[{\"text\":\"a table was full\"}],"
    "\"summary\":{\"leaked_bytes\":38,\"leak_sites\":1,\"peak_bytes\":50},"
    "\"later\":{\"field\":[{\"sites\":[{\"id\":5}]}]}}";

Test(model, has_process_devices_and_sums)
{
    expect_read(whole);
    cr_expect_eq(model.process.pid, 4711);
    cr_expect_str_eq(model.process.command, "./train -x");
    cr_expect_str_eq(model.process.end, "exit");
    cr_expect(model.process.has_exit_code);
    cr_expect_eq(model.process.exit_code, 3);
    cr_expect_str_eq(model.process.mode, "pool");
    cr_expect_str_eq(model.process.version, "0.1.0");
    cr_assert_eq(model.devices, 2);
    cr_expect_str_eq(model.device[0].name, "H200");
    cr_expect_eq(model.device[0].live.bytes, 30);
    cr_expect_eq(model.device[0].peak_ns, 700);
    cr_expect_eq(model.device[0].total_allocated.count, 5);
    cr_expect_eq(model.device[0].pool_hits, 4);
    cr_expect_str_eq(model.device[0].level, "high");
    cr_expect_eq(model.device[0].limit, 900);
    cr_assert_eq(model.device[0].buckets, 1);
    cr_expect_eq(model.bucket[model.device[0].first_bucket].size, 512);
    cr_expect_eq(model.device[1].ordinal, CW_MODEL_HOST);
    cr_expect_str_eq(model.device[1].level, "low");
    cr_expect_eq(model.summary.leaked_bytes, 38);
    cr_assert_eq(model.diagnostics, 1);
    cr_expect_str_eq(model.diagnostic[0].text, "a table was full");
}

Test(model, shows_of_a_stack_what_is_to_be_seen_with_inlined_frames_in_front)
{
    static const char *const names[] = {"in", "mid", "take", "step"};
    const struct cw_model_stack *stack;
    char buf[64];

    expect_read(whole);
    stack = &model.stack[model.site[0].stack];
    cr_assert_eq(stack->count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct cw_model_frame *frame = &model.frame[model.stack_frame[stack->first + i]];

        cr_expect_str_eq(frame->function, names[i]);
        cr_expect_eq(frame->is_inlined, i < 2);
        cr_expect_eq(frame->is_python, i == 3);
        cr_expect_eq(frame->module, i == 3 ? CW_MODEL_NONE : 0);
    }
    cr_expect_eq(cw_model_first_inlined(&model, model.stack_frame[stack->first + 2]),
                 model.stack_frame[stack->first]);
    stack = &model.stack[model.site[1].stack];
    cr_assert_eq(stack->count, 1);
    cr_expect_str_eq(cw_model_frame_name(&model, &model.frame[model.stack_frame[stack->first]], buf,
                                         sizeof(buf)),
                     "train+0x40");
}

Test(model, has_sites_blocks_and_events)
{
    expect_read(whole);
    cr_assert_eq(model.sites, 2);
    cr_expect_eq(model.site[0].id, 0xbeef);
    cr_expect_str_eq(model.site[0].tag, "fwd");
    cr_expect_eq(model.site[0].reclaimed.bytes, 8);
    cr_expect_eq(model.site[0].at_peak.bytes, 50);
    cr_expect_eq(model.site[0].oldest_ns, 5000);
    cr_expect(model.site[0].is_leak);
    cr_expect_not(model.site[1].is_leak);
    cr_expect_str_eq(model.site[1].tag, "");
    cr_assert_eq(model.blocks, 1);
    cr_expect_eq(model.block[0].address, 0x7f00aa);
    cr_expect_eq(model.block[0].site, 1);
    cr_expect_eq(model.blocks_left_out, 77);
    cr_assert_eq(model.events, 1);
    cr_expect_eq(model.event[0].site, 1);
    cr_expect_eq(model.event[0].count, 1);
}

Test(model, has_what_changed_over_time)
{
    expect_read(whole);
    cr_assert_eq(model.samples, 2);
    cr_expect_eq(model.sample_ns[1], 200);
    cr_assert_neq(model.site[0].series, CW_MODEL_NONE);
    cr_expect_eq(model.series_bytes[model.site[0].series + 1], 30);
    cr_expect_eq(model.site[1].series, CW_MODEL_NONE);
    cr_expect_float_eq(model.site[0].growth.slope_bytes_per_s, 12.5, 1e-9);
    cr_expect(model.site[0].growth.is_suspect);
    cr_assert_eq(model.device[0].points, 2);
    cr_expect_eq(model.point[model.device[0].first_point + 1].used, 10);
    cr_assert_eq(model.steps, 1);
    cr_expect(model.step[0].is_rising);
    cr_assert_eq(model.regrowths, 1);
    cr_expect_eq(model.regrowth[0].site, 0);
}

Test(model, a_series_that_is_too_short_is_none)
{
    expect_read(HEAD
                "\"sites\":[{\"id\":0,\"growth\":{\"bytes\":[1]}}],\"growth\":{\"t_ns\":[1,2]}}");
    cr_expect_eq(model.site[0].series, CW_MODEL_NONE);
}

Test(model, a_report_of_another_kind_is_refused)
{
    expect_refused("{\"schema\":\"cuwarden-report/2\"}", "\"schema\" is not cuwarden-report/1");
    expect_refused("{}", "\"schema\" is not");
    expect_refused("{\"schema\":5}", "\"schema\" is not");
    expect_refused("{\"schema\":\"cuwarden-report/2\"}", "/2: a newer cuwarden reads it");
    expect_refused("{\"schema\":\"cuwarden-diff/1\"}", "but cuwarden-diff/1");
}

/* An object has no order: programs that rewrite JSON may sort its keys. */
Test(model, what_is_named_may_stand_behind_who_names_it)
{
    static const char sites[] = "\"sites\":[{\"id\":7,\"key\":\"00000001\",\"stack\":3,\"device\":"
                                "0,\"total\":{\"count\":1},"
                                "\"live\":{\"count\":1,\"bytes\":5},\"oldest_age_ns\":0}],";

    char text[2048];

    snprintf(text, sizeof(text),
             "{\"events\":[{\"type\":\"oom\",\"site\":7}],\"leaks\":[{\"site\":7}],"
             "\"regrowth\":[{\"site\":7}],\"old\":{\"sites\":[{\"site\":7}]},"
             "\"oom_accounts\":[{\"site\":7,\"holders\":[{\"site\":7}]}],"
             "\"pool\":{\"devices\":[{\"device\":1,\"hits\":2,\"buckets\":[{\"hits\":2}]}]},"
             "\"pressure\":{\"devices\":[{\"device\":0,\"level\":\"high\"}]},"
             "\"timeline\":{\"series\":[{\"device\":1,\"points\":[[1,2,3,4,5]]}]},"
             "\"host\":{\"allocs\":1},\"devices\":[{\"ordinal\":1},{\"ordinal\":0}],%s"
             "\"stacks\":[{\"id\":3,\"frames\":[10,11]}],"
             "\"frames\":[{\"id\":11,\"module\":9,\"func\":\"out\"},{\"id\":10,\"func\":\"in\"}],"
             "\"modules\":[{\"id\":9,\"path\":\"/bin/p\"}],\"process\":{\"duration_ns\":9000},"
             "\"schema\":\"cuwarden-report/1\"}",
             sites);
    expect_read(text);
    cr_assert_eq(model.stack[model.site[0].stack].count, 2);
    cr_expect_str_eq(model.frame[model.stack_frame[0]].function, "in");
    cr_expect_str_eq(cw_model_module_name(&model, model.frame[model.stack_frame[1]].module), "p");
    cr_expect_eq(model.site[0].oldest_ns, 9000, "a block that was born at the end");
    cr_expect_eq(model.event[0].site, 0);
    cr_expect_eq(model.block[0].site, 0);
    cr_expect_eq(model.regrowth[0].site, 0);
    cr_expect_eq(model.old[0].site, 0);
    cr_expect_eq(model.oom[0].site, 0);
    cr_expect_eq(model.holder[0].site, 0);
    cr_assert_eq(model.devices, 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_eq(model.device[i].ordinal, i < 2 ? i : CW_MODEL_HOST);
    cr_expect_str_eq(model.device[0].level, "high");
    cr_expect_eq(model.device[1].pool_hits, 2);
    cr_expect_eq(model.device[1].buckets, 1);
    cr_expect_eq(model.device[1].points, 1);
}

/* Where a count belongs. */
Test(model, a_negative_number_is_refused_by_its_name)
{
    expect_refused(HEAD "\"sites\":[{\"id\":0,\"held\":-5}]}", "\"held\" cannot be -5");
    expect_refused(HEAD "\"devices\":[{\"ordinal\":-1}]}", "\"ordinal\" cannot be -1");
    expect_read(HEAD "\"process\":{\"exit\":{\"code\":-1}},\"later\":-1}");
    cr_expect_eq(model.process.exit_code, -1);
}

Test(model, a_number_may_be_written_in_other_ways)
{
    expect_read(HEAD "\"sites\":[{\"id\":0.0,\"held\":1.5e3,\"frees\":1e300,\"device\":1e12}]}");
    cr_expect_eq(model.site[0].held, 1500);
    cr_expect_eq(model.site[0].frees, UINT64_MAX);
    cr_expect_eq(model.site[0].device, UINT32_MAX, "no other device");
}

Test(model, who_only_called_to_free_is_empty_unless_an_error_names_it)
{
    expect_read(
        HEAD "\"sites\":[{\"id\":0,\"api\":\"cuMemFree\"},{\"id\":1,\"api\":\"cuMemFree\"},"
             "{\"id\":2,\"api\":\"cuMemFree\"},{\"id\":3,\"failed\":1},"
             "{\"id\":4,\"total\":{\"count\":1}}],"
             "\"events\":[{\"type\":\"invalid-free\",\"site\":1,\"first_freed\":{\"site\":2}}]}");
    for (uint32_t i = 0; i < 5; i++)
        cr_expect_eq(model.site[i].is_empty, i == 0, "site %u", i);
    cr_expect_eq(model.sites_of, 4);
    expect_read(HEAD "\"selection\":{\"sites\":1,\"of\":9},\"sites\":[{\"id\":3,\"failed\":1}]}");
    cr_expect_eq(model.sites_of, 9);
}

Test(model, has_the_pool_the_pressure_and_the_accounts)
{
    const struct cw_model_device *device;

    expect_read(
        HEAD
        "\"devices\":[{\"ordinal\":0}],\"pool\":{\"mode\":\"pool\",\"free_sync\":\"deferred\","
        "\"devices\":["
        "{\"device\":0,\"requested_bytes\":10,\"efficiency\":null,\"efficiency_total\":0.5,"
        "\"trimmed\":{\"full\":1,\"idle\":2,\"oom\":3},\"bypassed\":{\"kind\":4,\"later\":5}}]},"
        "\"pressure\":{\"devices\":[{\"device\":0,\"levels\":{\"critical\":{\"ns\":6}},"
        "\"released\":{\"pressure\":{\"count\":7,\"bytes\":8}},\"refused\":{\"min_free\":9},"
        "\"ladder\":[{\"rung\":\"sync\",\"tried\":10},{\"rung\":\"later\",\"tried\":11}]}]},"
        "\"old\":{\"age_ns\":12,\"sites\":[{\"site\":0,\"count\":13,\"bytes\":14}]},"
        "\"oom_accounts\":[{\"event\":0,\"fits\":15,\"holders\":[{\"bytes\":16},{\"bytes\":17}]},"
        "{\"fragmented\":true,\"rest\":{\"count\":18},\"holders\":[{\"bytes\":19}]}]}");
    device = &model.device[0];
    cr_expect_str_eq(model.process.free_sync, "deferred");
    cr_expect_eq(device->pool.requested, 10);
    cr_expect_float_eq(device->pool.efficiency_total, 0.5, 1e-9);
    cr_expect_eq(device->pool.trimmed_idle, 2);
    cr_expect_eq(device->pool.bypassed[CW_BYPASS_KIND], 4);
    cr_expect_eq(device->pressure.at[CW_LEVEL_CRITICAL].ns, 6);
    cr_expect_eq(device->pressure.scarce.bytes, 8);
    cr_expect_eq(device->pressure.refused[CW_CAUSE_MIN_FREE], 9);
    cr_expect_eq(device->pressure.rung[CW_RUNG_SYNC].tried, 10);
    cr_expect_eq(model.old_ns, 12);
    cr_expect_eq(model.old[0].old.bytes, 14);
    cr_assert_eq(model.ooms, 2);
    cr_expect_eq(model.oom[0].event, 0);
    cr_expect_eq(model.oom[0].holders, 2);
    cr_expect_eq(model.oom[1].event, CW_MODEL_NONE);
    cr_expect_eq(model.holder[model.oom[1].first_holder].held.bytes, 19);
}

Test(model, every_cut_is_refused_in_one_line)
{
    char *text = strdup(whole);

    for (size_t len = 1; len < strlen(whole); len++) {
        text[len] = '\0';
        expect_refused(text, "damaged or cut off at byte");
        text[len] = whole[len];
    }
    free(text);
}

/* Each value in turn becomes one of another type; it is read or refused, and nothing is touched
 * that is not there. */
Test(model, wrong_types_do_no_harm)
{
    static const char *const others[] = {"null", "true", "-1", "1.5e300",
                                         "\"\"", "[]",   "{}", "[[7]]"};
    char *text = malloc(sizeof(whole) + 64);
    unsigned tried = 0;

    for (const char *at = whole; (at = strchr(at, ':')); at++) {
        size_t len = strcspn(at + 1, ",]}");

        if (at[1] == '[' || at[1] == '{')
            continue;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            int size = snprintf(text, sizeof(whole) + 64, "%.*s%s%s", (int)(at + 1 - whole), whole,
                                others[i], at + 1 + len);

            command_errors = 0;
            if (read_text(text, (size_t)size) != 0)
                cr_assert_eq(command_errors, 1, "%s", text);
            tried++;
        }
    }
    cr_expect_gt(tried, 500);
    free(text);
}

Test(model, elements_of_a_wrong_type_do_no_harm)
{
    expect_read(HEAD "\"process\":{\"argv\":[1,null,{\"a\":2},[3],\"x\"]},\"sites\":[1,\"a\",null],"
                     "\"stacks\":[{\"id\":1,\"frames\":[\"a\",{}],\"shown\":[\"b\"]}]}");
    cr_expect_str_eq(model.process.command, "x");
    cr_expect_eq(model.sites, 0);
}

Test(model, numbers_that_are_too_large_do_no_harm)
{
    expect_refused(HEAD "\"frames\":[{\"id\":4000000000}]}", "out of range");
    expect_refused(HEAD "\"stacks\":[{\"id\":1,\"frames\":[99]}]}", "a frame that is not there");
    expect_read(HEAD
                "\"frames\":[{\"id\":268435455}],\"sites\":[{\"id\":268435454,\"stack\":4294967295,"
                "\"live\":{\"bytes\":99999999999999999999999999}}]}");
    cr_expect_eq(model.site[0].stack, CW_MODEL_NONE);
    cr_expect_eq(model.site[0].live.bytes, UINT64_MAX);
}

Test(model, deep_nesting_is_passed_over)
{
    enum { DEPTH = 100000 };
    char *text = malloc(2 * DEPTH + 256);
    char *at = text + sprintf(text, HEAD "\"later\":");

    memset(at, '[', DEPTH);
    memset(at + DEPTH, ']', DEPTH);
    strcpy(at + (ptrdiff_t)2 * DEPTH, ",\"process\":{\"pid\":12}}");
    expect_read(text);
    cr_expect_eq(model.process.pid, 12);
    memset(at, '[', (size_t)2 * DEPTH);
    expect_refused(text, "damaged or cut off");
    free(text);
}

Test(model, what_follows_the_report_is_refused)
{
    char text[sizeof(whole) + 8];

    snprintf(text, sizeof(text), "%s{}", whole);
    expect_refused(text, "damaged or cut off");
    snprintf(text, sizeof(text), "\n %s\n", whole);
    expect_read(text);
}
