/* SPDX-License-Identifier: MIT */
/*
 * What the first use of a GPU takes, step by step: prints "step NAME NS" for each. Not a test:
 * ../bench.py runs it with and without the library. START is the time of the parent's monotonic
 * clock at which it began this process, so that what is preloaded counts from its constructor on;
 * the parent takes the last step, from "end" to the process's own end.
 *
 *   first use START     cuInit, a primary context, an allocation and its free
 *   first query START   cuInit and what a query of the devices asks, no context
 */
#include "cu.h"

#define BLOCK ((size_t)1 << 20)

static uint64_t before;

static void step(const char *name)
{
    uint64_t now = now_ns();

    say("step %s %llu", name, (unsigned long long)(now - before));
    before = now_ns();
}

static void use(void)
{
    cu_block block;
    void *context;
    int device;

    MUST(cu.device(&device, 0));
    MUST(cu.retain(&context, device));
    MUST(cu.set(context));
    step("first-context");
    MUST(cu.alloc(&block, BLOCK));
    MUST(cu.free_block(block));
    step("first-alloc");
}

static void query(void)
{
    int count, major, minor, device;
    char name[256];
    size_t bytes;

    MUST(cu.count(&count));
    for (int i = 0; i < count; i++) {
        MUST(cu.device(&device, i));
        MUST(cu.name(name, sizeof(name), device));
        MUST(cu.total(&bytes, device));
        MUST(cu.attribute(&major, 75, device));
        MUST(cu.attribute(&minor, 76, device));
    }
    step("query");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    before = strtoull(argv[2], NULL, 10);
    cu_open();
    step("init");
    if (strcmp(argv[1], "use") == 0)
        use();
    else if (strcmp(argv[1], "query") == 0)
        query();
    else
        return 2;
    say("end %llu", (unsigned long long)now_ns());
    return 0;
}
