/* SPDX-License-Identifier: MIT */
/* The map: insertion, lookup, removal also while visiting, many entries, no memory. */
#include "base/map.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

struct item {
    struct cw_map_entry entry;
    int value;
};

Test(map, finds_what_was_inserted)
{
    struct cw_map map = {NULL, 0};
    struct item items[3] = {{.value = 10}, {.value = 20}, {.value = 30}};
    static const uint64_t keys[3] = {0, UINT64_MAX, 0x7f0000000000};

    for (int i = 0; i < 3; i++)
        cr_assert_eq(cw_map_insert(&map, &items[i].entry, keys[i]), 0);
    for (int i = 0; i < 3; i++) {
        struct item *found = (struct item *)cw_map_find(&map, keys[i]);

        cr_assert_eq(found, &items[i]);
        cr_expect_eq(found->entry.key, keys[i]);
    }
    cr_expect_eq(items[1].value, 20);
    cr_expect_null(cw_map_find(&map, 1));
    cr_expect_eq(cw_map_count(&map), 3u);
    cw_map_clear(&map);
}

Test(map, is_empty_at_first_and_after_clear)
{
    struct cw_map map = {NULL, 0};
    struct item item = {.value = 1};

    cr_expect_null(cw_map_find(&map, 0));
    cr_expect_eq(cw_map_count(&map), 0u);
    cw_map_clear(&map);
    cr_assert_eq(cw_map_insert(&map, &item.entry, 5), 0);
    cw_map_clear(&map);
    cr_expect_null(map.head);
    cr_expect_null(cw_map_find(&map, 5));
    cr_expect_eq(item.value, 1);
    cr_assert_eq(cw_map_insert(&map, &item.entry, 6), 0);
    cr_expect_not_null(cw_map_find(&map, 6));
    cw_map_clear(&map);
}

Test(map, forgets_what_was_removed_and_takes_it_again)
{
    struct cw_map map = {NULL, 0};
    struct item a = {.value = 1};
    struct item b = {.value = 2};

    cw_map_insert(&map, &a.entry, 1);
    cw_map_insert(&map, &b.entry, 2);
    cw_map_remove(&map, &a.entry);
    cr_expect_null(cw_map_find(&map, 1));
    cr_expect_eq(cw_map_find(&map, 2), &b.entry);
    cr_assert_eq(cw_map_insert(&map, &a.entry, 3), 0);
    cr_expect_eq(cw_map_find(&map, 3), &a.entry);
    cw_map_remove(&map, &a.entry);
    cw_map_remove(&map, &b.entry);
    cr_expect_null(map.head);
    cr_expect_eq(cw_map_count(&map), 0u);
}

#define MANY 100000

static struct item *make_many(struct cw_map *map)
{
    struct item *items = calloc(MANY, sizeof(*items));

    cr_assert_not_null(items);
    for (uint64_t i = 0; i < MANY; i++)
        cr_assert_eq(cw_map_insert(map, &items[i].entry, i << 21), 0);
    return items;
}

Test(map, holds_a_hundred_thousand_aligned_addresses)
{
    struct cw_map map = {NULL, 0};
    struct item *items = make_many(&map);

    cr_expect_eq(cw_map_count(&map), (size_t)MANY);
    for (uint64_t i = 0; i < MANY; i++)
        cr_assert_eq(cw_map_find(&map, i << 21), &items[i].entry);
    cr_expect_null(cw_map_find(&map, 1));
    for (uint64_t i = 0; i < MANY; i += 2)
        cw_map_remove(&map, &items[i].entry);
    for (uint64_t i = 0; i < MANY; i++)
        cr_assert_eq(cw_map_find(&map, i << 21) != NULL, i % 2 == 1);
    cw_map_clear(&map);
    free(items);
}

struct sweep {
    struct cw_map *map;
    unsigned visited;
};

static void remove_even(struct cw_map_entry *entry, void *arg)
{
    struct sweep *sweep = arg;

    sweep->visited++;
    if (entry->key % 2 == 0)
        cw_map_remove(sweep->map, entry);
}

Test(map, a_visitor_may_remove_its_entry)
{
    struct cw_map map = {NULL, 0};
    struct sweep sweep = {&map, 0};
    static struct item items[1000];

    for (uint64_t i = 0; i < 1000; i++)
        cw_map_insert(&map, &items[i].entry, i);
    cw_map_visit(&map, remove_even, &sweep);
    cr_expect_eq(sweep.visited, 1000u);
    cr_expect_eq(cw_map_count(&map), 500u);
    cr_expect_null(cw_map_find(&map, 998));
    cr_expect_not_null(cw_map_find(&map, 999));
    cw_map_clear(&map);
}

static void remove_and_reuse(struct cw_map_entry *entry, void *arg)
{
    struct sweep *sweep = arg;

    sweep->visited++;
    cw_map_remove(sweep->map, entry);
    memset(entry, 0xff, sizeof(*entry)); /* as if it were freed and used anew */
}

Test(map, a_visitor_may_remove_and_reuse_everything)
{
    struct cw_map map = {NULL, 0};
    struct sweep sweep = {&map, 0};
    struct item items[5];

    for (uint64_t i = 0; i < 5; i++)
        cw_map_insert(&map, &items[i].entry, i);
    cw_map_visit(&map, remove_and_reuse, &sweep);
    cr_expect_eq(sweep.visited, 5u);
    cr_expect_null(map.head);
    cw_map_visit(&map, remove_and_reuse, &sweep);
    cr_expect_eq(sweep.visited, 5u);
}

/* Under an address space limit there is no memory at some point; exit status 0 if all held. */
static int insert_without_memory(struct item *items)
{
    struct rlimit none = {0, 0};
    struct cw_map map = {NULL, 0};
    uint64_t i = 0;

    setrlimit(RLIMIT_AS, &none);
    while (i < MANY && cw_map_insert(&map, &items[i].entry, i) == 0)
        i++;
    if (i == MANY || !map.failed || cw_map_count(&map) != i || cw_map_find(&map, i))
        return 1;
    for (uint64_t j = 0; j < i; j++) {
        if (cw_map_find(&map, j) != &items[j].entry)
            return 2;
    }
    return 0;
}

static int status_without_memory(size_t warm_up)
{
    struct item *items = calloc(MANY, sizeof(*items));
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        /* Small classes that have a chunk left let the failure strike later, in an expansion. */
        for (size_t size = 16; size <= warm_up; size *= 2)
            cw_mem_free(cw_mem_alloc(size), size);
        _exit(insert_without_memory(items));
    }
    waitpid(pid, &status, 0);
    free(items);
    return status;
}

Test(map, an_insertion_without_memory_changes_nothing)
{
    cr_expect_eq(status_without_memory(0), 0);
    cr_expect_eq(status_without_memory(4096), 0);
}
