/* SPDX-License-Identifier: MIT */
/*
 * CUPTI as far as the audit needs it. See cupti.h.
 *
 * The numbers and shapes below are CUPTI's ABI (cupti_activity.h, cupti_result.h, cupti_callbacks.h
 * of CUDA 11.5 to 13.0): the headers need not be installed. Records of memory have grown at the end
 * (112, 120, 128 bytes); their first 112 bytes are the same in all of these versions, and CUPTI
 * itself advances from record to record. Owns CUPTI's functions, constant once it runs. We allocate
 * the buffers, and CUPTI has them until they come back full; callbacks run on CUPTI's threads and
 * call nothing but CUPTI's reader.
 */
#include "hook/tools/cupti.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out.h"
#include "core/account/audit.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "hook/settings.h"
#include "hook/resolve/object.h"

/* ---- the ABI ---- */

enum { KIND_MEMORY2 = 49, KIND_MEMORY_POOL = 50 };        /* CUpti_ActivityKind */
enum { RESULT_SUCCESS = 0, RESULT_HELD_BY_OTHER = 39 };   /* CUptiResult */
enum { OPERATION_ALLOCATION = 1, OPERATION_RELEASE = 2 }; /* of memory */
enum { POOL_CREATED = 1, POOL_DESTROYED = 2 };
enum { FLUSH_FORCED = 1 };

/* CUpti_ActivityMemoryKind */
enum {
    MEMORY_PINNED = 2,
    MEMORY_DEVICE = 3,
    MEMORY_ARRAY = 4,
    MEMORY_MANAGED = 5,
    MEMORY_DEVICE_STATIC = 6,
    MEMORY_MANAGED_STATIC = 7,
    MEMORY_KINDS
};

/* CUpti_ActivityMemory2 to 4 */
struct memory_record {
    uint32_t kind, operation, memory_kind, correlation;
    uint64_t address, bytes, timestamp, pc;
    uint32_t process, device, context, stream;
    const char *name;
    uint32_t is_async, pad;
    struct {
        uint32_t type, pad;
        uint64_t address, threshold, size;
    } pool;
    uint64_t pool_used; /* from 120 bytes on */
    const char *source; /* from 128 bytes on */
};
_Static_assert(sizeof(struct memory_record) == 128 &&
                   offsetof(struct memory_record, pool_used) == 112 &&
                   offsetof(struct memory_record, source) == 120,
               "as in the ABI");

/* CUpti_ActivityMemoryPool to 3, their first 64 bytes */
struct pool_record {
    uint32_t kind, operation, type, correlation, process, device;
    uint64_t least, address, size, threshold, timestamp;
};
_Static_assert(sizeof(struct pool_record) == 64, "as in the ABI");

/* CUpti_SubscriberParams, as far as the first version had it */
struct subscriber {
    size_t size;
    const char *name;
    char *other;
    size_t other_size;
};

typedef void (*requested_fn)(uint8_t **buffer, size_t *size, size_t *records);
typedef void (*completed_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                             size_t valid);
typedef void (*callback_fn)(void *arg, int domain, uint32_t id, const void *data);

/* X(name, arguments, needed) */
#define FUNCTIONS(X)                                                                               \
    X(GetVersion, (uint32_t *), 1)                                                                 \
    X(GetResultString, (int, const char **), 1)                                                    \
    X(Subscribe, (void **, callback_fn, void *), 1)                                                \
    X(Subscribe_v2, (void **, callback_fn, void *, struct subscriber *), 0)                        \
    X(Unsubscribe, (void *), 1)                                                                    \
    X(ActivityRegisterCallbacks, (requested_fn, completed_fn), 1)                                  \
    X(ActivityEnable, (int), 1)                                                                    \
    X(ActivityDisable, (int), 1)                                                                   \
    X(ActivityEnableAllocationSource, (uint8_t), 0)                                                \
    X(ActivityGetNextRecord, (uint8_t *, size_t, const void **), 1)                                \
    X(ActivityGetNumDroppedRecords, (void *, uint32_t, size_t *), 1)                               \
    X(ActivityFlushAll, (uint32_t), 1)

#define BUFFER_SIZE ((size_t)256 * 1024)
#define OWNER_MAX   64
#define WHY_MAX     512

