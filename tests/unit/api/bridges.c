/* SPDX-License-Identifier: MIT */
/* Bridges: which way a copy goes, in which order both devices are asked, what is refused, and what
 * stays behind when something fails. */
#include <criterion/criterion.h>

#include <string.h>

#include "api/rows.h"
#include "api/transfers.h"
#include "bridge_fixture.h"
#include "core/process/gate.h"

#define PEER   CUWARDEN_PEER
#define STAGED CUWARDEN_STAGED
#define SIZE   BRIDGE_BYTES

TestSuite(bridges, .init = bridge_setup);

static struct cuwarden_bridge now(uint64_t bridge)
{
    struct cuwarden_bridge out = {0};

    API_WORKS(cw_api_bridge_now(bridge, &out, sizeof(out)));
    return out;
}

static int from_near(uint64_t bridge, uint64_t bytes)
{
    return bridge_start(bridge, ON_FAR, ON_NEAR, bytes, &bridge_near_stream);
}

/* ---- making and ending ---- */

Test(bridges, are_made_of_what_their_way_needs_and_give_all_back)
{
    static const struct {
        int way, from, to;
        const char *made, *ended;
    } rows[] = {{PEER, 0, 1, "smtmSM", "wdzWDZ"},
                {STAGED, 0, 1, "smSMA", "wdzWDZF"},
                {PEER, 0, 0, "SMSM", "WDZWDZ"}};

    for (unsigned i = 0; i < 3; i++) {
        uint64_t bridge = 0;

        API_WORKS(cw_api_bridge_make("halo", rows[i].from, rows[i].to, 1, rows[i].way, &bridge));
        BRIDGE_CALLS(rows[i].made);
        cr_expect(now(bridge).id == bridge && now(bridge).started == 0);
        cr_expect_eq(now(bridge).chunk_bytes, 4096);
        cr_expect(now(bridge).from_device == rows[i].from && now(bridge).to_device == rows[i].to);
        API_WORKS(cw_api_bridge_end(bridge));
        BRIDGE_CALLS(rows[i].ended);
        cr_expect_eq(devices.live, 0);
        API_FAILS(CUWARDEN_NOT_FOUND, "it has ended, or never was", cw_api_bridge_end(bridge));
    }
}

Test(bridges, that_cannot_be_made_leave_nothing_behind)
{
    static const struct {
        char letter;
        int code, error;
        const char *text;
    } rows[] = {{'A', CW_BUFFER_NO_MEMORY, CUWARDEN_OUT_OF_HOST, "two chunks of 4096 bytes"},
                {'A', 999, CUWARDEN_DRIVER, "cannot begin: the driver's code is 999"},
                {'S', 999, CUWARDEN_DRIVER, "code is 999"},
                {'s', 999, CUWARDEN_DRIVER, "code is 999"},
                {'M', 999, CUWARDEN_DRIVER, "code is 999"},
                {'m', 999, CUWARDEN_DRIVER, "code is 999"},
                {'E', CW_BUFFER_CONTEXT_ENDED, CUWARDEN_DRIVER, "its context has ended"},
                {'e', CW_BUFFER_CONTEXT_ENDED, CUWARDEN_DRIVER, "its context has ended"}};
    uint64_t id = 7;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int spared = 0; spared < (rows[i].letter == 'm' ? 35 : 1); spared++) {
            memset(&devices, 0, sizeof(devices));
            devices.fails_at[(unsigned char)rows[i].letter] = rows[i].code;
            devices.spared = spared;
            API_FAILS(rows[i].error, rows[i].text,
                      cw_api_bridge_make("halo", 0, 1, BRIDGE_CHUNK, STAGED, &id));
            cr_expect_eq(devices.live, 0, "%c after %d", rows[i].letter, spared);
        }
    }
    cr_expect_eq(id, 7);
    memset(&devices, 0, sizeof(devices));
    bridge_make(STAGED);
}

