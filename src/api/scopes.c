/* SPDX-License-Identifier: MIT */
/* Batches and scopes. See scopes.h. */
#include "api/scopes.h"

#include <stdatomic.h>

#include "api/leaks.h"
#include "api/thread.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"
#include "core/device/context.h"
#include "core/pool/free_batch.h"
#include "core/process/host.h"

/* ---- batches ---- */

int cw_api_batch_begin(void)
{
    int error = cw_api_check_active();

    if (error == CUWARDEN_OK)
        cw_free_batch_begin();
    return error;
}

int cw_api_batch_end(void)
{
    int error = cw_api_check_active(), code = 0;
    unsigned depth;

    if (error != CUWARDEN_OK)
        return error;
    depth = cw_api_enter();
    error = cw_free_batch_end(&code);
    cw_api_leave(depth);
    if (error != 0)
        return cw_api_fail(CUWARDEN_UNBALANCED, "this thread has no batch to end");
    return code == 0
               ? CUWARDEN_OK
               : cw_api_fail(CUWARDEN_DRIVER,
                             "the wait for the frees of a batch: the driver's code is %d", code);
}

/* ---- scopes ---- */

int cw_api_scope_begin(const char *name)
{
    int error = cw_api_check_active();
    struct cw_api_thread *thread;
    struct cw_api_scope *scope;

    if (error != CUWARDEN_OK)
        return error;
    thread = cw_api_thread();
    if (thread == NULL)
        return CUWARDEN_OUT_OF_HOST;
    if (thread->depth == CW_API_SCOPES)
        return cw_api_fail(CUWARDEN_INVALID,
                           "this thread is in %u scopes already, as many as can be", CW_API_SCOPES);
    scope = &thread->scope[thread->depth++];
    scope->mark = cw_session_is_armed() ? cw_owner_mark() : 1;
    cw_format(scope->name, sizeof(scope->name), "%s", name != NULL ? name : "");
    return CUWARDEN_OK;
}

/* The end of one, which looks at each block twice: whose are those that are left, then frees. */
struct ending {
    uint64_t mark;
    struct cw_api_owners *owners;
    struct cuwarden_freed freed;
    uint64_t waited, refused; /* devices, by their bits: all work is done; a wait cannot be */
};

static int is_left(uint32_t index, uint64_t mark)
{
    const struct cw_live_block *block = cw_tracker_at(index);

    return atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE &&
           block->tid == cw_thread_tid() && cw_owner_id(index) >= mark &&
           !cw_owner_is_kept(index) && atomic_load(&block->space) == CW_SPACE_ADDRESS;
}

static enum cw_api_owner owner_of(const struct ending *ending, uint32_t site)
{
    return ending->owners->pid == cw_session.pid && site < ending->owners->sites
               ? (enum cw_api_owner)ending->owners->of[site]
               : CW_API_OWNER_UNKNOWN;
}

/* A snapshot for each scope would be slow: the answer for a site stays. */
static void ask_owners(struct cw_api_owners *owners)
{
    struct cw_api_owners now = {.sites = cw_arena_count(&cw_session.arena, CW_TABLE_SITE),
                                .pid = cw_session.pid};
    unsigned depth = cw_api_enter();

    now.of = cw_mem_alloc(now.sites);
    if (now.of != NULL && cw_api_leaks_owners(now.of, now.sites) != 0) {
        cw_mem_free(now.of, now.sites);
        now.of = NULL;
    }
    if (now.of == NULL)
        now.sites = 0;
    if (owners->of != NULL)
        cw_mem_free(owners->of, owners->sites);
    *owners = now;
    cw_api_leave(depth);
}

/* Stream-ordered memory: a free that names no stream waits for none. */
static int wait_for(struct ending *ending, unsigned device)
{
    uint64_t bit = device < CW_MAX_DEVICES ? (uint64_t)1 << device : 0;

    if (((ending->waited | ending->refused) & bit) == 0) {
        if (bit != 0 && cw_context_wait_on(device) == 0)
            ending->waited |= bit;
        else
            ending->refused |= bit;
    }
    return (ending->waited & bit) != 0 ? 0 : -1;
}

