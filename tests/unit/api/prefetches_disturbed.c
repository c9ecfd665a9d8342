/* SPDX-License-Identifier: MIT */
/* Prefetches while others come between: a capture of another thread, the end of the context, a free
 * while they end, an end beside another, a driver that refuses to record, and no thread to read.
 * The device copies at once and says so when a test lets it; a test may stop the reader inside a
 * query. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/prefetches.h"
#include "api/rows.h"
#include "base/clock.h"
#include "core/device/context.h"
#include "core/process/gate.h"
#include "core/process/guard.h"
#include "fake_driver.h"
#include "transfer_fixture.h"

#define CHUNK      ((uint64_t)TRANSFER_HALF_BYTES)
#define FILE_BYTES ((uint64_t)10000) /* two chunks and a part of one */
#define ENDS       1000u
#define LARGE      ((uint64_t)32 << 20) /* takes a tenth of a second to read */

static struct {
    _Atomic int is_done;            /* all that was submitted is copied */
    _Atomic int query_gives;        /* if it is not 0 */
    _Atomic int is_query_held;      /* until it is 0 */
    _Atomic unsigned queries, held; /* held: that are */
    _Atomic unsigned uploads;
    _Atomic int enter_gives;
    _Atomic int is_thread_held;              /* the reader's, before it begins */
    void (*in_wait)(void), (*in_look)(void); /* what happens meanwhile */
} device;
static unsigned char block[16384], content[FILE_BYTES], halves[2 * TRANSFER_HALF_BYTES];
static _Atomic uint64_t *large; /* halves of LARGE */
static char path[64];
static uint64_t prefetch;

static int enter(struct cw_context_name context, int *out_pushed)
{
    *out_pushed = context.handle == TRANSFER_CONTEXT;
    return atomic_load(&device.enter_gives);
}

static int host_alloc(uint64_t bytes, void **out)
{
    *out = halves;
    if (bytes == sizeof(halves))
        return 0;
    *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    large = *out;
    return *out == MAP_FAILED;
}

/* More than a prefetch has. */
static int event_create(int is_timed, void **out)
{
    static char events[64];
    static unsigned made;

    (void)is_timed;
    *out = &events[made++ % sizeof(events)];
    return 0;
}

static int event_record(void *event, void *stream)
{
    return event == NULL || stream != &transfer_stream;
}

static int query(void *event)
{
    (void)event;
    atomic_fetch_add(&device.queries, 1);
    atomic_fetch_add(&device.held, 1);
    while (atomic_load(&device.is_query_held))
        (void)usleep(100);
    atomic_fetch_sub(&device.held, 1);
    if (atomic_load(&device.query_gives) != 0)
        return atomic_load(&device.query_gives);
    return atomic_load(&device.is_done) ? 0 : CW_TRANSFER_NOT_READY;
}

static int event_wait(void *event)
{
    (void)event;
    if (device.in_wait != NULL)
        device.in_wait();
    atomic_store(&device.is_done, 1);
    return atomic_load(&device.query_gives);
}

static int look(uint64_t address, struct cw_bridge_memory *out)
{
    (void)address;
    if (device.in_look != NULL)
        device.in_look();
    *out = (struct cw_bridge_memory){
        .context = TRANSFER_CONTEXT, .base = (uint64_t)(uintptr_t)block, .bytes = LARGE};
    return 0;
}

static int upload(uint64_t to, const void *from, uint64_t bytes, void *stream)
{
    atomic_fetch_add(&device.uploads, 1);
    return bytes <= sizeof(block) ? transfer_upload(to, from, bytes, stream) : 0;
}

static struct cw_transfer_ops ops; /* the fixture's, but for those above */
static struct cw_buffer_ops places;
static const struct cw_bridge_ops memory_ops = {.look = look, .upload = upload};

/* ---- what tests share ---- */

static void *run(void *work)
{
    cw_thread.depth = 1;
    while (atomic_load(&device.is_thread_held))
        (void)usleep(100);
    (*(void (**)(void))work)();
    return NULL;
}

static int thread(void (*work)(void))
{
    static void (*its_work)(void);
    pthread_t its;

    its_work = work;
    return pthread_create(&its, NULL, run, (void *)&its_work) != 0 || pthread_detach(its) != 0;
}

