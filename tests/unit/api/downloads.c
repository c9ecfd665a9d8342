/* SPDX-License-Identifier: MIT */
/* Downloads: which half a frame goes to, in which order the driver is asked, which frame is given,
 * what is counted, and what is refused. The device is a list of frames that a test completes. */
#include <criterion/criterion.h>

#include <string.h>
#include <time.h>

#include "api/downloads.h"
#include "api/rows.h"
#include "api/stats.h"
#include "core/process/gate.h"
#include "fake_driver.h"
#include "pool_fixture.h"

#define FRAME ((uint64_t)10000)
#define FROM  ((const void *)0x20000000000)
#define HOUR  UINT64_C(3600000000000)

/* One letter for a call: alloc (A) and free (F) of pinned memory, a stream made (S) and destroyed
 * (Z), Waited for (W), event Made (M) and Destroyed (D), Recorded (R), Ordered (O), Copy (C), a
 * wait for an event (X); queries are not noted. */
static struct {
    char calls[128];
    int fails_at[128];
    int depth, is_done, code_of_query, live_events;
    uint64_t frame_ns;
    long wait_ns; /* by the real clock */
    void *order_stream, *record_stream, *copied_to;
    int (*inside)(void);
    int inside_gave;
} device;
static char memory[2 * 12288];
static char stream_of_ours, stream_of_program, events[8];

static int call(char letter)
{
    size_t count = strlen(device.calls);

    device.calls[count < sizeof(device.calls) - 1 ? count : 0] = letter;
    cr_expect_eq(device.depth, 1, "%c without its context", letter);
    if (device.inside != NULL) {
        int (*inside)(void) = device.inside;

        device.inside = NULL;
        device.inside_gave = inside();
    }
    return device.fails_at[(unsigned char)letter];
}

static int fake_place(struct cw_buffer_place *out)
{
    *out = (struct cw_buffer_place){.context = {0xc0, 1}, .total = 1 << 30, .granule = 1 << 21};
    return device.fails_at['P'];
}

static int fake_enter(struct cw_context_name context, int *out_pushed)
{
    cr_expect_eq(context.handle, 0xc0);
    *out_pushed = device.fails_at['E'] == 0;
    device.depth += *out_pushed;
    return device.fails_at['E'];
}

static void fake_leave(struct cw_context_name context, int pushed)
{
    (void)context;
    device.depth -= pushed;
}

static int host_alloc(uint64_t bytes, void **out)
{
    int rc = call('A');

    cr_expect_eq(bytes, sizeof(memory));
    if (rc == 0)
        *out = memory;
    return rc;
}

static int host_free(void *address)
{
    cr_expect_eq(address, memory);
    return call('F');
}

static int stream_create(void **out)
{
    int rc = call('S');

    if (rc == 0)
        *out = &stream_of_ours;
    return rc;
}

static int stream_destroy(void *stream)
{
    cr_expect_eq(stream, &stream_of_ours);
    return call('Z');
}

static int stream_wait(void *stream)
{
    cr_expect_eq(stream, &stream_of_ours);
    return call('W');
}

static int event_create(int is_timed, void **out)
{
    int rc = call('M');

    cr_expect_eq(is_timed, device.live_events != 0);
    if (rc == 0)
        *out = &events[device.live_events++];
    return rc;
}

static int event_destroy(void *event)
{
    cr_expect_not_null(event);
    device.live_events--;
    return call('D');
}

static int event_record(void *event, void *stream)
{
    cr_expect_not_null(event);
    device.record_stream = stream;
    return call('R');
}

static int event_order(void *event, void *stream)
{
    cr_expect_not_null(event);
    device.order_stream = stream;
    return call('O');
}

static int event_query(void *event)
{
    (void)event;
    cr_expect(cw_gate_is_open(), "a question in a capture");
    if (device.code_of_query != 0)
        return device.code_of_query;
    return device.is_done ? 0 : CW_TRANSFER_NOT_READY;
}

static int event_wait(void *event)
{
    const struct timespec wait = {.tv_nsec = device.wait_ns};

    (void)event;
    (void)nanosleep(&wait, NULL);
    device.is_done = 1;
    return call('X');
}

static int event_elapsed(void *begin, void *end, uint64_t *out_ns)
{
    cr_expect_neq(begin, end);
    *out_ns = device.frame_ns;
    return 0;
}