Test(bridges, need_a_name_of_their_own_devices_that_are_used_and_a_way)
{
    uint64_t id = 7;
    char name[CW_ROW_NAME_MAX + 1];

    memset(name, 'n', CW_ROW_NAME_MAX);
    name[CW_ROW_NAME_MAX] = '\0';
    bridge_make(PEER);
    API_FAILS(CUWARDEN_INVALID, "needs a name", cw_api_bridge_make(NULL, 0, 1, 0, PEER, &id));
    API_FAILS(CUWARDEN_INVALID, "needs a name", cw_api_bridge_make("", 0, 1, 0, PEER, &id));
    API_FAILS(CUWARDEN_INVALID, "place for its", cw_api_bridge_make("b", 0, 1, 0, PEER, NULL));
    API_FAILS(CUWARDEN_INVALID, "has 48 bytes", cw_api_bridge_make(name, 0, 1, 0, PEER, &id));
    API_FAILS(CUWARDEN_EXISTS, "'halo' already", cw_api_bridge_make("halo", 0, 1, 0, PEER, &id));
    API_FAILS(CUWARDEN_INVALID, "at most 1073741824",
              cw_api_bridge_make("b", 0, 1, UINT64_MAX, PEER, &id));
    API_FAILS(CUWARDEN_INVALID, "cannot go way 9", cw_api_bridge_make("b", 0, 1, 0, 9, &id));
    API_FAILS(CUWARDEN_NO_DEVICE, "no device 2", cw_api_bridge_make("b", 2, 1, 0, PEER, &id));
    API_FAILS(CUWARDEN_NO_DEVICE, "no device 17", cw_api_bridge_make("b", 0, 17, 0, PEER, &id));
    API_FAILS(CUWARDEN_NO_DEVICE, "-2 is none",
              cw_api_bridge_make("b", CUWARDEN_HOST, 1, 0, PEER, &id));
    API_FAILS(CUWARDEN_NO_DEVICE, "-1 is none",
              cw_api_bridge_make("b", 0, CUWARDEN_ALL_DEVICES, 0, PEER, &id));
    pool_end_context(bridge_far_context(), CW_CONTEXT_DESTROYED);
    API_FAILS(CUWARDEN_UNUSED_DEVICE, "has none there",
              cw_api_bridge_make("b", 0, 1, 0, PEER, &id));
    BRIDGE_CALLS("");
    cr_expect_eq(id, 7);
    API_WORKS(cw_api_bridge_make("b", 0, 0, 0, PEER, &id));
    cr_expect_eq(now(id).chunk_bytes, (uint64_t)4 << 20);
}

Test(bridges, go_through_the_host_where_peers_cannot)
{
    uint64_t bridge = 0;

    devices.fails_at['t'] = 217;
    bridge = bridge_make(PEER);
    cr_expect_eq(now(bridge).way, CW_WAY_STAGED);
    API_WORKS(from_near(bridge, 1));
    cr_expect_eq(devices.to_host, 1);
}

Test(bridges, are_not_a_forked_childs)
{
    uint64_t bridge = bridge_make(PEER);
    struct cuwarden_bridge out;

    cw_api_bridges_reset();
    API_FAILS(CUWARDEN_NOT_FOUND, "no bridge", from_near(bridge, 1));
    API_FAILS(CUWARDEN_NOT_FOUND, "no bridge", cw_api_bridge_wait(bridge, 0));
    API_FAILS(CUWARDEN_NOT_FOUND, "no bridge", cw_api_bridge_now(bridge, &out, sizeof(out)));
    API_FAILS(CUWARDEN_NOT_FOUND, "no bridge", cw_api_bridge_end(bridge));
    cr_expect_neq(bridge_make(PEER), bridge);
}

/* ---- the order of a copy ---- */

/* O, o: what comes later waits; the program's stream is that of the near side, but for the last. */
Test(bridges, copy_after_what_the_stream_has_and_before_what_comes_later)
{
    uint64_t peer = bridge_make(PEER), staged = 0;

    API_WORKS(from_near(peer, 5));
    BRIDGE_CALLS("ROorprO");
    API_WORKS(bridge_start(peer, ON_FAR, ON_NEAR, 5, &bridge_far_stream));
    BRIDGE_CALLS("roOrprOo");
    API_WORKS(bridge_start(peer, ON_FAR, ON_NEAR, 5, CUWARDEN_NO_STREAM));
    BRIDGE_CALLS("rprOx");
    cw_api_bridge_end(peer);
    staged = bridge_make(STAGED);
    API_WORKS(from_near(staged, 5));
    BRIDGE_CALLS("ROorOCRourO");
}

