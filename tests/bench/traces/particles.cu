/* SPDX-License-Identifier: MIT */
/*
 * Particles in cells, in and out of a box: particles SECONDS
 *
 * Their number changes, so arrays are made larger by a half when they are full, and smaller when
 * three quarters of them are empty. In each step a sort by cell and a list of neighbours take
 * scratch memory by the number of particles and pairs; every tenth step is written out, every
 * fortieth solves for the field on a grid. What the numbers are is decided on the host: kernels of
 * the simulated GPU do nothing.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static __global__ void touch(float *values, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < count)
        values[i] += 1;
}

static void launch(void *values, size_t count)
{
    touch<<<(unsigned)((count + 255) / 256), 256>>>((float *)values, count);
}

static void *take(size_t bytes)
{
    void *block = NULL;

    if (cudaMalloc(&block, bytes) != cudaSuccess) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return block;
}

static double now()
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void pause_for(double seconds)
{
    struct timespec at = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&at, NULL);
}

static double chance()
{
    static unsigned long long dice = 99;

    dice = dice * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(dice >> 11) / 9007199254740992.0;
}

/* One value of each particle. */
struct column {
    void *data;
    size_t width;
};

static struct column columns[] = {{NULL, 12}, {NULL, 12}, {NULL, 12}, {NULL, 4}, {NULL, 4}, {NULL, 8}};

static void resize(size_t from, size_t to)
{
    for (column &c : columns) {
        void *other = take(to * c.width);

        if (c.data) {
            launch(other, from < to ? from : to); /* a copy: they overlap otherwise */
            cudaFree(c.data);
        }
        c.data = other;
    }
}

static void sort_by_cell(size_t count, size_t cells)
{
    void *keys = take(count * 4), *sorted = take(count * 4), *order = take(count * 4);
    void *scratch = take(count + cells / 8 + (1 << 16)), *starts = take((cells + 1) * 4);

    launch(keys, count);
    cudaFree(scratch);
    for (column &c : columns) { /* each is put in order in a copy of it */
        void *other = take(count * c.width);

        launch(other, count);
        cudaFree(other);
    }
    cudaFree(starts);
    cudaFree(order);
    cudaFree(sorted);
    cudaFree(keys);
}

static void find_forces(size_t count)
{
    size_t pairs = (size_t)((double)count * (22 + 0.2 * chance()));
    void *counts = take((count + 1) * 4), *scratch = take(count / 64 + 4096);
    void *list;

    launch(counts, count);
    cudaFree(scratch);
    list = take(pairs * 4);
    launch(list, pairs);
    cudaFree(list);
    cudaFree(counts);
}

static void write_out(size_t count)
{
    void *packed = take(count * 28), *host = NULL;

    cudaMallocHost(&host, count * 28);
    cudaMemcpyAsync(host, packed, 4096, cudaMemcpyDeviceToHost, 0);
    cudaDeviceSynchronize();
    cudaFreeHost(host);
    cudaFree(packed);
}

static void solve_field(size_t side)
{
    size_t cells = side * side * side;
    void *density = take(cells * 4), *wave = take((side / 2 + 1) * side * side * 8);
    void *work = take((side / 2 + 1) * side * side * 8), *field = take(cells * 12);

    launch(density, cells);
    cudaFree(work);
    cudaFree(wave);
    cudaFree(density);
    launch(field, cells);
    cudaFree(field);
}

int main(int argc, char **argv)
{
    double end = now() + (argc > 1 ? atof(argv[1]) : 60);
    size_t count = 1000000, room = 1200000;

    resize(0, room);
    for (int step = 0; now() < end; step++) {
        double change = step / 300 % 2 == 0 ? 0.0015 : -0.0015; /* a source, then a sink */

        count = (size_t)((double)count * (1 + change + 0.001 * (chance() - 0.5)));
        if (count > room) {
            size_t more = count + count / 2;

            resize(room, more);
            room = more;
        } else if (count * 4 < room) {
            resize(room, count * 2);
            room = count * 2;
        }
        sort_by_cell(count, 64 * 64 * 64);
        find_forces(count);
        if (step % 10 == 9)
            write_out(count);
        if (step % 40 == 39)
            solve_field(192);
        pause_for((double)count * 50e-9);
    }
    for (column &c : columns)
        cudaFree(c.data);
    return 0;
}
