/* SPDX-License-Identifier: MIT */
/*
 * Growable buffers (include/cuwarden/cuwarden.h), and checks the answers itself.
 *   drv_api_buffers PART
 * The devices have 1 GiB, of which 1008 MiB can be had. Whether they map memory is asked of them,
 * so each part runs both ways; without the library all answers are CUWARDEN_NOT_ACTIVE.
 */
#include "api_buffers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int maps;
static CUcontext context;

/* ---- what the parts share ---- */

static uint64_t live_bytes(void)
{
    struct cuwarden_stats stats = {0};

    GIVES(CUWARDEN_OK, cuwarden_device_stats(0, &stats));
    return stats.live_bytes;
}

/* What the text of the last failure says. */
static int says(int error, const char *what)
{
    const char *text = cuwarden_error_text(error);

    if (!is_active || strstr(text, what) != NULL)
        return 1;
    fprintf(stderr, "it says: %s\n", text);
    return 0;
}

/* ---- the parts ---- */

static void grow_by(uint32_t flags)
{
    struct cuwarden_buffer_spec spec = spec_of("words", 4);
    int is_in_place = maps && (flags & CUWARDEN_COPYING) == 0;
    struct cuwarden_buffer first, last;
    CUdeviceptr at, before;
    uint64_t buffer;

    spec.flags = flags;
    spec.most_bytes = 64 * MIB;
    buffer = make(spec);
    at = before = ensure(buffer, 500);
    first = now(buffer);
    if (!is_active)
        return;
    CHECK(first.is_in_place == is_in_place && first.address == at && first.used == 500);
    CHECK(first.capacity_bytes == (is_in_place ? 2 * MIB : 4 * KIB));
    CHECK(first.capacity == first.capacity_bytes / 4 && first.resizes == 0);
    put(at, 0, 500);
    for (uint32_t count = 1000; count <= 1000000; count *= 10) {
        at = ensure(buffer, count);
        CHECK(at != 0 && now(buffer).capacity >= count && now(buffer).used == count);
    }
    last = now(buffer);
    CHECK(holds(at, 500));
    CHECK(last.resizes == (is_in_place ? 1 : 3) && last.copies == (is_in_place ? 0 : 3));
    CHECK(last.copied_bytes == (is_in_place ? 0 : 4 * (1000 + 10000 + 100000)));
    CHECK((at == before) == is_in_place && live_bytes() >= last.capacity_bytes);
    CHECK(last.utilisation > 0.5 && last.utilisation <= 1);
    end(buffer);
    CHECK(live_bytes() == 0);
}

static void grow(void)
{
    grow_by(0);
    grow_by(CUWARDEN_COPYING);
    grow_by(CUWARDEN_ASYNCHRONOUS | CUWARDEN_COPYING);
}

static void presets(void)
{
    static const struct {
        enum cuwarden_buffer_preset preset;
        uint64_t element_bytes, most_bytes;
        double growth;
        uint32_t flags;
    } rows[] = {{CUWARDEN_POSITIONS, 12, 512 * MIB, 1.3, CUWARDEN_ASYNCHRONOUS},
                {CUWARDEN_VELOCITIES, 12, 512 * MIB, 1.3, CUWARDEN_ASYNCHRONOUS},
                {CUWARDEN_EDGES, 32, 2048 * MIB, 2, 0},
                {CUWARDEN_CELLS, 8, 256 * MIB, 1.5, 0}};

    for (unsigned i = 0; i < 4; i++) {
        struct cuwarden_buffer_spec spec = cuwarden_preset(rows[i].preset, "one");
        uint64_t buffer, found = 0;

        CHECK(strcmp(spec.name, "one") == 0 && spec.element_bytes == rows[i].element_bytes);
        CHECK(spec.most_bytes == rows[i].most_bytes && spec.flags == rows[i].flags);
        CHECK(spec.growth > rows[i].growth - 0.01 && spec.growth < rows[i].growth + 0.01);
        spec.flags |= CUWARDEN_COPYING;
        spec.count = 10000;
        buffer = make(spec);
        GIVES(CUWARDEN_OK, cuwarden_buffer_find("one", rows[i].element_bytes, &found));
        CHECK(found == buffer && now(buffer).used == 10000 * (uint64_t)is_active);
        ensure(buffer, 10001);
        CHECK(!is_active || now(buffer).capacity == (uint64_t)(10000 * rows[i].growth));
        if (is_active)
            end(buffer);
    }
}