static int download(void *to, uint64_t from, uint64_t bytes, void *stream)
{
    cr_expect(from == (uint64_t)(uintptr_t)FROM && bytes <= FRAME && stream == &stream_of_ours);
    device.copied_to = to;
    return call('C');
}

static const struct cw_buffer_ops places = {
    .place = fake_place, .enter = fake_enter, .leave = fake_leave};
static const struct cw_transfer_ops ops = {.host_alloc = host_alloc,
                                           .host_free = host_free,
                                           .stream_create = stream_create,
                                           .stream_destroy = stream_destroy,
                                           .stream_wait = stream_wait,
                                           .event_create = event_create,
                                           .event_destroy = event_destroy,
                                           .event_record = event_record,
                                           .event_order = event_order,
                                           .event_query = event_query,
                                           .event_wait = event_wait,
                                           .event_elapsed = event_elapsed,
                                           .download = download};

/* ---- what tests share ---- */

static uint64_t one;

static void setup(void)
{
    core_arm();
    memset(&device, 0, sizeof(device));
    cw_api_downloads_init(&places, &ops);
    cw_api_init(core_options());
    cr_assert_eq(cw_api_download_make("frames", FRAME, &one), CUWARDEN_OK);
}

static void expect_calls(const char *wanted)
{
    cr_expect_str_eq(device.calls, wanted);
    cr_expect_eq(device.depth, 0);
    memset(device.calls, 0, sizeof(device.calls));
}

static void expect_text(int error, const char *wanted)
{
    cr_expect(strstr(cw_api_error_text(error), wanted) != NULL, "it says: %s",
              cw_api_error_text(error));
}

static int start(void)
{
    return cw_api_download_start(one, FROM, FRAME, &stream_of_program, NULL);
}

static struct cuwarden_frame frame;

static int wait_for(uint64_t least)
{
    return cw_api_download_wait(one, least, &frame, sizeof(frame));
}

static struct cuwarden_download now(void)
{
    struct cuwarden_download out;

    cr_assert_eq(cw_api_download_now(one, &out, sizeof(out)), CUWARDEN_OK);
    return out;
}

TestSuite(downloads, .init = setup);

/* ---- making and ending ---- */

Test(downloads, are_made_of_pinned_memory_a_stream_and_events_and_give_all_back)
{
    expect_calls("ASMMMMM");
    cr_expect(now().most_bytes == FRAME && now().id == one && now().started == 0);
    cr_expect_str_eq(now().name, "frames");
    start();
    expect_calls("RORCR");
    cr_expect_eq(cw_api_download_end(one), CUWARDEN_OK);
    expect_calls("WDDDDDZF");
    cr_expect_eq(cw_api_download_end(one), CUWARDEN_NOT_FOUND);
    expect_text(CUWARDEN_NOT_FOUND, "it has ended, or never was in this process");
    cr_expect_eq(start(), CUWARDEN_NOT_FOUND);
}

Test(downloads, that_cannot_be_made_leave_nothing_behind)
{
    static const struct {
        char letter;
        int code, error;
        const char *calls;
    } rows[] = {{'A', CW_BUFFER_NO_MEMORY, CUWARDEN_OUT_OF_HOST, "A"},
                {'A', 999, CUWARDEN_DRIVER, "A"},
                {'S', 999, CUWARDEN_DRIVER, "ASF"},
                {'M', 999, CUWARDEN_DRIVER, "ASMWZF"},
                {'P', CW_BUFFER_NO_CONTEXT, CUWARDEN_NOT_STARTED, ""},
                {'E', CW_BUFFER_CONTEXT_ENDED, CUWARDEN_DRIVER, ""}};
    uint64_t id = 7;

    cw_api_download_end(one);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&device, 0, sizeof(device));
        device.fails_at[(unsigned char)rows[i].letter] = rows[i].code;
        cr_expect_eq(cw_api_download_make("again", FRAME, &id), rows[i].error);
        expect_calls(rows[i].calls);
    }
    memset(&device, 0, sizeof(device));
    cr_expect_eq(id, 7);
    cr_expect_eq(cw_api_download_make("again", FRAME, &id), CUWARDEN_OK);
}