Test(bridges, fill_both_halves_in_turn_and_each_waits_for_its_own_half)
{
    uint64_t bridge = bridge_make(STAGED);

    API_WORKS(bridge_start(bridge, ON_FAR, ON_NEAR, 3 * BRIDGE_CHUNK + 1, CUWARDEN_NO_STREAM));
    BRIDGE_CALLS("rOCRourOCRourOCRourOCRourOx");
    cr_expect(devices.to_host == 4 && devices.from_host == 4);
    for (unsigned i = 0; i < 4; i++) {
        cr_expect_eq(devices.copied_to[i], devices.halves + i % 2 * BRIDGE_CHUNK);
        cr_expect_eq(devices.copied_from[i], devices.copied_to[i]);
        /* begin, then full and empty of each chunk in turn; ordered: empty, full. */
        cr_expect_eq(devices.ordered[2 * i + 1], devices.recorded[2 * i + 1]);
    }
    cr_expect_eq(devices.ordered[4], devices.recorded[2]);
    cr_expect_eq(devices.ordered[6], devices.recorded[4]);
}

Test(bridges, stage_what_belongs_to_no_context_and_take_halves_only_then)
{
    uint64_t bridge = bridge_make(PEER), number = 0;
    int32_t way = -1;

    API_WORKS(cw_api_bridge_copy(bridge, bridge_at(ON_FAR, 0), bridge_at(OF_NO_CONTEXT, 0), 9,
                                 CUWARDEN_NO_STREAM, &number, &way));
    BRIDGE_CALLS("ArOCRourOx");
    cr_expect(way == (int32_t)CW_WAY_STAGED && number == 1);
    devices.is_done = 0;
    API_WORKS(bridge_start(bridge, FAR_OF_NO_CONTEXT, ON_NEAR, 9, CUWARDEN_NO_STREAM));
    BRIDGE_CALLS("rOCRourOx");
    cr_expect(now(bridge).staged_copies == 2 && now(bridge).peer_copies == 0);
    cr_expect_eq(now(bridge).way, CW_WAY_PEER);
}

/* ---- what is refused ---- */

Test(bridges, copy_only_what_lies_where_the_bridge_begins_and_ends)
{
    static const struct {
        enum bridge_block to, from;
        uint64_t bytes;
        int error;
        const char *text;
    } rows[] = {
        {ON_FAR, ON_NEAR, 0, CUWARDEN_INVALID, "cannot copy 0 bytes"},
        {ON_FAR, ON_NEAR, SIZE + 1, CUWARDEN_TOO_LARGE, "the block has 20000"},
        {ON_FAR, ON_NEAR, UINT64_MAX, CUWARDEN_TOO_LARGE, "the block has 20000"},
        {ON_FAR, OF_NO_CONTEXT, 2 * SIZE, CUWARDEN_TOO_LARGE, "the block has 20000"},
        {ON_FAR, OF_NO_CONTEXT, 2 * SIZE + 1, CUWARDEN_TOO_LARGE, "the block has 40000"},
        {ON_NEAR, ON_FAR, 1, CUWARDEN_INVALID, "is on device 1"},
        {ON_NEAR_TOO, ON_NEAR, 1, CUWARDEN_INVALID, "is on device 0"},
        {ON_FAR, ON_HOST, 1, CUWARDEN_INVALID, "is memory of the host"},
        {ON_HOST, ON_NEAR, 1, CUWARDEN_INVALID, "is memory of the host"},
        {ON_FAR, OF_ANOTHER_CONTEXT, 1, CUWARDEN_INVALID, "made for another context of device 0"},
        {0, ON_NEAR, 1, CUWARDEN_NOT_FOUND, "has no block at"},
        {ON_FAR, 0, 1, CUWARDEN_NOT_FOUND, "has no block at"}};
    uint64_t bridge = bridge_make(PEER);

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        API_FAILS(rows[i].error, rows[i].text,
                  bridge_start(bridge, rows[i].to, rows[i].from, rows[i].bytes, NULL));
    BRIDGE_CALLS("");
    cr_expect_eq(now(bridge).started, 0);
    API_WORKS(bridge_start(bridge, ON_FAR, ON_NEAR, SIZE, NULL));
}