static struct {
#define X(name, arguments, needed) int(*name) arguments;
    FUNCTIONS(X)
#undef X
    void *subscriber;
    int has_source;
    struct cw_once starting;
    _Atomic int is_running;
    int is_inherited; /* a parent had it running */
    /* By device: the last pool that CUPTI told of, and the number of the call in which it did. */
    struct {
        _Atomic uint64_t address;
        _Atomic uint32_t call;
    } pool[CW_MAX_DEVICES];
} self;

/* ---- finding it ---- */

/* The major version is that of the toolkit, which the driver must not be older than. */
static const struct {
    const char *name;
    unsigned toolkit;
} names[] = {
    {"libcupti.so.13", 13},   {"libcupti.so.12", 12},   {"libcupti.so.11.8", 11},
    {"libcupti.so.11.7", 11}, {"libcupti.so.11.6", 11}, {"libcupti.so.11.5", 11},
    {"libcupti.so", 0},
};

/* From the directory of the CUDA runtime. */
static const char *const beside[] = {"", "../extras/CUPTI/lib64/", "../../cuda_cupti/lib/"};

static int match_cupti(const struct cw_object *object, void *arg)
{
    if (strncmp(cw_object_basename(object), "libcupti.so", sizeof("libcupti.so") - 1) != 0)
        return 0;
    *(struct cw_object *)arg = *object;
    return 1;
}

static int match_runtime(const struct cw_object *object, void *arg)
{
    const char *base = cw_object_basename(object);

    if (strncmp(base, "libcudart.so", sizeof("libcudart.so") - 1) != 0 || base == object->name)
        return 0;
    cw_format(arg, WHY_MAX, "%.*s", (int)(base - object->name), object->name);
    return 1;
}

/* dlopen is looked up: glibc moved it between libraries. */
typedef void *(*dlopen_fn)(const char *name, int flags);

static int open_named(dlopen_fn open, const char *directory, const char *sub)
{
    unsigned driver = cw_session.driver_version / 1000;
    char path[WHY_MAX + 64];

    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++) {
        if (driver != 0 && names[i].toolkit > driver)
            continue;
        cw_format(path, sizeof(path), "%s%s%s", directory, sub, names[i].name);
        if (open(path, RTLD_NOW | RTLD_LOCAL) != NULL)
            return 1;
    }
    return 0;
}

/* If a CUPTI is loaded already, only that one makes sense. */
static int find_library(struct cw_object *object)
{
    dlopen_fn open = (dlopen_fn)cw_object_next_symbol("dlopen");
    char directory[WHY_MAX] = "";
    int is_open = 0;

    if (cw_object_visit(match_cupti, object))
        return 1;
    if (open == NULL)
        return 0;
    if (cw_object_visit(match_runtime, directory))
        for (size_t i = 0; i < CW_ARRAY_LEN(beside) && !is_open; i++)
            is_open = open_named(open, directory, beside[i]);
    if (!is_open)
        is_open = open_named(open, "", "");
    return is_open && cw_object_visit(match_cupti, object);
}

