/* SPDX-License-Identifier: MIT */
/* Stream sets: what they are made of, how streams are ordered, what of their work is counted, and
 * what is refused. On the device an event passes at the moment that the test has set for it. */
#include <criterion/criterion.h>

#include <string.h>

#include "api/streams.h"
#include "core/process/gate.h"
#include "fake_driver.h"

#define EVENTS (CW_STREAM_LANES * (2 * CW_STREAM_WORKS + 1) + 1)

static struct event {
    int64_t at_ns;
} events[EVENTS];
static char streams[CW_STREAM_LANES];
static struct {
    unsigned made_events, made_streams, live_events, live_streams, waits;
    unsigned calls, fails_at; /* the call of this number; 0: none */
    int depth, enter_code, query_code;
    int64_t now_ns, passed_ns;
    void (*inside)(void); /* as the context is entered next */
    void *recorded_in, *ordered_in;
    struct event *ordered;
} device;

static int call(void)
{
    cr_expect_eq(device.depth, 1, "without its context");
    return ++device.calls == device.fails_at ? 999 : 0;
}

static int place(struct cw_buffer_place *out)
{
    *out = (struct cw_buffer_place){.context = {0xc0, 1}, .total = 1 << 30, .granule = 1 << 21};
    return 0;
}

static int enter(struct cw_context_name context, int *out_pushed)
{
    void (*inside)(void) = device.inside;

    cr_expect_eq(context.handle, 0xc0);
    device.inside = NULL;
    if (inside != NULL)
        inside();
    *out_pushed = device.enter_code == 0;
    device.depth += *out_pushed;
    return device.enter_code;
}

static void leave(struct cw_context_name context, int pushed)
{
    (void)context;
    device.depth -= pushed;
}

static int stream_create(void **out)
{
    int code = call();

    if (code == 0) {
        *out = &streams[device.made_streams++];
        device.live_streams++;
    }
    return code;
}

static int stream_destroy(void *stream)
{
    cr_expect_not_null(stream);
    device.live_streams--;
    return call();
}

static int stream_wait(void *stream)
{
    cr_expect_not_null(stream);
    device.waits++;
    return call();
}

static int event_create(int is_timed, void **out)
{
    int code = call();

    (void)is_timed;
    if (code == 0) {
        *out = &events[device.made_events++];
        device.live_events++;
    }
    return code;
}

static int event_destroy(void *event)
{
    cr_expect_not_null(event);
    device.live_events--;
    return call();
}

static int event_record(void *event, void *stream)
{
    ((struct event *)event)->at_ns = device.now_ns;
    device.recorded_in = stream;
    return call();
}

static int event_order(void *event, void *stream)
{
    device.ordered = event;
    device.ordered_in = stream;
    return call();
}

static int event_query(void *event)
{
    cr_expect(cw_gate_is_open(), "a question in a capture");
    if (device.query_code != 0)
        return device.query_code;
    return ((struct event *)event)->at_ns <= device.passed_ns ? 0 : CW_TRANSFER_NOT_READY;
}

static int event_wait(void *event)
{
    (void)event;
    cr_assert_fail("nobody waits for an event");
    return 0;
}

static int event_elapsed(void *begin, void *end, uint64_t *out_ns)
{
    int64_t ns = ((struct event *)end)->at_ns - ((struct event *)begin)->at_ns;

    cr_expect(((struct event *)begin)->at_ns <= device.passed_ns &&
              ((struct event *)end)->at_ns <= device.passed_ns);
    *out_ns = ns > 0 ? (uint64_t)ns : 0;
    return 0;
}

static const struct cw_buffer_ops places = {.place = place, .enter = enter, .leave = leave};
static const struct cw_transfer_ops ops = {.stream_create = stream_create,
                                           .stream_destroy = stream_destroy,
                                           .stream_wait = stream_wait,
                                           .event_create = event_create,
                                           .event_destroy = event_destroy,
                                           .event_record = event_record,
                                           .event_order = event_order,
                                           .event_query = event_query,
                                           .event_wait = event_wait,
                                           .event_elapsed = event_elapsed};

/* ---- what tests share ---- */

static uint64_t set;

static void setup(void)
{
    core_arm();
    memset(&device, 0, sizeof(device));
    cw_api_streams_init(&places, &ops);
    cw_api_init(core_options());
    cr_assert_eq(cw_api_streams_make("stages", 0, &set), CUWARDEN_OK);
}