Test(bridges, on_one_device_do_not_copy_onto_what_they_read)
{
    uint64_t bridge = 0;

    API_WORKS(cw_api_bridge_make("here", 0, 0, 0, PEER, &bridge));
    API_FAILS(CUWARDEN_INVALID, "they overlap",
              cw_api_bridge_copy(bridge, bridge_at(ON_NEAR, 9), bridge_at(ON_NEAR, 0), 10, NULL,
                                 NULL, NULL));
    API_WORKS(cw_api_bridge_copy(bridge, bridge_at(ON_NEAR, 10), bridge_at(ON_NEAR, 0), 10, NULL,
                                 NULL, NULL));
    cr_expect_eq(now(bridge).way, CW_WAY_LOCAL);
}

Test(bridges, follow_streams_of_their_own_two_contexts_alone)
{
    uint64_t bridge = bridge_make(PEER);

    API_FAILS(CUWARDEN_INVALID, "of neither of its contexts",
              bridge_start(bridge, ON_FAR, ON_NEAR, 1, &bridge_strange_stream));
    devices.code_of_stream = 400;
    API_FAILS(CUWARDEN_DRIVER, "ask for the stream's context: the driver's code is 400",
              from_near(bridge, 1));
    BRIDGE_CALLS("");
}

Test(bridges, have_16_copies_on_their_way_at_most)
{
    uint64_t bridge = bridge_make(PEER);

    for (unsigned i = 0; i < CW_BRIDGE_COPIES; i++)
        API_WORKS(from_near(bridge, 1));
    API_FAILS(CUWARDEN_BUSY, "has 16 copies on their way", from_near(bridge, 1));
    cr_expect(now(bridge).refused == 1 && now(bridge).started == CW_BRIDGE_COPIES);
    devices.is_done = 1;
    API_WORKS(from_near(bridge, 1));
    cr_expect_eq(now(bridge).bytes, CW_BRIDGE_COPIES);
}

static uint64_t busy;

static int from_inside(void)
{
    int error = from_near(busy, 1);

    return error == CUWARDEN_BUSY ? cw_api_bridge_end(busy) : error;
}

Test(bridges, are_submitted_to_and_ended_by_one_at_a_time)
{
    busy = bridge_make(PEER);
    devices.inside = from_inside;
    API_WORKS(from_near(busy, 1));
    API_FAILS(CUWARDEN_BUSY, "another thread is at work on bridge", devices.inside_gave);
    atomic_store(&cw_gate_captures, 1);
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", from_near(busy, 1));
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", cw_api_bridge_wait(busy, 0));
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", cw_api_bridge_end(busy));
    atomic_store(&cw_gate_captures, 0);
    API_WORKS(cw_api_bridge_end(busy));
}

/* ---- what fails ---- */

Test(bridges, whose_copy_the_driver_refuses_have_the_room_for_another)
{
    static const char letters[] = "AROorCuEe";
    uint64_t bridge = bridge_make(PEER);

    devices.fails_at['A'] = CW_BUFFER_NO_MEMORY;
    API_FAILS(CUWARDEN_OUT_OF_HOST, "cannot have two chunks of 4096 bytes of pinned memory",
              bridge_start(bridge, ON_FAR, OF_NO_CONTEXT, 1, &bridge_near_stream));
    devices.fails_at['A'] = 0;
    for (unsigned i = 0; i < sizeof(letters) - 1; i++) {
        devices.fails_at[(unsigned char)letters[i]] = 400;
        for (unsigned more = 0; more < 2 * CW_BRIDGE_COPIES; more++)
            API_FAILS(CUWARDEN_DRIVER, "the driver's code is 400",
                      bridge_start(bridge, ON_FAR, OF_NO_CONTEXT, 1, &bridge_near_stream));
        devices.fails_at[(unsigned char)letters[i]] = 0;
        memset(devices.calls, 0, sizeof(devices.calls));
    }
    for (unsigned i = 0; i < CW_BRIDGE_COPIES; i++)
        API_WORKS(bridge_start(bridge, ON_FAR, OF_NO_CONTEXT, 1, &bridge_near_stream));
    API_WORKS(cw_api_bridge_end(bridge));
    cr_expect_eq(devices.live, 0);
}

