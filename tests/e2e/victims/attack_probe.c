/* SPDX-License-Identifier: MIT */
/* What the driver says of addresses, what must not come back once others know of it, and frees
 * that must be refused.
 *
 * Freed blocks are remembered in attack.gone, guarded by attack.lock.
 */
#include "attack.h"

#include <unistd.h>

/* ---- questions ---- */

static void ask_live(struct thread *self, struct block *block)
{
    size_t size = 0, offset = block->size > 1
                                  ? below(self, (unsigned)(block->size < 4096 ? block->size : 4096))
                                  : 0;
    CUcontext context = NULL;
    unsigned type = 0, wanted = block->kind == PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    CUdeviceptr base = 0;

    WORKS(self,
          cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, block->address + offset));
    if (context != block->context->handle)
        violated(self, "block %u belongs to another context", block->serial);
    WORKS(self, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block->address));
    if (type != wanted)
        violated(self, "block %u has memory type %u, expected %u", block->serial, type, wanted);
    if (block->kind == PINNED) {
        unsigned flags = ~0u;

        WORKS(self, cuMemHostGetFlags(&flags, (void *)(uintptr_t)block->address));
        if (flags != block->host_flags)
            violated(self, "block %u has flags %u, expected %u", block->serial, flags,
                     block->host_flags);
        return;
    }
    WORKS(self, cuMemGetAddressRange(&base, &size, block->address + offset));
    if (base != block->address || size < block->size || size > most_of(block->size))
        violated(self, "block %u, %zu bytes at %#llx, has a range of %zu bytes at %#llx",
                 block->serial, block->size, (unsigned long long)block->address, size,
                 (unsigned long long)base);
}

/* A freed block that no living one lies in. */
static bool find_gone(struct thread *self, struct gone *out)
{
    unsigned n = attack.ngone < MAX_GONE ? attack.ngone : MAX_GONE, which = below(self, MAX_GONE);
    bool is_found;

    pthread_mutex_lock(&attack.lock);
    is_found = n > 0 && !is_covered(attack.gone[which % n].address);
    if (is_found)
        *out = attack.gone[which % n];
    pthread_mutex_unlock(&attack.lock);
    return is_found;
}

static void ask_gone(struct thread *self)
{
    unsigned type;
    CUdeviceptr base;
    size_t size;
    struct gone gone;

    if (!find_gone(self, &gone) || is_loose() || !attack.is_curious)
        return;
    expect(self, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, gone.address),
           CUDA_ERROR_INVALID_VALUE, "cuPointerGetAttribute of freed memory");
    expect(self, cuMemGetAddressRange(&base, &size, gone.address), CUDA_ERROR_NOT_FOUND,
           "cuMemGetAddressRange of freed memory");
}

static void ask_device(struct thread *self)
{
    struct context *context = some_context(self);
    const struct device *device = &attack.devices[context->device];
    size_t available, total;

    enter(self, context);
    WORKS(self, cuMemGetInfo(&available, &total));
    if (total != device->capacity || available > total)
        violated(self, "cuMemGetInfo says %zu of %zu bytes", available, total);
    if (is_loose() || !attack.is_summing)
        return;
    if (available > total - device->exact || available + most_taken(device) < total)
        violated(self, "cuMemGetInfo says that %zu bytes are free, but %zu to %zu of %zu are taken",
                 available, device->exact, most_taken(device), total);
}

void probe(struct thread *self)
{
    unsigned what = below(self, 100);
    struct block *block;

    if (what < 20)
        ask_device(self);
    else if (what < 50)
        ask_gone(self);
    else if ((block = take_block(self, NULL))) {
        enter(self, block->context);
        ask_live(self, block);
        put_block(block);
    }
}

/* ---- exports ---- */

void export_block(struct thread *self, struct block *block)
{
    unsigned on = 1;
    int file;

    if (block->kind != DEVICE)
        return;
    enter(self, block->context);
    if (chance(self, 50)) {
        WORKS(self, cuIpcGetMemHandle(&block->handle, block->address));
        block->has_handle = true;
        trace(self, "block %u is exported", block->serial);
    } else if (chance(self, 60)) {
        WORKS(self, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block->address));
        block->has_memops = true;
        trace(self, "block %u has its copies synchronous", block->serial);
    } else if (block->size % 4096 == 0 && block->address % 4096 == 0) {
        expect(self,
               cuMemGetHandleForAddressRange(&file, block->address, block->size,
                                             CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
               CUDA_SUCCESS, "cuMemGetHandleForAddressRange");
        close(file);
    }
}

