/* SPDX-License-Identifier: MIT */
/* A known leak from two call sites, and a peak to the byte; "reset" ends with cudaDeviceReset,
 * "exit" leaves by _exit, "clean" frees everything. */
#include "contents.h"

#include <string.h>
#include <unistd.h>

#define WEIGHTS ((size_t)1 << 20)
#define SCRATCH ((size_t)3000)
#define LARGE   ((size_t)16 << 20)

static unsigned *counter;

SITE void *load_weights(size_t bytes, unsigned seed)
{
    void *weights;

    MUST(cudaMalloc(&weights, bytes));
    fill(weights, bytes, seed, 0);
    return weights;
}

SITE void grow_cache(void **cache)
{
    for (int i = 0; i < 4; i++)
        cache[i] = load_weights(WEIGHTS, i);
}

SITE void *forget_scratch(void)
{
    void *scratch;

    MUST(cudaMalloc(&scratch, SCRATCH));
    fill(scratch, SCRATCH, 7, 0);
    return scratch;
}

SITE void well_behaved(void)
{
    void *block = load_weights(LARGE, 9);

    check(block, LARGE, 9, counter, 0);
    MUST(cudaFree(block));
    MUST(cudaFree(NULL)); /* legal, and no free */
}

SITE void take_counter(void)
{
    MUST(cudaMalloc(&counter, sizeof(*counter)));
    start_counter(counter, 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    void *cache[4], *scratch;
    unsigned wrong;

    take_counter();
    well_behaved();
    grow_cache(cache);
    scratch = forget_scratch();
    for (int i = 0; i < 4; i++)
        check(cache[i], WEIGHTS, i, counter, 0);
    check(scratch, SCRATCH, 7, counter, 0);
    MUST(cudaMemcpy(&wrong, counter, sizeof(wrong), cudaMemcpyDeviceToHost));
    MUST(cudaFree(counter));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", wrong);
    if (strcmp(how, "clean") == 0) {
        for (int i = 0; i < 4; i++)
            MUST(cudaFree(cache[i]));
        MUST(cudaFree(scratch));
        say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=7 frees=7 failed=0");
        say("report LEAKS  none");
    } else {
        say("expect leaked_bytes=%zu leaked_blocks=5 leak_sites=2", 4 * WEIGHTS + SCRATCH);
        say("expect allocs=7 frees=2 failed=0");
        say("report  load_weights  ");
        say("report  forget_scratch  ");
        say("json [name for name in functions(site('grow_cache')) if name in ('load_weights',"
            " 'grow_cache', 'main')] == ['load_weights', 'grow_cache', 'main']");
        say_api("grow_cache", "cudaMalloc", "cuMemAlloc");
    }
    say("expect peak_bytes=%zu", LARGE + sizeof(*counter));
    if (strcmp(how, "reset") == 0) {
        say("json site('grow_cache')['class'] == 'context-destroyed'");
        say("json site('grow_cache')['reclaimed'] == {'count': 4, 'bytes': %zu}", 4 * WEIGHTS);
        MUST(cudaDeviceReset());
    } else if (strcmp(how, "exit") == 0) {
        say("json live('grow_cache') == (4, %zu)", 4 * WEIGHTS);
        _exit(wrong ? 1 : 21);
    }
    return wrong ? 1 : 20;
}
