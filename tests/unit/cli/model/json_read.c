/* SPDX-License-Identifier: MIT */
/* The reader of reports in JSON: what it makes of a report, of a damaged one, and of one that lies.
 */
#include "cli/model/json_read.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "command_fixture.h"
#include "json_text_fixture.h"
#include "report/json/fields.h"
#include "report/json/json_write.h"

TestSuite(json_read, .init = command_listen, .fini = json_forget);

static const char whole[] = JSON_HEAD
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
    "\"summary\":" JSON_SUMMARY "},"
    "\"later\":{\"field\":[{\"sites\":[{\"id\":5}]}]}}";

Test(json_read, has_process_devices_and_sums)
{
    const struct cw_snapshot *snapshot;

    json_expect_read(whole);
    snapshot = &json_model->snapshot;
    cr_expect_eq(json_model->process.pid, 4711);
    cr_expect_str_eq(json_model->process.command, "./train -x");
    cr_expect_str_eq(json_model->process.end, "exit");
    cr_expect(json_model->process.has_exit_code);
    cr_expect_eq(json_model->process.exit_code, 3);
    cr_expect_str_eq(json_model->version, "0.1.0");
    cr_expect(snapshot->pool.on);
    cr_assert_eq(snapshot->devices, 1);
    cr_expect_str_eq(snapshot->device[0].name, "H200");
    cr_expect_eq(snapshot->device[0].sums.live_bytes, 30);
    cr_expect_eq(snapshot->device[0].peak_ns, 700);
    cr_expect_eq(snapshot->device[0].sums.allocs, 5);
    cr_expect_eq(snapshot->pool.device[0].sums.hits, 4);
    cr_expect_eq(snapshot->pressure.device[0].level, CW_LEVEL_HIGH);
    cr_expect_eq(snapshot->pressure.device[0].limit, 900);
    cr_assert_eq(snapshot->pool.device[0].buckets, 1);
    cr_expect_eq(snapshot->pool.bucket[snapshot->pool.device[0].first].size, 512);
    cr_expect(snapshot->device[CW_DEVICE_HOST].seen);
    cr_expect_eq(snapshot->device[CW_DEVICE_HOST].sums.allocs, 1);
    cr_expect_eq(snapshot->summary.leaked_bytes, 38);
    cr_assert_eq(json_model->diagnostics, 1);
    cr_expect_str_eq(json_model->diagnostic[0].text, "a table was full");
}

Test(json_read, has_what_is_shown_of_a_stack_and_what_was_inlined)
{
    static const char *const names[] = {"take", "step"};
    const struct cw_report_stack *stack;
    const struct cw_report_frame *frame;
    char buf[64];

    json_expect_read(whole);
    stack = cw_report_stack(json_model, json_model->snapshot.site[0].stack);
    cr_assert_eq(stack->count, 3);
    cr_assert_eq(stack->shown, 2);
    for (uint32_t i = 0; i < 2; i++) {
        frame = cw_report_shown_frame(json_model, stack, i);
        cr_expect_str_eq(frame->function, names[i]);
        cr_expect_eq(frame->is_python, i == 1);
        cr_expect_str_eq(cw_report_module_name(json_model, frame->module), i == 1 ? "" : "train");
    }
    frame = cw_report_shown_frame(json_model, stack, 0);
    cr_assert_eq(frame->inlines, 2);
    cr_expect_str_eq(json_model->place[frame->inlined].function, "in");
    cr_expect_str_eq(json_model->place[frame->inlined + 1].function, "mid");
    stack = cw_report_stack(json_model, json_model->snapshot.site[1].stack);
    cr_assert_eq(stack->shown, 1);
    cr_expect_str_eq(cw_report_frame_name(json_model, cw_report_shown_frame(json_model, stack, 0),
                                          buf, sizeof(buf)),
                     "train+0x40");
}

Test(json_read, has_sites_blocks_and_events)
{
    const struct cw_snapshot_site *site;

    json_expect_read(whole);
    cr_assert_eq(json_model->snapshot.sites, 2);
    site = json_model->snapshot.site;
    cr_expect_eq(site[0].id, 0xbeef);
    cr_expect_str_eq(cw_report_tag_label(json_model, site[0].tag), "fwd");
    cr_expect_eq(site[0].kind, CW_KIND_DEVICE);
    cr_expect_eq(site[0].reclaimed_bytes, 8);
    cr_expect_eq(site[0].at_peak_bytes, 50);
    cr_expect_eq(site[0].oldest_ns, 5000);
    cr_expect(cw_leak_is_counted(site[0].leak));
    cr_expect_eq(site[1].leak, CW_LEAK_LIBRARY);
    cr_expect_eq(site[1].device, CW_DEVICE_HOST);
    cr_expect_eq(site[1].tag, 0);
    cr_assert_eq(json_model->blocks, 1);
    cr_expect_eq(json_model->block[0].address, 0x7f00aa);
    cr_expect_eq(json_model->block[0].site, 1);
    cr_expect_eq(json_model->blocks_left_out, 77);
    cr_assert_eq(json_model->events, 1);
    cr_expect_eq(json_model->event[0].site, 1);
    cr_expect_eq(json_model->event[0].count, 1);
}