/* The newest freed block that was at this address. */
static bool find_predecessor(const struct block *block, struct gone *out)
{
    unsigned n = attack.ngone < MAX_GONE ? attack.ngone : MAX_GONE;
    bool is_found = false;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 1; i <= n && !is_found; i++) {
        const struct gone *gone = &attack.gone[(attack.ngone - i) % MAX_GONE];

        is_found = gone->address == block->address && (gone->has_handle || gone->has_memops);
        if (is_found)
            *out = *gone;
    }
    pthread_mutex_unlock(&attack.lock);
    return is_found;
}

/* No code goes into the hash here: what is asked depends on addresses.
 * An address may come back; memory that others can reach, or that has been made different, may not.
 */
void check_new(struct thread *self, struct block *block)
{
    struct gone gone;
    unsigned is_on = 0;

    if (block->address % 256 && block->kind != PINNED)
        violated(self, "block %u at %#llx is not aligned", block->serial,
                 (unsigned long long)block->address);
    ask_live(self, block);
    if (block->kind == PINNED || !find_predecessor(block, &gone))
        return;
    expect(self, cuPointerGetAttribute(&is_on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block->address),
           CUDA_SUCCESS, "cuPointerGetAttribute");
    if (is_on)
        violated(self, "block %u is new, but its copies are synchronous", block->serial);
    if (!gone.has_handle)
        return;
    expect(self, cuIpcGetMemHandle(&block->handle, block->address), CUDA_SUCCESS,
           "cuIpcGetMemHandle");
    block->has_handle = true;
    if (memcmp(&block->handle, &gone.handle, sizeof gone.handle) == 0)
        violated(self, "block %u at %#llx is memory that was exported before it was freed",
                 block->serial, (unsigned long long)block->address);
}

/* ---- wrong frees ---- */

static void try_free(struct thread *self, CUdeviceptr address, bool is_of_host, const char *what)
{
    struct guard guard = guard_begin(self);
    CUresult code = is_of_host ? cuMemFreeHost((void *)(uintptr_t)address) : cuMemFree(address);

    trace(self, "%s, %#llx: %d", what, (unsigned long long)address, (int)code);
    if (!guard_end(self, &guard, code, what))
        return;
    expect(self, code, CUDA_ERROR_INVALID_VALUE, what);
    LOCKED(attack.bad_frees++);
}

static void free_again(struct thread *self)
{
    struct gone gone;

    /* Whether there is anything to free depends on addresses, and what it does to captures on that.
     */
    if (attack.is_deterministic && attack.captures > 0)
        return;
    if (pthread_rwlock_trywrlock(&attack.addresses) != 0)
        return;
    self->keeps_turn = true;
    if (find_gone(self, &gone))
        try_free(self, gone.address, gone.kind == PINNED, "free of a freed block");
    self->keeps_turn = false;
    pthread_rwlock_unlock(&attack.addresses);
}

static void misfree_live(struct thread *self, struct block *block)
{
    if (block->size > 512 && chance(self, 60))
        try_free(self, block->address + 512, block->kind == PINNED,
                 "free of the inside of a block");
    else
        try_free(self, block->address, block->kind != PINNED, "free with the wrong function");
}

void misfree(struct thread *self)
{
    unsigned what = below(self, 100);
    struct block *block;
    int local;

    enter(self, some_context(self));
    if (what < 50)
        free_again(self);
    else if (what < 60)
        try_free(self, (CUdeviceptr)(uintptr_t)&local, what % 2, "free of a local variable");
    else if ((block = take_block(self, NULL))) {
        misfree_live(self, block);
        put_block(block);
    }
}

/* ---- what the simulated driver has noticed ---- */

void count_misuse(struct thread *self)
{
    static const char *const kinds[] = {"use_after_free", "out_of_bounds", "wild_access",
                                        "no_access",      "stale_handle",  "after_teardown"};
    unsigned long long frees;

    if (!cusim_misuse_of)
        return;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (cusim_misuse_of(kinds[i]))
            violated(self, "the driver noticed %llu cases of %s", cusim_misuse_of(kinds[i]),
                     kinds[i]);
    if (cusim_misuse_of("capture") != attack.refused)
        violated(self, "the driver noticed %llu calls that captures forbid, the program made %llu",
                 cusim_misuse_of("capture"), attack.refused);
    frees = cusim_misuse_of("double_free") + cusim_misuse_of("unknown_free") +
            cusim_misuse_of("wrong_free");
    if (frees > attack.bad_frees)
        violated(self, "the driver noticed %llu wrong frees, the program made %llu", frees,
                 attack.bad_frees);
}
