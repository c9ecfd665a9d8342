/* SPDX-License-Identifier: MIT */
/*
 * Asks of cuwarden what include/cuwarden/cuwarden.h offers, and checks the answers itself.
 *   drv_api account|visits|leaks|files|misuse|early|threads|asking|fork
 * Without the library the program's own work is the same.
 */
#include "api_victim.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAYS(error, text) CHECK(!is_active || strstr(cuwarden_error_text(error), text) != NULL)

static const void *at(CUdeviceptr block)
{
    return (const void *)(uintptr_t)block;
}

/* ---- account ---- */

static CUdeviceptr take_tagged(const char *tag, size_t bytes)
{
    CUdeviceptr block;

    GIVES(CUWARDEN_OK, cuwarden_tag_push(tag));
    block = take(bytes);
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
    return block;
}

static void check_device(void)
{
    struct cuwarden_stats stats;

    GIVES(CUWARDEN_OK, cuwarden_device_stats(0, &stats));
    CHECK(stats.allocations == 4 && stats.frees == 1 && stats.failures == 1);
    CHECK(stats.out_of_memory == 1 && stats.live_blocks == 3 && stats.live_bytes == 7000);
    CHECK(stats.total_bytes == 10000 && stats.peak_bytes == 10000);
    CHECK(stats.hits + stats.misses == 4 && stats.idle_blocks == 1);
    CHECK(stats.allocated_bytes >= 7000 && stats.reserved_bytes >= 10000);
    CHECK(stats.efficiency > 0.5 && stats.efficiency <= 1 && stats.utilisation > 0);
    CHECK(stats.device_total_bytes > stats.device_free_bytes && stats.device_free_bytes > 0);
    CHECK(strcmp(stats.backend, "pool") == 0 && stats.hit_rate == 0);
    GIVES(CUWARDEN_OK, cuwarden_device_stats(CUWARDEN_ALL_DEVICES, &stats));
    CHECK(stats.live_bytes == 7000);
    GIVES(CUWARDEN_OK, cuwarden_device_stats(CUWARDEN_HOST, &stats));
    CHECK(stats.live_bytes == 0 && stats.allocations == 0);
}

static void account(void)
{
    CUdeviceptr a = take_tagged("cache", 1000), b = take_tagged("weights", 2000), c, d, none;
    struct cuwarden_stats stats;

    GIVES(CUWARDEN_OK, cuwarden_tag_push("outer"));
    c = take_tagged("cache", 3000);
    d = take(4000);
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
    MUST(cuMemFree(c));
    CHECK(cuMemAlloc(&none, (size_t)1 << 50) == CUDA_ERROR_OUT_OF_MEMORY);
    GIVES(CUWARDEN_OK, cuwarden_step("iteration"));
    if (is_active) {
        check_device();
        GIVES(CUWARDEN_OK, cuwarden_tag_stats("cache", CUWARDEN_ALL_DEVICES, &stats));
        CHECK(stats.allocations == 2 && stats.frees == 1 && stats.live_bytes == 1000);
        GIVES(CUWARDEN_OK, cuwarden_tag_stats("outer", 0, &stats));
        CHECK(stats.allocations == 1 && stats.live_bytes == 4000);
        CHECK(stats.hits == 0 && stats.misses == 1 && stats.reserved_bytes == 0);
        GIVES(CUWARDEN_OK, cuwarden_tag_stats("", 0, &stats));
        CHECK(stats.allocations == 0 && stats.failures == 1);
        CHECK(stats.hits == 0 && stats.misses == 0 && stats.hit_rate == 0);
    }
    MUST(cuMemFree(take_tagged("cache", 3000)));
    if (is_active) {
        GIVES(CUWARDEN_OK, cuwarden_tag_stats("cache", 0, &stats));
        CHECK(stats.hits == 1 && stats.misses == 2 && strcmp(stats.backend, "pool") == 0);
        CHECK(stats.hit_rate > 0.33 && stats.hit_rate < 0.34);
    }
    MUST(cuMemFree(a));
    MUST(cuMemFree(b));
    MUST(cuMemFree(d));
}

