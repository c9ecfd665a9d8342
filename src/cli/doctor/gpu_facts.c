/* SPDX-License-Identifier: MIT */
/* The facts. See gpu_facts.h. */
#include "cli/doctor/gpu_facts.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

#define MIB       ((size_t)1 << 20)
#define GATE_US   100000 /* how long work goes on at least, where something may wait for it */
#define BUFFER_ID 7      /* CU_POINTER_ATTRIBUTE_BUFFER_ID */

#define TRACK                                                                                      \
    "set CUWARDEN_MODE=track: the pool could hand out memory that is still in use; and tell us"

static void CW_PRINTF(3, 4)
    say(struct cw_gpu_fact *out, enum cw_verdict verdict, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out->text, sizeof(out->text), fmt, ap);
    va_end(ap);
    out->verdict = verdict;
}

/* ---- work that goes on ---- */

struct gate {
    atomic_int is_open, is_called;
    void *stream;
    pthread_t opener;
};

static void stand_at(void *gate)
{
    while (!atomic_load(&((struct gate *)gate)->is_open))
        usleep(200);
}

static int close_gate(const struct cw_gpu_driver *driver, struct gate *gate)
{
    atomic_store(&gate->is_open, 0);
    atomic_store(&gate->is_called, 0);
    if (driver->stream(&gate->stream, CW_GPU_NON_BLOCKING) != 0)
        return -1;
    return driver->host_function(gate->stream, stand_at, gate) == 0 ? 0 : -1;
}

static void *open_later(void *argument)
{
    struct gate *gate = argument;

    while (!atomic_load(&gate->is_called))
        usleep(100);
    usleep(GATE_US);
    atomic_store(&gate->is_open, 1);
    return NULL;
}

/* The work ends by itself, a while after the call that may wait for it has begun. */
static int end_later(struct gate *gate)
{
    return pthread_create(&gate->opener, NULL, open_later, gate) == 0 ? 0 : -1;
}

static int is_running(const struct cw_gpu_driver *driver, const struct gate *gate)
{
    return driver->stream_query(gate->stream) == CW_GPU_NOT_READY;
}

static void unasked(struct cw_gpu_fact *out)
{
    out->way_out = "see whether the program runs without cuwarden";
    say(out, CW_VERDICT_WARNING, "not asked: a stream with work in it could not be made");
}

/* ---- waiting ---- */

static void ask_synchronize(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    static struct gate gate[2]; /* the work may outlast a question that was given up */
    int is_early = 0, code;

    for (int i = 0; i < 2; i++)
        if (close_gate(driver, &gate[i]) != 0 || end_later(&gate[i]) != 0) {
            unasked(out);
            return;
        }
    for (int i = 0; i < 2; i++)
        atomic_store(&gate[i].is_called, 1);
    code = driver->synchronize();
    for (int i = 0; i < 2; i++) {
        is_early += is_running(driver, &gate[i]);
        pthread_join(gate[i].opener, NULL);
    }
    driver->synchronize();
    if (code == 0 && !is_early) {
        say(out, CW_VERDICT_OK, "cuCtxSynchronize waits for all streams of the context");
        return;
    }
    out->way_out = TRACK;
    say(out, CW_VERDICT_PROBLEM,
        "cuCtxSynchronize returned %d while %d of 2 streams were still at work", code, is_early);
}

/* One of two streams ends: the event must not have passed. Then both: it must. */
static void judge_event(const struct cw_gpu_driver *driver, void *event, struct gate gate[2],
                        struct cw_gpu_fact *out)
{
    uint64_t end = cw_clock_ns() + UINT64_C(5000000000);
    int at_first, with_one, at_last = CW_GPU_NOT_READY;

    at_first = driver->event_query(event);
    atomic_store(&gate[0].is_open, 1);
    while (is_running(driver, &gate[0]) && cw_clock_ns() < end)
        usleep(1000);
    usleep(1000);
    with_one = driver->event_query(event);
    atomic_store(&gate[1].is_open, 1);
    while (at_last == CW_GPU_NOT_READY && cw_clock_ns() < end)
        at_last = driver->event_query(event);
    if (at_first == CW_GPU_NOT_READY && with_one == CW_GPU_NOT_READY && at_last == 0) {
        say(out, CW_VERDICT_OK, "an event of a context stands for all its streams");
        return;
    }
    out->way_out = TRACK;
    say(out, CW_VERDICT_PROBLEM,
        "an event of a context does not stand for all its streams: it answers %d with two at work, "
        "%d "
        "with one, %d with none; 600, 600 and 0 are assumed",
        at_first, with_one, at_last);
}

