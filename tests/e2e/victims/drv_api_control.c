/* SPDX-License-Identifier: MIT */
/*
 * Asks cuwarden for control (include/cuwarden/cuwarden.h), and checks the answers itself.
 *   drv_api_control PART, of those at the end
 * The devices have 1 GiB, of which 1008 MiB can be had.
 */
#include "api_victim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static CUcontext context;

static struct cuwarden_stats stats(void)
{
    struct cuwarden_stats out;

    CHECK(cuwarden_device_stats(0, &out) == CUWARDEN_OK);
    return out;
}

static void fill_pool(void)
{
    CUdeviceptr block[4];

    for (int i = 0; i < 4; i++)
        block[i] = take(8 * MIB);
    for (int i = 0; i < 4; i++)
        MUST(cuMemFree(block[i]));
}

static void trim(void)
{
    uint64_t bytes = 0;

    fill_pool();
    if (is_active)
        CHECK(stats().idle_bytes == 32 * MIB);
    GIVES(CUWARDEN_OK, cuwarden_trim(0, CUWARDEN_CLEAR, &bytes));
    CHECK(!is_active || (bytes == 32 * MIB && stats().idle_bytes == 0));
    fill_pool();
    GIVES(CUWARDEN_OK, cuwarden_trim(CUWARDEN_ALL_DEVICES, CUWARDEN_EMERGENCY, NULL));
    CHECK(!is_active || stats().idle_bytes == 0);
    fill_pool();
    GIVES(CUWARDEN_OK, cuwarden_trim(0, CUWARDEN_CLEAR, NULL));
    GIVES(CUWARDEN_OK, cuwarden_pool_max_set(0, 8 * MIB));
    fill_pool();
    CHECK(!is_active || stats().idle_bytes <= 8 * MIB);
    GIVES(CUWARDEN_OK, cuwarden_pool_max_set(CUWARDEN_ALL_DEVICES, 64 * MIB));
    GIVES(CUWARDEN_OK, cuwarden_pool_max_set(CUWARDEN_HOST, 0));
}

static void shrink(void)
{
    uint64_t bytes = 0;

    fill_pool();
    GIVES(CUWARDEN_OK, cuwarden_trim(0, CUWARDEN_SHRINK, &bytes));
    CHECK(!is_active || (bytes == 16 * MIB && stats().idle_bytes == 16 * MIB));
}