Test(json_read, has_what_changed_over_time)
{
    const struct cw_snapshot_growth *growth;
    const struct cw_growth_row *row;

    json_expect_read(whole);
    growth = &json_model->snapshot.growth;
    row = cw_snapshot_growth_row(&json_model->snapshot, 0);
    cr_assert_eq(growth->moments, 2);
    cr_expect_eq(growth->t_ns[1], 200);
    cr_assert_not_null(row);
    cr_assert_eq(row->count, 2);
    cr_expect_eq(growth->bytes[row->first + 1], 30);
    cr_expect_null(cw_snapshot_growth_row(&json_model->snapshot, 1));
    cr_expect_float_eq(row->trend.slope, 12.5, 1e-9);
    cr_expect(json_model->snapshot.site[0].grows);
    cr_assert_eq(growth->timeline[0].count, 2);
    cr_expect_eq(growth->timeline[0].point[1].used, 10);
    cr_assert_eq(growth->steps, 1);
    cr_expect(growth->step[0].is_rising);
    cr_assert_eq(growth->regrowths, 1);
    cr_expect_eq(growth->regrowth[0].site, 0);
}

Test(json_read, a_series_that_is_too_short_is_none)
{
    json_expect_read(
        JSON_HEAD "\"sites\":[{\"id\":0,\"growth\":{\"bytes\":[1]}}],\"growth\":{\"t_ns\":[1,2]}}");
    cr_expect_eq(cw_snapshot_growth_row(&json_model->snapshot, 0)->count, 0);
}

/* An object has no order: programs that rewrite JSON may sort its keys. */
Test(json_read, what_is_named_may_stand_behind_who_names_it)
{
    static const char sites[] = "\"sites\":[{\"id\":7,\"key\":\"00000001\",\"stack\":3,\"device\":"
                                "0,\"total\":{\"count\":1},"
                                "\"live\":{\"count\":1,\"bytes\":5},\"oldest_age_ns\":0}],";

    const struct cw_report_stack *stack;
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
    json_expect_read(text);
    stack = cw_report_stack(json_model, json_model->snapshot.site[0].stack);
    cr_assert_eq(stack->shown, 2);
    cr_expect_str_eq(cw_report_shown_frame(json_model, stack, 0)->function, "in");
    cr_expect_str_eq(
        cw_report_module_name(json_model, cw_report_shown_frame(json_model, stack, 1)->module),
        "p");
    cr_expect_eq(json_model->snapshot.site[0].oldest_ns, 9000, "a block that was born at the end");
    cr_expect_eq(json_model->event[0].site, 0);
    cr_expect_eq(json_model->block[0].site, 0);
    cr_expect_eq(json_model->snapshot.growth.regrowth[0].site, 0);
    cr_expect_eq(json_model->old[0].site, 0);
    cr_expect_eq(json_model->oom[0].site, 0);
    cr_expect_eq(json_model->oom[0].holder[0].site, 0);
    for (uint32_t i = 0; i < CW_DEVICES; i++)
        cr_expect_eq(cw_report_has_device(json_model, i), i < 2 || i == CW_DEVICE_HOST);
    cr_expect_eq(json_model->snapshot.pressure.device[0].level, CW_LEVEL_HIGH);
    cr_expect_eq(json_model->snapshot.pool.device[1].sums.hits, 2);
    cr_expect_eq(json_model->snapshot.pool.device[1].buckets, 1);
    cr_expect_eq(json_model->snapshot.growth.timeline[1].count, 1);
}

/* Where a count belongs. */
Test(json_read, a_negative_number_is_refused_by_its_name)
{
    json_expect_refused(JSON_HEAD "\"sites\":[{\"id\":0,\"held\":-5}]}", "\"held\" cannot be -5");
    json_expect_refused(JSON_HEAD "\"devices\":[{\"ordinal\":-1}]}", "\"ordinal\" cannot be -1");
    json_expect_read(JSON_HEAD "\"process\":{\"exit\":{\"code\":-1}},\"later\":-1}");
    cr_expect_eq(json_model->process.exit_code, -1);
}

