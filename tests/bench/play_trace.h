/* SPDX-License-Identifier: MIT */
/*
 * A trace of tests/bench/traces, uncompressed, through an allocator of workload.h: trace=FILE
 * [device=BYTES], in place of a workload. Its device memory is taken and given in the order of the
 * lines, in one stream. Prints how many blocks were taken, how many of them reached the driver, and
 * how many bytes these were in all: the most that was held, of an allocator that gives nothing
 * back.
 */
#ifndef PLAY_TRACE_H
#define PLAY_TRACE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#ifdef NULL_DRIVER
extern "C" uint64_t null_upstream_bytes(void);
extern "C" void null_set_device(size_t bytes);
#else
static uint64_t null_upstream_bytes(void)
{
    return 0;
}
static void null_set_device(size_t)
{
}
#endif

struct traced_block {
    uint64_t address;
    size_t bytes;
};

/* The file, or NULL: the words are a workload. Before the allocator looks at the device. */
static const char *traced_file(int count, char **words)
{
    if (count < 1 || count > 2 || strncmp(words[0], "trace=", 6) != 0)
        return NULL;
    if (count == 2 && strncmp(words[1], "device=", 7) == 0)
        null_set_device(strtoull(words[1] + 7, NULL, 10));
    return words[0] + 6;
}

static int play_trace(const char *path)
{
    std::unordered_map<unsigned long long, traced_block> live;
    FILE *file = fopen(path, "r");
    char line[256], action[16], kind[32];
    unsigned long long number, bytes, taken = 0;

    if (file == NULL) {
        perror(path);
        return 2;
    }
    begin_thread();
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%*u,%15[^,],%llx,%llu,%*[^,],%31[^,]", action, &number, &bytes, kind) !=
                4 ||
            strcmp(kind, "device") != 0)
            continue;
        if (strcmp(action, "allocate") == 0) {
            live[number] = traced_block{take((size_t)bytes, NULL), (size_t)bytes};
            taken++;
        } else if (live.count(number) != 0) {
            give_block(live[number].address, live[number].bytes, NULL);
            live.erase(number);
        }
    }
    fclose(file);
    printf("%llu %llu %llu\n", taken, (unsigned long long)null_upstream(),
           (unsigned long long)null_upstream_bytes());
    return 0;
}

#endif
