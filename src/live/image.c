/* SPDX-License-Identifier: MIT */
/*
 * Copying a live file. See image.h.
 *
 * The header is read first: what its counts name was complete then, and is still there in what is
 * read after it. The rest of a chunk of which the file has only the beginning reads as zeros.
 */
#include "live/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/out.h"
#include "base/reason.h"
#include "base/sys.h"
#include "live/backing.h"

#define SIZE_MAX_SANE ((uint64_t)CW_STEPS_MAX * CW_STEP)

struct reading {
    int fd;
    uint64_t file_size;
    char *why;
    size_t cap;
};

static int refuse(const struct reading *reading, const char *words)
{
    cw_format(reading->why, reading->cap, "%s", words);
    return -1;
}

/* ---- the header ---- */

static int check_version(const struct reading *reading, const struct cw_live_header *header,
                         size_t got)
{
    size_t named = offsetof(struct cw_live_header, size);

    if (got == 0)
        return refuse(reading, "is empty");
    if (got < named || header->magic != CW_LIVE_MAGIC)
        return refuse(reading, "is no live file of cuwarden");
    if (header->version == CW_LIVE_VERSION)
        return 0;
    cw_format(
        reading->why, reading->cap,
        "is of %s cuwarden (layout %u, this command reads %u): use the command of the version "
        "that wrote it",
        header->version > CW_LIVE_VERSION ? "a newer" : "an older", header->version,
        (unsigned)CW_LIVE_VERSION);
    return -1;
}

static int read_header(struct reading *reading, struct cw_live_header *header)
{
    size_t got = cw_sys_read_at(reading->fd, header, sizeof(*header), 0);
    struct statx info;

    if (check_version(reading, header, got) != 0)
        return -1;
    if (got < sizeof(*header))
        return refuse(reading, "is cut off: not even its header is complete");
    if (header->header_size < sizeof(*header) || header->pid == 0)
        return refuse(reading, "is damaged: its header makes no sense");
    /* After the header: the file only grows, so it has all that the header names. */
    if (cw_sys_statx(reading->fd, "", AT_EMPTY_PATH, STATX_SIZE, &info) != 0)
        return refuse(reading, cw_reason(errno));
    reading->file_size = info.stx_size;
    return 0;
}

/* Where the last record of the table ends; 0: it has none, or is no table. */
static uint64_t table_end(const struct cw_live_table *table)
{
    uint64_t first = table->first, last = atomic_load(&table->count), slot;
    unsigned k;

    if (first == 0 || last <= 1 || table->elem_size > 4096)
        return 0;
    slot = last - 1 + first;
    k = (unsigned)(__builtin_clzll(first) - __builtin_clzll(slot));
    if (k >= CW_CHUNKS || table->chunk[k] > SIZE_MAX_SANE)
        return 0;
    return table->chunk[k] + (slot - (first << k) + 1) * table->elem_size;
}

/* Records that should be in the file and are not: the numbers would be wrong. */
static int check_length(const struct reading *reading, const struct cw_live_header *header)
{
    uint64_t end = 0;

    if (atomic_load(&header->cut))
        return 0;
    for (int i = 0; i < CW_TABLE_COUNT; i++) {
        uint64_t last = table_end(&header->table[i]);

        end = last > end ? last : end;
    }
    if (end <= reading->file_size)
        return 0;
    cw_format(reading->why, reading->cap,
              "is cut off or damaged: it has %ju bytes and should have %ju or more",
              (uintmax_t)reading->file_size, (uintmax_t)end);
    return -1;
}

/* No table has more records than the file has bytes: a bad count must not cost a long loop. */
static void bound_counts(const struct reading *reading, struct cw_live_header *header)
{
    for (int i = 0; i < CW_TABLE_COUNT; i++) {
        struct cw_live_table *table = &header->table[i];
        uint64_t most = reading->file_size / (table->elem_size ? table->elem_size : 1) + 1;

        if (atomic_load(&table->count) > most)
            atomic_store(&table->count, (uint32_t)most);
    }
}

/* ---- the rest ---- */

/* Holes are left out: the copy has zeros there. */
static int read_data(const struct reading *reading, char *to)
{
    uint64_t at = sizeof(struct cw_live_header), size = reading->file_size;

    while (at < size) {
        long data = syscall(SYS_lseek, reading->fd, (long)at, SEEK_DATA);
        long end = data < 0 ? -1 : syscall(SYS_lseek, reading->fd, data, SEEK_HOLE);
        uint64_t from = data < 0 ? at : (uint64_t)data;
        uint64_t until = end < 0 || (uint64_t)end > size ? size : (uint64_t)end;

        if (data < 0 && errno == ENXIO)
            return 0;
        if (from >= size)
            return 0;
        if (cw_sys_read_at(reading->fd, to + from, until - from, from) < until - from)
            return refuse(reading, "cannot be read to its end");
        at = until;
    }
    return 0;
}

static int map_copy(const struct reading *reading, const struct cw_live_header *header,
                    struct cw_image *image)
{
    uint64_t size = atomic_load(&header->size);

    if (size < reading->file_size)
        size = reading->file_size;
    if (size > SIZE_MAX_SANE)
        return refuse(reading, "is damaged: its size makes no sense");
    image->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image->memory == MAP_FAILED) {
        image->memory = NULL;
        return refuse(reading, "does not fit into memory");
    }
    image->size = size;
    return 0;
}

static int copy(struct reading *reading, struct cw_live_header *header, struct cw_image *image)
{
    if (read_header(reading, header) != 0 || check_length(reading, header) != 0)
        return -1;
    bound_counts(reading, header);
    if (map_copy(reading, header, image) != 0)
        return -1;
    memcpy(image->memory, header, sizeof(*header));
    if (read_data(reading, image->memory) == 0 &&
        cw_view_open(&image->view, image->memory, image->size) == 0)
        return 0;
    cw_image_free(image);
    return -1;
}

int cw_image_read(int fd, struct cw_image *image, char *why, size_t cap)
{
    struct reading reading = {.fd = fd, .why = why, .cap = cap};
    /* Not on the stack: some 100 KiB. */
    struct cw_live_header *header = cw_mem_alloc(sizeof(*header));
    struct statx info;
    int rc;

    *image = (struct cw_image){.memory = NULL};
    if (header == NULL)
        return refuse(&reading, "does not fit into memory");
    if (cw_sys_statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &info) == 0 && !S_ISREG(info.stx_mode))
        rc = refuse(&reading, "is no regular file");
    else
        rc = copy(&reading, header, image);
    image->is_locked = cw_place_is_locked(fd);
    cw_mem_free(header, sizeof(*header));
    return rc;
}

void cw_image_free(struct cw_image *image)
{
    if (image->memory != NULL)
        munmap(image->memory, image->size);
    image->memory = NULL;
}
