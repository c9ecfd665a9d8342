/* SPDX-License-Identifier: MIT */
/*
 * Bridges between devices (include/cuwarden/cuwarden.h), and checks the answers itself.
 *   drv_api_bridges PART [WAY]
 * WAY: the one that copies of the first part are to take, "peer" or "staged". Without the library
 * all answers are CUWARDEN_NOT_ACTIVE.
 */
#include "api_victim.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS ((size_t)20000)
#define BYTES (WORDS * 4)
#define CHUNK ((uint64_t)4096) /* 20 chunks for a copy */

static CUcontext context[2];
static CUstream stream[2]; /* of each */
static CUdeviceptr words[2];
static uint32_t seen[WORDS];
static int wanted_way = CUWARDEN_PEER;

static void *at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static uint64_t make(int from, int to, int way)
{
    uint64_t bridge = 0;

    GIVES(CUWARDEN_OK, cuwarden_bridge_make("bridge", from, to, CHUNK, way, &bridge));
    return bridge;
}

static void fill(int device, uint32_t value)
{
    MUST(cuCtxSetCurrent(context[device]));
    MUST(cuMemsetD32Async(words[device], value, WORDS, stream[device]));
}

/* What is on the device once its stream is done. */
static int holds(int device, uint32_t value)
{
    MUST(cuCtxSetCurrent(context[device]));
    MUST(cuMemcpyDtoHAsync(seen, words[device], BYTES, stream[device]));
    MUST(cuStreamSynchronize(stream[device]));
    for (size_t i = 0; i < WORDS; i++)
        if (seen[i] != value)
            return 0;
    return 1;
}

/* Each copy comes after what its stream had, and before what it gets; of streams of either side. */
static void there(uint64_t bridge, int from, int to, int way)
{
    for (uint32_t i = 1; i <= 20; i++) {
        int side = i % 2 == 0 ? from : to, other = 1 - side;
        uint64_t number = 0;
        int32_t taken = -1;

        fill(from, i);
        fill(to, 7777);
        MUST(cuCtxSetCurrent(context[other]));
        MUST(cuStreamSynchronize(stream[other]));
        GIVES(CUWARDEN_OK, cuwarden_bridge_copy(bridge, at(words[to]), at(words[from]), BYTES,
                                                stream[side], &number, &taken));
        if (!is_active)
            return;
        CHECK(number == i && taken == way);
        if (side == from)
            fill(from, 8888);
        GIVES(CUWARDEN_OK, cuwarden_bridge_wait(bridge, side == to ? 0 : number));
        CHECK(holds(to, i));
    }
}

static void copies(void)
{
    struct cuwarden_stats stats = {0};
    struct cuwarden_bridge now = {0};
    uint64_t bridge = make(0, 1, CUWARDEN_PEER);
    int is_peer = wanted_way == CUWARDEN_PEER;

    there(bridge, 0, 1, wanted_way);
    GIVES(CUWARDEN_OK, cuwarden_bridge_now(bridge, &now));
    GIVES(CUWARDEN_OK, cuwarden_device_stats(1, &stats));
    if (is_active) {
        CHECK(now.from_device == 0 && now.to_device == 1 && now.way == wanted_way);
        CHECK(now.started == 20 && now.bytes == 20 * BYTES && now.overlap <= 1);
        CHECK(now.peer_copies == 20u * is_peer && now.staged_copies == 20u * !is_peer);
        CHECK(stats.transfers == 20 && stats.transfer_bytes == 20 * BYTES);
        CHECK(stats.peer_transfers == 20u * is_peer && stats.staged_transfers == 20u * !is_peer);
        CHECK(stats.peer_bytes + stats.staged_bytes == 20 * BYTES);
        MUST(cuCtxSetCurrent(context[1]));
    }
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
    bridge = make(1, 0, CUWARDEN_STAGED);
    there(bridge, 1, 0, CUWARDEN_STAGED);
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
}

/* On one device, from within a block to within it; the call waits. */
static void local(void)
{
    uint64_t bridge = make(0, 0, CUWARDEN_PEER);
    int32_t way = -1;

    fill(0, 5);
    MUST(cuMemsetD32Async(words[0], 6, WORDS / 2, stream[0]));
    MUST(cuStreamSynchronize(stream[0]));
    GIVES(CUWARDEN_INVALID, cuwarden_bridge_copy(bridge, at(words[0] + 4), at(words[0]), BYTES / 2,
                                                 NULL, NULL, NULL));
    GIVES(CUWARDEN_OK, cuwarden_bridge_copy(bridge, at(words[0] + BYTES / 2), at(words[0]),
                                            BYTES / 2, CUWARDEN_NO_STREAM, NULL, &way));
    CHECK(!is_active || (way == CUWARDEN_LOCAL && holds(0, 6)));
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
}

