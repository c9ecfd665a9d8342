/* SPDX-License-Identifier: MIT */
/* Prefetches: what of a file is read when, in which order the driver is asked, what is counted, and
 * what is refused. The device copies at once and says so when a test lets it; files are real, and
 * so is the reader's thread. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/prefetches.h"
#include "api/rows.h"
#include "api/stats.h"
#include "core/process/gate.h"
#include "core/process/guard.h"
#include "fake_driver.h"

#define CHUNK      ((uint64_t)4096)
#define FILE_BYTES ((uint64_t)10000) /* two chunks and a part of one */
#define HOUR       UINT64_C(3600000000000)

/* One letter for a call: alloc (A) and free (F) of pinned memory, a stream made (S)
 * and destroyed (Z), Waited for (W), event Made (M) and Destroyed (D), Recorded (R), Ordered (O),
 * Upload (U), a wait for an event (X). Queries are not noted. */
static struct {
    char calls[512];
    _Atomic unsigned count, noted; /* begun, and in `calls` */
    _Atomic int fails_at[128];
    _Atomic int is_done, code_of_query, threads, at_once, most_at_once;
} device;
static unsigned char memory[2 * 4096], block[16384], content[FILE_BYTES];
static char stream_of_ours, stream_of_program, events[64];
static char path[64];

static int call(char letter)
{
    unsigned at = atomic_fetch_add(&device.count, 1);

    device.calls[at < sizeof(device.calls) - 1 ? at : 0] = letter;
    atomic_fetch_add(&device.noted, 1);
    return atomic_load(&device.fails_at[(unsigned char)letter]);
}

static int fake_place(struct cw_buffer_place *out)
{
    *out = (struct cw_buffer_place){.context = {0xc0, 1}, .total = 1 << 30, .granule = 1 << 21};
    return device.fails_at['P'];
}

static int fake_enter(struct cw_context_name context, int *out_pushed)
{
    *out_pushed = context.handle == 0xc0;
    return atomic_load(&device.fails_at['E']);
}

static void fake_leave(struct cw_context_name context, int pushed)
{
    cr_expect(pushed && context.handle == 0xc0);
}

static int host_alloc(uint64_t bytes, void **out)
{
    cr_expect_eq(bytes, sizeof(memory));
    *out = memory;
    return call('A');
}

static int host_free(void *address)
{
    cr_expect_eq(address, memory);
    return call('F');
}

static int stream_create(void **out)
{
    *out = &stream_of_ours;
    return call('S');
}

static int stream_destroy(void *stream)
{
    cr_expect_eq(stream, &stream_of_ours);
    return call('Z');
}

static int stream_wait(void *stream)
{
    cr_expect_eq(stream, &stream_of_ours);
    device.is_done = 1;
    return call('W');
}

static int event_create(int is_timed, void **out)
{
    static unsigned made;

    (void)is_timed;
    *out = &events[made++ % sizeof(events)];
    return call('M');
}

static int event_destroy(void *event)
{
    cr_expect_not_null(event);
    return call('D');
}

static int event_record(void *event, void *stream)
{
    cr_expect(event != NULL && stream != NULL);
    return call('R');
}

static int event_order(void *event, void *stream)
{
    cr_expect(event != NULL && stream != NULL);
    return call('O');
}

static int event_query(void *event)
{
    (void)event;
    if (device.code_of_query != 0)
        return device.code_of_query;
    return device.is_done ? 0 : CW_TRANSFER_NOT_READY;
}

static int event_wait(void *event)
{
    (void)event;
    device.is_done = 1;
    return call('X');
}

static int event_elapsed(void *begin, void *end, uint64_t *out_ns)
{
    cr_expect_neq(begin, end);
    *out_ns = HOUR;
    return 0;
}

static int look(uint64_t address, struct cw_bridge_memory *out)
{
    uint64_t base = (uint64_t)(uintptr_t)block;

    *out = (struct cw_bridge_memory){.context = 0xc0, .base = base, .bytes = sizeof(block)};
    return address >= base && address < base + sizeof(block) ? 0 : 1;
}