static void ask_event(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    static struct gate gate[2]; /* the work may outlast a question that was given up */
    void *event;
    int code;

    if (!driver->record_context) {
        out->way_out = "update the driver to 555 (CUDA 12.5) or newer";
        say(out, CW_VERDICT_WARNING,
            "the driver has no events of a whole context: the pool keeps blocks of 2 MiB and more "
            "only");
        return;
    }
    if (driver->event(&event, CW_GPU_NO_TIMING) != 0 || close_gate(driver, &gate[0]) != 0 ||
        close_gate(driver, &gate[1]) != 0) {
        unasked(out);
        return;
    }
    code = driver->record_context(driver->context, event);
    if (code == 0) {
        judge_event(driver, event, gate, out);
    } else {
        out->way_out =
            "without them the pool keeps blocks of 2 MiB and more only; update the driver";
        say(out, CW_VERDICT_WARNING, "the driver refuses events of a whole context: error %d",
            code);
    }
    for (int i = 0; i < 2; i++)
        atomic_store(&gate[i].is_open, 1);
    driver->synchronize();
}

static void ask_free(const struct cw_gpu_driver *driver, size_t bytes, const char *size,
                     struct cw_gpu_fact *out)
{
    static struct gate gate;
    uint64_t block;
    int code, waits;

    if (driver->alloc(&block, bytes) != 0 || close_gate(driver, &gate) != 0 ||
        end_later(&gate) != 0) {
        unasked(out);
        return;
    }
    atomic_store(&gate.is_called, 1);
    code = driver->free_block(block);
    waits = !is_running(driver, &gate);
    pthread_join(gate.opener, NULL);
    driver->synchronize();
    if (code != 0) {
        out->way_out = "see whether the program runs without cuwarden";
        say(out, CW_VERDICT_PROBLEM, "cuMemFree of %s beside running work returned %d", size, code);
        return;
    }
    say(out, CW_VERDICT_OK, "cuMemFree of %s %s for running work; a strict free does the same",
        size, waits ? "waits" : "does not wait");
}

static void ask_free_small(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    ask_free(driver, 4096, "4 KiB", out);
}

/* Without events the pool waits for these, as it takes the driver to. */
static void ask_free_large(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    ask_free(driver, 8 * MIB, "8 MiB", out);
    if (driver->record_context || !strstr(out->text, "does not wait"))
        return;
    out->verdict = CW_VERDICT_WARNING;
    out->way_out =
        "set CUWARDEN_MODE=track for programs whose kernels run until the host ends them";
}

/* ---- who is who ---- */

static void ask_ids(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    unsigned long long own = 0, by_null = 0;
    int code, null_code;

    if (!driver->id) {
        say(out, CW_VERDICT_OK,
            "the driver has no context ids (before CUDA 12.0): handles stand in");
        return;
    }
    code = driver->id(driver->context, &own);
    null_code = driver->id(NULL, &by_null);
    if (code == 0 && null_code == 0 && own == by_null) {
        say(out, CW_VERDICT_OK, "the current context tells its id");
        return;
    }
    out->way_out = TRACK;
    say(out, CW_VERDICT_PROBLEM,
        "cuCtxGetId returned %d with id %llu for the context, %d with id %llu for the current one",
        code, own, null_code, by_null);
}

/* Of names that the library takes the place of; the versions are those in which they came. */
static const struct {
    const char *name, *export;
    int version;
} wanted[] = {
    {"cuMemAlloc", "cuMemAlloc_v2", 3020},
    {"cuMemFree", "cuMemFree_v2", 3020},
    {"cuMemAllocPitch", "cuMemAllocPitch_v2", 3020},
    {"cuMemHostAlloc", "cuMemHostAlloc", 2020},
    {"cuMemFreeHost", "cuMemFreeHost", 2000},
    {"cuMemAllocManaged", "cuMemAllocManaged", 6000},
    {"cuMemAllocAsync", "cuMemAllocAsync", 11020},
    {"cuMemFreeAsync", "cuMemFreeAsync", 11020},
    {"cuCtxSynchronize", "cuCtxSynchronize", 2000},
    {"cuMemCreate", "cuMemCreate", 10020},
};

static void ask_addresses(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    void *answer[CW_ARRAY_LEN(wanted)] = {NULL};
    unsigned others = 0, shared = 0;
    int found;

    if (!driver->address) {
        say(out, CW_VERDICT_OK, "the driver has no cuGetProcAddress_v2 (before CUDA 12.0)");
        return;
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(wanted); i++) {
        if (driver->address(wanted[i].name, &answer[i], wanted[i].version, 0, &found) != 0)
            answer[i] = NULL;
        others += answer[i] != dlsym(driver->library, wanted[i].export);
        for (size_t k = 0; answer[i] && k < i; k++)
            shared += answer[k] == answer[i];
    }
    if (others == 0 && shared == 0) {
        say(out, CW_VERDICT_OK, "cuGetProcAddress gives the addresses that dlsym gives");
        return;
    }
    if (shared != 0)
        out->way_out =
            "set CUWARDEN_MODE=off: calls cannot be told apart by address here; and tell us";
    say(out, shared != 0 ? CW_VERDICT_PROBLEM : CW_VERDICT_OK,
        "cuGetProcAddress gives other addresses than dlsym for %u of %zu functions, and %u share "
        "one; %s",
        others, CW_ARRAY_LEN(wanted), shared,
        shared != 0 ? "the library cannot tell these apart" : "the library goes by their names");
}

