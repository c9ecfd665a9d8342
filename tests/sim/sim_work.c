/* SPDX-License-Identifier: MIT */
/* Checks and carries out single pieces of work: copies, fills, kernels, memory words.
 *
 * Bounds are checked twice: when the work is submitted, which is when the driver can still refuse
 * it, and when it is carried out, which is when memory freed too early is noticed.
 */
#include "sim.h"

#include <string.h>

/* The bytes from the first to the last that a region of an object covers. */
static uintptr_t side_start(const struct sim_side *side)
{
    return side->base + (side->z * side->height + side->y) * side->pitch + side->x;
}

static size_t side_extent(const struct sim_side *side, const struct sim_copy *copy)
{
    if (!copy->width || !copy->height || !copy->depth)
        return 0;
    return ((copy->depth - 1) * side->height + copy->height - 1) * side->pitch + copy->width;
}

static bool array_holds(const struct sim_side *side, const struct sim_copy *copy)
{
    const struct sim_array *array = side->array;
    size_t row = array->pitch;

    if (side->x + copy->width <= row && side->y + copy->height <= array->height &&
        side->z + copy->depth <= array->depth)
        return true;
    sim_misuse("out_of_bounds", "access of %zux%zux%zu bytes outside of an array", copy->width,
               copy->height, copy->depth);
    return false;
}

/* Pageable memory is anybody's; pinned memory that has been freed is not. */
static bool host_is_live(const struct sim_side *side, const struct sim_copy *copy)
{
    struct sim_block *block = sim_block_find(side_start(side));

    if (!block || block->kind == SIM_MEM_REGISTERED || block->state == SIM_LIVE)
        return true;
    return sim_range_is_live(side_start(side), side_extent(side, copy), "host access");
}

static bool side_is_live(const struct sim_side *side, const struct sim_copy *copy, const char *what)
{
    switch (side->place) {
    case SIM_PLACE_DEVICE:
        return sim_range_is_live(side_start(side), side_extent(side, copy), what);
    case SIM_PLACE_ARRAY:
        return sim_object_is(side->array, SIM_ARRAY) && array_holds(side, copy);
    default:
        return host_is_live(side, copy);
    }
}

static bool copy_is_legal(const struct sim_copy *copy)
{
    return side_is_live(&copy->from, copy, "read") && side_is_live(&copy->to, copy, "write");
}

static size_t set_extent(const struct sim_set *set)
{
    if (!set->width || !set->height)
        return 0;
    return (set->height - 1) * set->pitch + set->width * set->element;
}

CUresult sim_work_check(const struct sim_work *work)
{
    if (work->task == SIM_DO_COPY && !copy_is_legal(&work->copy))
        return CUDA_ERROR_INVALID_VALUE;
    if (work->task == SIM_DO_SET &&
        !sim_range_is_live(work->set.address, set_extent(&work->set), "set"))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static void copy_rows(const struct sim_copy *copy)
{
    for (size_t z = 0; z < copy->depth; z++) {
        const char *from =
            (const char *)side_start(&copy->from) + z * copy->from.height * copy->from.pitch;
        char *to = (char *)side_start(&copy->to) + z * copy->to.height * copy->to.pitch;

        for (size_t y = 0; y < copy->height; y++)
            memmove(to + y * copy->to.pitch, from + y * copy->from.pitch, copy->width);
    }
}

static void set_row(char *row, const struct sim_set *set)
{
    uint16_t narrow = (uint16_t)set->value;
    uint32_t wide = set->value;

    if (set->element == 1) {
        memset(row, (int)set->value, set->width);
        return;
    }
    for (size_t i = 0; i < set->width; i++)
        memcpy(row + i * set->element, set->element == 2 ? (void *)&narrow : (void *)&wide,
               set->element);
}

static uint64_t read_word(const struct sim_memop *memop)
{
    return memop->is_wide ? __atomic_load_n((uint64_t *)memop->address, __ATOMIC_ACQUIRE)
                          : __atomic_load_n((uint32_t *)memop->address, __ATOMIC_ACQUIRE);
}

static void write_word(const struct sim_memop *memop)
{
    if (memop->is_wide)
        __atomic_store_n((uint64_t *)memop->address, memop->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)memop->address, (uint32_t)memop->value, __ATOMIC_RELEASE);
}

static bool is_satisfied(const struct sim_memop *memop)
{
    uint64_t word = read_word(memop);

    switch (memop->flags & 3) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return word == memop->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (word & memop->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(word | memop->value) != 0;
    default:
        return memop->is_wide ? (int64_t)(word - memop->value) >= 0
                              : (int32_t)((uint32_t)word - (uint32_t)memop->value) >= 0;
    }
}

