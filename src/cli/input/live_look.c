/* SPDX-License-Identifier: MIT */
/*
 * Repeated reading of a live file. See live_look.h.
 *
 * The header is read before the tables, so the records that its counts cover are complete. Only
 * records in use are read: a look costs what the process uses, not what its file could hold.
 */
#include "cli/input/live_look.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "live/backing.h"
#include "live/live_copy.h"

#define SIZE_MAX_SANE ((uint64_t)CW_STEPS_MAX * CW_STEP)

static int refuse(char *why, size_t cap, const char *words)
{
    snprintf(why, cap, "%s", words);
    return -1;
}

/* Reserves room for the whole file; untouched pages are never allocated. */
static int reserve(struct cw_look *look, uint64_t size, char *why, size_t cap)
{
    if (look->memory && size <= look->size)
        return 0;
    if (size > SIZE_MAX_SANE)
        return refuse(why, cap, "is damaged: its size is invalid");
    cw_look_free(look);
    look->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (look->memory == MAP_FAILED) {
        look->memory = NULL;
        return refuse(why, cap, "does not fit in memory");
    }
    look->size = size;
    return 0;
}

static void read_table(const struct cw_look *look, int fd, enum cw_table which)
{
    const struct cw_live_table *table = &look->view.table[which];
    uint64_t records = atomic_load(&table->count), first = table->first;
    uint64_t elem_size = table->elem_size;

    if (elem_size == 0 || elem_size > CW_ELEM_MAX || first == 0)
        return;
    if (records > look->size / elem_size)
        records = look->size / elem_size;
    for (unsigned k = 0; k < CW_CHUNKS && (first << k) - first < records; k++) {
        uint64_t at = atomic_load(&table->chunk[k]), used = records - ((first << k) - first);
        uint64_t size = (used < first << k ? used : first << k) * elem_size;

        if (at < sizeof(struct cw_live_header) || at >= look->size)
            continue;
        if (size > look->size - at)
            size = look->size - at;
        (void)cw_live_copy_read_data(fd, look->memory, at, at + size);
    }
}

/* Reports foreign files in the words of live_copy.c. */
static int check(int fd, char *why, size_t cap)
{
    struct cw_live_identity identity;

    return cw_live_copy_check(fd, &identity, why, cap);
}

/* Reads the current header, and reserves room for the tables that it names. */
static int read_header(struct cw_look *look, int fd, char *why, size_t cap)
{
    uint64_t size, file_size;

    if (cw_live_copy_size(fd, &size, why, cap) != 0)
        return -1;
    for (;;) {
        if (size < sizeof(struct cw_live_header) || reserve(look, size, why, cap) != 0 ||
            cw_sys_read_at(fd, look->memory, sizeof(struct cw_live_header), 0) <
                sizeof(struct cw_live_header))
            break;
        if (cw_view_open(&look->view, look->memory, look->size) != 0)
            return refuse(why, cap, "is not a cuwarden live file");
        size = atomic_load(&cw_view_header(&look->view)->size);
        if (size > look->size)
            continue;
        if (cw_live_copy_size(fd, &file_size, why, cap) != 0)
            return -1;
        cw_live_copy_bound_counts(look->memory, file_size);
        return 0;
    }
    look->view = (struct cw_view){.base = NULL};
    return size > SIZE_MAX_SANE ? -1 : refuse(why, cap, "is cut off or damaged");
}

int cw_look_take(struct cw_look *look, int fd, unsigned tables, char *why, size_t cap)
{
    int is_first = !look->memory;

    look->view = (struct cw_view){.base = NULL};
    if ((is_first && check(fd, why, cap) != 0) || read_header(look, fd, why, cap) != 0)
        return -1;
    for (unsigned i = 0; i < CW_TABLE_COUNT; i++) {
        if (tables & CW_LOOK_AT(i))
            read_table(look, fd, (enum cw_table)i);
    }
    return 0;
}

void cw_look_free(struct cw_look *look)
{
    if (look->memory)
        munmap(look->memory, look->size);
    *look = (struct cw_look){.memory = NULL};
}