/* Different files, by device and inode, that look like a driver. */
static void ask_libraries(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    char line[4352], path[2][4096] = {"", ""}, file[4096];
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned count = 0;

    (void)driver;
    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%*s %*s %*s %*s %*s %4095[^\n]", file) != 1 ||
            !strstr(file, "/libcuda.so") || (count > 0 && strcmp(file, path[0]) == 0))
            continue;
        if (count < 2 && (count == 0 || strcmp(file, path[1]) != 0))
            snprintf(path[count++], sizeof(path[0]), "%s", file);
    }
    if (maps)
        fclose(maps);
    if (count < 2) {
        say(out, CW_VERDICT_OK, "one driver library is loaded: %.200s", path[0]);
        return;
    }
    out->way_out =
        "let the dynamic linker find one of them only (LD_LIBRARY_PATH, /etc/ld.so.conf.d)";
    say(out, CW_VERDICT_WARNING,
        "two driver libraries are loaded, %.100s and %.100s; cuwarden stands before the first",
        path[0], path[1]);
}

/* ---- blocks ---- */

static void ask_blocks(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    uint64_t block = 0, again = 0, base = 0;
    unsigned long long id = 0, next_id = 0;
    int inside, twice, id_code;
    size_t bytes = 0;

    if (driver->alloc(&block, 1000) != 0 || driver->range(&base, &bytes, block) != 0) {
        unasked(out);
        return;
    }
    inside = driver->free_block(block + 8);
    id_code = driver->pointer(&id, BUFFER_ID, block);
    driver->free_block(block);
    twice = driver->free_block(block);
    if (driver->alloc(&again, 1000) == 0 && id_code == 0)
        driver->pointer(&next_id, BUFFER_ID, again);
    driver->free_block(again);
    if (block % 512 == 0 && inside == 1 && twice == 1 && bytes == 1000 && id != next_id) {
        say(out, CW_VERDICT_OK, "blocks begin at multiples of 512, and false frees are refused");
        return;
    }
    out->way_out = "the program may see a difference; CUWARDEN_MODE=track if it minds";
    say(out, CW_VERDICT_WARNING,
        "a block of 1000 bytes: at a multiple of %" PRIu64
        ", %zu bytes by its range; free inside %d, "
        "second free %d, %s buffer id again",
        block & -block, bytes, inside, twice, id == next_id ? "the same" : "another");
}

static void ask_out_of_memory(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    uint64_t block = 0;
    size_t total = 0;
    int code, then;

    if (driver->total(&total, 0) != 0) {
        unasked(out);
        return;
    }
    code = driver->alloc(&block, 2 * total);
    then = driver->alloc(&block, 4096);
    if (then == 0)
        driver->free_block(block);
    if (code == 2 && then == 0) {
        say(out, CW_VERDICT_OK, "a request that finds no memory may be made again");
        return;
    }
    out->way_out = "requests that find no memory fail as without cuwarden; and tell us";
    say(out, CW_VERDICT_WARNING,
        "twice the device's memory is refused with %d, the next request with %d; "
        "2 and 0 are assumed",
        code, then);
}

/* ---- captures ---- */

static void ask_capture(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out)
{
    void *stream, *graph = NULL, *current = NULL;
    unsigned long long id = 0;
    int code[2] = {0, 0}, end;

    if (driver->stream(&stream, CW_GPU_NON_BLOCKING) != 0 ||
        driver->begin_capture(stream, 0) != 0) {
        unasked(out);
        return;
    }
    code[0] = driver->current(&current);
    if (driver->id)
        code[1] = driver->id(driver->context, &id);
    end = driver->end_capture(stream, &graph);
    if (graph)
        driver->end_graph(graph);
    if (code[0] == 0 && code[1] == 0 && end == 0) {
        say(out, CW_VERDICT_OK, "during a capture the current context may be asked for");
        return;
    }
    out->way_out = "set CUWARDEN_MODE=off for programs that capture graphs; and tell us";
    say(out, CW_VERDICT_PROBLEM,
        "during a capture cuCtxGetCurrent returned %d, cuCtxGetId %d, and the capture's end %d",
        code[0], code[1], end);
}

/* ---- the table ---- */

static const struct {
    const char *name;
    void (*ask)(const struct cw_gpu_driver *driver, struct cw_gpu_fact *out);
} facts[] = {
    {"waits", ask_synchronize},     {"events", ask_event},  {"small-free", ask_free_small},
    {"large-free", ask_free_large}, {"contexts", ask_ids},  {"addresses", ask_addresses},
    {"libraries", ask_libraries},   {"blocks", ask_blocks}, {"memory", ask_out_of_memory},
    {"captures", ask_capture},
};

size_t cw_gpu_facts(void)
{
    return CW_ARRAY_LEN(facts);
}

const char *cw_gpu_fact_name(size_t i)
{
    return i < CW_ARRAY_LEN(facts) ? facts[i].name : "gpu";
}

void cw_gpu_fact_ask(const struct cw_gpu_driver *driver, size_t i, struct cw_gpu_fact *out)
{
    memset(out, 0, sizeof(*out));
    facts[i].ask(driver, out);
}