static int upload(uint64_t to, const void *from, uint64_t bytes, void *stream)
{
    cr_expect(stream == &stream_of_ours && bytes <= CHUNK);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return call('U');
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
                                           .event_elapsed = event_elapsed};
static const struct cw_bridge_ops memory_ops = {.look = look, .upload = upload};

/* ---- what tests share ---- */

static void (*work_of_thread)(void);

static void *run(void *unused)
{
    (void)unused;
    cw_thread.depth = 1;
    if (atomic_fetch_add(&device.at_once, 1) >= device.most_at_once)
        device.most_at_once++;
    work_of_thread();
    atomic_fetch_sub(&device.at_once, 1);
    return NULL;
}

static int thread(void (*work)(void))
{
    pthread_t its;

    device.threads++;
    work_of_thread = work;
    if (device.fails_at['T'] != 0)
        return -1;
    return pthread_create(&its, NULL, run, NULL) != 0 || pthread_detach(its) != 0;
}

static uint64_t one;

static void setup(void)
{
    FILE *file;

    core_arm();
    memset(&device, 0, sizeof(device));
    cw_api_prefetches_init(&places, &ops, &memory_ops, thread);
    cw_api_init(core_options());
    snprintf(path, sizeof(path), "prefetches.%d", (int)getpid());
    for (uint64_t i = 0; i < FILE_BYTES; i++)
        content[i] = (unsigned char)(i * 7 + i / 256);
    file = fopen(path, "w");
    cr_assert(file != NULL && fwrite(content, 1, FILE_BYTES, file) == FILE_BYTES);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(cw_api_prefetch_make("weights", CHUNK, &one), CUWARDEN_OK);
}

static void teardown(void)
{
    unlink(path);
}

static void forget_calls(void)
{
    memset(device.calls, 0, sizeof(device.calls));
    device.count = device.noted = 0;
}

static void expect_text(int error, const char *wanted)
{
    cr_expect(strstr(cw_api_error_text(error), wanted) != NULL, "it says: %s",
              cw_api_error_text(error));
}

static int start_at(uint64_t offset, uint64_t bytes)
{
    return cw_api_prefetch_start(one, path, -1, offset, bytes, block, CUWARDEN_NO_STREAM, NULL);
}

static struct cuwarden_prefetch now(void)
{
    struct cuwarden_prefetch out;

    cr_assert_eq(cw_api_prefetch_now(one, &out, sizeof(out)), CUWARDEN_OK);
    return out;
}

static int32_t stage_of(uint64_t number)
{
    int32_t stage = -1;

    cr_assert_eq(cw_api_prefetch_stage(one, number, &stage), CUWARDEN_OK);
    return stage;
}

static void await_stage(uint64_t number, int32_t wanted)
{
    while (stage_of(number) != wanted)
        (void)usleep(100);
}

static void await_calls(unsigned count)
{
    while (atomic_load(&device.noted) < count)
        (void)usleep(100);
}

TestSuite(prefetches, .init = setup, .fini = teardown);

/* ---- making and ending ---- */

Test(prefetches, are_made_of_pinned_memory_a_stream_and_events_and_give_all_back)
{
    cr_expect_eq(strspn(device.calls + 2, "M"), 50);
    cr_expect(strncmp(device.calls, "AS", 2) == 0 && device.count == 52);
    cr_expect(now().chunk_bytes == CHUNK && now().started == 0 && device.threads == 0);
    forget_calls();
    cr_expect_eq(cw_api_prefetch_end(one), CUWARDEN_OK);
    cr_expect(device.calls[0] == 'W' && strspn(device.calls + 1, "D") == 50);
    cr_expect_str_eq(device.calls + 51, "ZF");
    cr_expect_eq(cw_api_prefetch_end(one), CUWARDEN_NOT_FOUND);
    cr_expect_eq(start_at(0, 1), CUWARDEN_NOT_FOUND);
}

