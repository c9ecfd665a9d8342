/* SPDX-License-Identifier: MIT */
/*
 * Copying a live file. See live_copy.h.
 *
 * The header is read first: what its counts name was complete then, and is still there in what is
 * read after it. The rest of a chunk of which the file has only the beginning reads as zeros. While
 * the process runs, records that may be torn are read twice.
 */
#include "live/live_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/out.h"
#include "base/reason.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "live/backing.h"
#include "live/file_lock.h"

#define LOOK          ((size_t)64 << 10)
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
        return refuse(reading, "is not a cuwarden live file");
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

/* The library takes room before it uses it; in a copy, zeros may be holes. A hollow file is not one
 * of ours. */
int cw_live_copy_size(int fd, uint64_t *out_size, char *why, size_t cap)
{
    struct stat info;
    uint64_t size, room;

    if (cw_sys_stat(fd, &info) != 0) {
        cw_format(why, cap, "%s", cw_reason(errno));
        return -1;
    }
    size = (uint64_t)info.st_size;
    room = (uint64_t)info.st_blocks * 512;
    if (size > SIZE_MAX_SANE || cw_regular_is_hollow(&info)) {
        cw_format(why, cap, "is damaged: it is %ju MiB long, and has %ju KiB on its disk",
                  (uintmax_t)(size >> 20), (uintmax_t)(room >> 10));
        return -1;
    }
    *out_size = size;
    return 0;
}

static int read_header(struct reading *reading, struct cw_live_header *header)
{
    size_t got = cw_sys_read_at(reading->fd, header, sizeof(*header), 0);

    if (check_version(reading, header, got) != 0)
        return -1;
    if (got < sizeof(*header))
        return refuse(reading, "is cut off: not even its header is complete");
    if (header->header_size < sizeof(*header) || header->pid == 0)
        return refuse(reading, "is damaged: its header is invalid");
    /* After the header: the file only grows, so it has all that the header names. */
    return cw_live_copy_size(reading->fd, &reading->file_size, reading->why, reading->cap);
}

/* Where the last record of the table ends; 0: it has none, or is no table. */
static uint64_t table_end(const struct cw_live_table *table)
{
    uint64_t first = table->first, last = atomic_load(&table->count), slot;
    unsigned k;

    if (first == 0 || last <= 1 || table->elem_size > CW_ELEM_MAX)
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

void cw_live_copy_bound_counts(struct cw_live_header *header, uint64_t file_size)
{
    for (int i = 0; i < CW_TABLE_COUNT; i++) {
        struct cw_live_table *table = &header->table[i];
        uint64_t most = file_size / (table->elem_size ? table->elem_size : 1) + 1;

        if (atomic_load(&table->count) > most)
            atomic_store(&table->count, (uint32_t)most);
    }
}

/* ---- the rest ---- */

uint64_t cw_live_copy_read_data(int fd, char *to, uint64_t from, uint64_t until)
{
    uint64_t at = from;

    while (at < until) {
        long data = syscall(SYS_lseek, fd, (long)at, SEEK_DATA);
        long hole = data < 0 ? -1 : syscall(SYS_lseek, fd, data, SEEK_HOLE);
        uint64_t start = data < 0 ? at : (uint64_t)data;
        uint64_t end = hole < 0 || (uint64_t)hole > until ? until : (uint64_t)hole;
        size_t got;

        if ((data < 0 && errno == ENXIO) || start >= until)
            return until;
        got = cw_sys_read_at(fd, to + start, end - start, start);
        if (got < end - start)
            return start + got;
        at = end;
    }
    return until;
}

/* Holes are left out: the copy has zeros there. */
static int read_data(const struct reading *reading, char *to)
{
    uint64_t size = reading->file_size;

    if (cw_live_copy_read_data(reading->fd, to, sizeof(struct cw_live_header), size) < size)
        return refuse(reading, "cannot be read to its end");
    return 0;
}

/* ---- what changed meanwhile ----  A record that was being written while it was copied may be half
 * an old one and half a new one, and say of itself that it is whole. A second look tells: no record
 * comes back to what it was, because the time in it does not. A record that differs is treated as
 * changing hands, which is what it does. */

typedef void (*disown_fn)(void *record, const void *later);

static void disown_block(void *record, const void *later)
{
    struct cw_live_block *block = record;

    if (memcmp(block, later, sizeof(*block)) != 0)
        atomic_store(&block->state, CW_BLOCK_LEAVING);
}

static void disown_points(void *record, const void *later)
{
    struct cw_live_timeline *timeline = record;
    const struct cw_live_timeline *second = later;

    for (unsigned i = 0; i < CW_POINTS; i++) {
        if (memcmp(&timeline->point[i], &second->point[i], sizeof(timeline->point[i])) != 0)
            atomic_store(&timeline->point[i].t_ns, 0);
    }
}

/* Copies of `size` bytes at `at` with records every `stride` bytes. */
static void look_again_at(const struct reading *reading, char *copy, uint64_t at, uint64_t size,
                          uint32_t stride, disown_fn disown)
{
    uint64_t piece = LOOK / stride * stride;
    char *later = cw_mem_alloc(LOOK);

    for (uint64_t done = 0; later != NULL && done < size; done += piece) {
        uint64_t want = size - done < piece ? size - done : piece;
        size_t got = cw_sys_read_at(reading->fd, later, want, at + done);

        for (uint64_t i = 0; i + stride <= got; i += stride)
            disown(copy + at + done + i, later + i);
    }
    if (later != NULL)
        cw_mem_free(later, LOOK);
}

static void look_again_at_table(const struct reading *reading, char *copy, enum cw_table which,
                                size_t record, disown_fn disown)
{
    const struct cw_live_table *table = &((const struct cw_live_header *)copy)->table[which];
    uint64_t records = atomic_load(&table->count), first = table->first;

    if (table->elem_size < record || table->elem_size > CW_ELEM_MAX || first == 0)
        return;
    for (unsigned k = 0; k < CW_CHUNKS && (first << k) - first < records; k++) {
        uint64_t at = atomic_load(&table->chunk[k]), used = records - ((first << k) - first);
        uint64_t size = (used < first << k ? used : first << k) * table->elem_size;

        if (at < sizeof(struct cw_live_header) || at % 8 != 0 || at >= reading->file_size)
            continue;
        if (size > reading->file_size - at)
            size = reading->file_size - at;
        look_again_at(reading, copy, at, size, table->elem_size, disown);
    }
}

static void look_again(const struct reading *reading, char *copy)
{
    struct cw_live_growth *growth = &((struct cw_live_header *)copy)->growth;
    uint64_t later[CW_SAMPLES];
    size_t got = cw_sys_read_at(reading->fd, later, sizeof(later),
                                offsetof(struct cw_live_header, growth.t_ns));

    for (unsigned i = 0; i < got / sizeof(later[0]); i++) {
        if (atomic_load(&growth->t_ns[i]) != later[i])
            atomic_store(&growth->t_ns[i], 0);
    }
    look_again_at_table(reading, copy, CW_TABLE_BLOCK, sizeof(struct cw_live_block), disown_block);
    look_again_at_table(reading, copy, CW_TABLE_TIMELINE, sizeof(struct cw_live_timeline),
                        disown_points);
}

static int map_copy(const struct reading *reading, const struct cw_live_header *header,
                    struct cw_live_copy *image)
{
    uint64_t size = atomic_load(&header->size);

    if (size < reading->file_size)
        size = reading->file_size;
    if (size > SIZE_MAX_SANE)
        return refuse(reading, "is damaged: its size is invalid");
    image->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image->memory == MAP_FAILED) {
        image->memory = NULL;
        return refuse(reading, "does not fit in memory");
    }
    image->size = size;
    return 0;
}