static int free_block(struct ending *ending, const struct cw_live_site *site, uint64_t key)
{
    unsigned kind = cw_site_own(site)->kind;
    struct cw_api_outside outside;
    int rc = -1;

    outside = cw_api_pause();
    if (cw_host->free_block != NULL &&
        (kind != CW_KIND_ASYNC || wait_for(ending, cw_site_device(site)) == 0))
        rc = cw_host->free_block((enum cw_kind)kind, key);
    cw_api_resume(&outside);
    return rc;
}

static void end_block(struct ending *ending, uint32_t index)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    uint64_t bytes = atomic_load(&block->bytes), key = atomic_load(&block->key);
    uint32_t site = atomic_load(&block->site);

    if (cw_kind_counted(cw_site_own(cw_site_at(site))->kind) == CW_COUNTED_NONE)
        return;
    if (owner_of(ending, site) == CW_API_OWNER_PROGRAM &&
        free_block(ending, cw_site_at(site), key) == 0) {
        ending->freed.blocks++;
        ending->freed.bytes += bytes;
    } else {
        ending->freed.left_blocks++;
        ending->freed.left_bytes += bytes;
    }
}

static void end_blocks(struct ending *ending)
{
    uint32_t count = cw_arena_count(&cw_session.arena, CW_TABLE_BLOCK);
    int is_asked = 0;

    for (uint32_t i = 1; i < count && !is_asked; i++)
        if (is_left(i, ending->mark) &&
            owner_of(ending, atomic_load(&cw_tracker_at(i)->site)) == CW_API_OWNER_UNKNOWN) {
            ask_owners(ending->owners);
            is_asked = 1;
        }
    for (uint32_t i = 1; i < count; i++)
        if (is_left(i, ending->mark))
            end_block(ending, i);
}

int cw_api_scope_end(struct cuwarden_freed *out, size_t size)
{
    int error = cw_api_check_active();
    struct cw_api_thread *thread;
    const struct cw_api_scope *scope;
    struct ending ending = {.mark = 0};
    const struct cuwarden_freed *freed = &ending.freed;

    if (error != CUWARDEN_OK)
        return error;
    thread = cw_api_thread();
    if (thread == NULL || thread->depth == 0)
        return cw_api_fail(CUWARDEN_UNBALANCED, "this thread has no scope to end");
    scope = &thread->scope[--thread->depth];
    ending.mark = scope->mark;
    ending.owners = &thread->owners;
    if (cw_session_is_armed())
        end_blocks(&ending);
    if (freed->blocks + freed->left_blocks != 0)
        cw_log(CW_LOG_INFO, "scope '%s': freed %ju block(s) of %ju bytes; left %ju of %ju bytes",
               scope->name, (uintmax_t)freed->blocks, (uintmax_t)freed->bytes,
               (uintmax_t)freed->left_blocks, (uintmax_t)freed->left_bytes);
    if (out != NULL)
        cw_api_give(out, size, freed, sizeof(*freed));
    if (thread->depth == 0 && !thread->is_watched)
        cw_api_thread_ends(); /* nobody would at the thread's end */
    return CUWARDEN_OK;
}

int cw_api_keep(const void *address)
{
    uint64_t key = (uint64_t)(uintptr_t)address;
    int error = cw_api_check_started();
    uint32_t index;

    if (error != CUWARDEN_OK)
        return error;
    index = cw_tracker_find(CW_SPACE_ADDRESS, key);
    if (index == 0 || atomic_load(&cw_tracker_at(index)->state) != CW_BLOCK_LIVE)
        return cw_api_fail(CUWARDEN_NOT_FOUND, "no live block begins at 0x%llx",
                           (unsigned long long)key);
    cw_owner_keep(index);
    return CUWARDEN_OK;
}
