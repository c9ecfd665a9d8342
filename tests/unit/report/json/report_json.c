/* SPDX-License-Identifier: MIT */
/* The JSON report: valid whatever the layout says, and complete. Python reads it. */
#include "report/report.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "json_fixture.h"

TestSuite(report_json, .init = report_file_setup, .fini = report_file_teardown);

Test(report_json, of_an_empty_layout_is_valid)
{
    write_report(CW_REPORT_JSON);
    cr_expect_eq(strncmp(report, "{\"schema\":\"cuwarden-report/1\",", 30), 0);
    expect_holds(
        "r[\"summary\"]=={k:0 for k in (\"leaked_bytes\",\"leaked_blocks\","
        "\"leak_sites\",\"peak_bytes\",\"allocs\",\"frees\",\"failed\",\"pool_hits\","
        "\"pool_misses\",\"invalid_frees\",\"fatal_errors\",\"fallbacks\",\"held_bytes\")}");
    expect_holds("r[\"devices\"]==[] and r[\"sites\"]==[] and r[\"leaks\"]==[] and "
                 "r[\"pressure\"]=={\"devices\":[]} and r[\"oom_accounts\"]==[]");
}

Test(report_json, tells_of_the_process)
{
    write_report(CW_REPORT_JSON);
    expect_text("\"tool\":{\"name\":\"cuwarden\",\"version\":\"0.1.0\"}");
    expect_text(
        "\"pid\":4711,\"ppid\":4710,\"exe\":\"/opt/demo/victim\","
        "\"argv\":[\"./victim\",\"--size\",\"3\"],\"cwd\":\"/opt/demo\",\"host\":\"node7\"");
    expect_text("\"start_ns\":1700000000123456789,\"end_ns\":1700000000523456789");
    expect_text("\"exit\":{\"kind\":\"exit\",\"code\":3}");
    expect_text("\"cuda\":{\"driver\":12040}");
    fixture.arena.header->exit_kind = CW_EXIT_RUNNING;
    fixture.arena.header->end_ns = 0;
    fixture.arena.header->driver_version = 0;
    fixture.arena.header->cwd = 0;
    write_report(CW_REPORT_JSON);
    expect_text("\"exit\":{\"kind\":\"unknown\"}");
    expect_text("\"cuda\":{}");
    cr_expect_null(strstr(report, "end_ns"));
    cr_expect_null(strstr(report, "cwd"));
    expect_holds("r[\"process\"][\"pid\"]==4711");
}