/* What can never be had is refused, and nothing has changed. */
static void refusals_of(uint32_t flags)
{
    struct cuwarden_buffer_spec spec = spec_of("small", 12);
    struct cuwarden_buffer before, after;
    uint64_t buffer, none = 7;

    spec.most_bytes = 100 * MIB;
    spec.flags = flags;
    buffer = make(spec);
    ensure(buffer, 1000);
    before = now(buffer);
    GIVES(CUWARDEN_TOO_LARGE, cuwarden_ensure_capacity(buffer, UINT64_MAX / 8, stream, NULL));
    CHECK(says(CUWARDEN_TOO_LARGE, "its maximum is 104857600 bytes"));
    GIVES(CUWARDEN_TOO_LARGE, cuwarden_ensure_capacity(buffer, 100 * MIB / 12 + 1, stream, NULL));
    GIVES(CUWARDEN_TOO_LARGE, cuwarden_buffer_use(buffer, before.capacity + 1));
    GIVES(CUWARDEN_OK, cuwarden_limit_set(0, 50 * MIB));
    GIVES(CUWARDEN_OUT_OF_LIMIT, cuwarden_ensure_capacity(buffer, 5 * MIB, stream, NULL));
    CHECK(says(CUWARDEN_OUT_OF_LIMIT, "the limit is 52428800, and "));
    after = now(buffer);
    after.age_ns = before.age_ns;
    after.unused_ns = before.unused_ns;
    CHECK(memcmp(&before, &after, sizeof(before)) == 0);
    ensure(buffer, 1 * MIB);
    GIVES(CUWARDEN_OUT_OF_LIMIT,
          cuwarden_ensure_capacity(buffer, flags != 0 ? 4 * MIB : 5 * MIB, stream, NULL));
    CHECK(!is_active || now(buffer).used == 1 * MIB);
    spec.name = "large";
    spec.count = 5 * MIB;
    GIVES(CUWARDEN_OUT_OF_LIMIT, cuwarden_buffer_make(&spec, &none));
    spec.count = UINT64_MAX / 6;
    GIVES(CUWARDEN_TOO_LARGE, cuwarden_buffer_make(&spec, &none));
    GIVES(CUWARDEN_OK, cuwarden_limit_set(0, 0));
    spec.most_bytes = 0;
    spec.count = 1020 * MIB / 12;
    GIVES(CUWARDEN_OUT_OF_DEVICE, cuwarden_buffer_make(&spec, &none));
    CHECK(says(CUWARDEN_OUT_OF_DEVICE, "buffer 'large' of 0 bytes on device 0"));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_buffer_find("large", 0, &none));
    CHECK(none == 7);
    if (is_active)
        end(buffer);
    CHECK(live_bytes() == 0);
}

static void refusals(void)
{
    refusals_of(0);
    refusals_of(CUWARDEN_COPYING);
}

/* By its factor it would not fit; as much as is needed does. */
static void tight(void)
{
    struct cuwarden_buffer_spec spec = spec_of("edges", 32);
    uint64_t buffer;

    spec.count = 6 * MIB;
    spec.growth = 16;
    buffer = make(spec);
    ensure(buffer, 6 * MIB + 1);
    if (!is_active)
        return;
    CHECK(now(buffer).capacity >= 6 * MIB + 1 && now(buffer).capacity_bytes < 196 * MIB);
    end(buffer);
}

/* A budget counts what the buffer takes, and has room for the count though not for the factor. */
static void budget(void)
{
    struct cuwarden_buffer_spec spec = spec_of("budgeted", 1);
    struct cuwarden_budget left = {0};
    uint64_t buffer;

    GIVES(CUWARDEN_OK, cuwarden_budget_set("cache", 22 * MIB, CUWARDEN_REFUSE));
    GIVES(CUWARDEN_OK, cuwarden_tag_push("cache"));
    for (int i = 0; is_active && i < 2; i++) {
        spec.flags = i == 0 ? 0 : CUWARDEN_COPYING;
        spec.count = 8 * MIB;
        spec.growth = 4;
        buffer = make(spec);
        ensure(buffer, 10 * MIB);
        CHECK(now(buffer).capacity_bytes == 10 * MIB);
        CHECK(cuwarden_ensure_capacity(buffer, 24 * MIB, stream, NULL) == CUWARDEN_OUT_OF_BUDGET);
        CHECK(says(CUWARDEN_OUT_OF_BUDGET,
                   "the budget of its tag is 23068672, and 10485760 are used"));
        CHECK(cuwarden_budget_now("cache", &left) == CUWARDEN_OK && left.used_bytes == 10 * MIB);
        end(buffer);
    }
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
}

