/* SPDX-License-Identifier: MIT */
/*
 * Prefetches (include/cuwarden/cuwarden.h), and checks the answers itself.
 *   drv_api_prefetches PART
 * Without the library all answers are CUWARDEN_NOT_ACTIVE, and no byte comes.
 */
#include "api_victim.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)300007) /* 73 chunks and a part of one */
#define CHUNK ((uint64_t)4096)
#define FILES 12

static uint64_t prefetch;
static CUdeviceptr block;
static CUstream stream;
static unsigned char content[BYTES], seen[BYTES];
static const char path[] = "weights";

static void *at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static void write_file(void)
{
    FILE *file = fopen(path, "w");

    for (size_t i = 0; i < BYTES; i++)
        content[i] = (unsigned char)(i * 13 + i / 251);
    if (file == NULL || fwrite(content, 1, BYTES, file) != BYTES || fclose(file) != 0)
        exit(98);
}

static void make(void)
{
    GIVES(CUWARDEN_OK, cuwarden_prefetch_make("weights", CHUNK, &prefetch));
}

static void end(void)
{
    GIVES(CUWARDEN_OK, cuwarden_prefetch_end(prefetch));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_prefetch_end(prefetch));
}

static int start(uint64_t offset, uint64_t bytes, CUdeviceptr to)
{
    return cuwarden_prefetch_start(prefetch, path, -1, offset, bytes, at(to), stream, NULL);
}

/* What the stream finds there. */
static void check_block(CUdeviceptr from, size_t offset, size_t bytes)
{
    MUST(cuMemcpyDtoHAsync(seen, from, bytes, stream));
    MUST(cuStreamSynchronize(stream));
    CHECK(!is_active || memcmp(seen, content + offset, bytes) == 0);
}

/* Each comes after what the stream had, and before what it gets. */
static void files(void)
{
    struct cuwarden_prefetch now;
    struct cuwarden_stats stats;
    uint64_t bytes = 0, sum = 0;
    int32_t stage = -1;
    int fd = open(path, O_RDONLY);

    make();
    for (size_t i = 0; i < FILES; i++) {
        MUST(cuMemsetD8Async(block, 0xee, BYTES, stream));
        GIVES(CUWARDEN_OK, start(i * 1000, BYTES - i * 1000, block));
        GIVES(CUWARDEN_OK, cuwarden_prefetch_before(prefetch, 0, stream));
        check_block(block, i * 1000, BYTES - i * 1000);
        GIVES(CUWARDEN_OK, cuwarden_prefetch_wait(prefetch, i + 1, &bytes));
        CHECK(!is_active || bytes == BYTES - i * 1000);
        sum += bytes;
    }
    GIVES(CUWARDEN_OK, cuwarden_prefetch_stage(prefetch, 0, &stage));
    CHECK(!is_active || stage == CUWARDEN_ARRIVED);
    /* To several places at once, from a file that is closed meanwhile, past its end. */
    for (size_t i = 0; i < 4; i++)
        GIVES(CUWARDEN_OK, cuwarden_prefetch_start(prefetch, NULL, fd, i, BYTES / 4,
                                                   at(block + i * (BYTES / 4)), stream, NULL));
    close(fd);
    GIVES(CUWARDEN_OK, cuwarden_prefetch_wait(prefetch, 0, &bytes));
    for (size_t i = 0; i < 4; i++)
        check_block(block + i * (BYTES / 4), i, BYTES / 4);
    GIVES(CUWARDEN_OK, start(BYTES - 7, 100, block));
    GIVES(CUWARDEN_OK, cuwarden_prefetch_wait(prefetch, 0, &bytes));
    CHECK(!is_active || bytes == 7);
    check_block(block, BYTES - 7, 7);
    GIVES(CUWARDEN_OK, cuwarden_prefetch_now(prefetch, &now));
    if (is_active) {
        CHECK(now.arrived == FILES + 5 && now.failed == 0 && now.started == FILES + 5);
        CHECK(now.bytes == sum + BYTES / 4 * 4 + 7);
        GIVES(CUWARDEN_OK, cuwarden_device_stats(0, &stats));
        CHECK(stats.transfers == FILES + 5 && stats.transfer_bytes == now.bytes);
    }
    end();
}

