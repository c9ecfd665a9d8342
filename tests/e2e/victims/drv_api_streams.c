/* SPDX-License-Identifier: MIT */
/*
 * Stream sets (include/cuwarden/cuwarden.h), and checks the answers itself.
 *   drv_api_streams PART
 * Without the library all answers are CUWARDEN_NOT_ACTIVE, and the default stream does the work.
 */
#include "api_victim.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS  ((size_t)5000)
#define BYTES  (WORDS * 4)
#define ROUNDS 40

static uint64_t set;
static struct cuwarden_streams now;
static CUdeviceptr source, result;

static void make(void)
{
    GIVES(CUWARDEN_OK, cuwarden_streams_make("stages", 0, &set));
    GIVES(CUWARDEN_OK, cuwarden_streams_now(set, &now));
    if (!is_active)
        return;
    CHECK(now.id == set && now.device == 0 && strcmp(now.name, "stages") == 0);
    CHECK(now.compute != NULL && now.in != NULL && now.out != NULL && now.works == 0);
    CHECK(now.compute != now.in && now.in != now.out && now.out != now.compute);
}

static void end(void)
{
    GIVES(CUWARDEN_OK, cuwarden_streams_end(set));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_streams_end(set));
}

/* A word comes in, is computed with and goes out; one memory for all rounds. */
static void rounds(void)
{
    uint32_t *seen;

    make();
    MUST(cuMemHostAlloc((void **)&seen, ROUNDS * BYTES, 0));
    for (unsigned i = 0; i < ROUNDS; i++) {
        GIVES(CUWARDEN_OK, cuwarden_streams_order(set, CUWARDEN_IN, CUWARDEN_OUT));
        GIVES(CUWARDEN_OK, cuwarden_streams_order(set, CUWARDEN_IN, CUWARDEN_COMPUTE));
        MUST(cuMemsetD32Async(source, i + 1, WORDS, now.in));
        GIVES(CUWARDEN_OK, cuwarden_streams_order(set, CUWARDEN_COMPUTE, CUWARDEN_IN));
        MUST(cuMemcpyDtoDAsync(result, source, BYTES, now.compute));
        GIVES(CUWARDEN_OK, cuwarden_streams_order(set, CUWARDEN_OUT, CUWARDEN_COMPUTE));
        MUST(cuMemcpyDtoHAsync(seen + i * WORDS, result, BYTES, now.out));
    }
    MUST(cuStreamSynchronize(now.out));
    for (size_t i = 0; i < ROUNDS * WORDS; i++)
        CHECK(seen[i] == i / WORDS + 1);
    end();
    MUST(cuMemFreeHost(seen));
}

/* Each piece of work takes its time on the device; in rounds one follows the other, so nothing
 * overlaps, then they are apart. */
static void times(void)
{
    void *const *stream[] = {&now.compute, &now.in, &now.out};

    make();
    for (int is_apart = 0; is_apart <= 1; is_apart++) {
        GIVES(CUWARDEN_OK, cuwarden_streams_reset(set));
        for (int i = 0; i < 15; i++) {
            int which = i % 3, before = (which + 2) % 3;

            if (!is_apart)
                GIVES(CUWARDEN_OK, cuwarden_streams_order(set, which, before));
            GIVES(CUWARDEN_OK, cuwarden_work_begin(set, which));
            MUST(cuMemsetD32Async(which == 0 ? source : result, 1, WORDS, *stream[which]));
            GIVES(CUWARDEN_OK, cuwarden_work_end(set, which));
        }
        MUST(cuCtxSynchronize());
        GIVES(CUWARDEN_OK, cuwarden_streams_now(set, &now));
        if (!is_active)
            continue;
        CHECK(now.works == 15 && now.refused == 0);
        CHECK(now.compute_ns > 0 && now.in_ns > 0 && now.out_ns > 0);
        CHECK(now.compute_use > 0 && now.compute_use <= 1 && now.in_use > 0 && now.out_use > 0);
        CHECK(now.busy_ns <= now.age_ns);
        CHECK(is_apart ? now.overlap > 0.2 : now.overlap < 0.2);
    }
    end();
}

