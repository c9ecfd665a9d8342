/* SPDX-License-Identifier: MIT */
/*
 * What downloads (include/cuwarden) spare a program, over the simulated GPU with CUSIM_DELAY_US, or
 * a real one. Each frame has three stages: the device makes it, it is copied, the host is at work
 * on it; the last takes as long as the argument says.
 *
 *   downloads [MICROSECONDS]
 *
 * In one run: each stage after the other with a blocking copy to pageable memory, and the three
 * apart, each at another frame. Prints for how many microseconds of a frame the caller was blocked
 * by the copy in both, what a frame took in both, how many nanoseconds the quickest release took,
 * and the share of the transfers that nobody waited for.
 */
#include <cuwarden/cuwarden.h>

#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FRAMES 60
#define BYTES  ((size_t)1 << 20)

static CUdeviceptr source[2];
static CUstream stream;
static struct timespec work;

static void must(int is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "downloads: %s: %s\n", what, cuwarden_error_text(CUWARDEN_DRIVER));
    exit(1);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void make_frame(int number)
{
    must(cuMemsetD8Async(source[number % 2], (unsigned char)number, BYTES, stream) == CUDA_SUCCESS,
         "a frame is not made");
}

/* It is what was made, and takes its time. */
static void look_at(const void *frame, int number)
{
    const unsigned char *byte = frame;

    must(byte[0] == (unsigned char)number && byte[BYTES - 1] == (unsigned char)number,
         "another frame");
    (void)nanosleep(&work, NULL);
}

static void one_after_the_other(double *out_blocked_us)
{
    unsigned char *to = malloc(BYTES);

    must(to != NULL, "no memory");
    for (int i = 0; i < FRAMES; i++) {
        double begin;

        make_frame(i);
        must(cuStreamSynchronize(stream) == CUDA_SUCCESS, "the stream");
        begin = now_us();
        must(cuMemcpyDtoH(to, source[i % 2], BYTES) == CUDA_SUCCESS, "the copy");
        *out_blocked_us += now_us() - begin;
        look_at(to, i);
    }
    free(to);
}

/* The frame before is looked at while this one comes and the next one is made. Where that goes to
 * was read by the frame before, which has come. */
static void apart(uint64_t download, double *out_blocked_us)
{
    struct cuwarden_frame frame = {0};

    make_frame(0);
    for (int i = 0; i <= FRAMES; i++) {
        double begin = now_us();

        if (i < FRAMES)
            must(cuwarden_download_start(download, (const void *)(uintptr_t)source[i % 2], BYTES,
                                         stream, NULL) == CUWARDEN_OK,
                 "a frame is not started");
        *out_blocked_us += now_us() - begin;
        if (i + 1 < FRAMES)
            make_frame(i + 1);
        if (i > 0)
            look_at(frame.data, i - 1);
        begin = now_us();
        if (i < FRAMES)
            must(cuwarden_download_wait(download, (uint64_t)i + 1, &frame) == CUWARDEN_OK,
                 "a frame has not come");
        *out_blocked_us += now_us() - begin;
    }
}

static double release_ns(uint64_t download)
{
    struct cuwarden_frame frame;
    double best = 0;

    for (int i = 0; i < 200; i++) {
        uint64_t number = 0;
        double begin, each;

        must(cuwarden_download_start(download, (const void *)(uintptr_t)source[0], 1, stream,
                                     &number) == CUWARDEN_OK &&
                 cuwarden_download_wait(download, number, &frame) == CUWARDEN_OK,
             "a byte has not come");
        begin = now_us();
        (void)cuwarden_download_release(download);
        each = (now_us() - begin) * 1e3;
        if (best == 0 || each < best)
            best = each;
    }
    return best;
}

int main(int argc, char **argv)
{
    long us = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    double blocked[2] = {0, 0}, begin, took[2], release;
    struct cuwarden_download now;
    CUcontext context;
    uint64_t download = 0;

    work = (struct timespec){us / 1000000, us % 1000000 * 1000};
    must(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
             cuCtxSetCurrent(context) == CUDA_SUCCESS &&
             cuMemAlloc(&source[0], BYTES) == CUDA_SUCCESS &&
             cuMemAlloc(&source[1], BYTES) == CUDA_SUCCESS &&
             cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "no device");
    if (cuwarden_download_make("frames", BYTES, &download) != CUWARDEN_OK)
        return 2;
    begin = now_us();
    one_after_the_other(&blocked[0]);
    took[0] = now_us() - begin;
    begin = now_us();
    apart(download, &blocked[1]);
    took[1] = now_us() - begin;
    must(cuwarden_download_now(download, &now) == CUWARDEN_OK, "no download");
    release = release_ns(download);
    printf("%.1f %.1f %.1f %.1f %.0f %.3f\n", blocked[0] / FRAMES, blocked[1] / FRAMES,
           took[0] / FRAMES, took[1] / FRAMES, release, now.overlap);
    return cuwarden_download_end(download) != CUWARDEN_OK;
}
