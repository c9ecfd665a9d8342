/* SPDX-License-Identifier: MIT */
/* The internal heap: contents, alignment, reuse, large blocks, no memory, threads, fork. */
#include "base/mem.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 20)

static int is_zero(const void *ptr, size_t size)
{
    const char *bytes = ptr;

    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000, 4095, 4096, 4097, 65536, LARGE};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

Test(mem, gives_zeroed_and_aligned_blocks_of_every_size)
{
    for (size_t i = 0; i < SIZES; i++) {
        void *ptr = cw_mem_alloc(sizes[i]);

        cr_assert_not_null(ptr);
        cr_expect(is_zero(ptr, sizes[i]));
        cr_expect_eq((uintptr_t)ptr % (sizes[i] >= 64 ? 64 : 16), 0u);
        memset(ptr, 0xff, sizes[i]);
        cw_mem_free(ptr, sizes[i]);
    }
}

Test(mem, zeroes_a_block_that_is_used_again)
{
    for (size_t i = 0; i < SIZES; i++) {
        void *first = cw_mem_alloc(sizes[i]);
        void *second;

        memset(first, 0xa5, sizes[i]);
        cw_mem_free(first, sizes[i]);
        second = cw_mem_alloc(sizes[i]);
        cr_expect(is_zero(second, sizes[i]));
        if (sizes[i] <= 4096)
            cr_expect_eq(first, second);
        cw_mem_free(second, sizes[i]);
    }
}

Test(mem, wastes_nothing_on_a_power_of_two)
{
    for (size_t size = 16; size <= 4096; size *= 2) {
        char *first = cw_mem_alloc(size);
        char *second = cw_mem_alloc(size);

        cr_expect_eq(second, first + size);
        cw_mem_free(first, size);
        cw_mem_free(second, size);
    }
}

Test(mem, never_gives_the_same_bytes_twice)
{
    enum { BLOCKS = 4000 };
    static unsigned char *blocks[BLOCKS];
    static size_t lengths[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        lengths[i] = 1 + i * 7919 % 6000;
        blocks[i] = cw_mem_alloc(lengths[i]);
        cr_assert_not_null(blocks[i]);
        memset(blocks[i], (int)(i % 251), lengths[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        cr_assert_eq(blocks[i][0], i % 251);
        cr_assert_eq(memcmp(blocks[i], blocks[i] + 1, lengths[i] - 1), 0);
        cw_mem_free(blocks[i], lengths[i]);
    }
}

Test(mem, ignores_a_null_pointer)
{
    cw_mem_free(NULL, 0);
    cw_mem_free(NULL, LARGE);
}

Test(mem, gives_large_blocks_back_to_the_system)
{
    unsigned char resident;
    void *page;

    page = cw_mem_alloc(LARGE);
    cr_assert_not_null(page);
    cr_expect_eq(mincore(page, 4096, &resident), 0);
    cw_mem_free(page, LARGE);
    cr_expect_eq(mincore(page, 4096, &resident), -1);
    cr_expect_eq(errno, ENOMEM);
}

Test(mem, returns_null_without_memory_and_preserves_errno)
{
    errno = EDOM;
    cr_expect_null(cw_mem_alloc(SIZE_MAX));
    cr_expect_null(cw_mem_alloc(SIZE_MAX / 2));
    cr_expect_eq(errno, EDOM);
}

static void *churn(void *arg)
{
    unsigned char mark = (unsigned char)(uintptr_t)arg;

    for (size_t i = 0; i < 20000; i++) {
        size_t size = 16 + i % 200;
        unsigned char *ptr = cw_mem_alloc(size);

        cr_assert(is_zero(ptr, size));
        memset(ptr, mark, size);
        cr_assert_eq(ptr[size - 1], mark);
        cw_mem_free(ptr, size);
    }
    return NULL;
}

Test(mem, serves_threads_at_the_same_time)
{
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

Test(mem, reset_in_a_child_leaves_the_old_blocks_alone)
{
    unsigned char *old = cw_mem_alloc(64);
    unsigned char *freed = cw_mem_alloc(64);
    pid_t pid;
    int status;

    memset(old, 0x5a, 64);
    cw_mem_free(freed, 64);
    pid = fork();
    if (pid == 0) {
        unsigned char *fresh;

        cw_mem_reset();
        fresh = cw_mem_alloc(64);
        _exit(fresh && fresh != freed && fresh != old && old[63] == 0x5a ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    cr_expect_eq(status, 0);
}