Test(downloads, need_a_name_of_their_own_and_a_size)
{
    char name[CW_ROW_NAME_MAX + 1];
    uint64_t id = 7;

    memset(name, 'n', CW_ROW_NAME_MAX);
    name[CW_ROW_NAME_MAX] = '\0';
    cr_expect_eq(cw_api_download_make(NULL, FRAME, &id), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_download_make("", FRAME, &id), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_download_make("b", FRAME, NULL), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_download_make(name, FRAME, &id), CUWARDEN_INVALID);
    expect_text(CUWARDEN_INVALID, "has 48 bytes, and may have 47");
    cr_expect_eq(cw_api_download_make("b", 0, &id), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_download_make("b", UINT64_MAX, &id), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_download_make("frames", FRAME, &id), CUWARDEN_EXISTS);
    expect_text(CUWARDEN_EXISTS, "there is a download 'frames' already");
    cr_expect_eq(id, 7);
}

Test(downloads, are_64_at_most_and_ids_are_not_used_again)
{
    uint64_t id = 0, last = one;
    char name[] = "n00";

    for (int i = 1; i < 64; i++) {
        name[1] = (char)('0' + i / 10);
        name[2] = (char)('0' + i % 10);
        device.live_events = 0;
        cr_expect_eq(cw_api_download_make(name, FRAME, &id), CUWARDEN_OK);
        cr_expect_neq(id, last);
        last = id;
        memset(device.calls, 0, sizeof(device.calls));
    }
    cr_expect_eq(cw_api_download_make("more", FRAME, &id), CUWARDEN_OUT_OF_HOST);
    expect_text(CUWARDEN_OUT_OF_HOST, "there are 64 already");
    cw_api_download_end(last);
    device.live_events = 0;
    cr_expect_eq(cw_api_download_make("more", FRAME, &id), CUWARDEN_OK);
    cr_expect_neq(id, last);
}

Test(downloads, are_not_a_forked_childs)
{
    cw_api_downloads_reset();
    cr_expect_eq(start(), CUWARDEN_NOT_FOUND);
    cr_expect_eq(wait_for(0), CUWARDEN_NOT_FOUND);
    cr_expect_eq(cw_api_download_release(one), CUWARDEN_NOT_FOUND);
}

/* ---- order ---- */

Test(downloads, begin_after_what_the_stream_has_and_what_was_named)
{
    memset(device.calls, 0, sizeof(device.calls));
    start();
    cr_expect_eq(device.order_stream, &stream_of_ours);
    expect_calls("RORCR");
    cw_api_download_start(one, FROM, FRAME, CUWARDEN_NO_STREAM, NULL);
    expect_calls("RCR");
    cr_expect_eq(cw_api_download_after(one, &stream_of_program, NULL), CUWARDEN_OK);
    cr_expect_eq(device.record_stream, &stream_of_program);
    cr_expect_eq(device.order_stream, &stream_of_ours);
    expect_calls("RO");
    cr_expect_eq(cw_api_download_after(one, NULL, &events[7]), CUWARDEN_OK);
    expect_calls("O");
    cr_expect_eq(cw_api_download_before(one, &stream_of_program), CUWARDEN_OK);
    cr_expect_eq(device.record_stream, &stream_of_ours);
    cr_expect_eq(device.order_stream, &stream_of_program);
    expect_calls("RO");
}

static int from_inside(void)
{
    int error = start();

    return error == CUWARDEN_BUSY ? cw_api_download_end(one) : error;
}

Test(downloads, are_submitted_to_and_ended_by_one_at_a_time)
{
    device.inside = from_inside;
    cr_expect_eq(start(), CUWARDEN_OK);
    cr_expect_eq(device.inside_gave, CUWARDEN_BUSY);
    expect_text(CUWARDEN_BUSY, "another thread is at work on download");
}

/* ---- which half, which frame ---- */

Test(downloads, use_both_halves_in_turn_and_refuse_a_third_at_once)
{
    uint64_t number = 7;

    start();
    cr_expect_eq(device.copied_to, memory);
    start();
    cr_expect_eq(device.copied_to, memory + sizeof(memory) / 2);
    memset(device.calls, 0, sizeof(device.calls));
    cr_expect_eq(cw_api_download_start(one, FROM, 1, NULL, &number), CUWARDEN_BUSY);
    expect_text(CUWARDEN_BUSY, "each is on its way, or held");
    expect_calls("");
    cr_expect(number == 7 && now().refused == 1 && now().started == 2);
}