/* Buffers that grow in place have their memory in pieces, which peers do not reach. */
static void buffers(void)
{
    struct cuwarden_buffer_spec spec = {.name = "pieces", .element_bytes = 4, .count = 1};
    uint64_t bridge = make(0, 1, CUWARDEN_PEER), buffer = 0;
    void *address = NULL;
    int32_t way = -1;

    MUST(cuCtxSetCurrent(context[0]));
    GIVES(CUWARDEN_OK, cuwarden_buffer_make(&spec, &buffer));
    GIVES(CUWARDEN_OK, cuwarden_ensure_capacity(buffer, (3 << 20) / 4, NULL, &address));
    if (!is_active)
        return;
    MUST(cuMemsetD32((CUdeviceptr)(uintptr_t)address, 9, (3 << 20) / 4));
    GIVES(CUWARDEN_OK,
          cuwarden_bridge_copy(bridge, at(words[1]), (char *)address + (2 << 20) - 2000, BYTES,
                               CUWARDEN_NO_STREAM, NULL, &way));
    CHECK(way == CUWARDEN_STAGED && holds(1, 9));
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
    MUST(cuCtxSetCurrent(context[0]));
    GIVES(CUWARDEN_OK, cuwarden_buffer_end(buffer));
}

/* Both blocks are freed as soon as the copy is on its way, and serve others at once. */
static void freed(void)
{
    uint64_t bridge = make(0, 1, wanted_way);

    for (uint32_t i = 1; i <= 20 && is_active; i++) {
        CUdeviceptr source, next;

        MUST(cuCtxSetCurrent(context[0]));
        MUST(cuMemAlloc(&source, BYTES));
        MUST(cuMemsetD32Async(source, i, WORDS, stream[0]));
        GIVES(CUWARDEN_OK,
              cuwarden_bridge_copy(bridge, at(words[1]), at(source), BYTES, stream[0], NULL, NULL));
        MUST(cuMemFree(source));
        MUST(cuMemAlloc(&next, BYTES));
        MUST(cuMemsetD32Async(next, 7777, WORDS, stream[0]));
        MUST(cuStreamSynchronize(stream[0]));
        GIVES(CUWARDEN_OK, cuwarden_bridge_wait(bridge, 0));
        CHECK(holds(1, i));
        MUST(cuMemFree(next));
    }
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
}

static void misuse(void)
{
    uint64_t bridge = make(0, 1, CUWARDEN_PEER), none = 7;
    char host[16];
    void *pinned;
    CUdeviceptr gone;
    CUcontext third = create_context(1);
    CUstream other;

    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxSetCurrent(context[0]));
    MUST(cuMemHostAlloc(&pinned, 4096, 0));
    MUST(cuMemAlloc(&gone, 4096));
    MUST(cuMemFree(gone));
#define COPY(to, from, bytes, stream)                                                              \
    cuwarden_bridge_copy(bridge, to, from, bytes, stream, &none, NULL)
    GIVES(CUWARDEN_NOT_FOUND, COPY(at(words[1]), host, 4, stream[0]));
    GIVES(CUWARDEN_NOT_FOUND, COPY(at(words[1]), NULL, 4, stream[0]));
    GIVES(CUWARDEN_NOT_FOUND, COPY(at(words[1]), at(gone), 4, stream[0]));
    GIVES(CUWARDEN_INVALID, COPY(at(words[1]), pinned, 4, stream[0]));
    GIVES(CUWARDEN_INVALID, COPY(at(words[0]), at(words[1]), 4, stream[0]));
    GIVES(CUWARDEN_INVALID, COPY(at(words[1]), at(words[0]), 0, stream[0]));
    GIVES(CUWARDEN_INVALID, COPY(at(words[1]), at(words[0]), 4, other));
    GIVES(CUWARDEN_TOO_LARGE, COPY(at(words[1]), at(words[0] + 4), BYTES, stream[0]));
    GIVES(CUWARDEN_TOO_LARGE, COPY(at(words[1] + 4), at(words[0]), BYTES, stream[0]));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_bridge_make("b", 0, 17, 0, CUWARDEN_PEER, &none));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_bridge_make("b", CUWARDEN_HOST, 0, 0, CUWARDEN_PEER, &none));
    GIVES(CUWARDEN_UNUSED_DEVICE, cuwarden_bridge_make("b", 0, 2, 0, CUWARDEN_PEER, &none));
    GIVES(CUWARDEN_EXISTS, cuwarden_bridge_make("bridge", 0, 1, 0, CUWARDEN_PEER, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_bridge_make("b", 0, 1, 0, CUWARDEN_LOCAL, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_bridge_make("b", 0, 1, UINT64_MAX, CUWARDEN_PEER, &none));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_bridge_wait(bridge, 1));
    CHECK(none == 7);
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_bridge_end(bridge));
    GIVES(CUWARDEN_NOT_FOUND, COPY(at(words[1]), at(words[0]), 4, stream[0]));
    MUST(cuMemFreeHost(pinned));
    MUST(cuCtxDestroy(third));
    MUST(cuCtxSetCurrent(context[0]));
}

