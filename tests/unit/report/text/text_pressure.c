/* SPDX-License-Identifier: MIT */
/* The section PRESSURE of the text report. */
#include "report/report.h"

#include <criterion/criterion.h>

#include <string.h>

#include "report_fixture.h"

TestSuite(text_pressure, .init = fixture_create, .fini = report_teardown);

static struct cw_live_memory *memory_of(unsigned device)
{
    return &fixture.arena.header->device[device].memory;
}

static uint32_t plain_site(unsigned device)
{
    uint32_t app = fixture_module("/opt/none/app", 1 << 24, CW_MODULE_PROGRAM);
    uint32_t lib = fixture_module("/opt/none/libgrow.so", 1 << 25, CW_MODULE_PROGRAM);
    uint32_t stack = fixture_frame(fixture_frame(0, app, 0x11), lib, 0x22);

    return fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, device);
}

Test(text_pressure, nothing_happened_nothing_is_printed)
{
    uint32_t site = plain_site(0);

    fixture_alloc(site, GIB, 2, 5);
    memory_of(0)->highest_use = 5000;
    memory_of(0)->spare = MIB;
    write_report(CW_REPORT_TEXT);
    expect_no_text("PRESSURE");
    expect_no_text("OUT OF MEMORY");
    fixture_scarce(0, site);
    write_report(CW_REPORT_SHORT_IF_LEAKED);
    expect_no_text("PRESSURE");
    expect_no_text("OUT OF MEMORY");
}

Test(text_pressure, each_reason_alone_brings_the_section)
{
    static const size_t fields[] = {
        offsetof(struct cw_live_device, memory.limit),
        offsetof(struct cw_live_device, memory.min_free),
        offsetof(struct cw_live_device, memory.bound[CW_BOUND_MPS]),
        offsetof(struct cw_live_device, memory.refused[CW_CAUSE_LIMIT]),
        offsetof(struct cw_live_device, memory.limited),
        offsetof(struct cw_live_device, memory.rung[CW_RUNG_POLL].tried),
        offsetof(struct cw_live_device, memory.fallbacks),
        offsetof(struct cw_live_device, memory.neighbours.asked),
        offsetof(struct cw_live_device, memory.neighbours.served),
        offsetof(struct cw_live_device, memory.level_entered[CW_LEVEL_MEDIUM]),
        offsetof(struct cw_live_device, pool.released[CW_RELEASE_PRESSURE].blocks),
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        uint64_t *field = (uint64_t *)((char *)&fixture.arena.header->device[1] + fields[i]);

        *field = 1;
        write_section("== PRESSURE");
        expect_text("==4711==   1       ");
        *field = 0;
        write_section("== PRESSURE");
        cr_expect_str_eq(report, "", "field %zu", i);
    }
    fixture_event(CW_EVENT_LIMIT, 0, 0)->bytes = GIB;
    write_section("== PRESSURE");
    expect_line("    0.100s  device 0  limit changed to 1.0 GiB");
}

Test(text_pressure, tells_limits_and_levels_by_device)
{
    fixture_scarce(0, plain_site(0));
    fixture_alloc(1, 60 * GIB, 1, 5);
    memory_of(1)->min_free = MIB;
    write_section("== PRESSURE");
    expect_line("  device     limit   min free      held  peak held     level  highest use  "
                "changes");
    expect_line("  0       64.0 GiB  512.0 MiB  60.0 GiB   60.0 GiB  critical        97.3%  "
                "      5");
    expect_line("  1              -    1.0 MiB       0 B        0 B       low            -  "
                "      0");
    expect_line("  time at each level");
    expect_line("  device           low  medium          high      critical");
    /* Critical since 0.3 s of 0.4 s, and 0.04 s before. */
    expect_line("  0       0.200s 50.0%       -  0.060s 15.0%  0.140s 35.0%");
    cr_expect_eq(count_of("\n==4711==   1  "), 1); /* it never left low */
}

