/* SPDX-License-Identifier: MIT */
/*
 * The internal heap.
 *
 * Owns the free lists and the chunk that each size class is being cut from; heap_lock guards both.
 * Small blocks are powers of two from 16 bytes on and aligned to their size, for their chunk is
 * page-aligned. A chunk never goes back to the system: cold maps are small and their blocks get
 * reused. A larger block is a mapping of its own. A block outside a free list holds no link of
 * ours.
 */
#include "base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/round.h"

#define SMALL_SHIFT_MIN 4  /* 16 bytes: room for a free block's link, aligned as malloc does */
#define SMALL_SHIFT_MAX 12 /* 4 KiB: above, whole pages waste little */
#define CHUNK_SIZE      ((size_t)64 * 1024)
#define PAGE_ALIGN      ((size_t)64 * 1024) /* the largest page size of aarch64 */
#define LARGE_PAGE      ((size_t)2 << 20)

struct free_block {
    struct free_block *next;
};

struct size_class {
    struct free_block *freed;
    char *fresh; /* untouched, hence zero, rest of the current chunk */
    size_t fresh_len;
};

static struct cw_lock heap_lock = CW_LOCK_INIT(CW_RANK_MEM);
static struct size_class classes[SMALL_SHIFT_MAX + 1]; /* by log2 of the block size */

/* This thread takes whole pages and no lock. */
static CW_TLS int detached;

static unsigned shift_of(size_t size)
{
    if (size <= (size_t)1 << SMALL_SHIFT_MIN)
        return SMALL_SHIFT_MIN;
    return (unsigned)(64 - __builtin_clzl(size - 1));
}

static int is_small(size_t size)
{
    return size <= (size_t)1 << SMALL_SHIFT_MAX;
}

static void *map_pages(size_t len)
{
    int saved = errno;
    void *pages = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    errno = saved;
    return pages == MAP_FAILED ? NULL : pages;
}

static void *pop_freed_locked(struct size_class *class)
{
    struct free_block *block = class->freed;

    if (block)
        class->freed = block->next;
    return block;
}

static void *cut_fresh_locked(struct size_class *class, size_t block_size)
{
    void *block;

    if (class->fresh_len == 0) {
        class->fresh = map_pages(CHUNK_SIZE);
        if (!class->fresh)
            return NULL;
        class->fresh_len = CHUNK_SIZE;
    }
    block = class->fresh;
    class->fresh += block_size;
    class->fresh_len -= block_size;
    return block;
}

static void *alloc_small(size_t size)
{
    unsigned shift = shift_of(size);
    struct size_class *class = &classes[shift];
    void *reused;
    void *block;

    cw_lock_acquire(&heap_lock);
    reused = pop_freed_locked(class);
    block = reused ? reused : cut_fresh_locked(class, (size_t)1 << shift);
    cw_lock_release(&heap_lock);
    if (reused)
        memset(reused, 0, (size_t)1 << shift);
    return block;
}

static void free_small(void *ptr, size_t size)
{
    struct size_class *class = &classes[shift_of(size)];
    struct free_block *block = ptr;

#ifdef CW_DEBUG
    memset(ptr, 0xdd, (size_t)1 << shift_of(size));
#endif
    cw_lock_acquire(&heap_lock);
    block->next = class->freed;
    class->freed = block;
    cw_lock_release(&heap_lock);
}

static size_t round_large(size_t size)
{
    return cw_round_up(size, PAGE_ALIGN);
}

void *cw_mem_alloc(size_t size)
{
    if (is_small(size) && !detached)
        return alloc_small(size);
    if (size > SIZE_MAX - PAGE_ALIGN)
        return NULL;
    return map_pages(round_large(size));
}

void *cw_mem_alloc_dense(size_t size)
{
    size_t len = round_large(size), before;
    char *pages;
    int saved = errno;

    if (size < LARGE_PAGE || size > SIZE_MAX - 2 * LARGE_PAGE)
        return cw_mem_alloc(size);
    pages = map_pages(len + LARGE_PAGE);
    if (pages == NULL)
        return NULL;
    before = -(uintptr_t)pages % LARGE_PAGE;
    if (before != 0)
        munmap(pages, before);
    munmap(pages + before + len, LARGE_PAGE - before);
    (void)madvise(pages + before, len, MADV_HUGEPAGE);
    errno = saved;
    return pages + before;
}

void cw_mem_free(void *ptr, size_t size)
{
    int saved = errno;

    if (!ptr)
        return;
    if (is_small(size) && !detached)
        free_small(ptr, size);
    else
        munmap(ptr, round_large(size));
    errno = saved;
}

void cw_mem_detach(void)
{
    detached = 1;
}

void cw_mem_attach(void)
{
    detached = 0;
}

void cw_mem_reset(void)
{
    /* The parent's blocks stay mapped: what the child has not cleared yet may still point there. */
    cw_lock_reset(&heap_lock);
    memset(classes, 0, sizeof(classes));
}
