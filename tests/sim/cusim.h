/* SPDX-License-Identifier: MIT */
/* The controls of the simulated GPU, for tests that link or dlsym them from its libcuda.so.1.
 *
 * They may be called at any time from any thread, before cuInit included, but not from a host
 * function. None of them counts as a driver call.
 */
#ifndef CUSIM_H
#define CUSIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum cusim_kind {
    CUSIM_DEVICE,     /* cuMemAlloc, cuMemAllocPitch */
    CUSIM_MANAGED,    /* cuMemAllocManaged; not charged to a device */
    CUSIM_HOST,       /* cuMemHostAlloc, cuMemAllocHost */
    CUSIM_REGISTERED, /* cuMemHostRegister */
    CUSIM_ASYNC,      /* stream-ordered */
    CUSIM_GRAPH,      /* allocation nodes, while their memory exists */
    CUSIM_ARRAY,
    CUSIM_GLOBAL,   /* variables of modules */
    CUSIM_IMPORT,   /* cuIpcOpenMemHandle */
    CUSIM_EXTERNAL, /* cuExternalMemoryGetMappedBuffer */
    CUSIM_MAPPING,  /* cuMemMap */
    CUSIM_PHYSICAL, /* cuMemCreate */
    CUSIM_GRAPHICS, /* cuGraphicsMapResources */
    CUSIM_NKINDS
};

#define CUSIM_CPU      (-1)
#define CUSIM_NOWHERE  (-2)
#define CUSIM_HOST_BIT (1ull << 63)

/* How often the program called an entry point, by its exact symbol; 0 for an unknown one. */
unsigned long long cusim_calls(const char *symbol);
/* What the calling thread has called so far. Between two looks lies what a call of the program's
 * made of itself, or had made by what is preloaded. */
struct cusim_here {
    unsigned long long calls;   /* entry points, refused ones too */
    unsigned long long frees;   /* of them, those that free memory of any kind */
    unsigned long long refused; /* of them, those that returned CUDA_ERROR_OUT_OF_MEMORY */
    unsigned long long waits;   /* times that they found work undone which they had to wait for */
    unsigned long long cost_ns; /* what CUSIM_COST_NS has made them last */
};
void cusim_here(struct cusim_here *out);
/* Living bytes (as asked for) and blocks of a kind; device -1 sums over devices and host. */
unsigned long long cusim_live_bytes(enum cusim_kind kind, int device);
unsigned long long cusim_live_blocks(enum cusim_kind kind, int device);
/* Bytes charged to a device by this process, now and at most. */
unsigned long long cusim_used_bytes(int device);
unsigned long long cusim_peak_bytes(int device);
/* A device's memory, and how much of it this process, or all that share it, have. Returns 0, or -1
 * if there is no such device, before cuInit too. */
int cusim_memory(int device, unsigned long long *used, unsigned long long *total);
/* What cuDeviceGetUuid says; the same results. */
int cusim_uuid(int device, unsigned char uuid[16]);
/* What cuMemAdvise was told of a block of managed memory: the preferred location, which is a
 * device, CUSIM_CPU or CUSIM_NOWHERE, and a bit for each device that accesses it, CUSIM_HOST_BIT
 * for the host. Returns -1 if there is no such block, else 0. */
int cusim_managed_advice(unsigned long long address, int *preferred, unsigned long long *accessed);
/* How often the program did what no program may. */
unsigned long long cusim_misuse_count(void);
/* The same for one kind of misuse; the kinds are listed in README.md. */
unsigned long long cusim_misuse_of(const char *kind);

/* Memory, a variable of a module or a pool comes or goes; bytes as asked for. */
struct cusim_event {
    enum cusim_kind kind;
    int is_free, is_pool, device;
    int is_own;     /* a pool: the device's, as memory is first taken from it */
    int is_context; /* one was made, or has ended, with what it had */
    unsigned long long context;
    unsigned long long address, bytes;
    const char *name; /* of a variable, else NULL */
};
/* From now on seen is called at each, inside the driver: it must not call back. NULL: nobody. */
void cusim_observe(void (*seen)(const struct cusim_event *event));

/* A kernel that the program brings along. run is called when a launch has its turn, on a thread of
 * the GPU: it must not call the driver. Arguments are of 1 to 8 bytes each. */
#define CUSIM_MAX_ARGUMENTS 8
struct cusim_launch {
    unsigned grid[3], block[3]; /* x, y, z */
    const unsigned long long *arguments;
};
struct cusim_kernel {
    const char *name; /* as the module knows it; the string must stay */
    unsigned narguments;
    unsigned char sizes[CUSIM_MAX_ARGUMENTS];
    unsigned pointers; /* a bit for each argument that is one: its block must still be the same */
    void (*run)(const struct cusim_launch *launch);
};
/* From now on a function of that name runs the kernel; without one it does nothing. Returns 0, or
 * -1 if there is no room for one more. */
int cusim_define_kernel(const struct cusim_kernel *kernel);

/* For such a kernel: an element of the array behind a texture or surface object, as it lies there;
 * z is the slice or the layer. NULL, and misuse, where there is none. */
void *cusim_texel(unsigned long long object, unsigned level, size_t x, size_t y, size_t z);

/* A buffer of OpenGL's, for cuGraphicsGLRegisterBuffer: its name, or 0 if there are too many. */
unsigned cusim_gl_buffer(size_t bytes);

void cusim_set_delay_us(long delay_us);
/* 0: cuMemFree and its like wait for nothing, 1: for the block's context, 2: for all contexts. */
void cusim_set_free_waits(int waits);
/* As CUSIM_LAZY, from now on; waits until no operation is outstanding. 0 turns laziness off. */
void cusim_set_lazy(unsigned long long seed);
/* When lazy: at some calls of a program with several threads, pause is called in the calling thread
 * before the driver does anything, and whenever it has waited for a piece of work. */
void cusim_set_pause(void (*pause)(void));
/* Called in the calling thread at each call of an entry point, by its exact symbol, before the
 * driver does anything: it may wait for other threads. NULL: nobody. */
void cusim_set_entered(void (*entered)(const char *symbol));
/* When lazy: carries out so many operations that could run, if there are; returns how many. */
unsigned cusim_step(unsigned most);
void cusim_set_cost_ns(const char *symbol, unsigned long long ns);
/* The next call of the function takes so many bytes of the current context's device, or is out of
 * memory; it keeps them until this is said again. 0: nothing. */
void cusim_take(const char *symbol, unsigned long long bytes);
/* Adds rules written as in CUSIM_FAIL; NULL drops all rules. */
void cusim_fail(const char *rules);
/* Returns once no operation of any context is outstanding. */
void cusim_wait_idle(void);
/* Writes the report now, to a file or, if NULL, to where CUSIM_REPORT says. */
void cusim_write_report(const char *path);

#ifdef __cplusplus
}
#endif
#endif
