/* SPDX-License-Identifier: MIT */
/*
 * Changes what is around it as its first argument says, before or after it has called CUDA for the
 * first time (second argument), and leaks many blocks and 17 bytes. Its own files are "own" and
 * "own.N"; what it finds in them at the end is what it wrote, or its status is 1.
 */
#include "leak.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAKS 4000 /* records of more than the first steps of a live file */

static NOINLINE void leak_deep(size_t bytes, unsigned levels) /* NOLINT(misc-no-recursion) */
{
    if (levels == 0)
        leak(bytes);
    else
        leak_deep(bytes, levels - 1);
    __asm__ volatile("");
}

static void leak_many(void)
{
    for (int i = 0; i < LEAKS; i++)
        leak_deep(1, (unsigned)i % 30);
}

/* Fills every number that is free below 1000 with a file of ours. */
static void take_numbers(void)
{
    int fd = 0;

    while (fd >= 0 && fd < 990)
        fd = open("own", O_RDWR | O_CREAT, 0600);
}

static void close_range_(void)
{
    syscall(SYS_close_range, 3, ~0u, 0);
}

static void close_and_open(void)
{
    close_range_();
    take_numbers();
}

/* Every descriptor that is not ours becomes a file of ours. */
static void replace_all(void)
{
    int own = open("own", O_RDWR | O_CREAT, 0600), numbers[64], count = 0;
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) && count < 64)
        if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(dir))
            numbers[count++] = atoi(entry->d_name);
    if (dir)
        closedir(dir);
    for (int i = 0; i < count; i++)
        if (numbers[i] != own)
            dup2(own, numbers[i]);
}

static void close_standard(void)
{
    fflush(stdout);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
}

/* Whatever opens a file next gets 0, 1 and 2. */
static void own_standard(void)
{
    close_standard();
    for (int fd = 0; fd < 3; fd++)
        if (open("own", O_RDWR | O_CREAT | O_APPEND, 0600) != fd)
            _exit(1);
}

static void limit(int resource, rlim_t most)
{
    struct rlimit limit = {most, most};

    if (setrlimit(resource, &limit) != 0)
        _exit(1);
}

static void few_files(void)
{
    limit(RLIMIT_NOFILE, 3);
}

static void no_files(void)
{
    limit(RLIMIT_NOFILE, 0);
}

/* The simulated driver itself takes two thirds of it. */
static void little_memory(void)
{
    limit(RLIMIT_AS, (rlim_t)24 << 30);
}

static void other_mask(void)
{
    umask(0777);
}

static void elsewhere(void)
{
    if (mkdir("elsewhere", 0700) != 0 || chdir("elsewhere") != 0)
        _exit(1);
}

static void jail(void)
{
    if (mkdir("jail", 0700) != 0 || chroot("jail") != 0 || chdir("/") != 0)
        _exit(1);
}

static void nothing(void)
{
}

static const struct {
    const char *name;
    void (*change)(void);
} ways[] = {
    {"nothing", nothing},     {"close", close_range_},      {"reuse", close_and_open},
    {"replace", replace_all}, {"standard", close_standard}, {"own", own_standard},
    {"files", few_files},     {"none", no_files},           {"memory", little_memory},
    {"mask", other_mask},     {"elsewhere", elsewhere},     {"jail", jail},
};

static int own_size(void)
{
    struct stat status;

    return stat("own", &status) == 0 ? (int)status.st_size : 0;
}

int main(int argc, char **argv)
{
    void (*change)(void) = nothing;
    int is_before = argc > 2 && strcmp(argv[2], "before") == 0;

    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].name, argv[1]) == 0)
            change = ways[i].change;
    say("expect leaked_bytes=%d leaked_blocks=%d failed=0", LEAKS + 17, LEAKS + 1);
    if (is_before)
        change();
    use_device(0);
    leak(17);
    if (!is_before)
        change();
    leak_many();
    return own_size() == 0 ? 21 : 1;
}