Test(report_json, tables_refer_to_each_other)
{
    uint32_t module = fixture_module("/opt/libapp.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t outer = fixture_frame(0, module, 0x20);
    uint32_t inner = fixture_frame(outer, module, 0x10);
    uint32_t site = fixture_site(inner, "cudaMalloc", CW_KIND_DEVICE, 1);
    struct cw_live_device *device = fixture_device(1, "NVIDIA H200");
    struct cw_live_event *event;

    fixture_module_at(module)->build_id_len = 3;
    fixture_module_at(module)->build_id[1] = 0xab;
    device->driver_total = 1000;
    device->driver_used = 900;
    fixture_alloc(site, 4096, 3, 77);
    event = fixture_event(CW_EVENT_OOM, site, 2);
    event->bytes = 123;
    write_report(CW_REPORT_JSON);
    expect_text("\"uuid\":\"GPU-10111213-1415-1617-1819-1a1b1c1d1e1f\"");
    expect_text("\"build_id\":\"00ab00\"");
    expect_holds("[d[\"ordinal\"] for d in r[\"devices\"]]==[1] and "
                 "r[\"devices\"][0][\"peak\"][\"bytes\"]==12288 and "
                 "r[\"devices\"][0][\"unattributed\"]==900");
    expect_holds("[s[\"frames\"] for s in r[\"stacks\"] if "
                 "s[\"id\"]==r[\"sites\"][0][\"stack\"]]==[[0,1]]");
    expect_holds("{f[\"id\"]:f[\"offset\"] for f in r[\"frames\"]}=={0:16,1:32}");
    expect_holds("r[\"sites\"][0][\"class\"]==\"lost\" and "
                 "r[\"sites\"][0][\"live\"]=={\"count\":3,\"bytes\":12288} and "
                 "r[\"sites\"][0][\"at_device_peak\"]=={\"count\":3,\"bytes\":12288} and "
                 "len(r[\"sites\"][0][\"key\"])==8");
    expect_holds("len(r[\"leaks\"])==3 and all(b[\"bytes\"]==4096 and b[\"t_ns\"]==77 and "
                 "b[\"tid\"]==4711 and b[\"site\"]==r[\"sites\"][0][\"id\"] for b in "
                 "r[\"leaks\"])");
    expect_holds("r[\"events\"][0][\"type\"]==\"oom\" and r[\"events\"][0][\"bytes\"]==123 and "
                 "r[\"events\"][0][\"site\"]==0");
    expect_holds("r[\"kinds\"][\"device\"][\"allocs\"]==3");
}

static void add_pool(void)
{
    struct cw_live_header *header = fixture.arena.header;
    struct cw_live_device *device = fixture_device(1, "NVIDIA H200");
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 1);

    fixture_pool_alloc(site, 3000, 4096, 3, 1);
    fixture_keep(site, 3000, 2);
    fixture_site_at(site)->oom = 2;
    fixture_site_at(site)->failed = 2;
    for (unsigned i = 0; i < 3; i++) {
        struct cw_live_bucket *bucket = fixture_bucket(1, CW_KIND_DEVICE, i == 2 ? 512 : 4096);

        bucket->hits = 30;
        bucket->misses = 10;
        bucket->asked_bytes = 30000;
        bucket->given_bytes = 40000;
        bucket->kept = 25;
        bucket->released = 5;
        bucket->released_bytes = 5 * bucket->size;
    }
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->idle_blocks = 3;
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->idle_bytes = 3 * 4096;
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->idle_blocks = (uint64_t)-1;
    fixture_bucket(1, CW_KIND_DEVICE, 4096)->idle_bytes = (uint64_t)-4096;
    fixture_bucket(CW_DEVICE_HOST, CW_KIND_PINNED, 1024)->kept = 1;
    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++)
        device->pool.bypassed[i] = i + 1;
    device->pool.harvested_by_sync = 11;
    device->pool.harvested_by_event = 12;
    device->pool.event_records = 13;
    device->pool.event_queries = 14;
    device->pool.exact_retries = 15;
    device->pool.oom_retries = 16;
    device->pool.released[CW_RELEASE_FULL].blocks = 17;
    device->pool.released[CW_RELEASE_IDLE].blocks = 18;
    device->pool.released[CW_RELEASE_OOM].blocks = 19;
    device->pool.released[CW_RELEASE_FULL].bytes = 22;
    device->pool.released[CW_RELEASE_CONTEXT].bytes = 23;
    device->pool.released[CW_RELEASE_ASKED].blocks = 24;
    device->pool.released[CW_RELEASE_NEIGHBOUR].blocks = 26;
    device->pool.released[CW_RELEASE_NEIGHBOUR].bytes = 27;
    device->pool.released[CW_RELEASE_CONTEXT].blocks = 25;
    device->pool.prewarmed = 20;
    device->pool.abandoned = 21;
    device->pool.put_off = 22;
    device->pool.events_refused = 23;
    header->free_sync = 1;
}