static void setup(void)
{
    FILE *file;

    core_arm();
    fake_context(0, TRANSFER_CONTEXT, 1, 0);
    fake_set_current(TRANSFER_CONTEXT);
    ops = transfer_ops;
    ops.host_alloc = host_alloc;
    ops.event_create = event_create;
    ops.event_record = event_record;
    ops.event_query = query;
    ops.event_wait = event_wait;
    places = transfer_places;
    places.enter = enter;
    cw_api_prefetches_init(&places, &ops, &memory_ops, thread);
    cw_api_init(core_options());
    snprintf(path, sizeof(path), "prefetches_disturbed.%d", (int)getpid());
    for (uint64_t i = 0; i < FILE_BYTES; i++)
        content[i] = (unsigned char)(i * 7 + i / 256);
    file = fopen(path, "w");
    cr_assert(file != NULL && fwrite(content, 1, FILE_BYTES, file) == FILE_BYTES);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(cw_api_prefetch_make("weights", CHUNK, &prefetch), CUWARDEN_OK);
}

static void teardown(void)
{
    unlink(path);
}

static int start(uint64_t bytes)
{
    return cw_api_prefetch_start(prefetch, path, -1, 0, bytes, block, CUWARDEN_NO_STREAM, NULL);
}

static struct cuwarden_prefetch now(void)
{
    struct cuwarden_prefetch out;

    cr_assert_eq(cw_api_prefetch_now(prefetch, &out, sizeof(out)), CUWARDEN_OK);
    return out;
}

static void await_stage(uint64_t number, int32_t wanted)
{
    int32_t stage = -1;

    do {
        (void)usleep(100);
        cr_assert_eq(cw_api_prefetch_stage(prefetch, number, &stage), CUWARDEN_OK);
    } while (stage != wanted);
}

static void await(const _Atomic unsigned *count, unsigned wanted)
{
    while (atomic_load(count) < wanted)
        (void)usleep(100);
}

static void *wait_for_one(void *out_error)
{
    *(int *)out_error = cw_api_prefetch_wait(prefetch, 1, NULL);
    return NULL;
}

TestSuite(prefetches_disturbed, .init = setup, .fini = teardown);

/* ---- a capture of another thread ---- */

/* It has begun: from now on a query would spoil it. Not cw_gate_close, which waits for the caller
 * of this, too. */
static void begin_capture(void)
{
    cw_gate_shut(CW_GATE_CAPTURE);
    atomic_store(&cw_gate_captures, 1);
    atomic_store(&device.queries, 0);
}

static void end_capture(void)
{
    atomic_store(&cw_gate_captures, 0);
    cw_gate_open(CW_GATE_CAPTURE);
}

Test(prefetches_disturbed, ask_nothing_inside_a_capture_that_begins_during_a_wait)
{
    start(1);
    await_stage(1, CUWARDEN_ARRIVING);
    device.in_wait = begin_capture;
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_BUSY);
    cr_expect_eq(device.queries, 0);
    end_capture();
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_OK);
    cr_expect(now().arrived == 1 && now().failed == 0);
}

/* The thread that captures may wait for the one that waits. */
Test(prefetches_disturbed, a_wait_ends_with_a_capture_that_holds_the_reader_up)
{
    pthread_t waiter;
    int error = -1;

    start(FILE_BYTES); /* two chunks, and the third when the device has copied the first */
    await(&device.uploads, 2);
    pthread_create(&waiter, NULL, wait_for_one, &error);
    (void)usleep(5000);
    begin_capture();
    pthread_join(waiter, NULL);
    cr_expect_eq(error, CUWARDEN_BUSY);
    end_capture();
    cr_expect(cw_api_prefetch_cancel(prefetch, 1) == CUWARDEN_OK && now().failed == 0);
}

/* One that began past us. */
Test(prefetches_disturbed, what_a_capture_refuses_is_asked_again)
{
    start(FILE_BYTES);
    await(&device.uploads, 2);
    for (int code = 900; code <= 907; code++) {
        atomic_store(&device.query_gives, code);
        await(&device.queries, atomic_load(&device.queries) + 2);
        cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_BUSY);
    }
    atomic_store(&device.query_gives, 0);
    cr_expect_eq(now().failed, 0);
    atomic_store(&device.is_done, 1);
    await(&device.uploads, 3);
    atomic_store(&device.query_gives, 900);
    (void)usleep(5000);
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_BUSY);
    atomic_store(&device.query_gives, 0);
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_OK);
    cr_expect(now().arrived == 1 && now().failed == 0);
}