/* What is freed is another's at once: nothing of the file is found there. */
static void freed(void)
{
    make();
    for (int i = 0; i < 30; i++) {
        CUdeviceptr old, other;
        int error = 0;

        MUST(cuMemAlloc(&old, BYTES));
        GIVES(CUWARDEN_OK, start(0, BYTES, old));
        MUST(cuMemFree(old));
        MUST(cuMemAlloc(&other, BYTES));
        MUST(cuMemsetD8Async(other, 0, BYTES, stream));
        MUST(cuStreamSynchronize(stream));
        error = cuwarden_prefetch_wait(prefetch, 0, NULL);
        CHECK(!is_active || error == CUWARDEN_OK || error == CUWARDEN_NOT_FOUND);
        MUST(cuMemcpyDtoHAsync(seen, other, BYTES, stream));
        MUST(cuStreamSynchronize(stream));
        for (size_t byte = 0; byte < BYTES; byte++)
            CHECK(seen[byte] == 0);
        MUST(cuMemFree(other));
    }
    end();
}

static void misuse(void)
{
    uint64_t none = 7;

    make();
    GIVES(CUWARDEN_EXISTS, cuwarden_prefetch_make("weights", 0, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_prefetch_make("", 0, &none));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_prefetch_wait(prefetch, 0, NULL));
    GIVES(CUWARDEN_TOO_LARGE, start(0, BYTES * 2, block));
    GIVES(CUWARDEN_NOT_FOUND, start(0, 1, (CUdeviceptr)(uintptr_t)&none));
    GIVES(CUWARDEN_INVALID,
          cuwarden_prefetch_start(prefetch, NULL, -1, 0, 1, at(block), stream, NULL));
    GIVES(CUWARDEN_SYSTEM,
          cuwarden_prefetch_start(prefetch, NULL, 987654, 0, 1, at(block), stream, NULL));
    GIVES(CUWARDEN_OK,
          cuwarden_prefetch_start(prefetch, "no such file", -1, 0, 1, at(block), stream, NULL));
    GIVES(CUWARDEN_SYSTEM, cuwarden_prefetch_wait(prefetch, 1, NULL));
    CHECK(!is_active ||
          strcmp(cuwarden_error_text(CUWARDEN_SYSTEM),
                 "prefetch 'weights' cannot read 'no such file': no such file or directory "
                 "(errno 2)") == 0);
    GIVES(CUWARDEN_OK, cuwarden_prefetch_cancel(prefetch, 0));
    CHECK(none == 7);
    end();
}

static void capture(void)
{
    CUgraph graph;
    uint64_t none = 7;
    int32_t stage;

    make();
    GIVES(CUWARDEN_OK, start(0, BYTES, block)); /* is under way in it, and does not spoil it */
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(CUWARDEN_BUSY, cuwarden_prefetch_make("other", 0, &none));
    GIVES(CUWARDEN_BUSY, start(0, 1, block));
    GIVES(CUWARDEN_BUSY, cuwarden_prefetch_before(prefetch, 0, stream));
    GIVES(CUWARDEN_BUSY, cuwarden_prefetch_wait(prefetch, 0, NULL));
    GIVES(CUWARDEN_BUSY, cuwarden_prefetch_stage(prefetch, 0, &stage));
    GIVES(CUWARDEN_BUSY, cuwarden_prefetch_end(prefetch));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphDestroy(graph));
    GIVES(CUWARDEN_OK, cuwarden_prefetch_wait(prefetch, 0, NULL));
    check_block(block, 0, BYTES);
    end();
}

static sem_t gate;

static void CUDA_CB wait_gate(void *unused)
{
    (void)unused;
    sem_wait(&gate);
}

static void *wait_for_it(void *out_error)
{
    *(int *)out_error = cuwarden_prefetch_wait(prefetch, 0, NULL);
    return NULL;
}