/* ---- visits ---- */

struct seen {
    unsigned count, until;
    uint64_t bytes, last_id, least_id;
    char name[64], tag[64], kind[16], function[32];
    CUdeviceptr takes; /* the callback allocates this much */
};

static int see(const struct cuwarden_block *block, void *arg)
{
    struct seen *seen = arg;

    seen->count++;
    seen->bytes += block->bytes;
    seen->last_id = block->id;
    if (seen->least_id == 0 || block->id < seen->least_id)
        seen->least_id = block->id;
    snprintf(seen->name, sizeof(seen->name), "%s", block->name);
    snprintf(seen->tag, sizeof(seen->tag), "%s", block->tag);
    snprintf(seen->kind, sizeof(seen->kind), "%s", block->kind);
    snprintf(seen->function, sizeof(seen->function), "%s", block->function);
    if (seen->takes != 0)
        MUST(cuMemFree(take(seen->takes)));
    return seen->count == seen->until;
}

static struct seen visit(uint64_t since, uint64_t older_than_ns, const char *tag, int device)
{
    struct cuwarden_filter filter = {
        .since = since, .older_than_ns = older_than_ns, .tag = tag, .device = device};
    struct seen seen = {0};

    GIVES(CUWARDEN_OK, cuwarden_visit(&filter, see, &seen));
    return seen;
}

static void visits(void)
{
    CUdeviceptr a = take_tagged("cache", 1000), b, again;
    struct seen seen = {.until = 1}, other;
    struct cuwarden_block block;
    uint64_t mark = 0, first_id = 0;
    void *pinned;

    GIVES(CUWARDEN_OK, cuwarden_mark(&mark));
    b = take(2000);
    MUST(cuMemHostAlloc(&pinned, 3000, 0));
    GIVES(CUWARDEN_OK, cuwarden_block_name(at(b), "positions"));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_block_name(at(b + 1), "inside"));
    GIVES(CUWARDEN_OK, cuwarden_block_find(at(b), &block));
    if (is_active) {
        CHECK(block.bytes == 2000 && block.address == b && block.held_bytes >= 2000);
        CHECK(strcmp(block.name, "positions") == 0 && block.tag[0] == '\0');
        CHECK(block.device == 0 && block.thread == (uint32_t)getpid() && block.id >= mark);
        first_id = block.id;
        other = visit(0, 0, NULL, CUWARDEN_ALL_DEVICES);
        CHECK(other.count == 3 && other.bytes == 6000 && other.least_id < mark);
        other = visit(mark, 0, NULL, CUWARDEN_ALL_DEVICES);
        CHECK(other.count == 2 && other.bytes == 5000 && other.least_id == first_id);
        other = visit(0, 0, NULL, CUWARDEN_HOST);
        CHECK(other.count == 1 && other.bytes == 3000 && strcmp(other.kind, "pinned") == 0);
        CHECK(strcmp(other.function, "cuMemHostAlloc") == 0);
        other = visit(0, 0, "cache", CUWARDEN_ALL_DEVICES);
        CHECK(other.count == 1 && other.bytes == 1000 && strcmp(other.tag, "cache") == 0);
        other = visit(mark, 0, "", 0);
        CHECK(other.count == 1 && strcmp(other.name, "positions") == 0);
        CHECK(visit(0, UINT64_C(3600000000000), NULL, CUWARDEN_ALL_DEVICES).count == 0);
        GIVES(CUWARDEN_OK, cuwarden_visit(NULL, see, &seen));
        CHECK(seen.count == 1);
        seen = (struct seen){.takes = 50000}; /* a callback may call CUDA */
        GIVES(CUWARDEN_OK, cuwarden_visit(NULL, see, &seen));
        CHECK(seen.count == 3);
    }
    MUST(cuMemFree(b));
    again = take(2000); /* the same memory is another allocation */
    if (is_active) {
        GIVES(CUWARDEN_OK, cuwarden_block_find(at(again), &block));
        CHECK(again == b && block.id > first_id && block.name[0] == '\0');
    }
    MUST(cuMemFree(again));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_block_find(at(again), &block));
    MUST(cuMemFree(a));
    MUST(cuMemFreeHost(pinned));
}