/* NULL, or the name of a missing function. */
static const char *bind(const struct cw_object *object)
{
#define X(name, arguments, needed)                                                                 \
    self.name = (__typeof__(self.name))cw_object_symbol(object, "cupti" #name);                    \
    if ((needed) && self.name == NULL)                                                             \
        return "cupti" #name;
    FUNCTIONS(X)
#undef X
    return NULL;
}

/* 16 is that of CUDA 11.5, 28 of 12.9; from 13 on it is 130000 and so on. */
static int is_known(uint32_t version)
{
    return (version >= 16 && version <= 28) || version / 10000 == 13;
}

/* ---- records ---- */

/* A device's own pool comes into being in the call that first takes memory from it. */
static int is_of_own_pool(const struct memory_record *record)
{
    return record->device < CW_MAX_DEVICES && record->pool.address != 0 &&
           record->pool.address == atomic_load(&self.pool[record->device].address) &&
           record->correlation == atomic_load(&self.pool[record->device].call);
}

static void tell_memory(const struct memory_record *record)
{
    static const uint8_t class[MEMORY_KINDS] = {
        [MEMORY_PINNED] = 1 + CW_AUDIT_PINNED,
        [MEMORY_DEVICE] = 1 + CW_AUDIT_DEVICE,
        [MEMORY_ARRAY] = 1 + CW_AUDIT_ARRAY,
        [MEMORY_MANAGED] = 1 + CW_AUDIT_MANAGED,
    };
    uint32_t kind = record->memory_kind;
    struct cw_audit_record told = {
        .op = record->operation == OPERATION_RELEASE ? CW_AUDIT_GIVEN : CW_AUDIT_TAKEN,
        .address = record->address,
        .bytes = record->bytes,
        .context = record->context,
        .source = self.has_source ? record->source : NULL,
    };

    if (record->operation != OPERATION_RELEASE && record->operation != OPERATION_ALLOCATION)
        return;
    if (kind == MEMORY_DEVICE_STATIC || kind == MEMORY_MANAGED_STATIC) {
        if (told.op == CW_AUDIT_TAKEN)
            cw_audit_variable(record->name, record->bytes, kind == MEMORY_MANAGED_STATIC);
        return;
    }
    if (kind >= MEMORY_KINDS || class[kind] == 0)
        return;
    told.class = kind == MEMORY_DEVICE && record->is_async ? CW_AUDIT_ASYNC
                                                           : (enum cw_audit_class)(class[kind] - 1);
    cw_audit_seen(&told);
    if (told.class == CW_AUDIT_ASYNC && told.op == CW_AUDIT_TAKEN && is_of_own_pool(record))
        cw_audit_excuse(CW_AUDIT_TAKEN, CW_AUDIT_POOL);
}

static void tell_pool(const struct pool_record *record)
{
    struct cw_audit_record told = {
        .op = record->operation == POOL_DESTROYED ? CW_AUDIT_GIVEN : CW_AUDIT_TAKEN,
        .class = CW_AUDIT_POOL,
    };

    if (record->operation == POOL_CREATED && record->device < CW_MAX_DEVICES) {
        atomic_store(&self.pool[record->device].call, record->correlation);
        atomic_store(&self.pool[record->device].address, record->address);
    }
    if (record->operation == POOL_CREATED || record->operation == POOL_DESTROYED)
        cw_audit_seen(&told);
}

static void requested(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = cw_mem_alloc(BUFFER_SIZE);
    *size = *buffer != NULL ? BUFFER_SIZE : 0;
    *records = 0; /* as many as there is room for */
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    const void *record = NULL;
    size_t dropped = 0;

    cw_thread.depth++;
    while (valid > 0 && self.ActivityGetNextRecord(buffer, valid, &record) == RESULT_SUCCESS) {
        uint32_t kind = *(const uint32_t *)record;

        if (kind == KIND_MEMORY2)
            tell_memory(record);
        else if (kind == KIND_MEMORY_POOL)
            tell_pool(record);
    }
    if (self.ActivityGetNumDroppedRecords(context, stream, &dropped) == RESULT_SUCCESS)
        cw_audit_dropped(dropped);
    if (buffer != NULL)
        cw_mem_free(buffer, size);
    cw_thread.depth--;
}

/* ---- whose it is ---- */

/* The signs that a tool is about to take CUPTI. */
static const struct {
    const char *name, *tool;
} signs[] = {
    {"CUDA_INJECTION64_PATH", "a tool that the driver loads (nsys and ncu come so)"},
    {"KINETO_CONFIG", "Kineto, PyTorch's profiler"},
    {"KINETO_USE_DAEMON", "Kineto, PyTorch's profiler"},
};

/* 0 and the reason if it belongs to another tool. */
static int may_start(char why[WHY_MAX])
{
    if (self.is_inherited) {
        cw_format(
            why, WHY_MAX,
            "this process was forked from one in which CUPTI ran; start it anew for an audit");
        return 0;
    }
    for (char *const *env = cw_settings_environment(); env != NULL && *env != NULL; env++)
        for (size_t i = 0; i < CW_ARRAY_LEN(signs); i++) {
            size_t len = strlen(signs[i].name);

            if (strncmp(*env, signs[i].name, len) != 0 || (*env)[len] != '=' ||
                (*env)[len + 1] == '\0')
                continue;
            cw_format(why, WHY_MAX, "%.200s gives CUPTI to %s; unset it for an audit", *env,
                      signs[i].tool);
            return 0;
        }
    return 1;
}

static void ignore(void *arg, int domain, uint32_t id, const void *data)
{
    (void)arg;
    (void)domain;
    (void)id;
    (void)data;
}

static void name_owner(char why[WHY_MAX])
{
    char owner[OWNER_MAX + 1] = "";
    struct subscriber asking = {
        .size = sizeof(asking), .name = "cuwarden", .other = owner, .other_size = OWNER_MAX};
    void *subscriber = NULL;

    if (self.Subscribe_v2 != NULL &&
        self.Subscribe_v2(&subscriber, ignore, NULL, &asking) == RESULT_SUCCESS)
        self.Unsubscribe(subscriber);
    cw_format(why, WHY_MAX, "CUPTI belongs to %s already; run without that tool for an audit",
              owner[0] != '\0' ? owner : "another tool, which it does not name,");
}

static int refuse(char why[WHY_MAX], const char *what, int result)
{
    const char *text = NULL;

    self.GetResultString(result, &text);
    cw_format(why, WHY_MAX, "%s failed with error %d (%.100s)", what, result,
              text != NULL ? text : "unknown");
    return 0;
}

/* ---- start and end ---- */

static int load(char why[WHY_MAX])
{
    struct cw_object object;
    const char *missing;
    uint32_t version = 0;

    if (!find_library(&object)) {
        cw_format(why, WHY_MAX,
                  "libcupti.so.N was found neither beside the CUDA runtime nor by the loader; "
                  "install CUPTI of the CUDA toolkit, or put its directory into LD_LIBRARY_PATH");
        return 0;
    }
    missing = bind(&object);
    if (missing != NULL) {
        cw_format(why, WHY_MAX, "%.300s has no %s; it needs CUPTI of CUDA 11.5 to 13", object.name,
                  missing);
        return 0;
    }
    if (self.GetVersion(&version) != RESULT_SUCCESS || !is_known(version)) {
        cw_format(why, WHY_MAX,
                  "%.300s has version %u, whose records are not known; it needs CUPTI of CUDA 11.5 "
                  "to 13",
                  object.name, version);
        return 0;
    }
    cw_session.arena.header->audit.version = version;
    return 1;
}

static void let_go(void)
{
    self.ActivityDisable(KIND_MEMORY2);
    self.ActivityDisable(KIND_MEMORY_POOL);
    self.ActivityFlushAll(FLUSH_FORCED);
    self.Unsubscribe(self.subscriber);
}

static int begin(char why[WHY_MAX])
{
    int rc = self.Subscribe(&self.subscriber, ignore, NULL);

    if (rc == RESULT_HELD_BY_OTHER) {
        name_owner(why);
        return 0;
    }
    if (rc != RESULT_SUCCESS)
        return refuse(why, "cuptiSubscribe", rc);
    rc = self.ActivityRegisterCallbacks(requested, completed);
    self.has_source = self.ActivityEnableAllocationSource != NULL &&
                      self.ActivityEnableAllocationSource(1) == RESULT_SUCCESS;
    if (rc == RESULT_SUCCESS)
        rc = self.ActivityEnable(KIND_MEMORY2);
    if (rc == RESULT_SUCCESS)
        rc = self.ActivityEnable(KIND_MEMORY_POOL);
    if (rc == RESULT_SUCCESS)
        return 1;
    let_go();
    return refuse(why, "turning on CUPTI's records of memory", rc);
}

int cw_cupti_start(const struct cw_options *options)
{
    char why[WHY_MAX] = "";
    int has_started = 0;

    if (options->cupti != CW_CUPTI_AUDIT || !cw_once_begin(&self.starting))
        return 0;
    if (may_start(why) && load(why) && begin(why)) {
        cw_audit_begin(&cw_session.arena, cw_session.arena.header->audit.version);
        atomic_store(&self.is_running, 1);
        has_started = 1;
    } else {
        cw_log(CW_LOG_WARN, "CUWARDEN_CUPTI=audit: no audit: %s", why);
        cw_audit_refuse(&cw_session.arena, why);
    }
    cw_once_end(&self.starting);
    return has_started;
}

void cw_cupti_end(void)
{
    if (!atomic_exchange(&self.is_running, 0))
        return;
    cw_thread.depth++;
    cw_audit_close();
    let_go();
    cw_audit_end();
    cw_thread.depth--;
}

void cw_cupti_forked(void)
{
    cw_audit_reset();
    if (atomic_exchange(&self.is_running, 0))
        self.is_inherited = 1;
    self.starting = (struct cw_once){0};
}