Test(bridges, say_that_a_copy_has_failed_and_which_came_before)
{
    uint64_t bridge = bridge_make(PEER);

    API_WORKS(bridge_start(bridge, ON_FAR, ON_NEAR, 5, CUWARDEN_NO_STREAM));
    API_WORKS(from_near(bridge, 5));
    devices.code_of_query = 700;
    API_FAILS(CUWARDEN_DRIVER, "complete a copy: the driver's code is 700",
              cw_api_bridge_wait(bridge, 0));
    API_WORKS(cw_api_bridge_wait(bridge, 1));
    devices.code_of_query = 701;
    API_WORKS(from_near(bridge, 5));
    for (unsigned number = 3; number >= 2; number--) /* the first counts */
        API_FAILS(CUWARDEN_DRIVER, "code is 700", cw_api_bridge_wait(bridge, number));
    cr_expect_eq(now(bridge).bytes, 5);
    devices.is_done = devices.code_of_query = 0;
    API_WORKS(from_near(bridge, 5));
    devices.fails_at['x'] = 719;
    API_FAILS(CUWARDEN_DRIVER, "be waited for: the driver's code is 719",
              cw_api_bridge_wait(bridge, 4));
}

Test(bridges, of_a_context_that_has_ended_can_only_end_and_the_other_side_goes)
{
    static const struct {
        char letter;
        const char *ended;
    } rows[] = {{'E', "wdz"}, {'e', "WDZF"}};

    for (unsigned i = 0; i < 2; i++) {
        uint64_t bridge = bridge_make(STAGED);

        devices.fails_at[(unsigned char)rows[i].letter] = CW_BUFFER_CONTEXT_ENDED;
        API_FAILS(CUWARDEN_DRIVER, "its context has ended",
                  bridge_start(bridge, ON_FAR, ON_NEAR, 1, CUWARDEN_NO_STREAM));
        memset(devices.calls, 0, sizeof(devices.calls));
        API_FAILS(CUWARDEN_DRIVER, "'halo' cannot end: its context has ended",
                  cw_api_bridge_end(bridge));
        BRIDGE_CALLS(rows[i].ended);
        API_FAILS(CUWARDEN_NOT_FOUND, "", cw_api_bridge_end(bridge));
        devices.fails_at[(unsigned char)rows[i].letter] = 0;
    }
}

/* ---- waiting, and what is counted ---- */

Test(bridges, wait_for_a_copy_and_those_before_it)
{
    uint64_t bridge = bridge_make(PEER), number = 0;

    API_WORKS(cw_api_bridge_wait(bridge, 0));
    API_FAILS(CUWARDEN_NOT_FOUND, "has started no copy 1: the last is 0",
              cw_api_bridge_wait(bridge, 1));
    API_WORKS(from_near(bridge, 5));
    API_WORKS(cw_api_bridge_copy(bridge, bridge_at(ON_FAR, 0), bridge_at(ON_NEAR, 0), 6,
                                 &bridge_near_stream, &number, NULL));
    cr_expect_eq(number, 2);
    memset(devices.calls, 0, sizeof(devices.calls));
    API_WORKS(cw_api_bridge_wait(bridge, 1));
    BRIDGE_CALLS("x");
    API_WORKS(cw_api_bridge_wait(bridge, 2)); /* has come meanwhile */
    BRIDGE_CALLS("");
    cr_expect(now(bridge).bytes == 11 && now(bridge).peer_copies == 2);
}

static int begin_capture(void)
{
    atomic_store(&cw_gate_captures, 1);
    cw_gate_shut(CW_GATE_CAPTURE);
    return 0;
}