/* ---- leaks ---- */

static void leaks(void)
{
    CUdeviceptr before = take(1000), after;
    struct cuwarden_leaks found;
    struct seen seen = {0};
    uint64_t mark = 0;

    GIVES(CUWARDEN_OK, cuwarden_mark(&mark));
    after = take_tagged("excused", 2000);
    MUST(cuMemFree(take(4000)));
    after = take(3000);
    GIVES(CUWARDEN_OK, cuwarden_leak_check(mark, see, &seen, &found));
    if (is_active) {
        CHECK(found.blocks == 1 && found.bytes == 3000 && seen.count == 1 && seen.bytes == 3000);
        CHECK(found.excused_blocks == 1 && found.excused_bytes == 2000);
        GIVES(CUWARDEN_OK, cuwarden_leak_check(0, NULL, NULL, &found));
        CHECK(found.blocks == 2 && found.bytes == 4000);
    }
    MUST(cuMemFree(before));
    MUST(cuMemFree(after));
    GIVES(CUWARDEN_OK, cuwarden_leak_check(mark, NULL, NULL, &found));
    CHECK(!is_active || (found.blocks == 0 && found.bytes == 0));
}

/* ---- files ---- */

static void files(void)
{
    CUdeviceptr kept = take(5000);

    GIVES(CUWARDEN_OK, cuwarden_block_name(at(kept), "kept"));
    GIVES(CUWARDEN_OK, cuwarden_report("now.json"));
    GIVES(CUWARDEN_OK, cuwarden_report("now.%p.txt"));
    GIVES(CUWARDEN_SYSTEM, cuwarden_report("/proc/none/now.txt"));
    SAYS(CUWARDEN_SYSTEM, "(errno ");
    MUST(cuMemFree(take(1000)));
    GIVES(CUWARDEN_OK, cuwarden_record_start("first.csv"));
    GIVES(CUWARDEN_BUSY, cuwarden_record_start("other.csv"));
    MUST(cuMemFree(take(2000)));
    GIVES(CUWARDEN_OK, cuwarden_record_stop());
    MUST(cuMemFree(take(3000)));
    GIVES(CUWARDEN_UNBALANCED, cuwarden_record_stop());
    GIVES(CUWARDEN_SYSTEM, cuwarden_record_start("/proc/none/second.csv"));
    GIVES(CUWARDEN_OK, cuwarden_record_start("second.csv"));
    MUST(cuMemFree(take(4000)));
}

/* ---- misuse ---- */

