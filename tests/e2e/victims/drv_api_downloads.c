/* SPDX-License-Identifier: MIT */
/*
 * Downloads (include/cuwarden/cuwarden.h), and checks the answers itself.
 *   drv_api_downloads PART
 * Without the library all answers are CUWARDEN_NOT_ACTIVE.
 */
#include "api_victim.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS ((size_t)1000)
#define BYTES (WORDS * 4)

static CUcontext context; /* the primary one */
static CUstream stream, other;
static CUdeviceptr words;

static const void *from(void)
{
    return (const void *)(uintptr_t)words;
}

static uint64_t make(void)
{
    uint64_t download = 0;

    GIVES(CUWARDEN_OK, cuwarden_download_make("frames", BYTES, &download));
    return download;
}

static int holds(const struct cuwarden_frame *frame, uint32_t value)
{
    const uint32_t *at = frame->data;

    for (size_t i = 0; i < WORDS; i++)
        if (at[i] != value)
            return 0;
    return frame->bytes == BYTES;
}

/* Each frame is what was there when it was started, though the next is written at once: by the
 * stream that it follows, and by another that an event or a stream orders. */
static void frames(void)
{
    struct cuwarden_frame frame = {0};
    struct cuwarden_download now = {0};
    struct cuwarden_stats stats = {0};
    uint64_t download = make(), number = 0;
    CUevent written;

    MUST(cuEventCreate(&written, CU_EVENT_DISABLE_TIMING));
    GIVES(CUWARDEN_OK, cuwarden_tag_push("frames"));
    for (uint32_t i = 1; i <= 60; i++) {
        CUstream writer = i % 3 == 0 ? stream : other;

        MUST(cuMemsetD32Async(words, i, WORDS, writer));
        if (i % 3 == 1) {
            MUST(cuEventRecord(written, other));
            GIVES(CUWARDEN_OK, cuwarden_download_after(download, NULL, written));
        } else if (i % 3 == 2) {
            GIVES(CUWARDEN_OK, cuwarden_download_after(download, other, NULL));
        }
        GIVES(CUWARDEN_OK,
              cuwarden_download_start(download, from(), BYTES,
                                      i % 3 == 0 ? stream : CUWARDEN_NO_STREAM, &number));
        CHECK(!is_active || number == i);
        GIVES(CUWARDEN_OK, cuwarden_download_before(download, stream));
        GIVES(CUWARDEN_OK, cuwarden_download_before(download, other));
        if (!is_active)
            return;
        /* Overwritten by either stream, it is what it was. */
        MUST(cuMemsetD32Async(words, 7777, WORDS, i % 2 == 0 ? stream : other));
        MUST(cuStreamSynchronize(i % 2 == 0 ? stream : other));
        GIVES(CUWARDEN_OK, cuwarden_download_wait(download, number, &frame));
        CHECK(frame.number == i && holds(&frame, i));
    }
    GIVES(CUWARDEN_OK, cuwarden_download_now(download, &now));
    CHECK(now.started == 60 && now.taken == 60 && now.bytes == 60 * BYTES && now.skipped == 0);
    GIVES(CUWARDEN_OK, cuwarden_device_stats(0, &stats));
    CHECK(stats.transfers == 60 && stats.transfer_bytes == 60 * BYTES);
    CHECK(stats.transfer_overlap >= 0 && stats.transfer_overlap <= 1);
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
    GIVES(CUWARDEN_OK, cuwarden_tag_stats("frames", 0, &stats));
    CHECK(stats.transfers == 60 && stats.transfer_bytes == 60 * BYTES);
    GIVES(CUWARDEN_OK, cuwarden_tag_stats("", 0, &stats));
    CHECK(stats.transfers == 0 && stats.transfer_bytes == 0);
    GIVES(CUWARDEN_OK, cuwarden_download_end(download));
    MUST(cuEventDestroy(written));
}

static sem_t gate;

static void CUDA_CB pass_gate(void *arg)
{
    (void)arg;
    while (sem_wait(&gate) != 0)
        ;
}

