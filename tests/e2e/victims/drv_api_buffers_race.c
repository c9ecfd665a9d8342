/* SPDX-License-Identifier: MIT */
/*
 * Growable buffers (include/cuwarden/cuwarden.h) while other work goes on, and checks the answers
 * itself.
 *   drv_api_buffers_race PART
 */
#include "api_buffers.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Contents go along while other memory comes and goes. */
static void race(void)
{
    struct cuwarden_buffer_spec spec = spec_of("raced", 4);
    uint64_t buffer;
    CUdeviceptr at, other;

    spec.flags = CUWARDEN_ASYNCHRONOUS | CUWARDEN_COPYING;
    spec.growth = 1;
    spec.most_bytes = 16 * MIB;
    buffer = make(spec);
    for (uint32_t i = 1; is_active && i <= 40; i++) {
        at = ensure(buffer, i * 2000);
        put(at, i * 2000 - 50, i * 2000);
        put(at, 0, 50);
        MUST(cuMemAlloc(&other, (size_t)(i - 1) * 8000 + 4096));
        MUST(cuMemsetD32Async(other, 0, 1000, stream));
        CHECK(i % 8 != 0 || holds(at, 50));
        MUST(cuMemFree(other));
    }
    CHECK(!is_active || now(buffer).copies == 40);
    if (is_active)
        end(buffer);
}

/* Threads that find room note what they use: the most of it stays, and is what a copy keeps. */
static _Atomic uint64_t noted;

static void *note(void *arg)
{
    uint64_t buffer = *(const uint64_t *)arg, mine;

    while ((mine = atomic_fetch_add(&noted, 1) + 1) < 300000) {
        ensure(buffer, mine);
        CHECK(now(buffer).used >= mine);
    }
    return NULL;
}

static void use(void)
{
    struct cuwarden_buffer_spec spec = spec_of("noted", 1);
    pthread_t thread[3];
    uint64_t buffer;

    spec.count = 300000;
    buffer = make(spec);
    if (is_active)
        GIVES(CUWARDEN_OK, cuwarden_buffer_use(buffer, 0));
    for (int i = 0; is_active && i < 3; i++)
        pthread_create(&thread[i], NULL, note, &buffer);
    for (int i = 0; is_active && i < 3; i++)
        pthread_join(thread[i], NULL);
    if (is_active)
        end(buffer);
}

static sem_t gate;

static void pass_gate(void *unused)
{
    (void)unused;
    sem_wait(&gate);
}

/* Whose growth is asynchronous goes on before the copy runs: who waited would wait until the alarm.
 */
static void asynchronous(void)
{
    struct cuwarden_buffer_spec spec = spec_of("asynchronous", 4);
    uint64_t buffer;
    CUdeviceptr at;

    spec.flags = CUWARDEN_ASYNCHRONOUS | CUWARDEN_COPYING;
    spec.count = 10000;
    buffer = make(spec);
    if (!is_active)
        return;
    put(ensure(buffer, 10000), 0, 50);
    alarm(600);
    sem_init(&gate, 0, 0);
    MUST(cuLaunchHostFunc(stream, pass_gate, NULL));
    at = ensure(buffer, 100000);
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    sem_post(&gate);
    CHECK(holds(at, 50));
    end(buffer);
}

static const struct {
    const char *name;
    void (*work)(void);
} parts[] = {{"race", race}, {"use", use}, {"asynchronous", asynchronous}};

int main(int argc, char **argv)
{
    is_active = cuwarden_is_active();
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc != 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        use_device(0);
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        parts[i].work();
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