Test(downloads, replace_the_older_frame_that_nobody_took)
{
    uint64_t number = 0;

    device.is_done = 1;
    start();
    start();
    cw_api_download_start(one, FROM, 5, NULL, &number);
    cr_expect(number == 3 && device.copied_to == memory && now().skipped == 1);
    cr_expect_eq(wait_for(0), CUWARDEN_OK);
    cr_expect(frame.number == 3 && frame.bytes == 5 && frame.data == memory);
    cr_expect_eq(wait_for(1), CUWARDEN_OK); /* never an older one */
    cr_expect(frame.number == 3 && now().taken == 1);
}

Test(downloads, keep_what_is_held_until_it_is_released)
{
    device.is_done = 1;
    start();
    wait_for(0);
    start();
    start();
    cr_expect_eq(device.copied_to, memory + sizeof(memory) / 2);
    device.is_done = 0;
    start();
    cr_expect_eq(start(), CUWARDEN_BUSY);
    cr_expect_eq(cw_api_download_release(one), CUWARDEN_OK);
    cr_expect_eq(start(), CUWARDEN_OK);
    cr_expect_eq(device.copied_to, memory);
    cr_expect_eq(cw_api_download_release(one), CUWARDEN_UNBALANCED);
    expect_text(CUWARDEN_UNBALANCED, "download 'frames' has no frame to release");
}