static void limit(void)
{
    CUdeviceptr first = take(20 * MIB), second = 0;
    struct cuwarden_stats all;

    GIVES(CUWARDEN_OK, cuwarden_limit_set(0, 30 * MIB));
    if (is_active) {
        CHECK(stats().limit_bytes == 30 * MIB && stats().utilisation > 0.6);
        CHECK(cuwarden_device_stats(CUWARDEN_ALL_DEVICES, &all) == CUWARDEN_OK);
        CHECK(all.limit_bytes == 30 * MIB && all.utilisation < 0.1); /* the other device has none */
        CHECK(cuMemAlloc(&second, 20 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    }
    GIVES(CUWARDEN_OK, cuwarden_limit_set(CUWARDEN_ALL_DEVICES, 0));
    second = take(20 * MIB);
    GIVES(CUWARDEN_OK, cuwarden_limit_set(0, 10 * MIB)); /* less than is live: that stays */
    CHECK(!is_active || stats().live_bytes == 40 * MIB);
    MUST(cuMemFree(first));
    MUST(cuMemFree(second));
}

/* ---- pressure ---- */

struct heard {
    int count, level, before;
    double use;
    CUdeviceptr takes;
};

static void hear(const struct cuwarden_pressure *now, int before, void *arg)
{
    struct heard *heard = arg;

    heard->count++;
    heard->level = now->level;
    heard->before = before;
    heard->use = now->use;
    if (heard->takes != 0)
        MUST(cuMemFree(take(heard->takes))); /* re-entrant calls are safe */
}

static void pressure(void)
{
    struct cuwarden_pressure now;
    struct heard one = {0}, other = {.takes = MIB};
    CUdeviceptr large;

    GIVES(CUWARDEN_OK, cuwarden_pressure_listen(hear, &one));
    GIVES(CUWARDEN_OK, cuwarden_pressure_listen(hear, &other));
    MUST(cuMemFree(take(MIB)));
    GIVES(CUWARDEN_OK, cuwarden_limit_set(0, 100 * MIB));
    GIVES(CUWARDEN_OK, cuwarden_pressure_now(0, &now));
    CHECK(!is_active ||
          (now.level == CUWARDEN_LOW && now.use < 0.6 && now.limit_bytes == 100 * MIB));
    large = take(90 * MIB);
    do { /* another thread may be about to tell */
        MUST(cuMemFree(take(MIB)));
        MUST(cuCtxSynchronize());
    } while (is_active && one.level != CUWARDEN_HIGH);
    if (is_active) {
        CHECK(one.count == 1 && one.level == CUWARDEN_HIGH && one.before == CUWARDEN_LOW);
        CHECK(one.use >= 0.9 && other.count == 1);
        GIVES(CUWARDEN_OK, cuwarden_pressure_now(CUWARDEN_ALL_DEVICES, &now));
        CHECK(now.device == 0 && now.level == CUWARDEN_HIGH && now.use >= 0.9 && now.use <= 1);
    }
    GIVES(CUWARDEN_OK, cuwarden_pressure_unlisten(hear, &other));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_pressure_unlisten(hear, &other));
    MUST(cuMemFree(large));
    GIVES(CUWARDEN_OK, cuwarden_trim(0, CUWARDEN_CLEAR, NULL));
    do {
        MUST(cuMemFree(take(MIB)));
        MUST(cuCtxSynchronize());
    } while (is_active && one.level != CUWARDEN_LOW);
    CHECK(!is_active || (one.count >= 2 && one.level == CUWARDEN_LOW && other.count == 1));
}

/* ---- lack of memory ---- */

struct cache {
    CUdeviceptr block;
    int asked, nested_fails;
    uint64_t bytes;
};

static int give_up_cache(int device, uint64_t bytes, void *arg)
{
    struct cache *cache = arg;
    CUdeviceptr none;

    cache->asked++;
    cache->bytes = bytes;
    CHECK(device == 0);
    if (cache->nested_fails) /* not asked again inside itself */
        CHECK(cuMemAlloc(&none, 900 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    if (cache->block == 0)
        return 0;
    MUST(cuMemFree(cache->block));
    cache->block = 0;
    return 1;
}

static void memory(void)
{
    struct cache cache = {.block = take(600 * MIB), .nested_fails = 1};
    CUdeviceptr large = 0;

    GIVES(CUWARDEN_OK, cuwarden_memory_listen(give_up_cache, &cache));
    if (!is_active) {
        MUST(cuMemFree(cache.block));
        return;
    }
    large = take(700 * MIB);
    CHECK(cache.asked == 1 && cache.block == 0 && cache.bytes == 700 * MIB);
    CHECK(cuMemAlloc(&cache.block, 700 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cache.asked == 2);
    GIVES(CUWARDEN_OK, cuwarden_memory_unlisten(give_up_cache, &cache));
    CHECK(cuMemAlloc(&cache.block, 700 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cache.asked == 2);
    MUST(cuMemFree(large));
}

/* ---- budgets ---- */

static struct cuwarden_budget budget_now(const char *tag)
{
    struct cuwarden_budget now = {0};

    CHECK(cuwarden_budget_now(tag, &now) == CUWARDEN_OK);
    return now;
}

static void refused_by_budget(struct cache *cache)
{
    CUdeviceptr large = 0;

    CHECK(cuMemAlloc(&large, 600 * MIB) == CUDA_ERROR_OUT_OF_MEMORY); /* never fits: asked, too */
    CHECK(cache->asked == 1 && cache->bytes == 600 * MIB && cache->block == 0);
    cache->block = take(400 * MIB);
    large = take(300 * MIB); /* fits once the cache has been given up */
    CHECK(cache->asked == 2 && cache->block == 0);
    CHECK(budget_now("cache").used_bytes == 300 * MIB && budget_now("cache").refused == 1);
    CHECK(budget_now("cache").peak_bytes == 400 * MIB);
    MUST(cuMemFree(large));
    cache->block = take(400 * MIB);
    GIVES(CUWARDEN_OK, cuwarden_limit_set(0, 250 * MIB)); /* fits the budget then, and no limit */
    CHECK(cuMemAlloc(&large, 300 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cache->asked == 3 && cache->block == 0);
    GIVES(CUWARDEN_OK, cuwarden_limit_set(0, 0));
}

static void budget(void)
{
    struct cache cache = {0};
    struct cuwarden_budget none;

    GIVES(CUWARDEN_OK, cuwarden_tag_push("cache"));
    cache.block = take(100 * MIB);
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_budget_now("cache", &none));
    GIVES(CUWARDEN_OK, cuwarden_budget_set("cache", 500 * MIB, CUWARDEN_REFUSE));
    GIVES(CUWARDEN_OK, cuwarden_memory_listen(give_up_cache, &cache));
    if (is_active) {
        CHECK(budget_now("cache").used_bytes == 100 * MIB); /* from before it was set */
        refused_by_budget(&cache);
        cache.block = take(2 * MIB);
        GIVES(CUWARDEN_OK, cuwarden_budget_set("cache", MIB, CUWARDEN_REFUSE)); /* below that */
        CHECK(budget_now("cache").used_bytes == 2 * MIB);
    }
    GIVES(CUWARDEN_OK, cuwarden_memory_unlisten(give_up_cache, &cache));
    GIVES(CUWARDEN_OK, cuwarden_budget_clear("cache"));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_budget_clear("cache"));
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
    MUST(cuMemFree(cache.block));
}

/* ---- misuse ---- */

static void misuse(void)
{
    struct cuwarden_pressure now;
    struct heard heard = {0};
    uint64_t bytes = 7;
    CUgraph graph;
    CUstream stream;

    GIVES(CUWARDEN_UNUSED_DEVICE, cuwarden_pressure_now(CUWARDEN_ALL_DEVICES, &now));
    fill_pool();
    GIVES(CUWARDEN_UNUSED_DEVICE, cuwarden_pressure_now(1, &now));
    GIVES(CUWARDEN_UNUSED_DEVICE, cuwarden_trim(1, CUWARDEN_CLEAR, &bytes));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_trim(17, CUWARDEN_CLEAR, &bytes));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_limit_set(17, MIB));
    GIVES(CUWARDEN_INVALID, cuwarden_limit_set(CUWARDEN_HOST, MIB));
    GIVES(CUWARDEN_INVALID, cuwarden_pressure_now(CUWARDEN_HOST, &now));
    GIVES(CUWARDEN_INVALID, cuwarden_trim(0, (enum cuwarden_trim_how)9, &bytes));
    GIVES(CUWARDEN_INVALID, cuwarden_pressure_listen(NULL, NULL));
    CHECK(bytes == 7);
    GIVES(CUWARDEN_INVALID, cuwarden_budget_set(NULL, MIB, CUWARDEN_WARN));
    GIVES(CUWARDEN_INVALID, cuwarden_budget_set("", MIB, CUWARDEN_WARN));
    GIVES(CUWARDEN_INVALID, cuwarden_budget_set("x", MIB, (enum cuwarden_budget_how)7));
    GIVES(CUWARDEN_INVALID, cuwarden_budget_clear(NULL));
    for (int i = 0; i < 8; i++)
        GIVES(CUWARDEN_OK, cuwarden_pressure_listen(hear, &heard));
    GIVES(CUWARDEN_OUT_OF_HOST, cuwarden_pressure_listen(hear, &heard));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(CUWARDEN_BUSY, cuwarden_trim(0, CUWARDEN_CLEAR, &bytes));
    GIVES(CUWARDEN_BUSY, cuwarden_limit_set(0, MIB));
    MUST(cuStreamEndCapture(stream, &graph));
    GIVES(CUWARDEN_OK, cuwarden_trim(0, CUWARDEN_CLEAR, &bytes));
}

/* ---- batches and scopes ---- */

#define BLOCKS 20

/* How often the device was waited for is what the simulated driver counts. */
static void batch(void)
{
    CUdeviceptr block[BLOCKS];

    for (int i = 0; i < BLOCKS; i++)
        block[i] = take(MIB);
    GIVES(CUWARDEN_OK, cuwarden_batch_begin());
    GIVES(CUWARDEN_OK, cuwarden_batch_begin());
    for (int i = 0; i < BLOCKS; i++)
        MUST(cuMemFree(block[i]));
    GIVES(CUWARDEN_OK, cuwarden_batch_end());
    GIVES(CUWARDEN_OK, cuwarden_batch_end());
    GIVES(CUWARDEN_UNBALANCED, cuwarden_batch_end());
    for (int i = 0; i < BLOCKS; i++)
        block[i] = take(MIB);
    CHECK(!is_active || stats().hits == BLOCKS);
}

static void in_scope(CUdeviceptr *out_kept)
{
    CUdeviceptr inner;
    void *pinned;

    CUWARDEN_SCOPE("work");
    *out_kept = take(1000);
    GIVES(CUWARDEN_OK, cuwarden_keep((const void *)(uintptr_t)*out_kept));
    inner = take(2000);
    MUST(cuMemHostAlloc(&pinned, 3000, 0));
    CHECK(inner != 0 && pinned != NULL);
}

static void scope(void)
{
    CUdeviceptr before = take(500), kept = 0, again;
    struct cuwarden_freed freed;
    struct cuwarden_stats host;

    in_scope(&kept);
    if (!is_active)
        return;
    CHECK(cuwarden_device_stats(CUWARDEN_HOST, &host) == CUWARDEN_OK && host.live_blocks == 0);
    CHECK(stats().live_blocks == 2);
    GIVES(CUWARDEN_OK, cuwarden_scope_begin("outer"));
    MUST(cuMemFree(kept));
    again = take(1000); /* the same memory: another block, which nobody keeps */
    CHECK(again == kept);
    GIVES(CUWARDEN_OK, cuwarden_scope_begin(NULL));
    take(4000);
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    CHECK(freed.blocks == 1 && freed.bytes == 4000);
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    CHECK(freed.blocks == 1 && freed.bytes == 1000 && stats().live_blocks == 1);
    GIVES(CUWARDEN_UNBALANCED, cuwarden_scope_end(&freed));
    for (int i = 0; i < 16; i++)
        GIVES(CUWARDEN_OK, cuwarden_scope_begin("deep"));
    GIVES(CUWARDEN_INVALID, cuwarden_scope_begin("too deep"));
    MUST(cuMemFree(before));
}

/* What the program frees in a scope itself is not freed again; a child has its parent's scopes, but
 * nothing of what was allocated in them. */
static void forked_scope(void)
{
    struct cuwarden_freed freed = {.blocks = 99};
    int status = -1;
    pid_t child;

    GIVES(CUWARDEN_OK, cuwarden_scope_begin("forked"));
    MUST(cuMemFree(take(3000)));
    take(4000);
    child = fork();
    if (child == 0) {
        GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
        CHECK(!is_active || freed.blocks + freed.left_blocks == 0);
        GIVES(CUWARDEN_UNBALANCED, cuwarden_scope_end(&freed));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    CHECK(!is_active || (freed.blocks == 1 && freed.bytes == 4000 && freed.left_blocks == 0));
}

/* Ends inside a tag and a scope. */
static void *leave_open(void *out)
{
    struct cuwarden_freed none;

    MUST(cuCtxSetCurrent(context));
    GIVES(CUWARDEN_UNBALANCED, cuwarden_tag_pop());
    GIVES(CUWARDEN_UNBALANCED, cuwarden_scope_end(&none));
    GIVES(CUWARDEN_OK, cuwarden_tag_push("forgotten"));
    GIVES(CUWARDEN_OK, cuwarden_scope_begin("forgotten"));
    *(CUdeviceptr *)out = take(1000);
    return NULL;
}

/* What a thread leaves open ends with it, and frees nothing. */
static void ended_threads(void)
{
    CUdeviceptr block[2];
    struct cuwarden_stats tagged;
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, leave_open, &block[i]);
        pthread_join(thread, NULL);
    }
    if (is_active) {
        CHECK(cuwarden_tag_stats("forgotten", 0, &tagged) == CUWARDEN_OK);
        CHECK(tagged.live_blocks == 2 && stats().live_blocks == 2);
    }
    for (int i = 0; i < 2; i++)
        MUST(cuMemFree(block[i]));
}

/* What a scope has freed is no longer the program's. */
static void free_again(void)
{
    CUdeviceptr block;
    struct cuwarden_freed freed;

    GIVES(CUWARDEN_OK, cuwarden_scope_begin("freed"));
    block = take(1000);
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    if (!is_active)
        MUST(cuMemFree(block));
    CHECK(!is_active || (freed.blocks == 1 && freed.left_blocks == 0));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_keep((const void *)(uintptr_t)block));
    CHECK(cuMemFree(block) == CUDA_ERROR_INVALID_VALUE);
}

