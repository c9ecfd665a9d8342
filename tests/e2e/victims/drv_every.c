/* SPDX-License-Identifier: MIT */
/*
 * Every function that the library stands in front of and that may run out of memory does so, as
 * often as it is called, while a freed block lies idle: says how often the driver was called, of
 * those of which the list says something else than was found (oom.def).
 */
#include "victim.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "cusim.h"

#define IDLE  ((size_t)2 << 20)
#define BYTES 4096

static const struct {
    const char *name;
    int is_retried;
} decisions[] = {
#define RETRIED(name, why) {#name, 1},
#define ONCE(name, why)    {#name, 0},
#include "../../../src/hook/oom.def"
};

static const struct {
    const char *symbol, *name;
} hooks[] = {
#define HOOK(symbol, base, since, stream, family) {#symbol, base},
#include "../../../src/hook/hooks.def"
};

/* 1, 0, or -1: nothing is said of it. */
static int is_retried(const char *name)
{
    for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++)
        if (strcmp(decisions[i].name, name) == 0)
            return decisions[i].is_retried;
    return -1;
}

static int starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* With somewhere to write to, a size where one is asked for, and nothing else: what the driver
 * would say to that does not matter, it is out of memory before. */
static void call(const char *symbol, const char *name)
{
    typedef CUresult (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                 uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    function called = (function)dlsym(RTLD_DEFAULT, symbol);
    static uint64_t room[64];
    uint64_t out = (uint64_t)(uintptr_t)room, size = 0, width = 0;

    if (starts(name, "cuMemAlloc") || starts(name, "cuMemHost") || starts(name, "cuMemCreate") ||
        starts(name, "cuMemAddress"))
        size = BYTES;
    if (starts(name, "cuMemAllocPitch")) {
        size = out;
        width = BYTES;
    }
    if (starts(name, "cuIpcOpen"))
        size = out; /* a large handle by value, which on AArch64 is passed by its address */
    if (called == NULL)
        say("no %s", symbol);
    else
        must_fail(called(out, size, width, width != 0, 0, 0, 0, 0, 0, 0, 0, 0), 2, symbol);
}

/* How often the driver is called for one call of the program. */
static unsigned long long times(const char *symbol, const char *name)
{
    unsigned long long before;
    CUdeviceptr idle;
    char rule[128];

    MUST(cuMemAlloc(&idle, IDLE));
    MUST(cuMemFree(idle));
    snprintf(rule, sizeof(rule), "%s:code=2", symbol);
    cusim_fail(rule);
    before = cusim_calls(symbol);
    call(symbol, name);
    cusim_fail(NULL);
    return cusim_calls(symbol) - before;
}

int main(void)
{
    unsigned counts[2] = {0, 0};

    use_device(0);
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        int decision = is_retried(hooks[i].name);
        unsigned long long n;

        if (decision < 0)
            continue;
        n = times(hooks[i].symbol, hooks[i].name);
        counts[n > 1]++;
        if ((n > 1) != decision || n == 0)
            say("wrong: %s is called %llu times", hooks[i].symbol, n);
    }
    say("once %u, more often %u", counts[0], counts[1]);
    return 0;
}