Test(prefetches, that_cannot_be_made_leave_nothing_behind)
{
    static const struct {
        char letter;
        int code, error;
        const char *calls;
    } rows[] = {{'A', CW_BUFFER_NO_MEMORY, CUWARDEN_OUT_OF_HOST, "A"},
                {'S', 999, CUWARDEN_DRIVER, "ASWZF"},
                {'P', CW_BUFFER_NO_CONTEXT, CUWARDEN_NOT_STARTED, ""},
                {'E', CW_BUFFER_CONTEXT_ENDED, CUWARDEN_DRIVER, ""}};
    uint64_t id = 7;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        forget_calls();
        device.fails_at[(unsigned char)rows[i].letter] = rows[i].code;
        cr_expect_eq(cw_api_prefetch_make("again", CHUNK, &id), rows[i].error);
        cr_expect_str_eq(device.calls, rows[i].calls);
        device.fails_at[(unsigned char)rows[i].letter] = 0;
    }
    cr_expect_eq(cw_api_prefetch_make("again", ((uint64_t)1 << 30) + 1, &id), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_prefetch_make("weights", CHUNK, &id), CUWARDEN_EXISTS);
    cr_expect_eq(id, 7);
}

/* ---- what comes ---- */

Test(prefetches, bring_every_byte_from_any_offset_in_chunks)
{
    static const uint64_t rows[][2] = {{0, 1},       {0, 4096}, {0, 4097}, {1, 8192},
                                       {4095, 5000}, {9999, 1}, {0, 10000}};
    uint64_t bytes = 0;

    device.is_done = 1;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(block, 0xee, sizeof(block));
        cr_assert_eq(start_at(rows[i][0], rows[i][1]), CUWARDEN_OK);
        cr_assert_eq(cw_api_prefetch_wait(one, 0, &bytes), CUWARDEN_OK);
        cr_expect_eq(bytes, rows[i][1]);
        cr_expect_eq(memcmp(block, content + rows[i][0], bytes), 0);
        cr_expect_eq(block[bytes], 0xee);
    }
    cr_expect_eq(device.most_at_once, 1); /* one for all; it rests after a second of ours */
}

Test(prefetches, say_how_much_there_was_if_the_file_is_shorter)
{
    uint64_t bytes = 0;

    device.is_done = 1;
    start_at(9000, 5000);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, &bytes), CUWARDEN_OK);
    cr_expect(bytes == 1000 && memcmp(block, content + 9000, 1000) == 0);
    start_at(20000, 5000);
    cr_expect(cw_api_prefetch_wait(one, 2, &bytes) == CUWARDEN_OK && bytes == 0);
    start_at(0, 0);
    cr_expect(cw_api_prefetch_wait(one, 3, &bytes) == CUWARDEN_OK && bytes == 0);
    cr_expect(now().arrived == 3 && now().bytes == 1000 && now().failed == 0);
}

Test(prefetches, read_what_the_program_has_open_and_leave_its_position)
{
    int fd = open(path, O_RDONLY);
    uint64_t bytes = 0;

    device.is_done = 1;
    cr_assert_eq(cw_api_prefetch_start(one, NULL, fd, 10, 5000, block, CUWARDEN_NO_STREAM, NULL),
                 CUWARDEN_OK);
    cr_expect_eq(lseek(fd, 0, SEEK_CUR), 0);
    close(fd);
    cr_expect_eq(cw_api_prefetch_wait(one, 0, &bytes), CUWARDEN_OK);
    cr_expect(bytes == 5000 && memcmp(block, content + 10, 5000) == 0);
    cr_expect_eq(cw_api_prefetch_start(one, NULL, fd, 0, 1, block, CUWARDEN_NO_STREAM, NULL),
                 CUWARDEN_SYSTEM);
    expect_text(CUWARDEN_SYSTEM, "cannot read file descriptor");
}

/* ---- order ---- */