Test(downloads, wait_for_the_first_only_if_none_is_complete)
{
    start();
    start();
    memset(device.calls, 0, sizeof(device.calls));
    cr_expect_eq(wait_for(0), CUWARDEN_OK);
    cr_expect_eq(frame.number, 2); /* both were, when the wait was over */
    expect_calls("X");
    cr_expect_eq(wait_for(0), CUWARDEN_OK);
    expect_calls("");
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

Test(downloads, are_not_asked_about_in_a_capture_that_begins_during_the_wait)
{
    start();
    device.inside = begin_capture;
    cr_expect_eq(wait_for(0), CUWARDEN_BUSY);
    expect_text(CUWARDEN_BUSY, "a stream is captured");
    end_capture();
    cr_expect_eq(wait_for(0), CUWARDEN_OK);
    cr_expect(frame.number == 1 && now().bytes == FRAME);
}

Test(downloads, have_not_failed_because_a_question_met_a_capture)
{
    start();
    for (device.code_of_query = 900; device.code_of_query <= 907; device.code_of_query++)
        cr_expect_eq(wait_for(0), CUWARDEN_BUSY);
    device.code_of_query = 0;
    device.fails_at['X'] = 900;
    cr_expect_eq(wait_for(0), CUWARDEN_BUSY);
    device.fails_at['X'] = 0;
    cr_expect_eq(wait_for(0), CUWARDEN_OK);
    cr_expect_eq(frame.number, 1);
}

Test(downloads, give_no_frame_that_was_not_started)
{
    cr_expect_eq(wait_for(0), CUWARDEN_NOT_FOUND);
    expect_text(CUWARDEN_NOT_FOUND, "download 'frames' has no frame on its way");
    start();
    cr_expect_eq(wait_for(2), CUWARDEN_NOT_FOUND);
    expect_text(CUWARDEN_NOT_FOUND, "no frame of this number, and no later one,");
}

/* ---- refusals, and what is counted ---- */

Test(downloads, refuse_what_is_no_frame)
{
    memset(device.calls, 0, sizeof(device.calls));
    cr_expect_eq(cw_api_download_start(one, FROM, FRAME + 1, NULL, NULL), CUWARDEN_TOO_LARGE);
    expect_text(CUWARDEN_TOO_LARGE, "a frame of 10001 bytes: its maximum is 10000");
    cr_expect_eq(cw_api_download_start(one, NULL, 1, NULL, NULL), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_download_start(one, FROM, 0, NULL, NULL), CUWARDEN_INVALID);
    expect_calls("");
    cr_expect_eq(now().started, 0);
}

Test(downloads, that_the_driver_refuses_leave_the_half_free)
{
    static const char letters[] = {'R', 'O', 'C'};

    for (unsigned i = 0; i < sizeof(letters); i++) {
        device.fails_at[(unsigned char)letters[i]] = 400;
        cr_expect_eq(start(), CUWARDEN_DRIVER);
        expect_text(CUWARDEN_DRIVER, "download 'frames' cannot start: the driver's code is 400");
        device.fails_at[(unsigned char)letters[i]] = 0;
    }
    cr_expect(start() == CUWARDEN_OK && start() == CUWARDEN_OK && start() == CUWARDEN_BUSY);
}

Test(downloads, that_the_driver_refuses_leave_the_frame_that_was_complete)
{
    device.is_done = 1;
    start();
    wait_for(0);
    start();
    device.fails_at['C'] = 400;
    cr_expect_eq(start(), CUWARDEN_DRIVER);
    cr_expect_eq(now().skipped, 0);
    cr_expect_eq(wait_for(2), CUWARDEN_OK);
    cr_expect(frame.number == 2 && frame.bytes == FRAME && now().taken == 2);
}

Test(downloads, say_that_a_copy_has_failed_and_go_on)
{
    start();
    device.code_of_query = 700;
    cr_expect_eq(wait_for(0), CUWARDEN_DRIVER);
    expect_text(CUWARDEN_DRIVER, "cannot be completed: the driver's code is 700");
    cr_expect_eq(now().bytes, 0);
    device.code_of_query = 0;
    device.is_done = 1;
    cr_expect(start() == CUWARDEN_OK && wait_for(2) == CUWARDEN_OK);
    device.fails_at['W'] = 700;
    cr_expect_eq(cw_api_download_end(one), CUWARDEN_DRIVER);
    cr_expect_eq(cw_api_download_end(one), CUWARDEN_NOT_FOUND);
}

Test(downloads, count_bytes_times_and_what_overlapped)
{
    struct cuwarden_download seen;
    struct cuwarden_stats stats;

    device.frame_ns = HOUR;
    device.wait_ns = 2000000;
    start();
    wait_for(0);
    cr_expect(frame.waited_ns >= 2000000 && frame.waited_ns < HOUR);
    start(); /* done at once: nobody waits */
    wait_for(2);
    cr_expect_eq(frame.waited_ns, 0);
    seen = now();
    cr_expect(seen.bytes == 2 * FRAME && seen.transfer_ns == 2 * HOUR);
    cr_expect(seen.waited_ns >= 2000000 && seen.waited_ns < HOUR);
    cr_expect_float_eq(seen.overlap, 1 - (double)seen.waited_ns / (2 * HOUR), 1e-9);
    start();
    cr_expect_eq(cw_api_download_end(one), CUWARDEN_OK); /* counts the last one */
    cr_assert_eq(cw_api_stats(CUWARDEN_ALL_DEVICES, NULL, &stats, sizeof(stats)), CUWARDEN_OK);
    cr_expect(stats.transfers == 3 && stats.transfer_bytes == 3 * FRAME);
    cr_expect(stats.transfer_ns == 3 * HOUR && stats.transfer_waited_ns == seen.waited_ns);
    cr_expect_float_eq(stats.transfer_overlap, 1 - (double)seen.waited_ns / (3 * HOUR), 1e-9);
}

/* A driver that numbers no contexts: the next one can be entered by the name of the one before. */
Test(downloads, of_a_context_that_was_reset_fail_and_touch_nothing)
{
    fake_context(0, 0xc0, 0, 0);
    fake_set_current(0xc0);
    cr_assert_eq(cw_api_download_end(one), CUWARDEN_OK);
    cr_assert_eq(cw_api_download_make("again", FRAME, &one), CUWARDEN_OK);
    pool_end_context(0xc0, CW_CONTEXT_RENEWED);
    memset(device.calls, 0, sizeof(device.calls));
    cr_expect_eq(start(), CUWARDEN_DRIVER);
    expect_text(CUWARDEN_DRIVER, "its context has ended");
    cr_expect_eq(cw_api_download_end(one), CUWARDEN_DRIVER);
    expect_calls("");
    cr_expect_eq(cw_api_download_end(one), CUWARDEN_NOT_FOUND);
}

Test(downloads, that_take_less_than_they_are_waited_for_do_not_overlap)
{
    device.frame_ns = 1000;
    device.wait_ns = 2000000;
    start();
    wait_for(0);
    cr_expect(now().transfer_ns == 1000 && now().overlap == 0);
}