Test(text_pressure, tells_bounds_with_their_origin_and_what_is_borrowed)
{
    fixture_alloc(plain_site(0), 3 * GIB, 1, 5);
    memory_of(0)->bound[CW_BOUND_NVIDIA_LIMIT] = 4 * GIB;
    memory_of(0)->bound[CW_BOUND_NVIDIA_REQUEST] = 2 * GIB;
    memory_of(1)->bound[CW_BOUND_OWN] = GIB;
    memory_of(0)->borrowed = GIB / 2;
    memory_of(0)->peak_borrowed = GIB;
    write_section("== PRESSURE");
    expect_line("  limits that are causes of pressure, and refuse nothing");
    expect_line("    device 0  hard     4.0 GiB  of the container  NVIDIA_GPU_MEMORY_LIMIT");
    expect_line("    device 0  soft     2.0 GiB  of the container  NVIDIA_GPU_MEMORY_REQUEST");
    expect_line("    device 0  512.0 MiB borrowed beyond the soft limit, 1.0 GiB at most");
    expect_line("    device 1  soft     1.0 GiB  of the process    CUWARDEN_SOFT_LIMIT");
    cr_expect_eq(count_of("borrowed"), 1);
}

Test(text_pressure, a_peak_between_two_looks_was_borrowed_too)
{
    memory_of(0)->bound[CW_BOUND_OWN] = 2 * GIB;
    fixture.arena.header->device[0].peak_held = 3 * GIB;
    write_section("== PRESSURE");
    expect_line("    device 0  0 B borrowed beyond the soft limit, 1.0 GiB at most");
}

Test(text_pressure, a_change_of_level_names_the_bound)
{
    struct cw_live_event *event = fixture_event(CW_EVENT_PRESSURE, 0, 0);

    event->cause = CW_CAUSE_PLATFORM;
    event->bound = CW_BOUND_VGPU;
    event->share = 9700;
    event->level = CW_LEVEL_CRITICAL;
    event->bytes = GIB;
    write_section("== PRESSURE");
    expect_text("low -> critical: 97.0% of CUDA_DEVICE_MEMORY_LIMIT, 1.0 GiB held");
}

Test(text_pressure, a_level_lasts_to_the_end_of_what_is_known)
{
    fixture_scarce(0, plain_site(0));
    memory_of(0)->level_since_ns = 500 * FIXTURE_MS; /* beyond the end */
    write_section("== PRESSURE");
    expect_text("  0.040s 13.3%\n");
}

Test(text_pressure, tells_what_was_given_back_tried_refused_and_served_otherwise)
{
    fixture_scarce(0, plain_site(0));
    memory_of(1)->rung[CW_RUNG_ALL].tried = 7;
    memory_of(0)->rung[CW_RUNG_POLL].tried = 0;
    write_section("== PRESSURE");
    expect_line("  idle blocks released to the driver, because");
    expect_line("       1.5 GiB in 12 blocks  memory on the device was scarce");
    expect_line("  remedies when out of memory, in order              tried  helped  given back");
    expect_line("    take in what the device has finished with           10       1           -");
    expect_line("    give back all idle blocks                           57       5     4.0 GiB");
    expect_no_text("wait a moment");
    expect_line("    9  did not fit at first because of the memory limit or CUWARDEN_MIN_FREE");
    expect_line("    1  refused: the driver had none");
    expect_line("    2  refused: beyond the memory limit");
    expect_line("    3  refused: less than CUWARDEN_MIN_FREE would have stayed free");
    expect_line("    4  refused: injected by CUWARDEN_FAIL");
    expect_line("  served from managed memory, counted as host memory");
    expect_line("       3.0 GiB in 5 requests  (CUWARDEN_FALLBACK=managed)");
}

Test(text_pressure, says_what_can_be_done)
{
    memory_of(0)->refused[CW_CAUSE_LIMIT] = 1;
    write_section("== PRESSURE");
    expect_line("  refused by the memory limit: raise it (CUWARDEN_LIMIT), or set "
                "CUWARDEN_FALLBACK=managed");
    expect_no_text("refused by CUWARDEN_MIN_FREE");
    expect_no_text("critical for");
    memory_of(0)->fallbacks = 1;
    memory_of(0)->level = CW_LEVEL_CRITICAL;
    memory_of(0)->level_since_ns = 359 * FIXTURE_MS;
    memory_of(0)->level_ns[CW_LEVEL_HIGH] = 359 * FIXTURE_MS;
    write_section("== PRESSURE");
    expect_line("  refused by the memory limit: raise it (CUWARDEN_LIMIT)");
    expect_line("  device 0 was critical for 10.3% of the time, when its pool keeps nothing:");
    expect_line("    let the program or its neighbours use less, or move the levels with "
                "CUWARDEN_PRESSURE");
    memory_of(0)->limit = GIB;
    write_section("== PRESSURE");
    expect_line("    raise CUWARDEN_LIMIT, or move the levels with CUWARDEN_PRESSURE");
    memory_of(0)->level_since_ns = 361 * FIXTURE_MS;
    write_section("== PRESSURE");
    expect_no_text("critical for");
}