static void misuse(void)
{
    struct cuwarden_stats stats;
    struct cuwarden_block block;

    GIVES(CUWARDEN_UNBALANCED, cuwarden_tag_pop());
    SAYS(CUWARDEN_UNBALANCED, "a pop without a push");
    GIVES(CUWARDEN_INVALID, cuwarden_tag_push(NULL));
    SAYS(CUWARDEN_INVALID, "NULL");
    GIVES(CUWARDEN_INVALID, cuwarden_tag_push(""));
    GIVES(CUWARDEN_INVALID, cuwarden_step(""));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_device_stats(63, &stats));
    SAYS(CUWARDEN_NO_DEVICE, "no device 63: devices are 0 to 1");
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_device_stats(64, &stats));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_device_stats(-3, &stats));
    GIVES(CUWARDEN_OK, cuwarden_device_stats(1, &stats));
    CHECK(!is_active || (stats.allocations == 0 && stats.efficiency == 1));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_tag_stats("nobody", 0, &stats));
    SAYS(CUWARDEN_NOT_FOUND, "'nobody'");
    CHECK(cuwarden_tag_stats(NULL, 0, &stats) == CUWARDEN_INVALID);
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_block_find(&stats, &block));
    SAYS(CUWARDEN_NOT_FOUND, "0x");
    GIVES(CUWARDEN_INVALID, cuwarden_visit(NULL, NULL, NULL));
    GIVES(CUWARDEN_INVALID, cuwarden_report(""));
    GIVES(CUWARDEN_INVALID, cuwarden_record_start(NULL));
    CHECK(strcmp(cuwarden_error_name(CUWARDEN_BUSY), "BUSY") == 0);
    CHECK(strcmp(cuwarden_error_text(CUWARDEN_BUSY), "not now: ask again") == 0);
    CHECK(strcmp(cuwarden_error_name(99), "?") == 0);
    for (int i = 0; i < 100; i++) /* deeper than the stack of tags */
        GIVES(CUWARDEN_OK, cuwarden_tag_push("deep"));
    for (int i = 0; i < 100; i++)
        GIVES(CUWARDEN_OK, cuwarden_tag_pop());
    GIVES(CUWARDEN_UNBALANCED, cuwarden_tag_pop());
}

/* ---- threads that only ask ---- */

#define ASKING 1000

static void *ask(void *expected)
{
    struct cuwarden_block block;

    GIVES(CUWARDEN_OK, cuwarden_scope_begin("asks"));
    GIVES(*(int *)expected, cuwarden_block_find(&block, &block));
    GIVES(CUWARDEN_OK, cuwarden_scope_end(NULL));
    return NULL;
}

/* qemu-user keeps some for each thread that there was. */
static long private_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    CHECK(file != NULL && fscanf(file, "%*d %*d %*d %*d %*d %ld", &pages) == 1);
    fclose(file);
    return getenv("QEMU_LD_PREFIX") == NULL ? pages : 0;
}

/* What is kept for a thread goes with it, also if it never has memory. */
static void ask_by_threads(int expected)
{
    pthread_t thread;
    long before = 0;

    for (int i = 0; i < ASKING; i++) {
        pthread_create(&thread, NULL, ask, &expected);
        pthread_join(thread, NULL);
        if (i == 10)
            before = private_pages();
    }
    CHECK((private_pages() - before) * sysconf(_SC_PAGESIZE) < ASKING * 512L);
}

static void asking(void)
{
    ask_by_threads(CUWARDEN_NOT_FOUND);
}

/* Before the first call of CUDA. */
static void early(void)
{
    struct cuwarden_stats stats;
    struct cuwarden_leaks found;
    struct seen seen = {0};
    uint64_t mark;

    GIVES(CUWARDEN_OK, cuwarden_tag_push("early"));
    GIVES(CUWARDEN_OK, cuwarden_step("early"));
    GIVES(CUWARDEN_OK, cuwarden_device_stats(CUWARDEN_ALL_DEVICES, &stats));
    CHECK(!is_active || stats.allocations == 0);
    GIVES(CUWARDEN_OK, cuwarden_mark(&mark));
    GIVES(CUWARDEN_OK, cuwarden_visit(NULL, see, &seen));
    GIVES(CUWARDEN_OK, cuwarden_leak_check(0, see, &seen, &found));
    CHECK(seen.count == 0);
    ask_by_threads(CUWARDEN_NOT_STARTED);
    GIVES(CUWARDEN_NOT_STARTED, cuwarden_report("early.txt"));
    SAYS(CUWARDEN_NOT_STARTED, "cudaFree(0)");
    GIVES(CUWARDEN_NOT_STARTED, cuwarden_record_start("early.csv"));
    GIVES(CUWARDEN_NOT_STARTED, cuwarden_block_name(&stats, "early"));
}

