/* SPDX-License-Identifier: MIT */
/*
 * What compute-sanitizer would find, over the simulated driver: preloaded by sanitizer_standin.sh,
 * it watches memory come and go (cusim_observe) with stacks of its own, and writes in the words of
 * the real tool what was never freed. Knows nothing of cuwarden. The driver calls it under a lock
 * of its own, one thread at a time, so it has none.
 *
 * STANDIN_LOG: where to; STANDIN_OLD: a line more for each frame, as older versions have it.
 * STANDIN_DEFECT: extra, short or other, a leak too many, one byte less, or from another function;
 * cut, one not printed; error, an error of the program more.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cusim.h"

#define BLOCKS 256
#define FRAMES 48

static struct block {
    unsigned long long address, bytes;
    void *frames[FRAMES];
    int count, is_live;
} blocks[BLOCKS];
static unsigned used;

static const char *defect(void)
{
    const char *name = getenv("STANDIN_DEFECT");

    return name ? name : "";
}

/* The tool says what is left when a context ends; it is not what the program freed. */
static int is_end_of_context(void)
{
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    Dl_info info;

    for (int i = 0; i < count; i++) {
        if (dladdr(frames[i], &info) && info.dli_sname &&
            (strstr(info.dli_sname, "Reset") || strstr(info.dli_sname, "CtxDestroy") ||
             strstr(info.dli_sname, "CtxRelease")))
            return 1;
    }
    return 0;
}

static void seen(const struct cusim_event *event)
{
    struct block *block;

    if (event->is_pool || event->is_context || event->name)
        return;
    if (event->is_free && is_end_of_context())
        return;
    if (event->is_free) {
        for (unsigned i = 0; i < used; i++) {
            if (blocks[i].address == event->address)
                blocks[i].is_live = 0;
        }
        return;
    }
    if (used == BLOCKS)
        abort();
    block = &blocks[used++];
    block->address = event->address;
    block->bytes = event->bytes;
    block->count = backtrace(block->frames, FRAMES);
    block->is_live = 1;
}

/* 12345 as 12,345 */
static const char *grouped(unsigned long long number, char text[32])
{
    char digits[32];
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%llu", number), to = 0;

    for (size_t i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0)
            text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = '\0';
    return text;
}

static void print_frame(FILE *to, void *address)
{
    struct link_map *map = NULL;
    const char *module, *name;
    size_t offset;
    Dl_info info;

    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fname)
        return;
    offset = (size_t)((char *)address - (char *)map->l_addr);
    name = info.dli_sname ? info.dli_sname : "";
    module = strrchr(info.dli_fname, '/');
    module = module ? module + 1 : info.dli_fname;
    if (getenv("STANDIN_OLD"))
        fprintf(to, "=========     Host Frame:%s [0x%zx]\n=========                in %s\n", name,
                offset, info.dli_fname);
    else
        fprintf(to, "=========         Host Frame: %s%s[0x%zx] in %s\n", name, *name ? " " : "",
                offset, module);
}

/* From the driver on: its own frames, and those above of this file, are none of the program's. */
static int first_of_driver(const struct block *block)
{
    Dl_info info;

    for (int i = 0; i < block->count; i++) {
        if (dladdr(block->frames[i], &info) && info.dli_fname &&
            strstr(info.dli_fname, "libcuda.so"))
            return i;
    }
    return 0;
}

static int is_of_program(void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) && map && !*map->l_name;
}

static void print_leak(FILE *to, const struct block *block, unsigned long long bytes,
                       int without_innermost)
{
    char text[32];

    fprintf(to, "========= Leaked %s bytes at 0x%llx\n", grouped(bytes, text), block->address);
    fprintf(to, "=========     Saved host backtrace up to driver entry point at allocation time\n");
    for (int i = first_of_driver(block); i < block->count; i++) {
        if (without_innermost && is_of_program(block->frames[i])) {
            without_innermost = 0;
            continue;
        }
        print_frame(to, block->frames[i]);
    }
    fprintf(to, "========= \n");
}

static void print_leaks(FILE *to)
{
    unsigned long long bytes = 0, size;
    const struct block *first = NULL;
    unsigned count = 0;

    for (unsigned i = 0; i < used; i++) {
        if (!blocks[i].is_live)
            continue;
        size = blocks[i].bytes - (!first && strcmp(defect(), "short") == 0);
        if (first || strcmp(defect(), "cut") != 0)
            print_leak(to, &blocks[i], size, !first && strcmp(defect(), "other") == 0);
        first = first ? first : &blocks[i];
        bytes += size;
        count++;
    }
    if (first && strcmp(defect(), "extra") == 0) {
        print_leak(to, first, first->bytes, 0);
        bytes += first->bytes;
        count++;
    }
    /* As it says of a status that is not 0; and errors of calls have frames, too. */
    fprintf(to, "========= Program hit CUDA_ERROR_NOT_FOUND (error 500) on CUDA API call to cuX.\n"
                "=========     Saved host backtrace up to driver entry point at error\n"
                "=========         Host Frame: main [0x10] in program\n"
                "========= \n========= Error: process didn't terminate successfully\n");
    fprintf(to, "========= LEAK SUMMARY: %llu bytes leaked in %u allocations\n", bytes, count);
    count += strcmp(defect(), "error") == 0;
    fprintf(to, "========= ERROR SUMMARY: %u error%s\n", count, count == 1 ? "" : "s");
}

static void __attribute__((destructor)) at_end(void)
{
    const char *path = getenv("STANDIN_LOG");
    FILE *to = path && used ? fopen(path, "a") : NULL;

    if (!to)
        return;
    print_leaks(to);
    fclose(to);
}

static void __attribute__((constructor)) at_start(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void (*observe)(void (*)(const struct cusim_event *)) = NULL;

    if (driver)
        *(void **)&observe = dlsym(driver, "cusim_observe");
    if (observe)
        observe(seen);
}
