/* SPDX-License-Identifier: MIT */
/* Sorting in place: any number of elements comes out in order, each as often as before. */
#include "base/sort.h"

#include <criterion/criterion.h>

#include "fake_driver.h"

struct element {
    uint64_t key, twice; /* the key again, to see that elements move as a whole */
};

static int is_before(const void *a, const void *b, const void *arg)
{
    cr_assert_null(arg);
    return ((const struct element *)a)->key < ((const struct element *)b)->key;
}

Test(sort, puts_any_number_of_elements_in_order)
{
    struct element all[40];
    uint64_t random = 1;

    for (size_t count = 0; count <= 40; count++)
        for (unsigned round = 0; round < 20; round++) {
            uint64_t left = 0;

            for (size_t i = 0; i < count; i++) {
                all[i].key = next_random(&random) % 50;
                all[i].twice = 2 * all[i].key;
                left += all[i].key * all[i].key;
            }
            cw_sort(all, count, sizeof(all[0]), is_before, NULL);
            for (size_t i = 0; i < count; i++) {
                cr_assert(i == 0 || all[i - 1].key <= all[i].key, "%zu of %zu", i, count);
                cr_assert_eq(all[i].twice, 2 * all[i].key);
                left -= all[i].key * all[i].key;
            }
            cr_assert_eq(left, 0u);
        }
}