Test(prefetches_disturbed, none_starts_or_orders_in_a_capture_that_has_just_begun)
{
    start(1);
    await_stage(1, CUWARDEN_ARRIVING);
    device.in_look = begin_capture;
    cr_expect_eq(start(1), CUWARDEN_BUSY);
    device.in_look = NULL;
    end_capture();
    cr_expect_eq(now().started, 1);
    cr_expect_eq(cw_api_prefetch_before(prefetch, 1, &transfer_stream), CUWARDEN_OK);
}

static void *hold_back(void *out_ns)
{
    uint64_t begun = cw_clock_ns();

    cr_expect_eq(cw_api_prefetch_before(prefetch, 1, &transfer_stream), CUWARDEN_OK);
    *(uint64_t *)out_ns = cw_clock_ns() - begun;
    return NULL;
}

/* Not the time of the program's own work after it has waited. */
Test(prefetches_disturbed, what_follows_a_wait_is_not_waited)
{
    uint64_t begun, before_ns = 0;
    pthread_t thread;

    atomic_store(&device.is_thread_held, 1);
    cr_assert(start(1) == CUWARDEN_OK && pthread_create(&thread, NULL, hold_back, &before_ns) == 0);
    (void)usleep(20000); /* it waits, or the test says nothing this time */
    atomic_store(&device.is_thread_held, 0);
    pthread_join(thread, NULL);
    (void)usleep(100000);
    atomic_store(&device.is_done, 1);
    begun = cw_clock_ns();
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_OK);
    cr_expect_leq(now().waited_ns, before_ns + cw_clock_ns() - begun);
    cr_expect_eq(now().arrived, 1);
}

/* ---- the end of the context ---- */

static uint32_t context_of_prefetch(void)
{
    uint8_t its_device;
    uint32_t context = cw_context_current(&its_device);

    cr_assert_neq(context, 0);
    return context;
}

/* Two requests are there, and the reader has not begun. */
static void queue_two(void)
{
    atomic_store(&device.is_thread_held, 1);
    cr_assert(start(FILE_BYTES) == CUWARDEN_OK && start(FILE_BYTES) == CUWARDEN_OK);
    memset(halves, 0xee, sizeof(halves));
}

static void expect_that_they_fail_unread(void)
{
    unsigned char none[sizeof(halves)];

    atomic_store(&device.is_thread_held, 0);
    while (now().failed < 2)
        (void)usleep(100);
    memset(none, 0xee, sizeof(none));
    cr_expect_eq(memcmp(halves, none, sizeof(none)), 0);
    cr_expect_eq(device.uploads, 0);
}

Test(prefetches_disturbed, nothing_is_read_into_what_has_gone_with_its_context)
{
    queue_two();
    atomic_store(&device.enter_gives, CW_BUFFER_CONTEXT_ENDED);
    expect_that_they_fail_unread();
    cr_expect_eq(cw_api_prefetch_end(prefetch), CUWARDEN_DRIVER);
}

/* A reset: the next context has its name, and can be entered by it. */
Test(prefetches_disturbed, nothing_is_read_into_what_has_gone_though_the_next_context_has_its_name)
{
    int32_t stage;

    queue_two();
    cw_api_prefetch_context_ended(context_of_prefetch() + 1); /* another one */
    cw_api_prefetch_context_ended(context_of_prefetch());
    expect_that_they_fail_unread();
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 2, NULL), CUWARDEN_DRIVER);
    cr_expect_not_null(strstr(cw_api_error_text(CUWARDEN_DRIVER), "its context has ended"));
    cr_expect_eq(cw_api_prefetch_stage(prefetch, 2, &stage), CUWARDEN_DRIVER);
    cr_expect_eq(cw_api_prefetch_before(prefetch, 2, &transfer_stream), CUWARDEN_DRIVER);
    cr_expect_eq(start(1), CUWARDEN_DRIVER);
    ops.stream_wait = NULL; /* nothing of it may be touched */
    cr_expect_eq(cw_api_prefetch_end(prefetch), CUWARDEN_DRIVER);
    cr_expect_eq(cw_api_prefetch_end(prefetch), CUWARDEN_NOT_FOUND);
}