Test(report_json, tells_what_the_pool_did)
{
    add_pool();
    write_report(CW_REPORT_JSON);
    expect_holds("r[\"pool\"][\"mode\"]==\"pool\" and r[\"pool\"][\"free_sync\"]==\"deferred\" "
                 "and [d[\"device\"] for d in r[\"pool\"][\"devices\"]]==[1,\"host\"] and "
                 "r[\"summary\"][\"pool_hits\"]==90 and r[\"summary\"][\"pool_misses\"]==30");
    expect_holds(
        "(lambda d: {k: d[k] for k in d if k!=\"buckets\"})(r[\"pool\"][\"devices\"][0])=="
        "{\"device\":1,\"name\":\"NVIDIA H200\",\"hits\":90,\"misses\":30,"
        "\"hit_rate\":0.75,\"requested_bytes\":3000,\"allocated_bytes\":4096,"
        "\"reserved_bytes\":12288,\"peak_reserved_bytes\":12288,"
        "\"in_use_bytes\":3000,\"cached_bytes\":8192,\"cached_blocks\":2,\"waste_bytes\":1096,"
        "\"efficiency\":0.732422,\"efficiency_total\":0.75,"
        "\"requested_bytes_total\":90000,\"allocated_bytes_total\":120000,"
        "\"fragmentation\":0.267578,\"fragmentation_now\":0.755859,"
        "\"fragmentation_peak\":0.267578,\"num_device_alloc\":50,\"num_device_free\":15,"
        "\"driver_calls_saved\":{\"alloc\":90,\"free\":60},"
        "\"num_alloc_retries\":16,\"num_ooms\":2,\"exact_retries\":15,"
        "\"prewarmed\":20,\"harvested\":{\"by_sync\":11,\"by_event\":12},"
        "\"event_records\":13,\"event_queries\":14,"
        "\"trimmed\":{\"full\":17,\"idle\":18,\"oom\":19,\"pressure\":0,\"asked\":24,"
        "\"neighbour\":26,\"context\":25},"
        "\"trimmed_bytes\":{\"full\":22,\"idle\":0,\"oom\":0,\"pressure\":0,\"asked\":0,"
        "\"neighbour\":27,\"context\":23},"
        "\"abandoned\":21,\"put_off\":22,\"events_refused\":23,"
        "\"bypassed\":{\"capture\":1,\"exported\":2,\"no_context\":3,"
        "\"broken_context\":4,\"contexts\":5,\"full\":6,\"wanted\":7,\"kind\":8,\"busy\":9,"
        "\"events\":10}}");
    expect_holds("r[\"pool\"][\"devices\"][0][\"buckets\"]==["
                 "{\"kind\":\"device\",\"size_bytes\":512,\"hits\":30,\"misses\":10,"
                 "\"kept\":25,\"released\":5,\"released_bytes\":2560,\"cached_bytes\":0,"
                 "\"cached_blocks\":0},"
                 "{\"kind\":\"device\",\"size_bytes\":4096,\"hits\":60,\"misses\":20,"
                 "\"kept\":50,\"released\":10,\"released_bytes\":40960,\"cached_bytes\":8192,"
                 "\"cached_blocks\":2}]");
    expect_holds("[r[\"pool\"][\"devices\"][1][k] for k in (\"hit_rate\",\"efficiency\","
                 "\"efficiency_total\",\"fragmentation\",\"fragmentation_now\","
                 "\"fragmentation_peak\")]==[None]*6");
    expect_holds("{k: r[\"pool\"][k] for k in r[\"pool\"] if k not in (\"devices\",\"mode\","
                 "\"free_sync\")}=={\"efficiency\":0.732422,\"efficiency_total\":0.75,"
                 "\"fragmentation_now\":0.755859,\"fragmentation_peak\":0.267578}");
    expect_holds("r[\"devices\"][0][\"idle\"]=={\"count\":2,\"bytes\":8192} and "
                 "[b[\"bytes\"] for b in r[\"leaks\"]]==[3000] and "
                 "r[\"devices\"][0][\"live\"]=={\"count\":1,\"bytes\":3000}");
}

Test(report_json, without_a_pool_says_so)
{
    fixture_device(0, "NVIDIA H200");
    write_report(CW_REPORT_JSON);
    expect_holds("r[\"pool\"]=={\"mode\":\"track\",\"devices\":[]} and "
                 "\"idle\" not in r[\"devices\"][0]");
}

Test(report_json, tells_of_limits_and_pressure)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 1);

    fixture_device(0, "NVIDIA H200"); /* nothing to tell of this one */
    fixture_device(1, "NVIDIA H200");
    fixture_scarce(1, site);
    write_report(CW_REPORT_JSON);
    expect_holds("(lambda d: {k: d[k] for k in d if k!=\"ladder\"})"
                 "(*r[\"pressure\"][\"devices\"])=={\"device\":1,\"name\":\"NVIDIA H200\","
                 "\"limit\":64<<30,\"min_free\":1<<29,\"bounds\":[],\"held\":0,\"peak_held\":0,"
                 "\"spare\":2<<30,\"level\":\"critical\",\"use\":0.962,\"highest_use\":0.9731,"
                 "\"level_changes\":5,\"levels\":{"
                 "\"low\":{\"entered\":0,\"ns\":200000000},"
                 "\"medium\":{\"entered\":0,\"ns\":0},"
                 "\"high\":{\"entered\":3,\"ns\":60000000},"
                 "\"critical\":{\"entered\":2,\"ns\":140000000}},"
                 "\"released\":{\"pressure\":{\"count\":12,\"bytes\":3<<29}},\"limited\":9,"
                 "\"refused\":{\"driver\":1,\"limit\":2,\"min_free\":3,\"injected\":4,\"budget\":5,"
                 "\"platform\":6},"
                 "\"fallbacks\":{\"count\":5,\"bytes\":3<<30},"
                 "\"neighbours\":{\"asked\":7,\"silent\":2,\"wait_ns\":12000000,\"served\":3}}");
    expect_holds("[[s[k] for k in (\"rung\",\"tried\",\"helped\",\"released_bytes\")] for s "
                 "in r[\"pressure\"][\"devices\"][0][\"ladder\"]]==[[n,10*i+10,i+1,i<<30] "
                 "for i,n in enumerate((\"harvest\",\"larger\",\"exact\",\"sufficient\","
                 "\"all\",\"poll\",\"sync\",\"neighbours\",\"program\",\"fallback\"))]");
}

