/* SPDX-License-Identifier: MIT */
/* A buffer that doubles from 1 MiB to 64 MiB; the runtime's API. What it says: drv_regrow.c. */
#include "victim_rt.h"

#define MIB ((size_t)1 << 20)

struct buffer {
    void *bytes;
    size_t size;
};

static NOINLINE void reserve(struct buffer *buffer, size_t size)
{
    void *larger;

    MUST(cudaMalloc(&larger, size));
    if (buffer->bytes != NULL) {
        MUST(cudaMemcpy(larger, buffer->bytes, buffer->size, cudaMemcpyDeviceToDevice));
        MUST(cudaFree(buffer->bytes));
    }
    *buffer = (struct buffer){larger, size};
}

int main(void)
{
    struct buffer buffer = {0};

    for (size_t size = MIB; size <= 64 * MIB; size *= 2)
        reserve(&buffer, size);
    MUST(cudaFree(buffer.bytes));
    say("regrowth cudaMalloc: 6 %zu 12000 1 %zu %zu", 63 * MIB, MIB, 64 * MIB);
    return 0;
}