Test(prefetches_disturbed, the_end_of_a_context_waits_for_the_read_that_is_under_way)
{
    uint32_t context = context_of_prefetch();
    uint64_t untouched;

    cr_assert_eq(cw_api_prefetch_make("large", LARGE, &prefetch), CUWARDEN_OK);
    memset((void *)large, 0xee, LARGE);
    untouched = large[0];
    cr_assert_eq(cw_api_prefetch_start(prefetch, "/dev/urandom", -1, 0, LARGE, block,
                                       CUWARDEN_NO_STREAM, NULL),
                 CUWARDEN_OK);
    while (large[0] == untouched)
        ;
    cw_gate_close(CW_GATE_CAPTURE);
    cw_api_prefetch_context_ending(context);
    cr_expect_neq(large[LARGE / sizeof(*large) - 1], untouched);
    cr_expect_eq(cw_api_prefetch_cancel(prefetch, 1), CUWARDEN_OK);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(cw_api_prefetch_end(prefetch), CUWARDEN_OK);
}

Test(prefetches_disturbed, nothing_is_read_while_a_context_ends)
{
    uint32_t context = context_of_prefetch();

    queue_two();
    cw_gate_close(CW_GATE_CAPTURE);
    cw_api_prefetch_context_ending(context);
    atomic_store(&device.is_thread_held, 0);
    (void)usleep(20000);
    cr_expect_eq(halves[0], 0xee);
    atomic_store(&device.is_done, 1);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 2, NULL), CUWARDEN_OK);
}

/* ---- an end ---- */

static void *end_it(void *out_error)
{
    int error;

    do
        error = cw_api_prefetch_end(prefetch);
    while (error == CUWARDEN_BUSY);
    *(int *)out_error = error;
    return NULL;
}

static _Atomic int is_freed, was_late;

static int upload_to_freed(uint64_t to, const void *from, uint64_t bytes, void *stream)
{
    if (atomic_load(&is_freed))
        atomic_store(&was_late, 1);
    return upload(to, from, bytes, stream);
}

/* As the hooks do. */
static void *free_block(void *unused)
{
    (void)unused;
    if (cw_guard_is_on(CW_GUARD_PREFETCH))
        cw_api_prefetch_leaving((uint64_t)(uintptr_t)block, 1);
    atomic_store(&is_freed, 1);
    return NULL;
}

Test(prefetches_disturbed, nothing_comes_into_what_is_freed_while_they_end)
{
    static const struct cw_bridge_ops its_ops = {.look = look, .upload = upload_to_freed};
    pthread_t ender, other;
    int error = -1;

    cw_api_prefetches_init(&places, &ops, &its_ops, thread);
    start(FILE_BYTES);
    await(&device.uploads, 2);
    atomic_store(&device.is_query_held, 1);
    await(&device.held, 1); /* the reader, which is about to read the third chunk */
    pthread_create(&ender, NULL, end_it, &error);
    (void)usleep(20000);
    pthread_create(&other, NULL, free_block, NULL);
    (void)usleep(20000);
    atomic_store(&device.is_done, 1);
    atomic_store(&device.is_query_held, 0);
    pthread_join(other, NULL);
    pthread_join(ender, NULL);
    cr_expect_eq(error, CUWARDEN_OK);
    cr_expect_eq(atomic_load(&was_late), 0);
    cr_expect(!cw_guard_is_on(CW_GUARD_PREFETCH));
}

/* The reader must not be at work on what is gone. */
static _Atomic int is_gone, was_read;
static _Atomic uint64_t shared;
static _Atomic unsigned ends;

static int host_free(void *address)
{
    (void)address;
    atomic_store(&is_gone, 1);
    return 0;
}

static int upload_slowly(uint64_t to, const void *from, uint64_t bytes, void *stream)
{
    (void)to;
    (void)from;
    (void)stream;
    for (int i = 0; i < 2; i++) {
        if (atomic_load(&is_gone))
            atomic_store(&was_read, 1);
        (void)usleep(20);
    }
    return bytes == 0;
}