Test(report_json, bounds_have_their_origin_force_and_scope)
{
    struct cw_live_memory *memory = &fixture.arena.header->device[0].memory;

    memory->bound[CW_BOUND_NVIDIA_REQUEST] = 2 << 20;
    memory->bound[CW_BOUND_MPS] = 4 << 20;
    memory->borrowed = 5;
    memory->peak_borrowed = 6;
    write_report(CW_REPORT_JSON);
    expect_holds("r[\"pressure\"][\"devices\"][0][\"bounds\"]==["
                 "{\"origin\":\"NVIDIA_GPU_MEMORY_REQUEST\",\"force\":\"soft\","
                 "\"scope\":\"container\",\"bytes\":2<<20},"
                 "{\"origin\":\"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT\",\"force\":\"hard\","
                 "\"scope\":\"process\",\"bytes\":4<<20}]");
    expect_holds("[r[\"pressure\"][\"devices\"][0][k] for k in (\"borrowed\","
                 "\"peak_borrowed\")]==[5,6]");
}

Test(report_json, events_of_pressure_have_their_fields)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 1);

    fixture_scarce(1, site);
    fixture_event(CW_EVENT_OOM, 0, 2)->cause = CW_CAUSE_INJECTED;
    write_report(CW_REPORT_JSON);
    expect_holds("[e[\"type\"] for e in r[\"events\"]]==[\"pressure\",\"trim\",\"limit\","
                 "\"oom\",\"oom\"] and "
                 "[e[\"device\"] for e in r[\"events\"]]==[1,1,1,1,0] and "
                 "[e.get(\"count\") for e in r[\"events\"]]==[1,14,1,None,None] and "
                 "[e.get(\"injected\") for e in r[\"events\"]]==[None]*4+[True] and "
                 "[e.get(\"cause\") for e in r[\"events\"]]==[None,\"min_free\",None,"
                 "\"driver\",\"injected\"] and "
                 "[e.get(\"released_bytes\") for e in r[\"events\"]]==[3<<29,3<<29,0,None,"
                 "None] and [r[\"events\"][0][k] for k in (\"level_before\",\"level\")]==["
                 "\"medium\",\"high\"] and r[\"events\"][1][\"rung\"]==\"all\"");
}

Test(report_json, accounts_of_out_of_memory_name_the_holders)
{
    uint32_t module = fixture_module("/opt/libapp.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t stack = fixture_frame(0, module, 0x20);
    uint32_t site = fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 1);

    fixture_scarce(1, site);
    fixture_oom(0, site)->cause = CW_CAUSE_INJECTED;
    write_report(CW_REPORT_JSON);
    expect_holds("r[\"oom_accounts\"][0]=={\"t_ns\":100000000,\"code\":2,\"event\":3,"
                 "\"device\":1,\"cause\":\"driver\",\"site\":0,\"api\":\"cudaMalloc\","
                 "\"kind\":\"device\",\"stack\":1,\"bytes\":8<<30,\"fits\":3<<30,"
                 "\"limit\":64<<30,\"live\":40<<30,\"held\":60<<30,\"idle\":15<<30,"
                 "\"spare\":2<<30,\"free\":61<<30,\"total\":141<<30,\"others\":18<<30,"
                 "\"fragmented\":True,\"holders\":[{\"site\":0,\"api\":\"cudaMalloc\","
                 "\"kind\":\"device\",\"stack\":1,\"count\":212,\"bytes\":30<<30}],"
                 "\"rest\":{\"count\":33,\"bytes\":10<<30}}");
    expect_holds("r[\"events\"][r[\"oom_accounts\"][0][\"event\"]][\"type\"]==\"oom\" and "
                 "[a.get(\"injected\") for a in r[\"oom_accounts\"]]==[None,True] and "
                 "\"fits\" not in r[\"oom_accounts\"][1]");
}