Test(json_read, a_number_may_be_written_in_other_ways)
{
    json_expect_read(JSON_HEAD
                     "\"sites\":[{\"id\":0.0,\"held\":1.5e3,\"frees\":1e300,\"device\":1e12}]}");
    cr_expect_eq(json_model->snapshot.site[0].live_held, 1500);
    cr_expect_eq(json_model->snapshot.site[0].frees, UINT64_MAX);
    cr_expect_eq(json_model->snapshot.site[0].device, CW_DEVICE_HOST, "no other device");
}

Test(json_read, who_only_called_to_free_is_empty_unless_an_error_names_it)
{
    json_expect_read(
        JSON_HEAD
        "\"sites\":[{\"id\":0,\"api\":\"cuMemFree\"},{\"id\":1,\"api\":\"cuMemFree\"},"
        "{\"id\":2,\"api\":\"cuMemFree\"},{\"id\":3,\"failed\":1},"
        "{\"id\":4,\"total\":{\"count\":1}}],"
        "\"events\":[{\"type\":\"invalid-free\",\"site\":1,\"first_freed\":{\"site\":2}}]}");
    for (uint32_t i = 0; i < 5; i++)
        cr_expect_eq(json_model->snapshot.site[i].is_empty, i == 0, "site %u", i);
    cr_expect_eq(json_model->sites_of, 4);
    json_expect_read(JSON_HEAD
                     "\"selection\":{\"sites\":1,\"of\":9},\"sites\":[{\"id\":3,\"failed\":1}]}");
    cr_expect_eq(json_model->sites_of, 9);
}

Test(json_read, has_the_pool_the_pressure_and_the_accounts)
{
    const struct cw_snapshot *snapshot;
    const struct cw_snapshot_pool_device *pool;
    const struct cw_snapshot_pressure_device *pressure;

    json_expect_read(
        JSON_HEAD
        "\"sites\":[{\"id\":0}],\"devices\":[{\"ordinal\":0}],\"pool\":{\"mode\":\"pool\",\"free_"
        "sync\":\"deferred\","
        "\"devices\":["
        "{\"device\":0,\"requested_bytes\":10,\"efficiency\":null,\"efficiency_total\":0.5,"
        "\"trimmed\":{\"full\":1,\"idle\":2,\"oom\":3},\"bypassed\":{\"kind\":4,\"later\":5}}]},"
        "\"pressure\":{\"devices\":[{\"device\":0,\"levels\":{\"critical\":{\"ns\":6}},"
        "\"released\":{\"pressure\":{\"count\":7,\"bytes\":8}},\"refused\":{\"min_free\":9},"
        "\"ladder\":[{\"rung\":\"sync\",\"tried\":10},{\"rung\":\"later\",\"tried\":11}]}]},"
        "\"old\":{\"age_ns\":12,\"sites\":[{\"site\":0,\"count\":13,\"bytes\":14}]},"
        "\"oom_accounts\":[{\"event\":0,\"fits\":15,\"holders\":[{\"bytes\":16},{\"bytes\":17}]},"
        "{\"fragmented\":true,\"rest\":{\"count\":18},\"holders\":[{\"bytes\":19}]}]}");
    snapshot = &json_model->snapshot;
    pool = &snapshot->pool.device[0];
    pressure = &snapshot->pressure.device[0];
    cr_expect(snapshot->pool.deferred);
    cr_expect_eq(pool->requested_bytes, 10);
    cr_expect_eq(pool->released[CW_RELEASE_IDLE].blocks, 2);
    cr_expect_eq(pool->bypassed[CW_BYPASS_KIND], 4);
    cr_expect_eq(pressure->level_ns[CW_LEVEL_CRITICAL], 6);
    cr_expect_eq(pressure->pressure_bytes, 8);
    cr_expect_eq(pressure->refused[CW_CAUSE_MIN_FREE], 9);
    cr_expect_eq(pressure->rung[CW_RUNG_SYNC].tried, 10);
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++)
        cr_expect_eq(pressure->rung[i].rung, i, "step %u, which the report may not have", i);
    cr_expect_eq(snapshot->pressure.all.rung[CW_RUNG_SYNC].tried, 10);
    cr_expect_eq(snapshot->old_ns, 12);
    cr_expect_eq(json_model->olds, 1);
    cr_expect_eq(json_model->old[0].bytes, 14);
    cr_assert_eq(json_model->ooms, 2);
    cr_expect_eq(json_model->oom[0].event, 0);
    cr_expect_eq(json_model->oom[0].holders, 2);
    cr_expect_eq(json_model->oom[1].event, CW_SITE_NONE);
    cr_expect_eq(json_model->oom[1].holder[0].bytes, 19);
}