Test(text_pressure, events_tell_what_changed_and_who_called)
{
    fixture_scarce(0, plain_site(0));
    write_section("== PRESSURE");
    expect_line("  events: 3 changes");
    expect_text(
        "==4711==     0.100s  device 0  medium -> high: 85.1% of the device, "
        "120.0 GiB in use\n"
        "==4711==         1.5 GiB given back\n"
        "==4711==         cudaMalloc  libgrow.so+0x22 <- app+0x11\n"
        "==4711==     0.100s  device 0  2.0 GiB served in the end\n"
        "==4711==         first failure: less than CUWARDEN_MIN_FREE would have stayed free\n"
        "==4711==         remedy: give back all idle blocks\n"
        "==4711==         1.5 GiB given back, 14 times\n"
        "==4711==         cudaMalloc  libgrow.so+0x22 <- app+0x11\n"
        "==4711==     0.100s  device 0  limit changed to 64.0 GiB\n");
}

Test(text_pressure, a_change_of_level_by_the_limit_says_so)
{
    struct cw_live_event *event = fixture_event(CW_EVENT_PRESSURE, 0, 0);

    event->level = CW_LEVEL_MEDIUM;
    event->cause = CW_CAUSE_LIMIT;
    event->share = 7000;
    event->bytes = 7 * GIB;
    write_section("== PRESSURE");
    expect_text("low -> medium: 70.0% of the memory limit, 7.0 GiB held\n");
}

Test(text_pressure, the_newest_ten_events_are_listed)
{
    for (unsigned i = 0; i < 13; i++) {
        struct cw_live_event *event = fixture_event(CW_EVENT_PRESSURE, 0, 0);

        event->device = 2;
        event->level_before = i % 2;
        event->level = 1 - i % 2;
        event->bytes = (i + 1) * GIB;
    }
    write_section("== PRESSURE");
    expect_line("  events: 13 changes, the last 10 of them");
    expect_no_text(" 3.0 GiB in use");
    cr_expect_lt(strstr(report, "low -> medium: 0.0% of the device, 5.0 GiB in use"),
                 strstr(report, "medium -> low: 0.0% of the device, 12.0 GiB in use"));
}

Test(text_pressure, no_line_is_wider_than_100_columns)
{
    uint32_t site = plain_site(63);
    char api[64];

    fixture_scarce(63, site);
    memset(api, 'a', sizeof(api));
    api[63] = '\0';
    fixture_site_at(site)->api = fixture_text(api);
    fixture.arena.header->pid = 4194304;
    fixture.arena.header->end_ns = UINT64_C(9) * 86400 * 1000 * FIXTURE_MS;
    for (uint32_t i = 1; i < fixture.arena.header->table[CW_TABLE_EVENT].count; i++) {
        struct cw_live_event *event = cw_arena_at(&fixture.arena, CW_TABLE_EVENT, i);

        event->t_ns = UINT64_C(8) * 86400 * 1000 * FIXTURE_MS;
        event->level_before = CW_LEVEL_CRITICAL;
        event->level = CW_LEVEL_MEDIUM;
        event->bytes = 141 * GIB;
        event->released = 1023 * GIB + 900 * MIB;
        event->count = UINT32_MAX;
    }
    memory_of(63)->limit = 1023 * GIB + 900 * MIB;
    memory_of(63)->min_free = 1023 * GIB + 900 * MIB;
    memory_of(63)->limited = UINT32_MAX;
    memory_of(63)->rung[CW_RUNG_SUFFICIENT].tried = UINT32_MAX;
    for (unsigned i = 0; i < CW_LEVEL_COUNT; i++) {
        memory_of(63)->level_entered[i] = 100000;
        memory_of(63)->level_ns[i] = UINT64_C(3) * 86400 * 1000 * FIXTURE_MS;
    }
    write_section("== PRESSURE");
    cr_assert_neq(report[0], '\0');
    for (const char *at = report; strncmp(at, "==4194304== SUMMARY", 19) != 0;
         at = strchr(at, '\n') + 1)
        cr_expect_leq(strcspn(at, "\n"), 100, "%.*s", (int)strcspn(at, "\n"), at);
}