static void misuse(void)
{
    uint64_t none = 7;
    int devices;

    MUST(cuDeviceGetCount(&devices));
    make();
    GIVES(CUWARDEN_EXISTS, cuwarden_streams_make("stages", 0, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_streams_make("", 0, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_streams_make("other", 0, NULL));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_streams_make("other", 17, &none));
    GIVES(CUWARDEN_NO_DEVICE, cuwarden_streams_make("other", CUWARDEN_ALL_DEVICES, &none));
    GIVES(devices > 1 ? CUWARDEN_UNUSED_DEVICE : CUWARDEN_NO_DEVICE,
          cuwarden_streams_make("other", 1, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_streams_order(set, CUWARDEN_IN, CUWARDEN_IN));
    GIVES(CUWARDEN_INVALID, cuwarden_streams_order(set, 3, CUWARDEN_IN));
    GIVES(CUWARDEN_INVALID, cuwarden_work_begin(set, -1));
    GIVES(CUWARDEN_UNBALANCED, cuwarden_work_end(set, CUWARDEN_OUT));
    GIVES(CUWARDEN_OK, cuwarden_work_begin(set, CUWARDEN_OUT));
    GIVES(CUWARDEN_UNBALANCED, cuwarden_work_begin(set, CUWARDEN_OUT));
    CHECK(none == 7);
    end();
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_work_begin(set, CUWARDEN_OUT));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_streams_now(set, &now));
}

static void capture(void)
{
    CUstream stream;
    CUgraph graph;
    uint64_t none = 7;

    make();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(CUWARDEN_BUSY, cuwarden_streams_make("other", 0, &none));
    GIVES(CUWARDEN_BUSY, cuwarden_streams_order(set, CUWARDEN_IN, CUWARDEN_OUT));
    GIVES(CUWARDEN_BUSY, cuwarden_work_begin(set, CUWARDEN_IN));
    GIVES(CUWARDEN_BUSY, cuwarden_streams_end(set));
    GIVES(CUWARDEN_OK, cuwarden_streams_now(set, &now));
    MUST(cuStreamEndCapture(stream, &graph)); /* it is not spoilt */
    MUST(cuGraphDestroy(graph));
    GIVES(CUWARDEN_OK, cuwarden_streams_order(set, CUWARDEN_IN, CUWARDEN_OUT));
    end();
}

/* Its context ends: it can only be ended. */
static void contexts(void)
{
    CUcontext first, other;

    MUST(cuCtxGetCurrent(&first));
    other = create_context(0);
    make();
    GIVES(CUWARDEN_OK, cuwarden_work_begin(set, CUWARDEN_IN));
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(first));
    GIVES(CUWARDEN_DRIVER, cuwarden_work_end(set, CUWARDEN_IN));
    GIVES(CUWARDEN_DRIVER, cuwarden_streams_order(set, CUWARDEN_IN, CUWARDEN_OUT));
    GIVES(CUWARDEN_OK, cuwarden_streams_now(set, &now));
    GIVES(CUWARDEN_DRIVER, cuwarden_streams_end(set));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_streams_end(set));
}

/* The child has none, and the parent's go on. */
static void forks(void)
{
    int status = 0;
    pid_t child;

    make();
    child = fork();
    if (child == 0)
        _exit(is_active && cuwarden_streams_now(set, &now) == CUWARDEN_OK);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    GIVES(CUWARDEN_OK, cuwarden_streams_order(set, CUWARDEN_IN, CUWARDEN_OUT));
    end();
}

static const struct {
    const char *name;
    void (*work)(void);
} parts[] = {{"rounds", rounds},   {"times", times},       {"misuse", misuse},
             {"capture", capture}, {"contexts", contexts}, {"forks", forks}};

int main(int argc, char **argv)
{
    is_active = cuwarden_is_active();
    GIVES(CUWARDEN_NOT_STARTED, cuwarden_streams_make("early", 0, &set));
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc < 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        MUST(cuCtxSetCurrent(use_device(0)));
        MUST(cuMemAlloc(&source, BYTES));
        MUST(cuMemAlloc(&result, BYTES));
        parts[i].work();
        MUST(cuMemFree(source));
        MUST(cuMemFree(result));
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
