/* SPDX-License-Identifier: MIT */
/*
 * Bodies of family GRAPHICS: resources of OpenGL and others, as far as they are mapped.
 *
 * Their memory is the graphics library's, so it is in no sum, limit or leak; cuMemFree does not
 * take it, so the pool never sees it. A block stands for the mapping of a resource, from the map to
 * the unmap; what the report says of it is where the program has mapped it and not given it back.
 * The driver tells the size with the pointer, and for images not at all.
 */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/observe.h"

#include "core/account/tracker.h"
#include "core/device/context.h"

static uint64_t key_of(CUgraphicsResource resource)
{
    return (uint64_t)(uintptr_t)resource;
}

static void account_mappings(const struct cw_call *call, const CUgraphicsResource *resources,
                             unsigned int count)
{
    struct cw_request request = {.space = CW_SPACE_GRAPHICS, .kind = CW_KIND_GRAPHICS};

    request.context = cw_context_current(&request.device);
    for (unsigned int i = 0; i < count; i++) {
        request.key = key_of(resources[i]);
        cw_request_granted(&request, call->api);
    }
}

/* Not made again: of several resources some may be mapped. */
#define MAPS(symbol)                                                                               \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        struct cw_request failed = {.space = CW_SPACE_GRAPHICS, .kind = CW_KIND_GRAPHICS};         \
        struct cw_call call;                                                                       \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        rc = CW_REAL(symbol) CW_ARGS_##symbol;                                                     \
        if (rc != CUDA_SUCCESS) {                                                                  \
            cw_call_allocated(&call, rc, CW_SCOPE_CONTEXT, &failed);                               \
        } else {                                                                                   \
            account_mappings(&call, a2, a1);                                                       \
            cw_call_leave();                                                                       \
        }                                                                                          \
        return rc;                                                                                 \
    }

MAPS(cuGraphicsMapResources)
MAPS(cuGraphicsMapResources_ptsz)

static uint32_t take(const CUgraphicsResource *resources, unsigned int count)
{
    uint32_t list = 0;

    for (unsigned int i = 0; resources != NULL && i < count; i++)
        list = cw_tracker_take_onto(list, CW_SPACE_GRAPHICS, key_of(resources[i]));
    return list;
}

/* Also for resources that are not mapped, and have no block. */
#define UNMAPS(symbol, resources, count)                                                           \
    CW_EXPORT CUresult symbol CW_PARAMS_##symbol                                                   \
    {                                                                                              \
        const struct cw_request_free none = {.key = 0};                                            \
        struct cw_call call;                                                                       \
        uint32_t list;                                                                             \
        CUresult rc;                                                                               \
                                                                                                   \
        if (!cw_call_enter(&call, CW_HOOK_##symbol, CW_CALLER))                                    \
            return CW_REAL(symbol) CW_ARGS_##symbol;                                               \
        list = take(resources, count);                                                             \
        rc = CW_REAL(symbol) CW_ARGS_##symbol;                                                     \
        cw_tracker_finish_list(list, cw_call_free_result(rc));                                     \
        cw_call_freed(&call, rc, &none);                                                           \
        return rc;                                                                                 \
    }

UNMAPS(cuGraphicsUnmapResources, a2, a1)
UNMAPS(cuGraphicsUnmapResources_ptsz, a2, a1)
UNMAPS(cuGraphicsUnregisterResource, &a1, 1)

static void note_size(CUresult rc, CUgraphicsResource resource, uint64_t bytes)
{
    uint32_t block;

    if (rc != CUDA_SUCCESS || !cw_session_is_armed() || cw_thread.depth != 0)
        return;
    block = cw_tracker_find(CW_SPACE_GRAPHICS, key_of(resource));
    if (block != 0 && cw_tracker_held(block) != bytes)
        cw_tracker_resize(block, bytes);
}

CW_OBSERVED_BODY(cuGraphicsResourceGetMappedPointer, .is_once = 1,
                 note_size(rc, a3, a2 != NULL ? *a2 : 0))
CW_OBSERVED_BODY(cuGraphicsResourceGetMappedPointer_v2, .is_once = 1,
                 note_size(rc, a3, a2 != NULL ? *a2 : 0))
