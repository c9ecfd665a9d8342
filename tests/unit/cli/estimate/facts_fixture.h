/* SPDX-License-Identifier: MIT */
/* Files of models that are made of bytes, for the tests that include it. */
#include "cli/estimate/model_files.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command_fixture.h"

static struct cw_facts facts;

static int read_bytes(const void *bytes, size_t size, uint64_t file_size)
{
    char path[64];
    int fd = memfd_create("model", 0), rc;

    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    cr_assert_eq(ftruncate(fd, (off_t)file_size), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    rc = cw_model_files_read(&facts, path);
    close(fd);
    return rc;
}