static void misuse(void)
{
    struct cuwarden_buffer_spec spec = spec_of("twice", 4);
    struct cuwarden_buffer out;
    uint64_t buffer = make(spec), none = 7, bytes;

    GIVES(CUWARDEN_EXISTS, cuwarden_buffer_make(&spec, &none));
    CHECK(says(CUWARDEN_EXISTS, "there is a buffer 'twice' already"));
    GIVES(CUWARDEN_WRONG_SIZE, cuwarden_buffer_find("twice", 8, &none));
    CHECK(says(CUWARDEN_WRONG_SIZE, "'twice' has elements of 4 bytes, not of 8"));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_buffer_find("nobody", 4, &none));
    CHECK(says(CUWARDEN_NOT_FOUND, "there is no buffer 'nobody'"));
    GIVES(CUWARDEN_INVALID, cuwarden_buffer_find(NULL, 4, &none));
    GIVES(CUWARDEN_INVALID, cuwarden_buffer_make(NULL, &none));
    spec.name = "a name that is longer than the names of buffers can be";
    GIVES(CUWARDEN_INVALID, cuwarden_buffer_make(&spec, &none));
    CHECK(says(CUWARDEN_INVALID, "has 54 bytes, and may have 47"));
    spec = spec_of("bad", 4);
    spec.growth = 0.5;
    GIVES(CUWARDEN_INVALID, cuwarden_buffer_make(&spec, &none));
    CHECK(says(CUWARDEN_INVALID, "cannot grow to 50 % of what it is: 100 to 1600"));
    GIVES(CUWARDEN_INVALID, cuwarden_buffer_clean(0, 1.5, &bytes));
    GIVES(CUWARDEN_INVALID, cuwarden_buffer_visit(NULL, NULL));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_ensure_capacity(0, 1, NULL, NULL));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_ensure_capacity(buffer + 1, 1, NULL, NULL));
    if (is_active)
        end(buffer);
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_buffer_end(buffer));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_ensure_capacity(buffer, 1, NULL, NULL));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_buffer_use(buffer, 1));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_buffer_now(buffer, &out));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_buffer_shrink(buffer, &bytes));
    CHECK(none == 7);
}

/* The program frees memory that is not its own: the buffer is gone, and says why. */
static void freed(void)
{
    struct cuwarden_buffer_spec spec = spec_of("taken", 4);
    uint64_t buffer;

    spec.flags = CUWARDEN_COPYING;
    buffer = make(spec);
    if (is_active)
        MUST(cuMemFree(ensure(buffer, 1)));
    GIVES(CUWARDEN_DRIVER, cuwarden_buffer_end(buffer));
    CHECK(says(CUWARDEN_DRIVER, "buffer 'taken' cannot free its memory: the driver's code is 1"));
    GIVES(CUWARDEN_NOT_FOUND, cuwarden_buffer_end(buffer));
    CHECK(make(spec) != buffer || !is_active); /* the name is free again */
}

static void shrink(void)
{
    struct cuwarden_buffer_spec spec = spec_of("shrinks", 4);
    uint64_t buffer, bytes = 0;
    CUdeviceptr at;

    for (int i = 0; i < 2; i++) {
        spec.flags = i == 0 ? 0 : CUWARDEN_COPYING;
        buffer = make(spec);
        at = ensure(buffer, MIB);
        if (is_active)
            put(at, 0, 300);
        ensure(buffer, 40 * MIB);
        GIVES(CUWARDEN_OK, cuwarden_buffer_use(buffer, 2 * MIB));
        GIVES(CUWARDEN_OK, cuwarden_buffer_shrink(buffer, &bytes));
        if (!is_active)
            return;
        CHECK(bytes >= 90 * MIB && now(buffer).capacity >= 2 * MIB && now(buffer).used == 2 * MIB);
        CHECK(holds(ensure(buffer, 0), 300));
        CHECK(cuwarden_buffer_use(buffer, 0) == CUWARDEN_OK);
        CHECK(cuwarden_buffer_shrink(buffer, NULL) == CUWARDEN_OK);
        CHECK(now(buffer).capacity == 0 && now(buffer).address == 0 && live_bytes() == 0);
        CHECK(now(buffer).utilisation == 0 && ensure(buffer, 10) != 0);
        end(buffer);
    }
}