static int begin_at(int which, int64_t ns)
{
    device.now_ns = ns;
    return cw_api_work_begin(set, which);
}

static int end_at(int which, int64_t ns)
{
    device.now_ns = ns;
    return cw_api_work_end(set, which);
}

static void work(int which, int64_t from_ns, int64_t to_ns)
{
    cr_expect_eq(begin_at(which, from_ns), CUWARDEN_OK);
    cr_expect_eq(end_at(which, to_ns), CUWARDEN_OK);
}

static struct cuwarden_streams now_at(int64_t ns)
{
    struct cuwarden_streams out;

    device.passed_ns = ns;
    cr_assert_eq(cw_api_streams_now(set, &out, sizeof(out)), CUWARDEN_OK);
    return out;
}

TestSuite(streams, .init = setup);

/* ---- making and ending ---- */

Test(streams, are_three_and_give_all_back)
{
    struct cuwarden_streams now = now_at(0);

    cr_expect(device.live_streams == 3 && device.live_events == EVENTS && device.waits == 0);
    cr_expect(now.compute == &streams[0] && now.in == &streams[1] && now.out == &streams[2]);
    cr_expect_str_eq(now.name, "stages");
    cr_expect_eq(cw_api_streams_end(set), CUWARDEN_OK);
    cr_expect(device.live_streams == 0 && device.live_events == 0 && device.waits == 3);
    cr_expect_eq(cw_api_streams_end(set), CUWARDEN_NOT_FOUND);
    cr_expect_eq(cw_api_work_begin(set, CUWARDEN_IN), CUWARDEN_NOT_FOUND);
}

Test(streams, that_cannot_be_made_leave_nothing_behind)
{
    uint64_t id = 7;

    cw_api_streams_end(set);
    for (unsigned at = 1; at <= EVENTS + CW_STREAM_LANES; at++) {
        memset(&device, 0, sizeof(device));
        device.fails_at = at;
        cr_expect_eq(cw_api_streams_make("again", 0, &id), CUWARDEN_DRIVER);
        cr_expect(device.live_streams == 0 && device.live_events == 0 && device.depth == 0);
    }
    memset(&device, 0, sizeof(device));
    cr_expect_eq(id, 7);
    cr_expect_eq(cw_api_streams_make("again", 0, &id), CUWARDEN_OK);
}

Test(streams, are_as_many_as_there_is_room_for)
{
    char name[] = "a";
    uint64_t id;

    for (unsigned i = 1; i < CW_STREAM_SETS; i++, name[0]++) {
        device.made_streams = device.made_events = 0;
        cr_expect_eq(cw_api_streams_make(name, 0, &id), CUWARDEN_OK);
    }
    cr_expect_eq(cw_api_streams_make(name, 0, &id), CUWARDEN_OUT_OF_HOST);
    cw_api_streams_forked();
    cr_expect_eq(cw_api_streams_end(id), CUWARDEN_NOT_FOUND);
}

/* ---- order ---- */

Test(streams, are_ordered_by_an_event_of_the_earlier_one)
{
    for (int later = 0; later < CW_STREAM_LANES; later++) {
        for (int earlier = 0; earlier < CW_STREAM_LANES; earlier++) {
            int error = cw_api_streams_order(set, later, earlier);

            cr_expect_eq(error, later == earlier ? CUWARDEN_INVALID : CUWARDEN_OK);
            if (later == earlier)
                continue;
            cr_expect(device.recorded_in == &streams[earlier]);
            cr_expect(device.ordered_in == &streams[later]);
        }
    }
    cr_expect_eq(cw_api_streams_order(set, 3, 0), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_streams_order(set, 0, -1), CUWARDEN_INVALID);
}

/* ---- what is counted ---- */

Test(streams, count_work_once_it_has_passed)
{
    struct cuwarden_streams now;

    work(CUWARDEN_COMPUTE, 1000, 3000);
    work(CUWARDEN_COMPUTE, 4000, 4500);
    cr_expect_eq(now_at(2999).works, 0);
    now = now_at(3000);
    cr_expect(now.works == 1 && now.compute_ns == 2000 && now.busy_ns == 2000);
    now = now_at(5000);
    cr_expect(now.works == 2 && now.compute_ns == 2500 && now.in_ns == 0 && now.overlap == 0);
    cr_expect(now.compute_use > 0 && now.compute_use <= 1 && now.in_use == 0);
    cr_expect_eq(device.waits, 0);
}