/* The device is busy until the program lets it go on: who waited would wait until the alarm. */
static void busy(void)
{
    struct cuwarden_frame frame = {0};
    uint64_t download = make();

    alarm(600);
    sem_init(&gate, 0, 0);
    MUST(cuMemsetD32Async(words, 1, WORDS, stream));
    MUST(cuLaunchHostFunc(stream, pass_gate, NULL));
    GIVES(CUWARDEN_OK, cuwarden_download_start(download, from(), BYTES, stream, NULL));
    GIVES(CUWARDEN_OK, cuwarden_download_before(download, other));
    MUST(cuMemsetD32Async(words, 2, WORDS, is_active ? other : stream));
    GIVES(CUWARDEN_OK, cuwarden_download_start(download, from(), BYTES, other, NULL));
    GIVES(CUWARDEN_BUSY, cuwarden_download_start(download, from(), BYTES, stream, NULL));
    GIVES(CUWARDEN_OK, cuwarden_download_after(download, other, NULL));
    sem_post(&gate);
    alarm(0);
    for (uint32_t i = 1; i <= 2; i++) {
        GIVES(CUWARDEN_OK, cuwarden_download_wait(download, i, &frame));
        CHECK(!is_active || (frame.number >= i && holds(&frame, (uint32_t)frame.number)));
    }
    GIVES(CUWARDEN_OK, cuwarden_download_end(download));
    MUST(cuStreamSynchronize(stream));
}

/* A frame that is held stays what it is, whatever is started meanwhile. */
static void holding(void)
{
    struct cuwarden_frame held = {0}, frame = {0};
    struct cuwarden_download now = {0};
    uint64_t download = make();

    for (uint32_t i = 1; i <= 20; i++) {
        int error;

        MUST(cuMemsetD32Async(words, i, WORDS, stream));
        error = cuwarden_download_start(download, from(), BYTES, stream, NULL);
        CHECK(error == (is_active ? CUWARDEN_OK : CUWARDEN_NOT_ACTIVE));
        GIVES(CUWARDEN_OK, cuwarden_download_before(download, stream));
        if (i == 1)
            GIVES(CUWARDEN_OK, cuwarden_download_wait(download, 1, &held));
        MUST(cuCtxSynchronize());
        CHECK(!is_active || holds(&held, 1));
    }
    GIVES(CUWARDEN_OK, cuwarden_download_wait(download, 0, &frame));
    CHECK(!is_active || (frame.number == 20 && holds(&frame, 20)));
    GIVES(CUWARDEN_OK, cuwarden_download_now(download, &now));
    CHECK(!is_active || (now.taken == 2 && now.skipped == 18));
    GIVES(CUWARDEN_OK, cuwarden_download_release(download));
    GIVES(CUWARDEN_OK, cuwarden_download_end(download));
}

/* The source is freed as soon as its frame is on its way, and serves another at once. */
static void freed(void)
{
    struct cuwarden_frame frame = {0};
    uint64_t download = make(), number = 0;

    for (uint32_t i = 1; i <= 20; i++) {
        CUdeviceptr source, next;

        MUST(cuMemAlloc(&source, BYTES));
        MUST(cuMemsetD32Async(source, i, WORDS, stream));
        GIVES(CUWARDEN_OK, cuwarden_download_start(download, (const void *)(uintptr_t)source, BYTES,
                                                   stream, &number));
        MUST(cuMemFree(source));
        MUST(cuMemAlloc(&next, BYTES));
        MUST(cuMemsetD32Async(next, 7777, WORDS, other));
        GIVES(CUWARDEN_OK, cuwarden_download_wait(download, number, &frame));
        CHECK(!is_active || holds(&frame, i));
        MUST(cuMemFree(next));
    }
    GIVES(CUWARDEN_OK, cuwarden_download_end(download));
}

/* Its context ends: it can only be ended. */
static void contexts(void)
{
    struct cuwarden_frame frame = {0};
    CUcontext another = create_context(0);
    uint64_t download = make();

    MUST(cuCtxDestroy(another));
    MUST(cuCtxSetCurrent(context));
    GIVES(CUWARDEN_DRIVER, cuwarden_download_start(download, from(), BYTES, NULL, NULL));
    GIVES(CUWARDEN_DRIVER, cuwarden_download_wait(download, 0, &frame));
    GIVES(CUWARDEN_DRIVER, cuwarden_download_end(download));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_download_end(download));
}

static void misuse(void)
{
    struct cuwarden_frame frame = {0};
    uint64_t download = make(), none = 7;

    GIVES(CUWARDEN_NOT_FOUND, cuwarden_download_wait(download, 0, &frame));
    GIVES(CUWARDEN_UNBALANCED, cuwarden_download_release(download));
    GIVES(CUWARDEN_EXISTS, cuwarden_download_make("frames", BYTES, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_download_make("other", 0, &none));
    GIVES(CUWARDEN_TOO_LARGE, cuwarden_download_start(download, from(), BYTES + 1, stream, NULL));
    GIVES(CUWARDEN_INVALID, cuwarden_download_start(download, NULL, 1, stream, NULL));
    GIVES(CUWARDEN_OK, cuwarden_download_start(download, from(), BYTES, stream, NULL));
    GIVES(CUWARDEN_OK, cuwarden_download_start(download, from(), BYTES, stream, NULL));
    GIVES(CUWARDEN_OK, cuwarden_download_end(download)); /* in flight: waited for */
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_download_end(download));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_download_start(download, from(), 1, stream, NULL));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_download_wait(download, 0, &frame));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_download_start(0, from(), 1, stream, NULL));
    CHECK(none == 7 && frame.data == NULL);
}

