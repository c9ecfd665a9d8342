/* SPDX-License-Identifier: MIT */
/*
 * What a prefetch (include/cuwarden) spares a program that brings a file to the device, over the
 * simulated GPU, or a real one. The file is in the page cache, so that the disk does not count.
 *
 *   prefetches FILE [MIB]
 *
 * In one run, alternately: read(2) to pageable memory and a copy from there, chunk by chunk, and a
 * prefetch of the same chunks. Prints the best of each in milliseconds, and for how many
 * microseconds the start of a prefetch blocked its caller.
 */
#include <cuwarden/cuwarden.h>

#include <cuda.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 7
#define CHUNK  ((size_t)4 << 20)

static CUdeviceptr to;
static size_t bytes;

static void must(int is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "prefetches: %s: %s\n", what, cuwarden_error_text(CUWARDEN_SYSTEM));
    exit(1);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void keep_least(double *least, double us)
{
    if (*least == 0 || us < *least)
        *least = us;
}

static void write_file(const char *path)
{
    char *chunk = malloc(CHUNK);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    must(fd >= 0 && chunk != NULL, "no file");
    memset(chunk, 7, CHUNK);
    for (size_t at = 0; at < bytes; at += CHUNK)
        must(write(fd, chunk, CHUNK) == (ssize_t)CHUNK, "the file is not written");
    close(fd);
    free(chunk);
}

static void plainly(const char *path)
{
    char *chunk = malloc(CHUNK);
    int fd = open(path, O_RDONLY);

    must(fd >= 0 && chunk != NULL, "no file");
    for (size_t at = 0; at < bytes; at += CHUNK) {
        must(read(fd, chunk, CHUNK) == (ssize_t)CHUNK, "the file is not read");
        must(cuMemcpyHtoD(to + at, chunk, CHUNK) == CUDA_SUCCESS, "the copy");
    }
    close(fd);
    free(chunk);
}

static void ahead(uint64_t prefetch, const char *path, double *start_us)
{
    double begin = now_us();
    uint64_t came = 0;

    must(cuwarden_prefetch_start(prefetch, path, -1, 0, bytes, (void *)(uintptr_t)to, NULL, NULL) ==
             CUWARDEN_OK,
         "the file is not started");
    keep_least(start_us, now_us() - begin);
    must(cuwarden_prefetch_wait(prefetch, 0, &came) == CUWARDEN_OK && came == bytes,
         "the file has not come");
}

int main(int argc, char **argv)
{
    double plain_us = 0, ahead_us = 0, start_us = 0;
    CUcontext context;
    uint64_t prefetch = 0;

    must(argc > 1, "a file to write");
    bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 256) << 20;
    must(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
             cuCtxSetCurrent(context) == CUDA_SUCCESS && cuMemAlloc(&to, bytes) == CUDA_SUCCESS,
         "no device");
    if (cuwarden_prefetch_make("weights", CHUNK, &prefetch) != CUWARDEN_OK)
        return 2;
    write_file(argv[1]);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_us();

        plainly(argv[1]);
        keep_least(&plain_us, now_us() - begin);
        begin = now_us();
        ahead(prefetch, argv[1], &start_us);
        keep_least(&ahead_us, now_us() - begin);
    }
    unlink(argv[1]);
    printf("%.2f %.2f %.1f\n", plain_us / 1e3, ahead_us / 1e3, start_us);
    return cuwarden_prefetch_end(prefetch) != CUWARDEN_OK;
}
