/* SPDX-License-Identifier: MIT */
/* Driver handles: one slab of address space per type, newest free slot first.
 *
 * A handle is looked at only after its address is known to be a slot of the right slab, so garbage
 * and stale handles are refused and never followed. Slots are reused at once, as a real driver's
 * are; ids are not. Guarded by sim.lock.
 */
#include "sim_handles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS 65536

struct slab {
    const char *name;
    size_t size;
    char *memory;
    size_t used; /* slots ever handed out */
    size_t limit;
    struct sim_object *free;
};

static struct slab slabs[SIM_NTYPES] = {
    [SIM_CONTEXT] = {"context", .size = sizeof(struct sim_context)},
    [SIM_STREAM] = {"stream", .size = sizeof(struct sim_stream)},
    [SIM_EVENT] = {"event", .size = sizeof(struct sim_event), .limit = 1 << 20},
    [SIM_POOL] = {"pool", .size = sizeof(struct sim_pool)},
    [SIM_HANDLE] = {"physical", .size = sizeof(struct sim_handle), .limit = 1 << 20},
    [SIM_ARRAY] = {"array", .size = sizeof(struct sim_array), .limit = 1 << 20},
    [SIM_MIPMAP] = {"mipmap", .size = sizeof(struct sim_array)},
    [SIM_MODULE] = {"module", .size = sizeof(struct sim_module)},
    [SIM_FUNCTION] = {"function", .size = sizeof(struct sim_function), .limit = 1 << 20},
    [SIM_GRAPH] = {"graph", .size = sizeof(struct sim_graph)},
    [SIM_NODE] = {"node", .size = sizeof(struct sim_node), .limit = 1 << 20},
    [SIM_EXEC] = {"exec", .size = sizeof(struct sim_exec)},
    [SIM_CAPTURE] = {"capture", .size = sizeof(struct sim_capture)},
    [SIM_EXTERNAL] = {"external", .size = sizeof(struct sim_object) + sizeof(struct sim_handle)},
    [SIM_SEMAPHORE] = {"semaphore", .size = sizeof(struct sim_object) + 64},
    [SIM_GREEN] = {"green", .size = sizeof(struct sim_green)},
    [SIM_LINK] = {"link", .size = sizeof(struct sim_object) + 64},
    [SIM_USER] = {"user", .size = sizeof(struct sim_object) + 64},
    [SIM_TEXTURE] = {"texture", .size = sizeof(struct sim_object) + 512},
    [SIM_GRAPHICS] = {"graphics", .size = sizeof(struct sim_object) + 64},
};

static void map_slab(struct slab *slab)
{
    slab->size = sim_round(slab->size, 64);
    if (!slab->limit)
        slab->limit = SLOTS;
    slab->memory = mmap(NULL, slab->size * slab->limit, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab->memory == MAP_FAILED) {
        fprintf(stderr, "cusim: no address space for handles\n");
        abort();
    }
}

void *sim_object_create(enum sim_type type)
{
    struct slab *slab = &slabs[type];
    struct sim_object *object = slab->free;

    if (!slab->memory)
        map_slab(slab);
    if (object)
        slab->free = object->next_free;
    else if (slab->used < slab->limit)
        object = (struct sim_object *)(slab->memory + slab->size * slab->used++);
    else
        return NULL;
    memset(object, 0, slab->size);
    object->type = type;
    object->is_alive = true;
    object->id = ++sim.next_id;
    return object;
}

void sim_object_destroy(void *pointer)
{
    struct sim_object *object = pointer;
    struct slab *slab = &slabs[object->type];

    object->is_alive = false;
    object->next_free = slab->free;
    slab->free = object;
}

bool sim_object_is(const void *handle, enum sim_type type)
{
    const struct slab *slab = &slabs[type];
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)slab->memory;

    if (!slab->memory || offset >= slab->used * slab->size || offset % slab->size)
        return false;
    return ((const struct sim_object *)handle)->is_alive;
}

void sim_object_visit(enum sim_type type, void (*visit)(void *, void *), void *argument)
{
    struct slab *slab = &slabs[type];

    for (size_t i = 0; i < slab->used; i++) {
        struct sim_object *object = (struct sim_object *)(slab->memory + slab->size * i);

        if (object->is_alive)
            visit(object, argument);
    }
}

const char *sim_object_name(enum sim_type type)
{
    return slabs[type].name;
}

static void count_one(void *object, void *count)
{
    (void)object;
    ++*(size_t *)count;
}

size_t sim_object_count(enum sim_type type, size_t *most)
{
    size_t count = 0;

    *most = slabs[type].used;
    sim_object_visit(type, count_one, &count);
    return count;
}
