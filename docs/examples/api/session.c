/* SPDX-License-Identifier: MIT */
/*
 * Asks of its own account, and runs the same without it.
 *
 *   cc $(pkg-config --cflags cuwarden) session.c -o session -lcudart $(pkg-config --libs cuwarden)
 *   cuwarden run -- ./session
 */
#include <cuda_runtime_api.h>
#include <cuwarden/cuwarden.h>

#include <inttypes.h>
#include <stdio.h>

/* Prints each leaked block; 0: go on. */
static int tell(const struct cuwarden_block *block, void *unused)
{
    (void)unused;
    printf("left: %" PRIu64 " bytes, tag '%s', name '%s'\n", block->bytes, block->tag, block->name);
    return 0;
}

static void *take(size_t bytes, const char *name)
{
    void *block = NULL;

    if (cudaMalloc(&block, bytes) != cudaSuccess)
        return NULL;
    cuwarden_block_name(block, name);
    return block;
}

int main(void)
{
    struct cuwarden_stats stats;
    struct cuwarden_leaks leaks;
    uint64_t mark = 0;
    void *weights, *cache;
    int error;

    cuwarden_tag_push("model");
    weights = take(4 << 20, "weights");
    cuwarden_tag_pop();

    cuwarden_mark(&mark);
    for (int i = 0; i < 3; i++) {
        void *scratch = take(1 << 20, "scratch");

        cudaFree(scratch);
        cuwarden_step("iteration");
    }
    cuwarden_tag_push("cache");
    cache = take(2 << 20, "keys");
    cuwarden_tag_pop();

    error = cuwarden_leak_check(mark, tell, NULL, &leaks);
    if (error == CUWARDEN_OK)
        printf("since the mark: %" PRIu64 " bytes\n", leaks.bytes);
    else
        printf("%s\n", cuwarden_error_text(error));
    if (cuwarden_device_stats(0, &stats) == CUWARDEN_OK)
        printf("live: %" PRIu64 " bytes, %.0f%% of requests from freed memory\n", stats.live_bytes,
               100 * stats.hit_rate);
    cudaFree(cache);
    cudaFree(weights);
    return 0;
}