Test(streams, tell_what_another_hides)
{
    struct cuwarden_streams now;

    work(CUWARDEN_COMPUTE, 1000, 2000);
    work(CUWARDEN_IN, 1500, 2500);
    now = now_at(3000);
    cr_expect(now.busy_ns == 1500 && now.overlap == 0.25);
    work(CUWARDEN_OUT, 1250, 1750); /* seen last, all of it under the others */
    now = now_at(3000);
    cr_expect(now.busy_ns == 1500 && now.out_ns == 500 && now.overlap == 0.4);
    work(CUWARDEN_OUT, 2400, 4000); /* 100 under one */
    now = now_at(5000);
    cr_expect_eq(now.busy_ns, 3000);
}

Test(streams, tell_so_in_whichever_order_the_work_is_seen)
{
    for (int first = 0; first < CW_STREAM_LANES; first++) {
        int64_t at = 100000 * (first + 1);

        cr_expect_eq(cw_api_streams_reset(set), CUWARDEN_OK);
        for (int i = 0; i < CW_STREAM_LANES; i++) {
            int64_t begin = at + 10 * i;

            cr_expect_eq(begin_at((first + i) % 3, begin), CUWARDEN_OK);
            cr_expect_eq(end_at((first + i) % 3, begin + 100), CUWARDEN_OK);
        }
        cr_expect_eq(now_at(at + 1000).busy_ns, 120);
    }
}

Test(streams, that_run_long_hide_many_short_ones)
{
    struct cuwarden_streams now;

    begin_at(CUWARDEN_COMPUTE, 1000);
    for (int64_t i = 0; i < 60; i++) {
        device.passed_ns = 1000 + 10 * i;
        work(CUWARDEN_IN, 1000 + 10 * i, 1005 + 10 * i);
    }
    end_at(CUWARDEN_COMPUTE, 2000);
    now = now_at(2000);
    cr_expect(now.works == 61 && now.in_ns == 300 && now.busy_ns == 1000);
}

Test(streams, that_run_very_long_hide_at_least_the_last_ones)
{
    struct cuwarden_streams now;

    begin_at(CUWARDEN_COMPUTE, 1000);
    for (int64_t i = 0; i < 100; i++) {
        device.passed_ns = 1000 + 10 * i;
        work(CUWARDEN_IN, 1000 + 10 * i, 1005 + 10 * i);
    }
    cr_expect_eq(now_at(1999).works, 100);
    end_at(CUWARDEN_COMPUTE, 2000);
    now = now_at(2000);
    cr_expect(now.works == 101 && now.in_ns == 500 && now.compute_ns == 1000);
    cr_expect_eq(now.busy_ns, 1000 + 36 * 5); /* all but the last 64 are forgotten */
}

Test(streams, begin_anew)
{
    struct cuwarden_streams now;

    work(CUWARDEN_IN, 1000, 2000);
    begin_at(CUWARDEN_OUT, 1000);
    cr_expect_eq(cw_api_streams_reset(set), CUWARDEN_OK);
    end_at(CUWARDEN_OUT, 3000);
    work(CUWARDEN_IN, 3000, 3500);
    now = now_at(4000);
    cr_expect(now.works == 1 && now.in_ns == 500 && now.out_ns == 0 && now.busy_ns == 500);
}

static void begin_capture(void)
{
    atomic_store(&cw_gate_captures, 1);
    cw_gate_shut(CW_GATE_CAPTURE);
}

static void end_capture(void)
{
    atomic_store(&cw_gate_captures, 0);
    cw_gate_open(CW_GATE_CAPTURE);
}

Test(streams, count_work_that_a_question_in_a_capture_was_about)
{
    work(CUWARDEN_IN, 1000, 2000);
    device.query_code = 900;
    cr_expect_eq(now_at(2000).works, 0);
    device.query_code = 0;
    device.inside = begin_capture;
    cr_expect_eq(now_at(2000).works, 0);
    end_capture();
    cr_expect_eq(now_at(2000).works, 1);
}

/* ---- what is refused ---- */

