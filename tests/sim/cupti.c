/* SPDX-License-Identifier: MIT */
/*
 * A simulated CUPTI: activity records of memory over the simulated driver, as CUPTI delivers
 * them, with the failures that a test asks for by environment (README.md).
 *
 * As the real one (of CUDA 13.0, seen on an H200), it tells of memory once for each context of its
 * device, in their order: as it is taken and freed, all that is there as a context is made, and
 * again as one ends; and of a device's own pool in the call that first takes memory from it.
 *
 * Records are kept until a flush, which delivers them on a thread of its own, in buffers of the
 * client. One lock guards all; the driver calls us under its own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cusim.h"

enum { SUCCESS = 0, INVALID_PARAMETER = 1, MAX_LIMIT_REACHED = 12, NOT_SUPPORTED = 27, HELD = 39 };
enum { MEMORY2 = 49, MEMORY_POOL = 50 };
enum { MAX_CONTEXTS = 16 };
enum { PINNED = 2, DEVICE = 3, ARRAY = 4, MANAGED = 5, DEVICE_STATIC = 6 };

struct memory {
    uint32_t kind, operation, memory_kind, correlation;
    uint64_t address, bytes, timestamp, pc;
    uint32_t process, device, context, stream;
    const char *name;
    uint32_t is_async, pad;
    uint64_t pool[4];
    uint64_t pool_used;
    const char *source;
};

struct pool {
    uint32_t kind, operation, type, correlation, process, device;
    uint64_t least, address, size, threshold, timestamp, used, is_managed;
};

union record {
    uint32_t kind;
    struct memory memory;
    struct pool pool;
};

typedef void (*requested_fn)(uint8_t **, size_t *, size_t *);
typedef void (*completed_fn)(void *, uint32_t, uint8_t *, size_t, size_t);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static union record *records;
static size_t count, room;
static unsigned allocations; /* records of them so far */
static uint32_t calls;       /* that took memory: the correlation of the last one */
static struct memory *live;  /* what each context would be told of */
static size_t lives, live_room;
static struct {
    unsigned long long id;
    int device;
    uint32_t number; /* 0: free */
} contexts[MAX_CONTEXTS];
static int enabled[64], has_source, is_held, has_dropped;
static requested_fn request;
static completed_fn complete;

static unsigned long setting(const char *name)
{
    const char *value = getenv(name);

    return value ? strtoul(value, NULL, 0) : 0;
}

static uint32_t version(void)
{
    unsigned long value = setting("CUSIM_CUPTI_VERSION");

    return value ? (uint32_t)value : 24;
}

/* Memory4 came with the source. */
static int knows_source(void)
{
    return version() >= 24;
}

static size_t size_of(uint32_t kind)
{
    if (kind == MEMORY2)
        return knows_source() ? 128 : version() >= 18 ? 120 : 112;
    return knows_source() ? 80 : version() >= 18 ? 72 : 64;
}