Test(json_read, every_cut_is_refused_in_one_line)
{
    char *text = strdup(whole);

    for (size_t len = 1; len < strlen(whole); len++) {
        text[len] = '\0';
        json_expect_refused(text, "damaged or cut off at byte");
        text[len] = whole[len];
    }
    free(text);
}

/* Each value in turn becomes one of another type; it is read or refused, and nothing is touched
 * that is not there. */
Test(json_read, wrong_types_do_no_harm)
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
            if (json_read_text(text, (size_t)size) != 0)
                cr_assert_eq(command_errors, 1, "%s", text);
            tried++;
        }
    }
    cr_expect_gt(tried, 500);
    free(text);
}

Test(json_read, numbers_that_are_too_large_do_no_harm)
{
    json_expect_refused(JSON_HEAD "\"frames\":[{\"id\":4000000000}]}", "out of range");
    json_expect_refused_whole(JSON_HEAD "\"stacks\":[{\"id\":1,\"frames\":[99]}]}",
                              "a missing frame");
    json_expect_read(
        JSON_HEAD
        "\"frames\":[{\"id\":268435455}],\"sites\":[{\"id\":268435454,\"stack\":4294967295,"
        "\"live\":{\"bytes\":99999999999999999999999999}}]}");
    cr_expect_eq(json_model->snapshot.site[0].stack, 0);
    cr_expect_eq(json_model->snapshot.site[0].live_bytes, UINT64_MAX);
}

Test(json_read, deep_nesting_is_passed_over)
{
    enum { DEPTH = 100000 };
    char *text = malloc(2 * DEPTH + 256);
    char *at = text + sprintf(text, JSON_HEAD "\"later\":");

    memset(at, '[', DEPTH);
    memset(at + DEPTH, ']', DEPTH);
    strcpy(at + (ptrdiff_t)2 * DEPTH, ",\"process\":{\"pid\":12}}");
    json_expect_read(text);
    cr_expect_eq(json_model->process.pid, 12);
    memset(at, '[', (size_t)2 * DEPTH);
    json_expect_refused(text, "damaged or cut off");
    free(text);
}

Test(json_read, what_follows_the_report_is_refused)
{
    char text[sizeof(whole) + 8];

    snprintf(text, sizeof(text), "%s\n{}", whole);
    json_expect_refused(text, "holds several reports in a row: give each a file");
    snprintf(text, sizeof(text), "\n %s\n", whole);
    json_expect_read(text);
}

/* ---- every row is written and read ---- */

#define VARIANTS 20 /* more than any table has words */
#define SIZE     ((size_t)4 << 20)

static void put_record(FILE *out, unsigned record, unsigned variant, int is_tuple);

/* A value that is neither 0 nor absent; words go by the variant. */
static void put_sample(FILE *out, const struct cw_json_field *row, unsigned type, unsigned variant)
{
    switch ((enum cw_json_type)type) {
    case CW_JSON_TEXT:
    case CW_JSON_TAG:
        fprintf(out, "\"%s-%u\"", row->key, variant);
        break;
    case CW_JSON_ADDRESS:
        fprintf(out, "\"0x7f%02x\"", variant);
        break;
    case CW_JSON_KEY:
        fprintf(out, "\"0000be%02x\"", variant);
        break;
    case CW_JSON_WORD:
        fprintf(out, "\"%s\"",
                strcmp(row->key, "status") == 0
                    ? "done"
                    : row->words->name((variant + 1) % row->words->count));
        break;
    case CW_JSON_TRUTH:
        fputs("true", out);
        break;
    case CW_JSON_REAL:
        fprintf(out, "%u.500000000", variant + 1);
        break;
    case CW_JSON_SHARE:
        fputs("0.125000", out);
        break;
    case CW_JSON_AMOUNT:
        fprintf(out, "{\"count\":%u,\"bytes\":%u}", variant + 1, variant + 2);
        break;
    case CW_JSON_ID:
    case CW_JSON_DEVICE:
        fprintf(out, "%u", variant);
        break;
    case CW_JSON_REF:
        fputs("1", out);
        break;
    default:
        fprintf(out, "%u", strcmp(row->key, "ordinal") == 0 ? variant : variant + 1);
        break;
    }
}