/* A capture begins while another thread waits, and what it waits for arrives in it. */
static void overtaken(void)
{
    CUstream other;
    CUgraph graph;
    pthread_t thread;
    int32_t stage = CUWARDEN_READING;
    int error = CUWARDEN_OK;

    make();
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    sem_init(&gate, 0, 0);
    MUST(cuLaunchHostFunc(stream, wait_gate, NULL));
    GIVES(CUWARDEN_OK, start(0, CHUNK, block));
    while (is_active && stage != CUWARDEN_ARRIVING) {
        usleep(1000);
        GIVES(CUWARDEN_OK, cuwarden_prefetch_stage(prefetch, 0, &stage));
    }
    CHECK(pthread_create(&thread, NULL, wait_for_it, &error) == 0);
    usleep(20000);
    MUST(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_GLOBAL));
    sem_post(&gate);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(!is_active || error == CUWARDEN_BUSY);
    MUST(cuStreamEndCapture(other, &graph));
    MUST(cuGraphDestroy(graph));
    GIVES(CUWARDEN_OK, cuwarden_prefetch_wait(prefetch, 0, NULL));
    check_block(block, 0, CHUNK);
    end();
}

/* Its context ends under it: it can only be ended. */
static void contexts(void)
{
    CUcontext first, other;
    CUdeviceptr its;

    MUST(cuCtxGetCurrent(&first));
    other = create_context(0);
    make();
    MUST(cuMemAlloc(&its, BYTES));
    for (int i = 0; i < 8; i++)
        GIVES(CUWARDEN_OK, cuwarden_prefetch_start(prefetch, path, -1, 0, BYTES, at(its),
                                                   CUWARDEN_NO_STREAM, NULL));
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(first));
    GIVES(CUWARDEN_DRIVER, cuwarden_prefetch_wait(prefetch, 8, NULL));
    GIVES(CUWARDEN_DRIVER, start(0, 1, block));
    GIVES(CUWARDEN_DRIVER, cuwarden_prefetch_end(prefetch));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_prefetch_end(prefetch));
}

/* The same of the primary one, which goes on as another. */
static void resets(void)
{
    make();
    for (int i = 0; i < 8; i++)
        GIVES(CUWARDEN_OK, start(0, BYTES, block));
    MUST(cuDevicePrimaryCtxReset(0));
    MUST(cuCtxSetCurrent(use_device(0)));
    GIVES(CUWARDEN_DRIVER, cuwarden_prefetch_wait(prefetch, 8, NULL));
    GIVES(CUWARDEN_DRIVER, cuwarden_prefetch_end(prefetch));
    make();
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    GIVES(CUWARDEN_OK, start(0, BYTES, block));
    GIVES(CUWARDEN_OK, cuwarden_prefetch_wait(prefetch, 0, NULL));
    check_block(block, 0, BYTES);
    end();
}

/* The child has none, and the parent's go on. */
static void forks(void)
{
    struct cuwarden_prefetch now;
    int status = 0;
    pid_t child;

    make();
    GIVES(CUWARDEN_OK, start(0, BYTES, block));
    child = fork();
    if (child == 0)
        _exit(is_active && cuwarden_prefetch_now(prefetch, &now) == CUWARDEN_OK);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    GIVES(CUWARDEN_OK, cuwarden_prefetch_wait(prefetch, 0, NULL));
    check_block(block, 0, BYTES);
    end();
}

/* The process ends while files are read. */
static void leaves(void)
{
    make();
    for (int i = 0; i < 16; i++)
        GIVES(CUWARDEN_OK, start(0, BYTES, block));
}

static const struct {
    const char *name;
    void (*work)(void);
} parts[] = {{"files", files},     {"freed", freed},         {"misuse", misuse},
             {"capture", capture}, {"overtaken", overtaken}, {"contexts", contexts},
             {"resets", resets},   {"forks", forks},         {"leaves", leaves}};

int main(int argc, char **argv)
{
    is_active = cuwarden_is_active();
    GIVES(CUWARDEN_NOT_STARTED, cuwarden_prefetch_make("early", 0, &prefetch));
    write_file();
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc < 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        MUST(cuCtxSetCurrent(use_device(0)));
        MUST(cuMemAlloc(&block, BYTES));
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        parts[i].work();
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