static void end_capture(void)
{
    atomic_store(&cw_gate_captures, 0);
    cw_gate_open(CW_GATE_CAPTURE);
}

Test(bridges, are_not_asked_about_in_a_capture_that_begins_during_the_wait)
{
    uint64_t bridge = bridge_make(PEER);

    API_WORKS(from_near(bridge, 5));
    devices.inside = begin_capture;
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", cw_api_bridge_wait(bridge, 1));
    end_capture();
    API_WORKS(cw_api_bridge_wait(bridge, 1));
    cr_expect_eq(now(bridge).bytes, 5);
}

static int begin_capture_in_the_wait(void)
{
    if (strchr(devices.calls, 'x') != NULL)
        return begin_capture();
    devices.inside = begin_capture_in_the_wait;
    return 0;
}

Test(bridges, say_the_number_of_what_has_started_if_a_capture_ends_the_wait)
{
    uint64_t bridge = bridge_make(PEER), number = 0;
    int32_t way = -1;

    devices.inside = begin_capture_in_the_wait;
    API_FAILS(CUWARDEN_BUSY, "a stream is captured",
              cw_api_bridge_copy(bridge, bridge_at(ON_FAR, 0), bridge_at(ON_NEAR, 0), 5,
                                 CUWARDEN_NO_STREAM, &number, &way));
    cr_expect(number == 1 && way == (int32_t)CW_WAY_PEER);
    API_FAILS(CUWARDEN_BUSY, "a stream is captured",
              cw_api_bridge_copy(bridge, bridge_at(ON_FAR, 0), bridge_at(ON_NEAR, 0), 5,
                                 CUWARDEN_NO_STREAM, &number, &way));
    end_capture();
    cr_expect(number == 1 && now(bridge).started == 1);
    API_WORKS(cw_api_bridge_wait(bridge, number));
    cr_expect_eq(now(bridge).bytes, 5);
}

static int others_in_the_wait(void)
{
    if (strchr(devices.calls, 'x') == NULL) {
        devices.inside = others_in_the_wait;
        return 0;
    }
    API_FAILS(CUWARDEN_BUSY, "another thread is at work", cw_api_bridge_end(busy));
    return from_near(busy, 1);
}

Test(bridges, that_a_copy_waits_for_carry_those_of_others_and_do_not_end)
{
    busy = bridge_make(PEER);
    devices.inside = others_in_the_wait;
    API_WORKS(bridge_start(busy, ON_FAR, ON_NEAR, 5, CUWARDEN_NO_STREAM));
    API_WORKS(devices.inside_gave);
    cr_expect_eq(now(busy).started, 2);
    API_WORKS(cw_api_bridge_end(busy));
}

Test(bridges, have_not_failed_because_a_question_met_a_capture)
{
    uint64_t bridge = bridge_make(PEER);

    API_WORKS(from_near(bridge, 5));
    devices.code_of_query = 900;
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", cw_api_bridge_wait(bridge, 1));
    devices.code_of_query = 0;
    devices.fails_at['x'] = 901;
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", cw_api_bridge_wait(bridge, 1));
    devices.fails_at['x'] = 0;
    API_WORKS(cw_api_bridge_wait(bridge, 1));
    cr_expect_eq(now(bridge).bytes, 5);
}

Test(bridges, that_end_while_copies_run_wait_for_them_and_count_them)
{
    uint64_t bridge = bridge_make(STAGED);
    struct cw_transfers sums = {0}, before = {0};

    cw_transfers_sum(1, CW_TRANSFERS_ANY, &before);
    devices.copy_ns = 7;
    API_WORKS(from_near(bridge, 5));
    API_WORKS(from_near(bridge, 6));
    cr_expect_eq(now(bridge).bytes, 0);
    memset(devices.calls, 0, sizeof(devices.calls));
    API_WORKS(cw_api_bridge_end(bridge));
    BRIDGE_CALLS("wdzWDZF");
    cw_transfers_sum(1, CW_TRANSFERS_ANY, &sums);
    cr_expect(sums.count - before.count == 2 && sums.bytes - before.bytes == 11);
    cr_expect(sums.ns - before.ns == 14 && devices.live == 0);
}