Test(prefetches, begin_after_the_stream_and_hold_another_back_without_a_wait_for_the_device)
{
    forget_calls();
    cr_assert_eq(cw_api_prefetch_start(one, path, -1, 0, 1, block, &stream_of_program, NULL),
                 CUWARDEN_OK);
    await_stage(1, CUWARDEN_ARRIVING);
    cr_expect_str_eq(device.calls, "RORURR");
    cr_expect_eq(cw_api_prefetch_before(one, 1, &stream_of_program), CUWARDEN_OK);
    cr_expect_str_eq(device.calls, "RORURRO");
    cr_expect_eq(stage_of(1), CUWARDEN_ARRIVING);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_OK);
    cr_expect_str_eq(device.calls, "RORURROX");
    cr_expect_eq(stage_of(1), CUWARDEN_ARRIVED);
}

Test(prefetches, fill_no_half_before_the_device_has_read_it)
{
    forget_calls();
    start_at(0, FILE_BYTES); /* three chunks, two halves */
    await_calls(5);
    (void)usleep(20000);
    cr_expect_str_eq(device.calls, "RURUR");
    device.is_done = 1;
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_OK);
    cr_expect_eq(memcmp(block, content, FILE_BYTES), 0);
}

Test(prefetches, are_16_at_a_time_in_their_order_and_the_answers_of_the_last_16_are_kept)
{
    uint64_t number = 7;

    for (int i = 0; i < 16; i++)
        cr_assert_eq(start_at(0, 1), CUWARDEN_OK);
    cr_expect_eq(start_at(0, 1), CUWARDEN_BUSY);
    expect_text(CUWARDEN_BUSY, "has 16 files on their way");
    cr_expect(now().refused == 1 && now().started == 16);
    device.is_done = 1;
    cr_expect_eq(cw_api_prefetch_wait(one, 16, NULL), CUWARDEN_OK);
    cr_expect_eq(cw_api_prefetch_start(one, path, -1, 0, 1, block, CUWARDEN_NO_STREAM, &number),
                 CUWARDEN_OK);
    cr_expect_eq(number, 17);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_NOT_FOUND);
    expect_text(CUWARDEN_NOT_FOUND, "keeps the answers of its last 16 files: 1 is older");
    cr_expect_eq(cw_api_prefetch_wait(one, 18, NULL), CUWARDEN_NOT_FOUND);
    cr_expect_eq(cw_api_prefetch_wait(one, 2, NULL), CUWARDEN_OK);
}

/* ---- what goes wrong ---- */

Test(prefetches, name_the_file_and_the_errno_that_kept_it_from_being_read)
{
    cr_expect_eq(
        cw_api_prefetch_start(one, "none/at all", -1, 0, 1, block, CUWARDEN_NO_STREAM, NULL),
        CUWARDEN_OK);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_SYSTEM);
    expect_text(CUWARDEN_SYSTEM, "prefetch 'weights' cannot read 'none/at all': ");
    expect_text(CUWARDEN_SYSTEM, "(errno 2)");
    cr_expect_eq(cw_api_prefetch_before(one, 1, &stream_of_program), CUWARDEN_SYSTEM);
    cr_expect_eq(cw_api_prefetch_start(one, ".", -1, 0, 1, block, CUWARDEN_NO_STREAM, NULL),
                 CUWARDEN_OK);
    cr_expect_eq(cw_api_prefetch_wait(one, 2, NULL), CUWARDEN_SYSTEM);
    expect_text(CUWARDEN_SYSTEM, "(errno 21)");
    cr_expect(now().failed == 2 && now().arrived == 0);
    cr_expect(start_at(0, 1) == CUWARDEN_OK && cw_api_prefetch_wait(one, 3, NULL) == CUWARDEN_OK);
}

