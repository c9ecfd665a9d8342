/* SPDX-License-Identifier: MIT */
/*
 * Works on the part of a device that this process was given, by MPS or MIG, and says what its
 * report must say. `client`, or `client DIRECTORY`: there it makes a file "ready", waits for the
 * file "go", works on until a call fails, since its server has ended it, and says what each call
 * answers from then on. Built with a C compiler alone.
 */
#include "cu.h"

#include <unistd.h>

#define WORDS   ((uint64_t)1 << 18)
#define KEPT    3210
#define LIMIT_S 120

static struct cu_kernels kernels;

static void work(cu_block wrong)
{
    cu_block block;

    for (uint32_t round = 1; round <= 50; round++) {
        MUST(cu.alloc(&block, WORDS * 4));
        MUST(cu_fill(&kernels, block, round, WORDS, NULL));
        MUST(cu_check(&kernels, block, round, WORDS, wrong, NULL));
        MUST(cu.free_block(block));
    }
    MUST(cu.synchronize());
}

static int exists(const char *directory, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void make(const char *directory, const char *name)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "w");
    if (!file || fclose(file) != 0)
        exit(99);
}

/* Of calls into a context that is no more. */
static void say_ended(cu_block kept)
{
    cu_block block;
    int status = 0;

    for (uint64_t start = now_ns(); status == 0 && now_ns() - start < LIMIT_S * 1000000000ull;)
        status = cu_spin(&kernels, 1000, NULL) || cu.synchronize();
    say("synchronize %d", cu.synchronize());
    say("alloc %d", cu.alloc(&block, WORDS * 4));
    say("free %d", cu.free_block(kept));
}

int main(int argc, char **argv)
{
    size_t available, total;
    cu_block wrong, kept;
    uint32_t found = 0;

    cu_begin();
    kernels = cu_load_kernels();
    MUST(cu.info(&available, &total));
    MUST(cu.alloc(&wrong, sizeof(found)));
    MUST(cu.set_bytes(wrong, 0, sizeof(found)));
    work(wrong);
    MUST(cu.to_host(&found, wrong, sizeof(found)));
    MUST(cu.free_block(wrong));
    say("%u elements are wrong", found);
    MUST(cu.alloc(&kept, KEPT));
    if (argc > 1) {
        make(argv[1], "ready");
        while (!exists(argv[1], "go"))
            usleep(10000);
        say_ended(kept);
        return 3;
    }
    say("json r['devices'][0]['total'] == %zu", total);
    say("expect leaked_bytes=%d leaked_blocks=1", KEPT);
    return found != 0;
}