static bool is_persisting(const struct sim_call *call)
{
    const struct sim_kernel *kernel = call->function ? call->function->kernel : NULL;

    return kernel && kernel->is_persistent &&
           __atomic_load_n((uint32_t *)call->arguments[0], __ATOMIC_ACQUIRE) !=
               (uint32_t)call->arguments[1];
}

bool sim_work_is_ready(const struct sim_work *work)
{
    if (work->task == SIM_DO_CALL)
        return !is_persisting(&work->call);
    return work->task != SIM_DO_MEMOP || !work->memop.is_wait || is_satisfied(&work->memop);
}

uint64_t sim_work_spin_ns(const struct sim_work *work)
{
    if (work->task != SIM_DO_CALL || !work->call.function || !work->call.function->kernel ||
        !work->call.function->kernel->is_long)
        return 0;
    return work->call.arguments[0] * 1000;
}

static CUresult execute_set(const struct sim_set *set)
{
    if (!sim_range_is_live(set->address, set_extent(set), "set"))
        return CUDA_SUCCESS;
    for (size_t y = 0; y < set->height; y++)
        set_row((char *)set->address + y * set->pitch, set);
    return CUDA_SUCCESS;
}

static void run_own(const struct sim_call *call)
{
    const CUDA_KERNEL_NODE_PARAMS_v2 *shown = &call->shown;
    unsigned long long arguments[CUSIM_MAX_ARGUMENTS];
    struct cusim_launch launch = {
        .grid = {shown->gridDimX, shown->gridDimY, shown->gridDimZ},
        .block = {shown->blockDimX, shown->blockDimY, shown->blockDimZ},
        .arguments = arguments,
    };

    for (unsigned i = 0; i < CUSIM_MAX_ARGUMENTS; i++)
        arguments[i] = call->arguments[i];
    call->function->kernel->run_own(&launch);
}

static CUresult execute_call(const struct sim_call *call)
{
    const struct sim_kernel *kernel = call->function ? call->function->kernel : NULL;

    if (kernel && kernel->run_own)
        run_own(call);
    return kernel && kernel->run ? kernel->run(call->arguments, kernel->name) : CUDA_SUCCESS;
}

/* Stream-ordered memory may rightly change hands while older work of its stream is on its way. */
static uint64_t id_at(uintptr_t address)
{
    const struct sim_block *block = sim_block_live(address);

    return block && block->kind != SIM_MEM_ASYNC && block->kind != SIM_MEM_GRAPH ? block->id : 0;
}

void sim_work_identify(const struct sim_work *work, uint64_t ids[3])
{
    const struct sim_kernel *kernel;

    memset(ids, 0, 3 * sizeof *ids);
    if (work->task == SIM_DO_COPY) {
        if (work->copy.from.place == SIM_PLACE_DEVICE)
            ids[0] = id_at(side_start(&work->copy.from));
        if (work->copy.to.place == SIM_PLACE_DEVICE)
            ids[1] = id_at(side_start(&work->copy.to));
    } else if (work->task == SIM_DO_SET) {
        ids[0] = id_at(work->set.address);
    } else if (work->task == SIM_DO_FREE) {
        ids[0] = work->block->id;
    } else if (work->task == SIM_DO_CALL && work->call.function) {
        kernel = work->call.function->kernel;
        for (unsigned i = 0, n = 0; kernel && n < 3 && i < kernel->narguments; i++)
            if (kernel->pointers & 1u << i)
                ids[n++] = id_at(work->call.arguments[i]);
    }
}

/* Memory freed and handed out again between submission and execution looks alive; only the id
 * tells. */
static void check_identity(const struct sim_op *op)
{
    uint64_t ids[3];

    if (op->work.task == SIM_DO_FREE)
        return;
    sim_work_identify(&op->work, ids);
    for (int i = 0; i < 3; i++)
        if (op->ids[i] && ids[i] && op->ids[i] != ids[i])
            sim_misuse("use_after_free", "%s ran on memory that was freed and allocated anew since",
                       op->row ? op->row->symbol : "work");
}

CUresult sim_work_execute(struct sim_op *op)
{
    struct sim_work *work = &op->work;

    check_identity(op);
    switch (work->task) {
    case SIM_DO_COPY:
        if (copy_is_legal(&work->copy))
            copy_rows(&work->copy);
        return CUDA_SUCCESS;
    case SIM_DO_SET:
        return execute_set(&work->set);
    case SIM_DO_CALL:
        return execute_call(&work->call);
    case SIM_DO_MEMOP:
        if (!work->memop.is_wait)
            write_word(&work->memop);
        return CUDA_SUCCESS;
    case SIM_DO_FREE:
        if (op->ids[0] == work->block->id) /* else its own stream has reused the block */
            sim_pool_release(work->block);
        return CUDA_SUCCESS;
    case SIM_DO_ALLOC:
        return CUDA_SUCCESS; /* the launch has done it: the program may free before this runs */
    default:
        return CUDA_SUCCESS;
    }
}
