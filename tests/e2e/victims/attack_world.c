/* SPDX-License-Identifier: MIT */
/* Contexts, made and ended between programs and sometimes within one, and their ledgers: a counter
 * per check, in memory of the context, read when all is quiet.
 *
 * A context ends only under attack.life for writing, that is between operations of all threads.
 */
#include "attack.h"

#define CONTEXT_BYTES ((size_t)16 << 20) /* what be_gpu() asks for */

static const char image[] = "cusim 1\nkernel fill\nkernel check\nkernel copy\n";

static void charge(int device, long contexts)
{
    attack.devices[device].exact += (size_t)contexts * CONTEXT_BYTES;
    attack.devices[device].most += (size_t)contexts * CONTEXT_BYTES;
}

void enter(struct thread *self, struct context *context)
{
    if (self->current == context && self->generation == context->generation)
        return;
    WORKS(self, cuCtxSetCurrent(context->handle));
    self->current = context;
    self->generation = context->generation;
}

struct context *some_context(struct thread *self)
{
    unsigned start = below(self, MAX_CONTEXTS);

    for (unsigned i = 0; i < MAX_CONTEXTS; i++) {
        struct context *context = &attack.contexts[(start + i) % MAX_CONTEXTS];

        if (context->is_alive)
            return context;
    }
    violated(self, "no context is left");
}

/* Captures of its streams and calls that wait for all of a context exclude each other. */
bool begin_sync(struct context *context)
{
    bool is_free;

    pthread_mutex_lock(&attack.lock);
    is_free = context->captures == 0;
    context->syncs += is_free;
    pthread_mutex_unlock(&attack.lock);
    return is_free;
}

void end_sync(struct context *context)
{
    LOCKED(context->syncs--);
}

/* ---- ledgers ---- */

/* By a copy that is over when it returns. */
static void clear_ledger(struct thread *self, struct context *context)
{
    static const uint32_t zeros[MAX_CHECKS];

    WORKS(self, cuMemcpyHtoD(context->ledger, zeros, sizeof zeros));
    context->nchecks = 0;
}

static void open_ledger(struct thread *self, struct context *context)
{
    WORKS(self, cuMemAlloc(&context->ledger, MAX_CHECKS * 4));
    attack.allocs++;
    attack.devices[context->device].exact += MAX_CHECKS * 4;
    attack.devices[context->device].most += most_of(MAX_CHECKS * 4);
    clear_ledger(self, context);
}

static void close_ledger(struct thread *self, struct context *context)
{
    attack.devices[context->device].exact -= MAX_CHECKS * 4;
    attack.devices[context->device].most -= most_of(MAX_CHECKS * 4);
    if (chance(self, 50)) {
        WORKS(self, cuMemFree(context->ledger));
        attack.frees++;
        return;
    }
    attack.leaked_blocks++;
    attack.leaked_bytes += MAX_CHECKS * 4;
}

void verify(struct thread *self, struct context *context)
{
    static uint32_t wrong[MAX_CHECKS];

    enter(self, context);
    WORKS(self, cuCtxSynchronize());
    WORKS(self, cuMemcpyDtoH(wrong, context->ledger, sizeof wrong));
    for (unsigned i = 0; i < context->nchecks; i++) {
        const struct check *check = &context->checks[i];
        uint32_t found = 0;

        if (!wrong[i])
            continue;
        cuMemcpyDtoH(&found, check->address, 4);
        violated(self,
                 "the check of operation %u found %u words of block %u at %#llx that are not %#x; "
                 "by now the first is %#x, which block %u would have written",
                 check->operation, wrong[i], check->block, (unsigned long long)check->address,
                 check->pattern, found, found >> 12);
    }
    attack.checks += context->nchecks;
    clear_ledger(self, context);
}

/* ---- contexts ---- */

static bool has_primary(int device)
{
    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        if (attack.contexts[i].is_alive && attack.contexts[i].is_primary &&
            attack.contexts[i].device == device)
            return true;
    return false;
}

static void open_context(struct thread *self, struct context *context)
{
    context->device = (int)below(self, MAX_DEVICES);
    context->is_primary = chance(self, 40) && !has_primary(context->device);
    if (most_taken(&attack.devices[context->device]) + CONTEXT_BYTES + MAX_CHECKS * 8 >
        attack.devices[context->device].capacity)
        return;
    charge(context->device, 1);
    if (context->is_primary) {
        WORKS(self, cuDevicePrimaryCtxRetain(&context->handle, context->device));
    } else {
        WORKS(self, cuCtxCreate_v2(&context->handle, 0, context->device));
        WORKS(self, cuCtxPopCurrent(NULL));
    }
    context->generation++;
    context->captures = context->blocking_captures = context->syncs = 0;
    context->is_alive = true;
    enter(self, context);
    WORKS(self, cuModuleLoadData(&context->module, image));
    WORKS(self, cuModuleGetFunction(&context->fill, context->module, "fill"));
    WORKS(self, cuModuleGetFunction(&context->check, context->module, "check"));
    WORKS(self, cuModuleGetFunction(&context->copy, context->module, "copy"));
    open_ledger(self, context);
    open_streams(self, context);
    trace(self, "new %scontext %d on device %d", context->is_primary ? "primary " : "",
          (int)(context - attack.contexts), context->device);
}