/* A FIFO that nobody writes to would keep whoever opens it. */
Test(prefetches, wait_for_no_writer)
{
    char fifo[sizeof(path) + 8];

    snprintf(fifo, sizeof(fifo), "%s.fifo", path);
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    cr_expect_eq(cw_api_prefetch_start(one, fifo, -1, 0, 1, block, CUWARDEN_NO_STREAM, NULL),
                 CUWARDEN_OK);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_SYSTEM);
    unlink(fifo);
    expect_text(CUWARDEN_SYSTEM, "(errno 29)");
    cr_expect(start_at(0, 1) == CUWARDEN_OK && cw_api_prefetch_wait(one, 2, NULL) == CUWARDEN_OK);
}

Test(prefetches, refuse_what_does_not_fit_or_is_no_file)
{
    unsigned char *past = block + sizeof(block);

    forget_calls();
    cr_expect_eq(cw_api_prefetch_start(one, path, -1, 0, 5, past - 4, NULL, NULL),
                 CUWARDEN_TOO_LARGE);
    expect_text(CUWARDEN_TOO_LARGE, "the block has 4");
    cr_expect_eq(cw_api_prefetch_start(one, path, -1, 0, 1, past, NULL, NULL), CUWARDEN_NOT_FOUND);
    cr_expect_eq(cw_api_prefetch_start(one, NULL, -1, 0, 1, block, NULL, NULL), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_prefetch_start(one, "", -1, 0, 1, block, NULL, NULL), CUWARDEN_INVALID);
    cr_expect_eq(start_at(UINT64_MAX, 1), CUWARDEN_INVALID);
    cr_expect_eq(start_at(INT64_MAX, 1), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_prefetch_wait(one, 0, NULL), CUWARDEN_NOT_FOUND);
    device.fails_at['T'] = 1;
    cr_expect_eq(start_at(0, 1), CUWARDEN_OUT_OF_HOST);
    cr_expect(device.calls[0] == '\0' && now().started == 0);
}

Test(prefetches, fail_with_the_driver_and_go_on_with_the_next)
{
    device.is_done = 1;
    device.fails_at['U'] = 700;
    start_at(0, 1);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_DRIVER);
    expect_text(CUWARDEN_DRIVER, "cannot bring a file: the driver's code is 700");
    device.fails_at['U'] = 0;
    cr_expect(start_at(0, 1) == CUWARDEN_OK && cw_api_prefetch_wait(one, 2, NULL) == CUWARDEN_OK);
    cr_expect(now().failed == 1 && now().arrived == 1);
}

Test(prefetches, call_no_driver_while_the_gate_is_closed)
{
    cr_expect_eq(start_at(0, 1), CUWARDEN_OK);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_OK);
    cw_gate_close(CW_GATE_CAPTURE);
    forget_calls();
    cr_expect_eq(start_at(0, 1), CUWARDEN_BUSY);
    cw_gate_open(CW_GATE_CAPTURE);
    device.is_done = 0;
    start_at(0, FILE_BYTES);
    await_calls(3); /* held up by the device */
    cw_gate_close(CW_GATE_CAPTURE);
    forget_calls();
    device.is_done = 1;
    (void)usleep(20000);
    cr_expect_str_eq(device.calls, "");
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(cw_api_prefetch_wait(one, 2, NULL), CUWARDEN_OK);
}

/* ---- what cuts them short ---- */

Test(prefetches, give_the_driver_nothing_more_for_a_block_that_leaves)
{
    start_at(0, FILE_BYTES);
    start_at(0, 1);
    await_calls(52 + 5);
    cr_expect(cw_guard_is_on(CW_GUARD_PREFETCH));
    cw_api_prefetch_leaving((uint64_t)(uintptr_t)block + sizeof(block), 1); /* another one */
    cw_api_prefetch_leaving((uint64_t)(uintptr_t)block, 1);
    forget_calls();
    device.is_done = 1;
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_NOT_FOUND);
    expect_text(CUWARDEN_NOT_FOUND, "has stopped after 8192 of 10000 bytes: the block at");
    cr_expect_eq(cw_api_prefetch_wait(one, 2, NULL), CUWARDEN_NOT_FOUND);
    cr_expect_null(strchr(device.calls, 'U'));
    cr_expect(!cw_guard_is_on(CW_GUARD_PREFETCH));
}