static void capture(void)
{
    uint64_t bridge = make(0, 1, CUWARDEN_PEER), none = 7;
    CUgraph graph;

    MUST(cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(CUWARDEN_BUSY, cuwarden_bridge_make("other", 0, 1, 0, CUWARDEN_PEER, &none));
    GIVES(CUWARDEN_BUSY, COPY(at(words[1]), at(words[0]), 4, stream[0]));
    GIVES(CUWARDEN_BUSY, cuwarden_bridge_wait(bridge, 0));
    GIVES(CUWARDEN_BUSY, cuwarden_bridge_end(bridge));
    MUST(cuStreamEndCapture(stream[0], &graph)); /* it is not spoilt */
    MUST(cuGraphDestroy(graph));
    GIVES(CUWARDEN_OK, COPY(at(words[1]), at(words[0]), 4, stream[0]));
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
}

/* The far side's context ends: it can only be ended. */
static void contexts(void)
{
    CUcontext another = create_context(1);
    uint64_t bridge, none = 7;
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, BYTES));
    bridge = make(0, 1, CUWARDEN_STAGED);
    MUST(cuCtxSetCurrent(context[0]));
    GIVES(CUWARDEN_OK, COPY(at(block), at(words[0]), BYTES, stream[0]));
    GIVES(CUWARDEN_OK, cuwarden_bridge_wait(bridge, 0));
    MUST(cuCtxDestroy(another));
    MUST(cuCtxSetCurrent(context[0]));
    GIVES(CUWARDEN_DRIVER, COPY(at(words[1]), at(words[0]), 4, stream[0]));
    GIVES(CUWARDEN_DRIVER, cuwarden_bridge_wait(bridge, 0));
    GIVES(CUWARDEN_DRIVER, cuwarden_bridge_end(bridge));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_bridge_end(bridge));
}

/* The child has none, and the parent's go on. */
static void forks(void)
{
    uint64_t bridge = make(0, 1, wanted_way), none = 0;
    int status = 0;
    pid_t child;

    fill(0, 3);
    GIVES(CUWARDEN_OK, COPY(at(words[1]), at(words[0]), BYTES, stream[0]));
    child = fork();
    if (child == 0)
        _exit(is_active && cuwarden_bridge_wait(bridge, 0) == CUWARDEN_OK);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    GIVES(CUWARDEN_OK, cuwarden_bridge_wait(bridge, 0));
    CHECK(!is_active || holds(1, 3));
    GIVES(CUWARDEN_OK, cuwarden_bridge_end(bridge));
}

static const struct {
    const char *name;
    void (*work)(void);
} parts[] = {{"copies", copies}, {"local", local},     {"buffers", buffers},   {"freed", freed},
             {"misuse", misuse}, {"capture", capture}, {"contexts", contexts}, {"forks", forks}};

int main(int argc, char **argv)
{
    uint64_t early = 0;

    is_active = cuwarden_is_active();
    GIVES(CUWARDEN_NOT_STARTED, cuwarden_bridge_make("early", 0, 1, 0, CUWARDEN_PEER, &early));
    if (argc == 3 && strcmp(argv[2], "staged") == 0)
        wanted_way = CUWARDEN_STAGED;
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc < 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        int last = parts[i].work != local; /* which does with one device */

        for (int device = last; device >= 0; device--) {
            context[device] = use_device(device);
            MUST(cuStreamCreate(&stream[device], CU_STREAM_NON_BLOCKING));
            MUST(cuMemAlloc(&words[device], BYTES));
        }
        parts[i].work();
        for (int device = 0; device <= last; device++)
            MUST(cuMemFree(words[device]));
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
