/* SPDX-License-Identifier: MIT */
/* Memory by the page. See pages.h. A page is at least twice as large as the one before, up to
 * PAGE_MAX, so that few of them do for a large report and little is wasted on a small one. */
#include "base/pages.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

#define PAGE_MIN ((size_t)16 * 1024)
#define PAGE_MAX ((size_t)1024 * 1024)
#define ALIGN    16

struct cw_page {
    struct cw_page *next;
    size_t size, used;
    _Alignas(ALIGN) char data[];
};

static struct cw_page *add_page(struct cw_pages *pages, size_t least)
{
    size_t size = pages->first ? pages->first->size * 2 : PAGE_MIN;
    struct cw_page *page;

    if (size > PAGE_MAX)
        size = PAGE_MAX;
    if (size < least + sizeof(*page))
        size = least + sizeof(*page);
    page = cw_mem_alloc(size);
    if (!page)
        return NULL;
    *page = (struct cw_page){.next = pages->first, .size = size};
    pages->first = page;
    return page;
}

static void *take(struct cw_pages *pages, size_t size, size_t align)
{
    struct cw_page *page = pages->first;
    size_t at = page ? (page->used + align - 1) & ~(align - 1) : 0;

    if (!page || page->size - sizeof(*page) < at || page->size - sizeof(*page) - at < size) {
        if (size > SIZE_MAX / 2 || !(page = add_page(pages, size)))
            return NULL;
        at = 0;
    }
    page->used = at + size;
    return page->data + at;
}

void *cw_pages_take(struct cw_pages *pages, size_t size)
{
    return take(pages, size, ALIGN);
}

const char *cw_pages_copy(struct cw_pages *pages, const char *text, size_t len)
{
    char *copy = take(pages, len + 1, 1);

    if (copy)
        memcpy(copy, text, len);
    return copy;
}

void cw_pages_free(struct cw_pages *pages)
{
    while (pages->first) {
        struct cw_page *next = pages->first->next;

        cw_mem_free(pages->first, pages->first->size);
        pages->first = next;
    }
}