/* A test asks what was called. */
static void note(const char *call)
{
    const char *path = getenv("CUSIM_CUPTI_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;

    if (!log)
        return;
    fprintf(log, "%s\n", call);
    fclose(log);
}

static void append(const union record *record)
{
    if (count == room) {
        room = room ? 2 * room : 256;
        records = realloc(records, room * sizeof *records);
        if (!records)
            abort();
    }
    records[count++] = *record;
}

static void append_memory(struct memory memory)
{
    memory.kind = MEMORY2;
    memory.correlation = calls;
    memory.source = has_source ? getenv("CUSIM_CUPTI_SOURCE") : NULL;
    append(&(union record){.memory = memory});
}

/* Stream-ordered memory and variables are told of once. */
static int is_told_once(const struct memory *memory)
{
    return memory->is_async || memory->memory_kind == DEVICE_STATIC;
}

static void append_for_contexts(struct memory memory)
{
    unsigned told = 0;

    for (int i = 0; i < MAX_CONTEXTS; i++)
        if (contexts[i].number && contexts[i].device == (int)memory.device &&
            (told == 0 || !is_told_once(&memory))) {
            memory.context = contexts[i].number;
            append_memory(memory);
            told++;
        }
    if (told == 0)
        append_memory(memory);
}

static void note_live(const struct memory *memory)
{
    if (memory->operation == 2) {
        for (size_t i = 0; i < lives; i++)
            if (live[i].address == memory->address && live[i].memory_kind == memory->memory_kind) {
                live[i] = live[--lives];
                break;
            }
        return;
    }
    if (lives == live_room) {
        live_room = live_room ? 2 * live_room : 256;
        live = realloc(live, live_room * sizeof *live);
        if (!live)
            abort();
    }
    live[lives++] = *memory;
}

static void tell_all(int context, uint32_t operation)
{
    for (size_t i = 0; i < lives; i++) {
        struct memory memory = live[i];

        if ((int)memory.device != contexts[context].device || is_told_once(&memory))
            continue;
        memory.context = contexts[context].number;
        memory.operation = operation;
        append_memory(memory);
    }
}

static void seen_context(const struct cusim_event *event)
{
    static uint32_t made;

    for (int i = 0; i < MAX_CONTEXTS; i++) {
        if (event->is_free ? contexts[i].number == 0 || contexts[i].id != event->context
                           : contexts[i].number != 0)
            continue;
        contexts[i].id = event->context;
        contexts[i].device = event->device;
        if (!event->is_free)
            contexts[i].number = ++made;
        if (enabled[MEMORY2])
            tell_all(i, event->is_free ? 2 : 1);
        if (event->is_free)
            contexts[i].number = 0;
        return;
    }
}

/* The address of the device's own. */
static uint64_t own_pool(int device)
{
    return 0x302000000 + (uint64_t)device;
}

static void seen_pool(const struct cusim_event *event)
{
    struct pool pool = {.kind = MEMORY_POOL,
                        .operation = event->is_free ? 2 : 1,
                        .type = 1,
                        .correlation = event->is_own ? calls + 1 : calls,
                        .address = event->is_own ? own_pool(event->device) : 0x48ea000000,
                        .device = (uint32_t)event->device};

    if (enabled[MEMORY_POOL])
        append(&(union record){.pool = pool});
}

static void seen_memory(const struct cusim_event *event)
{
    static const uint32_t kinds[CUSIM_NKINDS] = {
        [CUSIM_DEVICE] = DEVICE,        [CUSIM_MANAGED] = MANAGED,   [CUSIM_HOST] = PINNED,
        [CUSIM_ASYNC] = DEVICE,         [CUSIM_REGISTERED] = PINNED, [CUSIM_ARRAY] = ARRAY,
        [CUSIM_GLOBAL] = DEVICE_STATIC,
    };
    struct memory memory = {.operation = event->is_free ? 2 : 1,
                            .memory_kind = kinds[event->kind],
                            .address = event->address,
                            .bytes = event->bytes,
                            .device = (uint32_t)event->device,
                            .name = event->name ? strdup(event->name) : NULL,
                            .is_async = event->kind == CUSIM_ASYNC};

    if (memory.is_async) /* type, address, threshold, size */
        memory.pool[1] = own_pool(event->device);

    if (!memory.memory_kind || !enabled[MEMORY2])
        return;
    if (!event->is_free) {
        allocations++;
        calls++;
    }
    if (!event->is_free && allocations == setting("CUSIM_CUPTI_LOSE"))
        return;
    if (event->is_free && setting("CUSIM_CUPTI_LOSE_FREES"))
        return;
    if (!event->is_free && allocations == setting("CUSIM_CUPTI_ALTER"))
        memory.bytes *= 2;
    append_for_contexts(memory);
    note_live(&memory);
}

static void seen(const struct cusim_event *event)
{
    pthread_mutex_lock(&mutex);
    if (event->is_context)
        seen_context(event);
    else if (event->is_pool)
        seen_pool(event);
    else
        seen_memory(event);
    pthread_mutex_unlock(&mutex);
}

/* ---- what a client calls ---- */

int cuptiGetVersion(uint32_t *out)
{
    *out = version();
    return SUCCESS;
}

int cuptiGetResultString(int result, const char **out)
{
    *out = result == HELD ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_SIM";
    return SUCCESS;
}

int cuptiSubscribe(void **subscriber, void *callback, void *argument)
{
    (void)callback;
    (void)argument;
    note("subscribe");
    if (is_held || getenv("CUSIM_CUPTI_HELD"))
        return HELD;
    if (setting("CUSIM_CUPTI_FAIL"))
        return (int)setting("CUSIM_CUPTI_FAIL");
    is_held = 1;
    *subscriber = &is_held;
    return SUCCESS;
}

struct subscriber_params {
    size_t size;
    const char *name;
    char *other;
    size_t other_size;
};

int cuptiSubscribe_v2(void **subscriber, void *callback, void *argument,
                      struct subscriber_params *params)
{
    int result = cuptiSubscribe(subscriber, callback, argument);

    if (result == HELD && params->other)
        snprintf(params->other, params->other_size, "%s", getenv("CUSIM_CUPTI_HELD"));
    return result;
}

int cuptiUnsubscribe(void *subscriber)
{
    note("unsubscribe");
    is_held = 0;
    return subscriber == &is_held ? SUCCESS : INVALID_PARAMETER;
}

int cuptiActivityRegisterCallbacks(requested_fn requested, completed_fn completed)
{
    request = requested;
    complete = completed;
    return SUCCESS;
}

int cuptiActivityEnableAllocationSource(uint8_t enable)
{
    if (!knows_source())
        return NOT_SUPPORTED;
    has_source = enable;
    return SUCCESS;
}

static void observe(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*set)(void (*)(const struct cusim_event *)) =
        driver ? (void (*)(void (*)(const struct cusim_event *)))dlsym(driver, "cusim_observe")
               : NULL;

    if (set)
        set(seen);
}

