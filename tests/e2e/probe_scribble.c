/* SPDX-License-Identifier: MIT */
/* Writes over a live file: what the process is called, and all that says what a stack is. With
 * "all", sites and tags as well, with their counters. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "live/layout.h"

static char *base;
static size_t size;

static void scribble(enum cw_table which)
{
    const struct cw_live_table *table = &((struct cw_live_header *)base)->table[which];

    for (unsigned k = 0; k < table->chunks; k++) {
        uint64_t at = table->chunk[k], bytes = ((uint64_t)table->first << k) * table->elem_size;

        if (at < size)
            memset(base + at, 'A', bytes < size - at ? bytes : size - at);
    }
}

int main(int argc, char **argv)
{
    int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
    struct cw_live_header *header;
    struct stat info;

    if (fd < 0 || fstat(fd, &info) != 0)
        return 99;
    size = (size_t)info.st_size;
    base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return 99;
    header = (struct cw_live_header *)base;
    header->pid = 1;
    header->exe = header->host = header->command = header->argv = header->rank = 1;
    header->start_realtime_ns = header->start_ns = 1;
    scribble(CW_TABLE_TEXT);
    scribble(CW_TABLE_MODULE);
    scribble(CW_TABLE_FRAME);
    scribble(CW_TABLE_CODE);
    if (strcmp(argv[2], "all") == 0) {
        scribble(CW_TABLE_SITE);
        scribble(CW_TABLE_TAG);
    }
    return 0;
}
