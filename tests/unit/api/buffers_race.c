/* SPDX-License-Identifier: MIT */
/* One thread makes, fills and ends buffers, one looks at all of them, one cleans up; also under
 * ThreadSanitizer (tests/check/tsan.test). */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "api/buffer_memory.h"
#include "api/buffers.h"
#include "fake_driver.h"
#include "transfer_fixture.h"

#define ROUNDS  2000
#define BUFFERS 8

static _Atomic int is_over;

static int alloc(uint64_t bytes, uint64_t *out_address)
{
    static _Atomic uint64_t next = 0x1000000;

    *out_address = atomic_fetch_add(&next, bytes);
    return 0;
}

static int released(uint64_t address)
{
    cr_assert_neq(address, 0);
    return 0;
}

static int copy(uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    (void)stream;
    cr_assert(to != from && bytes != 0);
    return 0;
}

static int wait_stream(void *stream)
{
    (void)stream;
    return 0;
}

static int wait_context(void)
{
    sched_yield(); /* others find the buffer in change */
    return 0;
}

static int room(uint64_t *out_bytes)
{
    *out_bytes = UINT64_MAX;
    return 0;
}

static int look_at(const struct cuwarden_buffer *buffer, void *unused)
{
    (void)unused;
    cr_assert(buffer->id != 0 && buffer->name[0] == 'b');
    return 0;
}

static void *look(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over))
        cr_assert_eq(cw_api_buffer_visit(look_at, NULL), CUWARDEN_OK);
    return NULL;
}

static void *clean(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over))
        cr_assert_eq(cw_api_buffer_clean(0, 1, NULL), CUWARDEN_OK);
    return NULL;
}

static void make_and_end(void)
{
    static const char names[BUFFERS][3] = {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"};
    uint64_t buffers[BUFFERS];

    for (int i = 0; i < BUFFERS; i++) {
        struct cuwarden_buffer_spec spec = {
            .name = names[i], .element_bytes = 4, .count = 1, .flags = CUWARDEN_COPYING};

        cr_assert_eq(cw_api_buffer_make(&spec, sizeof(spec), &buffers[i]), CUWARDEN_OK);
    }
    for (int i = 0; i < BUFFERS; i++)
        while (cw_api_buffer_end(buffers[i]) == CUWARDEN_BUSY)
            ;
}

Test(buffers_race, what_another_thread_ends_is_neither_seen_nor_a_failure)
{
    struct cw_buffer_ops ops = transfer_places;
    pthread_t looker, cleaner;

    ops.alloc = alloc;
    ops.free = released;
    ops.copy = copy;
    ops.wait_stream = wait_stream;
    ops.wait_context = wait_context;
    ops.room = room;
    core_arm();
    cw_buffer_memory_init(&ops);
    cw_api_init(core_options());
    pthread_create(&looker, NULL, look, NULL);
    pthread_create(&cleaner, NULL, clean, NULL);
    for (int i = 0; i < ROUNDS; i++)
        make_and_end();
    atomic_store(&is_over, 1);
    pthread_join(looker, NULL);
    pthread_join(cleaner, NULL);
}