/* As where the process was killed meanwhile, or its file could not grow. */
Test(report_json, an_event_without_a_time_is_none)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_event(CW_EVENT_OOM, 0, 0)->t_ns = 0;
    fixture_event(CW_EVENT_OOM, site, 2)->bytes = 123;
    fixture_oom(2, site);
    fixture_oom(1, site);
    write_report(CW_REPORT_JSON);
    expect_holds("[e[\"bytes\"] for e in r[\"events\"]]==[123]");
    expect_holds("[o.get(\"event\") for o in r[\"oom_accounts\"]]==[0,None]");
}

Test(report_json, a_double_free_names_the_first_free)
{
    uint32_t module = fixture_module("/opt/libapp.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t stack = fixture_frame(0, module, 0x20);
    uint32_t first = fixture_site(stack, "cuMemFree", CW_KIND_DEVICE, 0);
    uint32_t second = fixture_site(0, "cudaFree", CW_KIND_DEVICE, 0);

    fixture_event(CW_EVENT_INVALID_FREE, second, 1)->other_site = first;
    fixture_event(CW_EVENT_INVALID_FREE, second, 1);
    fixture_event(CW_EVENT_INVALID_FREE, second, 1)->other_site = 99;
    write_report(CW_REPORT_JSON);
    expect_holds("[e[\"first_freed\"] for e in r[\"events\"] if \"first_freed\" in e]==["
                 "{\"site\":[s[\"id\"] for s in r[\"sites\"] if s[\"api\"]==\"cuMemFree\"][0],"
                 "\"api\":\"cuMemFree\",\"stack\":r[\"stacks\"][0][\"id\"]}]");
}

Test(report_json, blocks_are_cut_at_ten_thousand)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_alloc(site, 512, 10005, 1);
    fixture_free(site, 512, 2);
    write_report(CW_REPORT_JSON);
    expect_holds("len(r[\"leaks\"])==10000 and r[\"leaks_truncated\"]==3");
}

Test(report_json, is_valid_for_any_bytes)
{
    char bytes[256];
    uint32_t module;

    for (int i = 0; i < 255; i++)
        bytes[i] = (char)(i + 1);
    bytes[255] = '\0';
    module = fixture_module(bytes, 1 << 20, CW_MODULE_PROGRAM);
    fixture.arena.header->exe = fixture_text(bytes);
    fixture.arena.header->cwd = fixture_text("\xff\"\\\n\xe2\x82");
    fixture.arena.header->disarmed = fixture_text(bytes);
    fixture_device(0, bytes);
    memset(fixture.arena.header->device[1].name, 0xc3, 96);
    fixture.arena.header->device[1].known = 1;
    fixture_leak(fixture_frame(0, module, 1), bytes, 512, 1);
    write_report(CW_REPORT_JSON);
    expect_holds("len(r[\"devices\"])==2 and len(r[\"diagnostics\"])==1");
}

/* Nothing that lies behind it is read; the sanitizers see that. */
Test(report_json, a_reason_too_long_is_cut)
{
    char reason[600];

    memset(reason, 'x', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    fixture.arena.header->disarmed = fixture_text(reason);
    write_report(CW_REPORT_JSON);
    expect_holds("r[\"diagnostics\"][0][\"text\"]==\"it stopped early: \"+237*\"x\"");
}

/* Every 50th of the layouts that corrupted_layouts_do_no_harm (report_text) goes through. */
Test(report_json, of_a_corrupted_layout_is_valid)
{
    uint32_t module = fixture_module("/opt/libapp.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t frame = fixture_frame(0, module, 1);
    size_t used;
    char *good;

    fixture_leak(frame, "cudaMalloc", 512, 9);
    fixture_event(CW_EVENT_OOM, 1, 2);
    fixture_event(CW_EVENT_INVALID_FREE, 1, 1)->other_site = 1;
    add_pool();
    fixture_scarce(0, 1);
    used = fixture.arena.committed;
    good = malloc(used);
    memcpy(good, fixture.arena.header, used);
    for (unsigned seed = 0; seed < 40; seed++) {
        char *base = (char *)fixture.arena.header;

        srand(seed);
        for (int i = 0; i < 20; i++) {
            const struct cw_live_table *table =
                &((struct cw_live_header *)good)->table[rand() % CW_TABLE_COUNT];
            size_t at = 16 + (size_t)rand() % sizeof(struct cw_live_header);

            if (i % 2 && table->chunk[0] != 0)
                at = table->chunk[0] + (size_t)rand() % 512;
            base[at] ^= (char)(1 << rand() % 8);
        }
        write_report(CW_REPORT_JSON);
        cr_expect(report_holds("r[\"schema\"]==\"cuwarden-report/1\""), "seed %u", seed);
        memcpy(base, good, used);
    }
    free(good);
}