/* Work that still uses stream-ordered memory at the end of its scope keeps it: who gets the address
 * next, in another stream, finds his own bytes there. */
static void scope_stream(void)
{
    unsigned char byte[16] = {0};
    struct cuwarden_freed freed;
    CUdeviceptr block, next;
    CUstream stream[2];

    for (int i = 0; i < 2; i++)
        MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
    GIVES(CUWARDEN_OK, cuwarden_scope_begin("stream"));
    MUST(cuMemAllocAsync(&block, MIB, stream[0]));
    for (int i = 0; i < 5; i++)
        MUST(cuMemsetD8Async(block, 0xab, MIB, stream[0]));
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    CHECK(!is_active || (freed.blocks == 1 && freed.left_blocks == 0));
    MUST(cuMemAllocAsync(&next, MIB, stream[1]));
    CHECK(!is_active || next == block);
    MUST(cuMemsetD8Async(next, 1, MIB, stream[1]));
    MUST(cuStreamSynchronize(stream[1]));
    MUST(cuStreamSynchronize(stream[0]));
    MUST(cuMemcpyDtoH(byte, next, sizeof(byte)));
    CHECK(byte[0] == 1);
}

/* A capture would end by a wait: the block is left. */
static void scope_capture(void)
{
    struct cuwarden_freed freed;
    CUdeviceptr block;
    CUstream stream;
    CUgraph graph;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    GIVES(CUWARDEN_OK, cuwarden_scope_begin("capture"));
    MUST(cuMemAllocAsync(&block, MIB, stream));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    MUST(cuStreamEndCapture(stream, &graph));
    CHECK(!is_active || (freed.blocks == 0 && freed.left_blocks == 1));
    MUST(cuMemFreeAsync(block, stream));
}