Test(prefetches, that_are_cancelled_say_what_came)
{
    uint64_t bytes = 0, at = (uint64_t)(uintptr_t)block;

    start_at(0, FILE_BYTES);
    start_at(0, 1);
    await_calls(52 + 5);
    cw_api_prefetch_leaving(at - 512, 512); /* its neighbours' end is no reason */
    cw_api_prefetch_leaving(at + FILE_BYTES, 512);
    cr_expect_eq(cw_api_prefetch_cancel(one, 1), CUWARDEN_OK);
    device.is_done = 1;
    cr_expect(cw_api_prefetch_wait(one, 1, &bytes) == CUWARDEN_OK && bytes == 8192);
    cr_expect(cw_api_prefetch_wait(one, 2, &bytes) == CUWARDEN_OK && bytes == 1);
    cr_expect(now().arrived == 1 && now().bytes == 1 && now().failed == 0);
    cr_expect_eq(cw_api_prefetch_cancel(7, 0), CUWARDEN_NOT_FOUND);
}

Test(prefetches, end_with_all_that_waits)
{
    for (int i = 0; i < 16; i++)
        start_at(0, FILE_BYTES);
    await_calls(52 + 5);
    cr_expect_eq(cw_api_prefetch_end(one), CUWARDEN_OK);
    cr_expect(!cw_guard_is_on(CW_GUARD_PREFETCH));
    cr_expect_eq(cw_api_prefetch_make("weights", CHUNK, &one), CUWARDEN_OK);
    device.is_done = 1;
    cr_expect(start_at(0, 1) == CUWARDEN_OK && cw_api_prefetch_wait(one, 1, NULL) == CUWARDEN_OK);
}

Test(prefetches, of_a_context_that_has_ended_fail_and_can_be_ended)
{
    start_at(0, FILE_BYTES);
    await_calls(52 + 5);
    device.fails_at['E'] = CW_BUFFER_CONTEXT_ENDED;
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_DRIVER);
    while (now().failed == 0)
        (void)usleep(100);
    cr_expect_eq(start_at(0, 1), CUWARDEN_DRIVER);
    expect_text(CUWARDEN_DRIVER, "its context has ended");
    cr_expect_eq(cw_api_prefetch_end(one), CUWARDEN_DRIVER);
    cr_expect_eq(cw_api_prefetch_end(one), CUWARDEN_NOT_FOUND);
}

Test(prefetches, stop_for_good_at_the_end_of_the_process)
{
    start_at(0, FILE_BYTES);
    await_calls(52 + 5);
    cw_api_prefetches_stop();
    forget_calls();
    device.is_done = 1;
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_NOT_ACTIVE);
    (void)usleep(20000);
    cr_expect_str_eq(device.calls, "");
}

Test(prefetches, are_not_a_forked_childs)
{
    start_at(0, 1);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_OK);
    cw_api_prefetches_reset();
    cr_expect_eq(start_at(0, 1), CUWARDEN_NOT_FOUND);
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_NOT_FOUND);
}

/* ---- what is counted ---- */

Test(prefetches, count_bytes_times_and_what_overlapped)
{
    struct cuwarden_stats stats;

    start_at(0, FILE_BYTES);
    device.is_done = 1;
    cr_expect_eq(cw_api_prefetch_wait(one, 1, NULL), CUWARDEN_OK);
    cr_expect(now().transfer_ns == HOUR && now().waited_ns < HOUR);
    cr_expect_float_eq(now().overlap, 1 - (double)now().waited_ns / HOUR, 1e-9);
    cr_assert_eq(cw_api_stats(CUWARDEN_ALL_DEVICES, NULL, &stats, sizeof(stats)), CUWARDEN_OK);
    cr_expect(stats.transfers == 1 && stats.transfer_bytes == FILE_BYTES);
    cr_expect(stats.transfer_ns == HOUR && stats.transfer_waited_ns == now().waited_ns);
}