static void put_list(FILE *out, const struct cw_json_field *row)
{
    unsigned count = row->type == CW_JSON_ARRAY && row->other == 0 ? row->most : VARIANTS;

    if (row->type == CW_JSON_ARRAY && count > row->most)
        count = row->most;
    fputc('[', out);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            fputc(',', out);
        if (row->of != CW_JSON_RECORD_NONE)
            put_record(out, row->of, i, row->is_tuple);
        else
            put_sample(out, row, row->plain, i);
    }
    fputc(']', out);
}

static void put_row(FILE *out, const struct cw_json_field *row, unsigned variant)
{
    if (row->type == CW_JSON_OBJECT)
        put_record(out, row->of, variant, row->is_tuple);
    else if (row->type == CW_JSON_MAP)
        fputs("{\"CUWARDEN_LIMIT\":\"1G\"}", out);
    else if (row->type >= CW_JSON_LIST && row->type <= CW_JSON_EACH)
        put_list(out, row);
    else if (strcmp(row->key, "schema") == 0)
        fputs("\"cuwarden-report/1\"", out);
    else
        put_sample(out, row, row->type, variant);
}

static void put_record(FILE *out, unsigned record, unsigned variant, int is_tuple)
{
    int is_first = 1;

    fputc(is_tuple ? '[' : '{', out);
    for (const struct cw_json_field *row = cw_json_record[record].field; row->key; row++) {
        if (row->type == CW_JSON_MADE)
            continue;
        if (!is_first)
            fputc(',', out);
        is_first = 0;
        if (!is_tuple)
            fprintf(out, "\"%s\":", row->key);
        put_row(out, row, variant);
    }
    fputc(is_tuple ? ']' : '}', out);
}

static void write_model(char *to)
{
    struct cw_out out;

    cw_out_init(&out, -1, to, SIZE - 1);
    cw_report_json_write(json_model, &out);
    to[out.len] = '\0';
}

/* What stands in the JSON of a row that was read as nothing. */
static const char *nothing_of(const struct cw_json_field *row)
{
    switch ((enum cw_json_type)row->type) {
    case CW_JSON_UINT:
        return "0";
    case CW_JSON_TRUTH:
        return "false";
    case CW_JSON_REAL:
        return "0.000000000";
    case CW_JSON_TEXT:
        return "\"\"";
    case CW_JSON_AMOUNT:
        return "{\"count\":0";
    default:
        return NULL;
    }
}

static void expect_row(const char *text, const char *record, const struct cw_json_field *row)
{
    const char *nothing = nothing_of(row);
    char key[64], empty[96];

    snprintf(key, sizeof(key), "\"%s\":", row->key);
    cr_expect_not_null(strstr(text, key), "%s of %s is not written", key, record);
    if (!nothing || strcmp(row->key, "ordinal") == 0 || strcmp(row->key, "id") == 0)
        return;
    snprintf(empty, sizeof(empty), "%s%s,", key, nothing);
    cr_expect_null(strstr(text, empty), "%s of %s is not read", key, record);
}

/* One with all rows, which no hand has made: a new row that is not read, or not written, fails. */
Test(json_read, every_row_is_written_and_read)
{
    char *first = calloc(1, SIZE), *again = calloc(1, SIZE);
    FILE *out = fmemopen(first, SIZE, "w");

    put_record(out, CW_JSON_RECORD_report, 0, 0);
    fclose(out);
    json_expect_read(first);
    write_model(first);
    json_expect_read(first);
    write_model(again);
    cr_expect_str_eq(first, again);
    for (unsigned i = 1; i < CW_JSON_RECORDS; i++)
        for (const struct cw_json_field *row = cw_json_record[i].field; row->key; row++)
            if (i != CW_JSON_RECORD_shown && i != CW_JSON_RECORD_point &&
                i != CW_JSON_RECORD_selection && strcmp(row->key, "selection") != 0)
                expect_row(first, cw_json_record[i].name, row);
    free(first);
    free(again);
}

Test(json_read, tags_keep_the_order_of_their_list)
{
    json_expect_read(
        JSON_HEAD "\"sites\":[{\"id\":0,\"tag\":\"late\"},{\"id\":1,\"tag\":\"none\"}],\"tags\":["
                  "{\"tag\":\"early\",\"begun\":1},{\"tag\":\"late\",\"begun\":1}]}");
    cr_assert_eq(json_model->tags, 3);
    cr_expect_str_eq(json_model->tag[0].label, "early");
    cr_expect_str_eq(cw_report_tag_label(json_model, json_model->snapshot.site[0].tag), "late");
    cr_expect_str_eq(cw_report_tag_label(json_model, json_model->snapshot.site[1].tag), "none");
}