static int enable(int kind, int value)
{
    if (kind < 0 || kind >= 64)
        return INVALID_PARAMETER;
    pthread_mutex_lock(&mutex);
    enabled[kind] = value;
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

int cuptiActivityEnable(int kind)
{
    note("enable");
    observe();
    return enable(kind, 1);
}

int cuptiActivityDisable(int kind)
{
    return enable(kind, 0);
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, const uint8_t **record)
{
    const uint8_t *next = buffer;

    if (*record)
        next = *record + size_of(*(const uint32_t *)*record);
    if (next >= buffer + valid)
        return MAX_LIMIT_REACHED;
    *record = next;
    return SUCCESS;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped = has_dropped ? 0 : setting("CUSIM_CUPTI_DROP");
    has_dropped = 1;
    return SUCCESS;
}

/* Fills one buffer from `first` on; how many records went in. */
static size_t deliver(size_t first)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, used = 0, n = 0;

    request(&buffer, &size, &most);
    while (buffer && first + n < count && used + size_of(records[first + n].kind) <= size) {
        memcpy(buffer + used, &records[first + n], size_of(records[first + n].kind));
        used += size_of(records[first + n].kind);
        n++;
    }
    if (buffer)
        complete(NULL, 0, buffer, size, used);
    return n;
}

static void invent(void)
{
    unsigned long bytes = setting("CUSIM_CUPTI_INVENT");

    if (bytes)
        append_memory((struct memory){
            .operation = 1, .memory_kind = DEVICE, .address = 0xabcd0000, .bytes = bytes});
}

static void *flush(void *argument)
{
    (void)argument;
    invent();
    for (size_t done = 0, n = 1; done < count && n; done += n)
        n = deliver(done);
    count = 0;
    return NULL;
}

int cuptiActivityFlushAll(uint32_t flags)
{
    pthread_t thread;

    (void)flags;
    note("flush");
    if (pthread_create(&thread, NULL, flush, NULL) != 0)
        return NOT_SUPPORTED;
    pthread_join(thread, NULL);
    return SUCCESS;
}
