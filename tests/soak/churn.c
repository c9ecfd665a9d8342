/* SPDX-License-Identifier: MIT */
/*
 * Allocates and frees for a long time in many threads, some blocks by another thread than the one
 * that took them, over the driver of tests/bench that costs nothing; and watches what grows: the
 * live file, and the memory of the process.
 *
 *   churn MILLIONS THREADS DIRECTORY
 *
 * After a tenth of the work nothing may grow any more but by what is said below. A line for each
 * twentieth; exit status 1 if something grew.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuMemAlloc_v2(uint64_t *dptr, size_t bytes);
int cuMemFree_v2(uint64_t dptr);

#define KEPT        64 /* blocks that each thread has */
#define MAIL        256
#define STEPS       20
#define WARM_STEPS  2
#define OCTAVES     13 /* 256 B to 1 MiB */
#define FILE_GROWTH ((long)1 << 20)
#define RSS_GROWTH  ((long)4 << 20)

static _Atomic uint64_t mail[MAIL];
static _Atomic uint64_t done, failed;
static uint64_t wanted;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 16;
}

/* A few calling places. */
static __attribute__((noinline)) uint64_t take_small(size_t bytes)
{
    uint64_t block = 0;

    if (cuMemAlloc_v2(&block, bytes) != 0)
        failed++;
    return block;
}

static __attribute__((noinline)) uint64_t take_large(size_t bytes)
{
    uint64_t block = 0;

    if (cuMemAlloc_v2(&block, bytes) != 0)
        failed++;
    return block;
}

static void give(uint64_t block)
{
    if (block != 0 && cuMemFree_v2(block) != 0)
        failed++;
}

static void *churn(void *argument)
{
    uint64_t kept[KEPT] = {0}, state = (uintptr_t)argument;

    while (atomic_load(&done) < wanted) {
        for (int i = 0; i < 1000; i++) {
            uint64_t random = next_random(&state), *block = &kept[random % KEPT];
            size_t bytes = ((size_t)256 << random / 64 % OCTAVES) - random / 1024 % 128;

            if (random % 97 == 0) /* the other who finds it frees it */
                *block = atomic_exchange(&mail[random / 97 % MAIL], *block);
            give(*block);
            *block = bytes < 8192 ? take_small(bytes) : take_large(bytes);
        }
        atomic_fetch_add(&done, 1000);
    }
    for (int i = 0; i < KEPT; i++)
        give(kept[i]);
    return NULL;
}

static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Bytes that the one live file takes; 0: there is none. */
static long file_size(const char *directory)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    struct stat info;
    long size = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strstr(entry->d_name, ".live") != NULL &&
            fstatat(dirfd(dir), entry->d_name, &info, 0) == 0)
            size = info.st_blocks * 512;
    if (dir != NULL)
        closedir(dir);
    return size;
}

/* Waits until so much is done; prints what there is then. */
static void look(uint64_t until, const char *directory, long *file, long *rss)
{
    while (atomic_load(&done) < until)
        usleep(2000);
    *file = file_size(directory);
    *rss = resident();
    printf("%12llu allocations  live file %8ld KiB  resident %8ld KiB\n",
           (unsigned long long)atomic_load(&done), *file >> 10, *rss >> 10);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned threads = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
    long file = 0, rss = 0, warm_file = 0, warm_rss = 0;
    pthread_t thread[256];

    if (threads == 0 || threads > 256 || cuInit(0) != 0)
        return 2;
    wanted = strtoull(argv[1], NULL, 10) * 1000000;
    for (uintptr_t i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, churn, (void *)(i + 1));
    for (unsigned i = 1; i <= STEPS; i++) {
        look(wanted / STEPS * i, argv[3], &file, &rss);
        if (i == WARM_STEPS) {
            warm_file = file;
            warm_rss = rss;
        }
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < MAIL; i++)
        give(mail[i]);
    printf("grown since the first tenth: live file %ld KiB, resident %ld KiB; %llu calls failed\n",
           (file - warm_file) >> 10, (rss - warm_rss) >> 10, (unsigned long long)failed);
    return file == 0 || file - warm_file > FILE_GROWTH || rss - warm_rss > RSS_GROWTH ||
           failed != 0;
}