/* What a library has taken for itself is not the scope's. LIBRARY is one by its name. SCRIBBLE: a
 * command, without the library, that does something before the scope ends. */
static void scope_library(void)
{
    void *library = dlopen(getenv("LIBRARY"), RTLD_NOW);
    CUdeviceptr (*get)(void) = library ? (CUdeviceptr(*)(void))dlsym(library, "get") : NULL;
    const char *command = getenv("SCRIBBLE");
    struct cuwarden_freed freed;

    CHECK(get != NULL);
    for (int i = 0; i < 2; i++) {
        GIVES(CUWARDEN_OK, cuwarden_scope_begin("first use"));
        CHECK(get() != 0 && take(1000) != 0);
        CHECK(command == NULL || (unsetenv("LD_PRELOAD") == 0 && system(command) == 0));
        GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
        CHECK(!is_active || (freed.blocks == 1 && freed.bytes == 1000));
        CHECK(!is_active || freed.left_blocks == (i == 0));
        MUST(cuMemsetD8(get(), 0, 16));
    }
}

/* ---- threads ---- */

static _Atomic int stop;

static void *churn(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    (void)cuwarden_tag_push("churn");
    while (!atomic_load(&stop))
        MUST(cuMemFree(take(MIB)));
    return unused;
}

static void threads(void)
{
    struct heard heard = {0};
    pthread_t thread[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, churn, NULL);
    for (int i = 0; i < 100; i++) {
        MUST(cuMemFree(take(MIB)));
        GIVES(CUWARDEN_OK, cuwarden_pressure_listen(hear, &heard));
        GIVES(CUWARDEN_OK, cuwarden_trim(0, (enum cuwarden_trim_how)(i % 3), NULL));
        GIVES(CUWARDEN_OK, cuwarden_limit_set(0, i % 2 == 0 ? 500 * MIB : 0));
        GIVES(CUWARDEN_OK,
              cuwarden_budget_set("churn", 64 * MIB, (enum cuwarden_budget_how)(i % 2)));
        GIVES(CUWARDEN_OK, cuwarden_budget_clear("churn"));
        GIVES(CUWARDEN_OK, cuwarden_pressure_unlisten(hear, &heard));
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

static const struct {
    const char *name;
    void (*work)(void);
} parts[] = {
    {"trim", trim},
    {"shrink", shrink},
    {"limit", limit},
    {"pressure", pressure},
    {"memory", memory},
    {"misuse", misuse},
    {"threads", threads},
    {"batch", batch},
    {"scope", scope},
    {"budget", budget},
    {"forked_scope", forked_scope},
    {"ended_threads", ended_threads},
    {"free_again", free_again},
    {"scope_stream", scope_stream},
    {"scope_capture", scope_capture},
    {"scope_library", scope_library},
};

int main(int argc, char **argv)
{
    is_active = cuwarden_is_active();
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc != 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        context = use_device(0);
        parts[i].work();
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