/* Streams and events of a context end with it, and so does what was to be waited for. */
static void forget_streams(struct context *context)
{
    for (unsigned i = 0; i < MAX_BLOCKS; i++)
        if (attack.blocks[i].serial && attack.blocks[i].home &&
            attack.blocks[i].home->context == context)
            attack.blocks[i].home = NULL;
    memset(context->streams, 0, sizeof context->streams);
}

static void end_handle(struct thread *self, struct context *context)
{
    if (!context->is_primary) {
        if (chance(self, 50))
            WORKS(self, cuCtxSetCurrent(NULL));
        ENDS(self, cuCtxDestroy(context->handle));
    } else if (chance(self, 50)) {
        ENDS(self, cuDevicePrimaryCtxReset(context->device));
    } else {
        ENDS(self, cuDevicePrimaryCtxRelease(context->device));
    }
    self->current = NULL;
}

static bool has_blocks(const struct context *context)
{
    for (unsigned i = 0; i < MAX_BLOCKS; i++)
        if (attack.blocks[i].serial && attack.blocks[i].context == context)
            return true;
    return false;
}

static void release_blocks(struct thread *self, struct context *context, unsigned percent)
{
    for (unsigned i = 0; i < MAX_BLOCKS; i++)
        if (attack.blocks[i].serial && attack.blocks[i].context == context &&
            chance(self, percent)) {
            attack.blocks[i].is_busy = true;
            release(self, &attack.blocks[i]);
        }
}

/* Work of other contexts on what is left to a context has to be over before it may end; the free of
 * a block has waited for it. */
static void close_context(struct thread *self, struct context *context)
{
    trace(self, "end of context %d", (int)(context - attack.contexts));
    drop_graphs(self, context);
    release_blocks(self, context, chance(self, 60) ? 100 : 50);
    for (unsigned i = 0; has_blocks(context) && i < MAX_CONTEXTS; i++) {
        if (!attack.contexts[i].is_alive || &attack.contexts[i] == context)
            continue;
        enter(self, &attack.contexts[i]);
        WORKS(self, cuCtxSynchronize());
    }
    verify(self, context);
    for (unsigned i = 0; i < MAX_BLOCKS; i++)
        if (attack.blocks[i].serial && attack.blocks[i].context == context)
            forget(self, &attack.blocks[i]);
    close_ledger(self, context);
    if (chance(self, 30))
        WORKS(self, cuModuleUnload(context->module));
    end_handle(self, context);
    forget_streams(context);
    charge(context->device, -1);
    context->is_alive = false;
}

static unsigned count_contexts(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        n += attack.contexts[i].is_alive;
    return n;
}

static void open_some(struct thread *self, unsigned wanted)
{
    for (unsigned i = 0; i < MAX_CONTEXTS && count_contexts() < wanted; i++)
        if (!attack.contexts[i].is_alive)
            open_context(self, &attack.contexts[i]);
}

void world_change(struct thread *self)
{
    if (pthread_rwlock_trywrlock(&attack.life) != 0)
        return;
    self->keeps_turn = true;
    if (count_contexts() > 1)
        close_context(self, some_context(self));
    if (chance(self, 50))
        open_some(self, count_contexts() + 1);
    self->keeps_turn = false;
    pthread_rwlock_unlock(&attack.life);
}

void world_begin(struct thread *self)
{
    static const unsigned wanted[] = {1, 1, 1, 2, 2, 2, 3, 4};

    choose_sizes(self);
    for (unsigned i = 0; i < MAX_DEVICES; i++)
        attack.devices[i].peak = most_taken(&attack.devices[i]);
    open_some(self, wanted[below(self, is_loose() ? 6 : 8)]);
}

void world_end_all(struct thread *self)
{
    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        if (attack.contexts[i].is_alive)
            close_context(self, &attack.contexts[i]);
}

/* Frees while checks are on their way, then looks what they found. */
void world_end(struct thread *self)
{
    bool ends_all = chance(self, 10);

    self->operation = attack.noperations + 1;
    pthread_rwlock_wrlock(&attack.life);
    for (unsigned i = 0; i < MAX_BLOCKS; i++)
        if (attack.blocks[i].serial)
            check(self, &attack.blocks[i]);
    drop_graphs(self, NULL);
    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        if (attack.contexts[i].is_alive && (ends_all || chance(self, 15)))
            close_context(self, &attack.contexts[i]);
    for (unsigned i = 0; i < MAX_BLOCKS; i++)
        if (attack.blocks[i].serial) {
            attack.blocks[i].is_busy = true;
            release(self, &attack.blocks[i]);
        }
    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        if (attack.contexts[i].is_alive)
            verify(self, &attack.contexts[i]);
    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        if (attack.contexts[i].is_alive)
            tidy_streams(self, &attack.contexts[i]);
    pthread_rwlock_unlock(&attack.life);
    if (count_contexts() == 0)
        attack.chain = attack.seed + 1;
}