static int copy(struct reading *reading, struct cw_live_header *header, struct cw_live_copy *image)
{
    if (read_header(reading, header) != 0 || check_length(reading, header) != 0)
        return -1;
    cw_live_copy_bound_counts(header, reading->file_size);
    if (map_copy(reading, header, image) != 0)
        return -1;
    memcpy(image->memory, header, sizeof(*header));
    if (read_data(reading, image->memory) == 0 &&
        cw_view_open(&image->view, image->memory, image->size) == 0) {
        if (image->is_locked != 0)
            look_again(reading, image->memory);
        return 0;
    }
    cw_live_copy_free(image);
    return -1;
}

static int check_type(const struct reading *reading)
{
    struct stat info;

    if (cw_sys_stat(reading->fd, &info) == 0 && !S_ISREG(info.st_mode))
        return refuse(reading, "is not a regular file");
    return 0;
}

int cw_live_copy_read(int fd, struct cw_live_copy *image, char *why, size_t cap)
{
    struct reading reading = {.fd = fd, .why = why, .cap = cap};
    /* Not on the stack: some 100 KiB. */
    struct cw_live_header *header = cw_mem_alloc(sizeof(*header));
    int rc;

    /* Before anything is read: one that is dead by now does not write any more. */
    *image = (struct cw_live_copy){.is_locked = cw_file_lock_is_claimed(fd)};
    if (header == NULL)
        return refuse(&reading, "does not fit in memory");
    rc = check_type(&reading);
    if (rc == 0)
        rc = copy(&reading, header, image);
    cw_mem_free(header, sizeof(*header));
    return rc;
}

struct cw_live_identity cw_live_identity(const struct cw_live_header *header)
{
    return (struct cw_live_identity){.pid = header->pid, .pid_namespace = header->pid_namespace};
}

int cw_live_copy_check(int fd, struct cw_live_identity *out_identity, char *why, size_t cap)
{
    struct reading reading = {.fd = fd, .why = why, .cap = cap};
    struct cw_live_header *header = cw_mem_alloc(sizeof(*header));
    int rc;

    if (header == NULL)
        return refuse(&reading, "does not fit in memory");
    rc = check_type(&reading);
    if (rc == 0)
        rc = read_header(&reading, header);
    if (rc == 0)
        *out_identity = cw_live_identity(header);
    cw_mem_free(header, sizeof(*header));
    return rc;
}

void cw_live_copy_free(struct cw_live_copy *image)
{
    if (image->memory != NULL)
        munmap(image->memory, image->size);
    image->memory = NULL;
}