static void capture(void)
{
    struct cuwarden_frame frame = {0};
    uint64_t download = make(), none = 7;
    CUgraph graph;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(CUWARDEN_BUSY, cuwarden_download_make("other", BYTES, &none));
    GIVES(CUWARDEN_BUSY, cuwarden_download_start(download, from(), BYTES, stream, NULL));
    GIVES(CUWARDEN_BUSY, cuwarden_download_wait(download, 0, &frame));
    GIVES(CUWARDEN_BUSY, cuwarden_download_after(download, stream, NULL));
    GIVES(CUWARDEN_BUSY, cuwarden_download_before(download, stream));
    GIVES(CUWARDEN_BUSY, cuwarden_download_end(download));
    MUST(cuStreamEndCapture(stream, &graph)); /* it is not spoilt */
    MUST(cuGraphDestroy(graph));
    GIVES(CUWARDEN_OK, cuwarden_download_start(download, from(), BYTES, stream, NULL));
    GIVES(CUWARDEN_OK, cuwarden_download_wait(download, 0, &frame));
    GIVES(CUWARDEN_OK, cuwarden_download_end(download));
}

/* The child has none, and the parent's go on. */
static void forks(void)
{
    struct cuwarden_frame frame = {0};
    uint64_t download = make();
    int status = 0;
    pid_t child;

    GIVES(CUWARDEN_OK, cuwarden_download_start(download, from(), BYTES, stream, NULL));
    child = fork();
    if (child == 0) {
        int error = cuwarden_download_wait(download, 0, &frame);

        _exit(is_active ? error == CUWARDEN_OK || frame.data != NULL : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    GIVES(CUWARDEN_OK, cuwarden_download_wait(download, 0, &frame));
    GIVES(CUWARDEN_OK, cuwarden_download_end(download));
}

static int is_over;

/* Takes frames, without a context of its own, while another thread starts them. */
static void *take_frames(void *arg)
{
    struct cuwarden_frame frame;
    uint64_t last = 0;

    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        int error = cuwarden_download_wait(*(uint64_t *)arg, 0, &frame);

        CHECK(error == CUWARDEN_OK || error == CUWARDEN_NOT_FOUND);
        if (error != CUWARDEN_OK)
            continue;
        CHECK(frame.number >= last && holds(&frame, *(const uint32_t *)frame.data));
        last = frame.number;
    }
    return NULL;
}

static void threads(void)
{
    uint64_t download = make();
    pthread_t taker;

    if (!is_active)
        return;
    pthread_create(&taker, NULL, take_frames, &download);
    for (uint32_t i = 1; i <= 300; i++) {
        int error;

        MUST(cuMemsetD32Async(words, i, WORDS, stream));
        error = cuwarden_download_start(download, from(), BYTES, stream, NULL);
        CHECK(error == CUWARDEN_OK || error == CUWARDEN_BUSY);
        CHECK(cuwarden_download_before(download, stream) == CUWARDEN_OK);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    pthread_join(taker, NULL);
    CHECK(cuwarden_download_end(download) == CUWARDEN_OK);
}

static void leaks(void)
{
    make();
}

static const struct {
    const char *name;
    void (*work)(void);
} parts[] = {{"frames", frames},     {"busy", busy},     {"holding", holding}, {"freed", freed},
             {"contexts", contexts}, {"misuse", misuse}, {"capture", capture}, {"forks", forks},
             {"threads", threads},   {"leaks", leaks}};

int main(int argc, char **argv)
{
    uint64_t early = 0;

    is_active = cuwarden_is_active();
    GIVES(CUWARDEN_NOT_STARTED, cuwarden_download_make("early", BYTES, &early));
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc != 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        context = use_device(0);
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        MUST(cuMemAlloc(&words, BYTES));
        MUST(cuMemsetD32(words, 0, WORDS));
        MUST(cuCtxSynchronize()); /* these streams do not wait for the default one */
        parts[i].work();
        MUST(cuMemFree(words));
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
