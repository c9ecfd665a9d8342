/* SPDX-License-Identifier: MIT */
/*
 * Kernels that also run on the stand-in runtime of tests/sim, which cannot run what nvcc compiled.
 * What one thread does is a function for both sides, which gets its place in the grid:
 *
 *   static __host__ __device__ void twice_body(size_t thread, size_t threads, int *block, int n)
 *   {
 *       for (size_t i = thread; i < (size_t)n; i += threads)
 *           block[i] *= 2;
 *   }
 *   static __global__ void twice(int *block, int n)
 *   {
 *       twice_body(PLACE, block, n);
 *   }
 *   EMULATED(twice, twice_body);
 *
 * What cannot be had thread by thread (grids that synchronise, clocks) brings a function that does
 * the work of the whole grid: static void NAME(size_t threads, ARGUMENT...), and
 * EMULATED_WHOLE(twice, NAME). It must not call CUDA. Over NVIDIA's runtime nothing of this
 * happens.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include "../../sim/cusim.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string.h>
#include <type_traits>
#include <utility>

/* Of a thread of the grid, in one dimension: its number, and how many there are. */
#define PLACE place_in_grid(), size_of_grid()

#ifdef __CUDACC__ /* not for the C++ of driver.cpp */
static __device__ inline size_t place_in_grid(void)
{
    return blockIdx.x * (size_t)blockDim.x + threadIdx.x;
}

static __device__ inline size_t size_of_grid(void)
{
    return gridDim.x * (size_t)blockDim.x;
}
#endif

/* The stand-in runtime has it; NVIDIA's does not. */
extern "C" void cusim_emulate(const void *host, const struct cusim_kernel *kernel)
    __attribute__((weak));

/* A control of the simulated driver; NULL over NVIDIA's, or where no driver is loaded yet. */
template <typename F> static F *control(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    return driver != NULL ? (F *)dlsym(driver, name) : NULL;
}

static inline bool is_emulated(void)
{
    return cusim_emulate != NULL;
}

/* Of a kernel's arguments: the functions that the simulated GPU calls in its place. */
template <typename... A> struct arguments {
    static_assert(sizeof...(A) <= CUSIM_MAX_ARGUMENTS, "more than the simulated GPU takes");
    static_assert(((sizeof(A) <= 8) && ...), "an argument that the simulated GPU does not take");

    template <typename T> static T value(unsigned long long raw)
    {
        typename std::remove_const<T>::type result;

        memcpy(&result, &raw, sizeof(result));
        return result;
    }

    static size_t threads_of(const struct cusim_launch *launch)
    {
        return (size_t)launch->grid[0] * launch->grid[1] * launch->grid[2] * launch->block[0] *
               launch->block[1] * launch->block[2];
    }

    template <void (*whole)(size_t, A...), size_t... I>
    static void unpack(const struct cusim_launch *launch, std::index_sequence<I...>)
    {
        whole(threads_of(launch), value<A>(launch->arguments[I])...);
    }

    template <void (*body)(size_t, size_t, A...)> static void in_turn(size_t threads, A... given)
    {
        for (size_t thread = 0; thread < threads; thread++)
            body(thread, threads, given...);
    }

    template <void (*whole)(size_t, A...)> static void run(const struct cusim_launch *launch)
    {
        unpack<whole>(launch, std::index_sequence_for<A...>());
    }

    template <void (*whole)(size_t, A...)> static bool emulate(void (*kernel)(A...))
    {
        struct cusim_kernel told = {
            NULL, sizeof...(A), {(unsigned char)sizeof(A)...}, 0, run<whole>};
        unsigned bit = 1;

        for (bool is_pointer : {std::is_pointer<A>::value..., false}) {
            told.pointers |= is_pointer ? bit : 0;
            bit <<= 1;
        }
        if (is_emulated())
            cusim_emulate((const void *)kernel, &told);
        return true;
    }
};

template <typename... A> arguments<A...> arguments_of(void (*)(A...));
#define ARGUMENTS_OF(kernel) decltype(arguments_of(kernel))

#define EMULATED_WHOLE(kernel, whole)                                                              \
    static const bool kernel##_is_known __attribute__((unused)) =                                  \
        ARGUMENTS_OF(kernel)::emulate<whole>(kernel)
#define EMULATED(kernel, body) EMULATED_WHOLE(kernel, ARGUMENTS_OF(kernel)::in_turn<body>)

/* Adds one, whichever side it runs on. */
static __host__ __device__ inline void count_one(unsigned *counter)
{
#ifdef __CUDA_ARCH__
    atomicAdd(counter, 1u);
#else
    ++*counter;
#endif
}

#endif