static void after_early(void)
{
    CUdeviceptr block = take(1000);
    struct cuwarden_stats stats;

    GIVES(CUWARDEN_OK, cuwarden_tag_stats("early", 0, &stats));
    CHECK(!is_active || stats.live_bytes == 1000);
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
    MUST(cuMemFree(block));
}

/* ---- threads ---- */

static CUcontext context;

/* Ids are each thread's own and never given twice. */
static void *churn(void *out_ids)
{
    uint64_t *ids = out_ids;
    struct cuwarden_block block;

    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 2000; i++) {
        CUdeviceptr one = take_tagged(i % 2 == 0 ? "even" : "odd", 1000);

        GIVES(CUWARDEN_OK, cuwarden_block_find(at(one), &block));
        ids[i] = is_active ? block.id : (uint64_t)i;
        MUST(cuMemFree(one));
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void threads(void)
{
    static uint64_t ids[4][2000];
    pthread_t thread[4];
    struct seen seen = {0};
    uint64_t mark;

    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, churn, ids[i]);
    for (int i = 0; i < 200; i++) {
        GIVES(CUWARDEN_OK, cuwarden_mark(&mark));
        GIVES(CUWARDEN_OK, cuwarden_visit(NULL, see, &seen));
    }
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    qsort(ids, 8000, sizeof(ids[0][0]), compare);
    for (int i = 1; i < 8000 && is_active; i++)
        CHECK((&ids[0][0])[i] != (&ids[0][0])[i - 1]);
}

/* ---- a forked child ---- */

static int fork_in_visit(const struct cuwarden_block *block, void *child)
{
    (void)block;
    if (*(pid_t *)child == -1)
        *(pid_t *)child = fork();
    return 0;
}

/* In the child nothing is visited any more: the account is the parent's. */
static void fork_inside(void)
{
    CUdeviceptr blocks[] = {take(1000), take(2000), take(3000)};
    struct cuwarden_leaks leaks;
    pid_t child = -1, other = -1;
    int status;

    GIVES(CUWARDEN_OK, cuwarden_visit(NULL, fork_in_visit, &child));
    if (child == 0)
        _exit(5);
    GIVES(CUWARDEN_OK, cuwarden_leak_check(0, fork_in_visit, &other, &leaks));
    if (other == 0)
        _exit(leaks.blocks < 3 ? 6 : 7);
    if (is_active) {
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
        CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 6);
        CHECK(leaks.blocks == 3 && leaks.bytes == 6000);
    }
    for (unsigned i = 0; i < 3; i++)
        MUST(cuMemFree(blocks[i]));
}

static void forks(void)
{
    CUdeviceptr block = take_tagged("parent", 1000);
    struct cuwarden_stats stats;
    int status;
    pid_t child;

    GIVES(CUWARDEN_OK, cuwarden_tag_push("around"));
    child = fork();
    if (child == 0) {
        GIVES(CUWARDEN_OK, cuwarden_device_stats(0, &stats));
        CHECK(!is_active || stats.live_bytes == 0);
        GIVES(CUWARDEN_NOT_STARTED, cuwarden_block_name(at(block), "not ours"));
        GIVES(CUWARDEN_OK, cuwarden_tag_pop());
        GIVES(CUWARDEN_UNBALANCED, cuwarden_tag_pop());
        _exit(5);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
    MUST(cuMemFree(block));
    fork_inside();
}

static const struct {
    const char *name;
    void (*early)(void), (*work)(void);
} parts[] = {
    {"account", NULL, account}, {"visits", NULL, visits}, {"leaks", NULL, leaks},
    {"files", NULL, files},     {"misuse", NULL, misuse}, {"early", early, after_early},
    {"threads", NULL, threads}, {"asking", NULL, asking}, {"fork", NULL, forks},
};

int main(int argc, char **argv)
{
    is_active = cuwarden_is_active();
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc != 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        if (parts[i].early != NULL)
            parts[i].early();
        context = use_device(0);
        parts[i].work();
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
