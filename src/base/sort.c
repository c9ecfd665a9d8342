/* SPDX-License-Identifier: MIT */
/* Heap sort: no memory of its own, no recursion, and no input makes it quadratic. See sort.h. */
#include "base/sort.h"

#include <string.h>

struct heap {
    char *base;
    size_t size;
    cw_before_fn before;
    const void *arg;
};

/* Puts `item` into the hole at `at`, moving larger children up; the heap has `count` elements. */
static void sift(const struct heap *heap, size_t at, size_t count, const void *item)
{
    size_t size = heap->size;
    size_t child;

    while ((child = 2 * at + 1) < count) {
        char *larger = heap->base + child * size;

        if (child + 1 < count && heap->before(larger, larger + size, heap->arg)) {
            larger += size;
            child++;
        }
        if (!heap->before(item, larger, heap->arg))
            break;
        memcpy(heap->base + at * size, larger, size);
        at = child;
    }
    memcpy(heap->base + at * size, item, size);
}

void cw_sort(void *base, size_t count, size_t size, cw_before_fn before, const void *arg)
{
    struct heap heap = {.base = base, .size = size, .before = before, .arg = arg};
    _Alignas(16) char item[CW_SORT_ELEMENT_MAX];

    if (count < 2 || size > sizeof(item))
        return;
    for (size_t i = count / 2; i-- > 0;) {
        memcpy(item, heap.base + i * size, size);
        sift(&heap, i, count, item);
    }
    for (size_t last = count - 1; last > 0; last--) {
        memcpy(item, heap.base + last * size, size);
        memcpy(heap.base + last * size, heap.base, size);
        sift(&heap, 0, last, item);
    }
}