static int count_one(const struct cuwarden_buffer *buffer, void *arg)
{
    CHECK(buffer->capacity != 0 && strncmp(buffer->name, "clean ", 6) == 0);
    return ++*(int *)arg == 3;
}

static void clean(void)
{
    static const char *const names[] = {"clean 0", "clean 1", "clean 2", "clean 3"};
    uint64_t buffer[4], bytes = 7;
    int count = 0;

    for (int i = 0; i < 4; i++) {
        struct cuwarden_buffer_spec spec = spec_of(names[i], MIB);

        spec.flags = i % 2 != 0 ? CUWARDEN_COPYING : 0;
        spec.count = 20;
        buffer[i] = make(spec);
        GIVES(CUWARDEN_OK, cuwarden_buffer_use(buffer[i], i < 2 ? 2 : 12));
    }
    GIVES(CUWARDEN_OK, cuwarden_buffer_visit(count_one, &count));
    CHECK(count == 3 * is_active);
    GIVES(CUWARDEN_OK, cuwarden_buffer_clean(UINT64_C(3600000000000), 1, &bytes));
    CHECK(bytes == 7 * !is_active);
    GIVES(CUWARDEN_OK, cuwarden_buffer_clean(0, 0.5, &bytes));
    if (!is_active)
        return;
    /* One piece cannot be divided, so only the copied one has shrunk. */
    CHECK(now(buffer[1]).capacity == 2 && now(buffer[2]).capacity == 20);
    CHECK(bytes == (maps ? 18 : 36) * MIB && now(buffer[3]).capacity == 20);
    for (int i = 0; i < 4; i++)
        end(buffer[i]);
}

/* ---- who calls from where ---- */