Test(streams, have_so_much_work_on_its_way_and_no_more)
{
    struct cuwarden_streams now;

    for (unsigned i = 0; i < CW_STREAM_WORKS; i++)
        work(CUWARDEN_OUT, 10 + i, 11 + i);
    cr_expect_eq(begin_at(CUWARDEN_OUT, 100), CUWARDEN_BUSY);
    cr_expect(strstr(cw_api_error_text(CUWARDEN_BUSY), "32 pieces of work") != NULL);
    cr_expect_eq(end_at(CUWARDEN_OUT, 101), CUWARDEN_UNBALANCED);
    work(CUWARDEN_IN, 100, 101); /* each stream by itself */
    device.passed_ns = 11;
    work(CUWARDEN_OUT, 102, 103);
    now = now_at(200);
    cr_expect(now.works == CW_STREAM_WORKS + 2 && now.refused == 1);
    cr_expect_eq(now.out_ns, CW_STREAM_WORKS + 1);
}

Test(streams, have_one_beginning_for_each_end)
{
    cr_expect_eq(end_at(CUWARDEN_IN, 1), CUWARDEN_UNBALANCED);
    cr_expect_eq(begin_at(CUWARDEN_IN, 2), CUWARDEN_OK);
    cr_expect_eq(begin_at(CUWARDEN_IN, 3), CUWARDEN_UNBALANCED);
    cr_expect_eq(begin_at(CUWARDEN_OUT, 3), CUWARDEN_OK);
    device.fails_at = device.calls + 1;
    cr_expect_eq(end_at(CUWARDEN_IN, 4), CUWARDEN_DRIVER); /* it is dropped */
    cr_expect_eq(end_at(CUWARDEN_IN, 4), CUWARDEN_UNBALANCED);
    work(CUWARDEN_IN, 5, 6);
    cr_expect_eq(now_at(10).works, 1);
    cr_expect_eq(begin_at(3, 7), CUWARDEN_INVALID);
}

Test(streams, whose_end_a_capture_prevents_end_later_or_begin_anew)
{
    cr_expect_eq(begin_at(CUWARDEN_IN, 1000), CUWARDEN_OK);
    begin_capture();
    cr_expect_eq(end_at(CUWARDEN_IN, 2000), CUWARDEN_BUSY);
    cr_expect_eq(begin_at(CUWARDEN_IN, 2000), CUWARDEN_BUSY);
    end_capture();
    cr_expect_eq(begin_at(CUWARDEN_IN, 3000), CUWARDEN_OK);
    cr_expect_eq(begin_at(CUWARDEN_IN, 3000), CUWARDEN_UNBALANCED);
    begin_capture();
    cr_expect_eq(end_at(CUWARDEN_IN, 4000), CUWARDEN_BUSY);
    end_capture();
    cr_expect_eq(end_at(CUWARDEN_IN, 5000), CUWARDEN_OK);
    cr_expect_eq(end_at(CUWARDEN_IN, 5000), CUWARDEN_UNBALANCED);
    cr_expect(now_at(9000).works == 1 && now_at(9000).in_ns == 2000);
}

Test(streams, of_a_context_that_has_ended_can_only_end)
{
    work(CUWARDEN_IN, 1000, 2000);
    cr_expect_eq(now_at(2000).works, 1);
    work(CUWARDEN_IN, 3000, 4000);
    device.enter_code = CW_BUFFER_CONTEXT_ENDED;
    cr_expect_eq(begin_at(CUWARDEN_IN, 5000), CUWARDEN_DRIVER);
    cr_expect_eq(cw_api_streams_order(set, CUWARDEN_IN, CUWARDEN_OUT), CUWARDEN_DRIVER);
    cr_expect_eq(now_at(9000).works, 1);
    cr_expect_eq(cw_api_streams_end(set), CUWARDEN_DRIVER);
    cr_expect_eq(cw_api_streams_end(set), CUWARDEN_NOT_FOUND);
}

Test(streams, say_that_work_has_failed)
{
    struct cuwarden_streams now;

    work(CUWARDEN_IN, 1000, 2000);
    device.query_code = 700;
    cr_expect_eq(cw_api_streams_now(set, &now, sizeof(now)), CUWARDEN_DRIVER);
    cr_expect(strstr(cw_api_error_text(CUWARDEN_DRIVER), "700") != NULL);
    cr_expect_eq(device.depth, 0);
    cr_expect_eq(cw_api_streams_end(set), CUWARDEN_OK);
}