static void make_and_start(void)
{
    uint64_t its = 0;

    atomic_store(&is_gone, 0);
    cr_assert_eq(cw_api_prefetch_make("weights", CHUNK, &its), CUWARDEN_OK);
    cr_assert_eq(
        cw_api_prefetch_start(its, "/dev/zero", -1, 0, LARGE, block, CUWARDEN_NO_STREAM, NULL),
        CUWARDEN_OK);
    atomic_store(&shared, its);
}

static void *end_again_and_again(void *unused)
{
    while (atomic_load(&ends) < ENDS && !atomic_load(&was_read)) {
        if (cw_api_prefetch_end(atomic_load(&shared)) != CUWARDEN_OK)
            continue;
        atomic_fetch_add(&ends, 1);
        (void)usleep(100);
        make_and_start();
    }
    return unused;
}

/* Keeps others from ending it now and then. */
static void *ask_again_and_again(void *unused)
{
    struct cuwarden_prefetch out;

    while (atomic_load(&ends) < ENDS && !atomic_load(&was_read))
        (void)cw_api_prefetch_now(atomic_load(&shared), &out, sizeof(out));
    return unused;
}

Test(prefetches_disturbed, of_several_ends_at_once_one_ends_it_and_none_lets_the_reader_in)
{
    static const struct cw_bridge_ops its_ops = {.look = look, .upload = upload_slowly};
    pthread_t threads[5];

    ops.host_free = host_free;
    cw_api_prefetches_init(&places, &ops, &its_ops, thread);
    atomic_store(&device.is_done, 1); /* so that it is read all the time */
    cr_assert_eq(cw_api_prefetch_end(prefetch), CUWARDEN_OK);
    make_and_start();
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, i < 4 ? end_again_and_again : ask_again_and_again, NULL);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&was_read), 0);
}

/* ---- no thread ---- */

/* The first is there until it has rested for a second; no other can be made. */
static int thread_of_one_rest(void (*work)(void))
{
    static unsigned made;
    unsigned depth = cw_thread.depth;

    if (made++ != 0)
        return -1;
    work();
    cw_thread.depth = depth;
    return 0;
}

Test(prefetches_disturbed, a_wait_for_what_no_thread_can_read_ends)
{
    int fd = open(path, O_RDONLY), next = dup(fd);

    close(next);
    cw_api_prefetches_init(&places, &ops, &memory_ops, thread_of_one_rest);
    cr_expect_eq(cw_api_prefetch_start(prefetch, NULL, fd, 0, 1, block, CUWARDEN_NO_STREAM, NULL),
                 CUWARDEN_OK);
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_OUT_OF_HOST);
    cr_expect_eq(start(1), CUWARDEN_OUT_OF_HOST);
    cr_expect(now().started == 1 && now().failed == 1);
    cr_expect(!cw_guard_is_on(CW_GUARD_PREFETCH));
    cr_expect_eq(cw_api_prefetch_end(prefetch), CUWARDEN_OK);
    cr_expect_eq(dup(fd), next); /* the request's is closed */
}

/* ---- a driver that refuses ---- */

static _Atomic unsigned records;

/* The event after the copy out of the first half: `begin` comes before it. */
static int record_fails_once(void *event, void *stream)
{
    (void)event;
    (void)stream;
    return atomic_fetch_add(&records, 1) == 1 ? 2 : 0;
}

Test(prefetches_disturbed, fill_no_half_whose_copy_could_not_be_marked_before_it_is_over)
{
    ops.event_record = record_fails_once;
    start(CHUNK);
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 1, NULL), CUWARDEN_DRIVER);
    cr_expect_not_null(strstr(cw_api_error_text(CUWARDEN_DRIVER), "the driver's code is 2"));
    start(FILE_BYTES); /* its second chunk would be read into that half */
    await(&device.uploads, 2);
    (void)usleep(20000);
    cr_expect_eq(device.uploads, 2);
    cr_expect_eq(memcmp(halves, content, CHUNK), 0);
    atomic_store(&device.is_done, 1);
    cr_expect_eq(cw_api_prefetch_wait(prefetch, 2, NULL), CUWARDEN_OK);
    cr_expect_eq(memcmp(block, content, FILE_BYTES), 0);
    cr_expect(now().failed == 1 && now().arrived == 1);
}
