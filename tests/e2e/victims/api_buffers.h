/* SPDX-License-Identifier: MIT */
/* What victims with growable buffers share; main sets is_active and makes the stream first. */
#ifndef API_BUFFERS_H
#define API_BUFFERS_H

#include "api_victim.h"

#include <stdint.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static CUstream stream;

static inline struct cuwarden_buffer_spec spec_of(const char *name, uint64_t element_bytes)
{
    struct cuwarden_buffer_spec spec = {.name = name, .element_bytes = element_bytes};

    return spec;
}

static inline uint64_t make(struct cuwarden_buffer_spec spec)
{
    uint64_t buffer = 0;

    GIVES(CUWARDEN_OK, cuwarden_buffer_make(&spec, &buffer));
    CHECK(!is_active || buffer != 0);
    return buffer;
}

static inline struct cuwarden_buffer now(uint64_t buffer)
{
    struct cuwarden_buffer out = {0};

    GIVES(CUWARDEN_OK, cuwarden_buffer_now(buffer, &out));
    return out;
}

static inline CUdeviceptr ensure(uint64_t buffer, uint64_t count)
{
    void *address = NULL;

    GIVES(CUWARDEN_OK, cuwarden_ensure_capacity(buffer, count, stream, &address));
    return (CUdeviceptr)(uintptr_t)address;
}

static inline void end(uint64_t buffer)
{
    GIVES(CUWARDEN_OK, cuwarden_buffer_end(buffer));
}

/* Words 0 .. count - 1 of a buffer of words are what put has written there. */
static inline void put(CUdeviceptr at, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < count; i++)
        MUST(cuMemsetD32Async(at + (CUdeviceptr)i * 4, 0xabc0000 + i, 1, stream));
}

static inline int holds(CUdeviceptr at, uint32_t count)
{
    uint32_t *words = calloc(count, 4);
    int is_right = 1;

    MUST(cuMemcpyDtoHAsync(words, at, (size_t)count * 4, stream));
    MUST(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < count; i++)
        is_right &= words[i] == 0xabc0000 + i;
    free(words);
    return is_right;
}

#endif