static void *in_thread(void *arg)
{
    uint64_t buffer = *(uint64_t *)arg;
    CUcontext current = NULL;

    MUST(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
    GIVES(CUWARDEN_OK, cuwarden_ensure_capacity(buffer, 3 * MIB, NULL, NULL));
    MUST(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
    if (is_active)
        end(buffer);
    return NULL;
}

/* No context, another one, and one that has ended. */
static void contexts(void)
{
    struct cuwarden_buffer_spec spec = spec_of("anywhere", 4);
    uint64_t buffer;
    CUcontext other, current;
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        spec.flags = i == 0 ? 0 : CUWARDEN_COPYING;
        buffer = make(spec);
        pthread_create(&thread, NULL, in_thread, &buffer);
        pthread_join(thread, NULL);
        other = create_context(0);
        buffer = make(spec);
        MUST(cuCtxSetCurrent(context));
        GIVES(CUWARDEN_OK, cuwarden_ensure_capacity(buffer, MIB, NULL, NULL));
        MUST(cuCtxGetCurrent(&current));
        CHECK(current == context);
        MUST(cuCtxDestroy(other));
        GIVES(CUWARDEN_DRIVER, cuwarden_ensure_capacity(buffer, 8 * MIB, NULL, NULL));
        CHECK(says(CUWARDEN_DRIVER, "its context has ended (709)"));
        for (current = context; current != NULL; MUST(cuCtxGetCurrent(&current)))
            MUST(cuCtxSetCurrent(NULL)); /* takes one from the stack of contexts */
        if (is_active)
            end(buffer);
        GIVES(CUWARDEN_NOT_STARTED, cuwarden_buffer_make(&spec, &buffer));
        CHECK(says(CUWARDEN_NOT_STARTED, "none is current in this thread"));
        MUST(cuCtxSetCurrent(context));
        CHECK(live_bytes() == 0);
    }
}

static void capture(void)
{
    uint64_t buffer = make(spec_of("captured", 4));
    struct cuwarden_buffer_spec spec = spec_of("during", 4);
    CUgraph graph;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ensure(buffer, 1000);
    GIVES(CUWARDEN_BUSY, cuwarden_ensure_capacity(buffer, MIB, stream, NULL));
    GIVES(CUWARDEN_BUSY, cuwarden_buffer_make(&spec, &buffer));
    GIVES(CUWARDEN_BUSY, cuwarden_buffer_end(buffer));
    MUST(cuStreamEndCapture(stream, &graph));
    ensure(buffer, MIB);
    if (is_active)
        end(buffer);
}

static void scope(void)
{
    struct cuwarden_buffer_spec spec = spec_of("stays", 4);
    struct cuwarden_freed freed = {0};
    uint64_t buffer;
    CUdeviceptr block;

    spec.flags = CUWARDEN_COPYING;
    GIVES(CUWARDEN_OK, cuwarden_scope_begin("work"));
    buffer = make(spec);
    ensure(buffer, MIB);
    MUST(cuMemAlloc(&block, 1000));
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    CHECK(freed.blocks == (uint64_t)is_active && freed.left_blocks == 0);
    CHECK(!is_active || (ensure(buffer, 1) != 0 && live_bytes() == now(buffer).capacity_bytes));
    if (is_active)
        end(buffer);
    else
        MUST(cuMemFree(block));
}

/* CUDA does not come with a fork, and buffers do not either. */
static void forks(void)
{
    uint64_t buffer = make(spec_of("parent's", 4));
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        int error = cuwarden_ensure_capacity(buffer, 1, NULL, NULL);

        _exit(error == (is_active ? CUWARDEN_NOT_FOUND : CUWARDEN_NOT_ACTIVE) ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    ensure(buffer, MIB);
    if (is_active)
        end(buffer);
}

/* OK, or what another thread does with the buffer in common. */
static int may_be(int error, int is_common)
{
    return error == CUWARDEN_OK ||
           (is_common && (error == CUWARDEN_BUSY || error == CUWARDEN_NOT_FOUND));
}

static void *churn(void *arg)
{
    char name[2][16] = {"in common", ""};
    uint64_t buffer;

    MUST(cuCtxSetCurrent(context));
    snprintf(name[1], sizeof(name[1]), "thread %d", *(int *)arg);
    for (int i = 0; i < 60; i++) {
        struct cuwarden_buffer_spec spec = spec_of(name[i % 2], 4);
        int error;

        spec.flags = i % 3 != 0 ? CUWARDEN_COPYING : 0;
        error = cuwarden_buffer_make(&spec, &buffer);
        CHECK(error == CUWARDEN_OK || (i % 2 == 0 && error == CUWARDEN_EXISTS));
        if (error == CUWARDEN_EXISTS && cuwarden_buffer_find(name[0], 4, &buffer) != CUWARDEN_OK)
            continue;
        error = cuwarden_ensure_capacity(buffer, (uint64_t)(i + 1) << 12, NULL, NULL);
        CHECK(may_be(error, i % 2 == 0));
        CHECK(may_be(cuwarden_buffer_end(buffer), i % 2 == 0));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    int number[4] = {0, 1, 2, 3};
    uint64_t left;

    for (int i = 0; is_active && i < 4; i++)
        pthread_create(&thread[i], NULL, churn, &number[i]);
    for (int i = 0; is_active && i < 4; i++)
        pthread_join(thread[i], NULL);
    if (is_active && cuwarden_buffer_find("in common", 4, &left) == CUWARDEN_OK)
        end(left);
    CHECK(live_bytes() == 0);
}

/* Left behind: the report names them. The first grew three times. */
static void leaks(void)
{
    struct cuwarden_buffer_spec spec = spec_of("copied", 4);

    GIVES(CUWARDEN_OK, cuwarden_tag_push("model"));
    spec.flags = CUWARDEN_COPYING;
    for (uint64_t buffer = make(spec), count = 2000; count <= 8000; count += 3000)
        ensure(buffer, count);
    make(spec_of("mapped", 4));
    GIVES(CUWARDEN_OK, cuwarden_tag_pop());
}

static const struct {
    const char *name;
    void (*work)(void);
} parts[] = {
    {"grow", grow},

    {"presets", presets},   {"refusals", refusals}, {"tight", tight},   {"misuse", misuse},
    {"budget", budget},     {"freed", freed},       {"shrink", shrink}, {"clean", clean},
    {"contexts", contexts}, {"capture", capture},   {"scope", scope},   {"forks", forks},
    {"threads", threads},   {"leaks", leaks},
};

int main(int argc, char **argv)
{
    is_active = cuwarden_is_active();
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc != 2 || strcmp(parts[i].name, argv[1]) != 0)
            continue;
        context = use_device(0);
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        MUST(cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED,
                                  0));
        parts[i].work();
        printf("%s is done\n", argv[1]);
        return is_active ? 0 : 3;
    }
    return 2;
}
