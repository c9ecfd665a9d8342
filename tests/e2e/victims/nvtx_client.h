/* SPDX-License-Identifier: MIT */
/*
 * A client of NVTX 3 of our own, for machines without its headers: the functions that the victims
 * use, under their names, and the way in which a tool is found and given the tables. It keeps to
 * the documented protocol: at the first call the library of NVTX_INJECTION64_PATH is loaded and its
 * InitializeInjectionNvtx2 called; what the tool did not enter does nothing.
 */
#ifndef NVTX_CLIENT_H
#define NVTX_CLIENT_H

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

#define NVTX_VERSION                  3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
#define NVTX_NO_PUSH_POP_TRACKING     (-2)

enum {
    NVTX_MESSAGE_UNKNOWN,
    NVTX_MESSAGE_TYPE_ASCII,
    NVTX_MESSAGE_TYPE_UNICODE,
    NVTX_MESSAGE_TYPE_REGISTERED
};

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    uint64_t payload;
    int32_t messageType;
    union {
        const char *ascii;
        const wchar_t *unicode;
        nvtxStringHandle_t registered;
    } message;
} nvtxEventAttributes_t;

typedef void (*nvtx_fn)(void);

static nvtx_fn nvtx_core[16], nvtx_core2[16]; /* by number; 0 is none */
static nvtx_fn *nvtx_core_table[17], *nvtx_core2_table[17];
static pthread_once_t nvtx_once = PTHREAD_ONCE_INIT;

static int nvtx_table_of(int module, nvtx_fn ***out_table, unsigned *out_size)
{
    for (int i = 1; i < 16; i++) {
        nvtx_core_table[i] = &nvtx_core[i];
        nvtx_core2_table[i] = &nvtx_core2[i];
    }
    if (module != 1 && module != 5)
        return 0;
    *out_table = module == 1 ? nvtx_core_table : nvtx_core2_table;
    *out_size = 16; /* the last entry is NULL, as in the real one */
    return 1;
}

static const void *nvtx_export_table(uint32_t id)
{
    static const struct {
        size_t size;
        int (*table_of)(int, nvtx_fn ***, unsigned *);
    } callbacks = {sizeof(callbacks), nvtx_table_of};

    return id == 1 ? &callbacks : NULL;
}

static void nvtx_load(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*init)(const void *(*)(uint32_t)) =
        tool ? (int (*)(const void *(*)(uint32_t)))dlsym(tool, "InitializeInjectionNvtx2") : NULL;

    if (tool && (!init || !init(nvtx_export_table)))
        dlclose(tool);
}

static nvtx_fn nvtx_function(nvtx_fn *table, int number)
{
    pthread_once(&nvtx_once, nvtx_load);
    return table[number];
}

#define NVTX_VOID(table, number, name, parameters, arguments)                                      \
    static inline void name parameters                                                             \
    {                                                                                              \
        __typeof__(&name) f = (__typeof__(&name))nvtx_function(table, number);                     \
                                                                                                   \
        if (f)                                                                                     \
            f arguments;                                                                           \
    }
#define NVTX_VALUE(table, number, type, name, parameters, arguments, otherwise)                    \
    static inline type name parameters                                                             \
    {                                                                                              \
        __typeof__(&name) f = (__typeof__(&name))nvtx_function(table, number);                     \
                                                                                                   \
        return f ? f arguments : otherwise;                                                        \
    }
/* Of the level of a range. */
#define NVTX_LEVEL(table, number, name, parameters, arguments)                                     \
    NVTX_VALUE(table, number, int, name, parameters, arguments, NVTX_NO_PUSH_POP_TRACKING)

typedef const nvtxEventAttributes_t *nvtx_attributes;

NVTX_VOID(nvtx_core, 1, nvtxMarkEx, (nvtx_attributes a), (a))
NVTX_VOID(nvtx_core, 2, nvtxMarkA, (const char *s), (s))
NVTX_VOID(nvtx_core, 3, nvtxMarkW, (const wchar_t *s), (s))
NVTX_VALUE(nvtx_core, 5, nvtxRangeId_t, nvtxRangeStartA, (const char *s), (s), 0)
NVTX_VOID(nvtx_core, 7, nvtxRangeEnd, (nvtxRangeId_t id), (id))
NVTX_LEVEL(nvtx_core, 8, nvtxRangePushEx, (nvtx_attributes a), (a))
NVTX_LEVEL(nvtx_core, 9, nvtxRangePushA, (const char *s), (s))
NVTX_LEVEL(nvtx_core, 10, nvtxRangePushW, (const wchar_t *s), (s))
NVTX_LEVEL(nvtx_core, 11, nvtxRangePop, (void), ())
NVTX_VOID(nvtx_core2, 1, nvtxDomainMarkEx, (nvtxDomainHandle_t d, nvtx_attributes a), (d, a))
NVTX_LEVEL(nvtx_core2, 4, nvtxDomainRangePushEx, (nvtxDomainHandle_t d, nvtx_attributes a), (d, a))
NVTX_LEVEL(nvtx_core2, 5, nvtxDomainRangePop, (nvtxDomainHandle_t d), (d))
NVTX_VALUE(nvtx_core2, 10, nvtxStringHandle_t, nvtxDomainRegisterStringA,
           (nvtxDomainHandle_t d, const char *s), (d, s), NULL)
NVTX_VALUE(nvtx_core2, 11, nvtxStringHandle_t, nvtxDomainRegisterStringW,
           (nvtxDomainHandle_t d, const wchar_t *s), (d, s), NULL)
NVTX_VALUE(nvtx_core2, 12, nvtxDomainHandle_t, nvtxDomainCreateA, (const char *s), (s), NULL)
NVTX_VALUE(nvtx_core2, 13, nvtxDomainHandle_t, nvtxDomainCreateW, (const wchar_t *s), (s), NULL)
NVTX_VOID(nvtx_core2, 14, nvtxDomainDestroy, (nvtxDomainHandle_t d), (d))

#endif
