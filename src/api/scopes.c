/* SPDX-License-Identifier: MIT */
/* Batches and scopes. See scopes.h. */
#include "api/scopes.h"

#include <stdatomic.h>

#include "api/thread.h"
#include "base/log.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"
#include "core/pool/pool.h"
#include "core/process/host.h"

static int check_thread(void)
{
    return cw_session_is_armed() ? CUWARDEN_OK : cw_api_not_armed();
}

/* ---- batches ---- */

int cw_api_batch_begin(void)
{
    int error = check_thread();

    if (error == CUWARDEN_OK)
        cw_pool_batch_begin();
    return error;
}

int cw_api_batch_end(void)
{
    int error = check_thread(), code = 0;
    unsigned depth;

    if (error != CUWARDEN_OK)
        return error;
    depth = cw_api_enter();
    error = cw_pool_batch_end(&code);
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
    struct cw_api_thread *thread = cw_api_thread();
    struct cw_api_scope *scope;
    int error = check_thread();

    if (error != CUWARDEN_OK)
        return error;
    if (thread->depth == CW_API_SCOPES)
        return cw_api_fail(CUWARDEN_INVALID,
                           "this thread is in %u scopes already, as many as can be", CW_API_SCOPES);
    scope = &thread->scope[thread->depth++];
    scope->mark = cw_session_is_armed() ? cw_owner_mark() : 1;
    cw_format(scope->name, sizeof(scope->name), "%s", name != NULL ? name : "");
    return CUWARDEN_OK;
}

static int is_left(uint32_t index, uint64_t mark)
{
    const struct cw_live_block *block = cw_tracker_at(index);

    return atomic_load_explicit(&block->state, memory_order_acquire) == CW_BLOCK_LIVE &&
           block->tid == cw_thread_tid() && cw_owner_id(index) >= mark &&
           (atomic_load(&cw_owner_at(index)->name) & CW_OWNER_KEPT) == 0 &&
           atomic_load(&block->space) == CW_SPACE_ADDRESS;
}

static void free_block(uint32_t index, struct cuwarden_freed *freed)
{
    const struct cw_live_block *block = cw_tracker_at(index);
    uint64_t bytes = atomic_load(&block->bytes), key = atomic_load(&block->key);
    unsigned kind = cw_site_own(cw_site_at(atomic_load(&block->site)))->kind;
    struct cw_api_outside outside;
    int rc;

    if (cw_kind_counted(kind) == CW_COUNTED_NONE)
        return;
    outside = cw_api_pause();
    rc = cw_host->free_block != NULL ? cw_host->free_block((enum cw_kind)kind, key) : -1;
    cw_api_resume(&outside);
    if (rc == 0) {
        freed->blocks++;
        freed->bytes += bytes;
    } else {
        freed->left_blocks++;
        freed->left_bytes += bytes;
    }
}

int cw_api_scope_end(struct cuwarden_freed *out, size_t size)
{
    struct cw_api_thread *thread = cw_api_thread();
    struct cuwarden_freed freed = {0};
    const struct cw_api_scope *scope;
    int error = check_thread();
    uint32_t count;

    if (error != CUWARDEN_OK)
        return error;
    if (thread->depth == 0)
        return cw_api_fail(CUWARDEN_UNBALANCED, "this thread has no scope to end");
    scope = &thread->scope[--thread->depth];
    count = cw_session_is_armed() ? cw_arena_count(&cw_session.arena, CW_TABLE_BLOCK) : 0;
    for (uint32_t i = 1; i < count; i++)
        if (is_left(i, scope->mark))
            free_block(i, &freed);
    if (freed.blocks + freed.left_blocks != 0)
        cw_log(CW_LOG_INFO, "scope '%s': freed %ju block(s) of %ju bytes; left %ju of %ju bytes",
               scope->name, (uintmax_t)freed.blocks, (uintmax_t)freed.bytes,
               (uintmax_t)freed.left_blocks, (uintmax_t)freed.left_bytes);
    if (out != NULL)
        cw_api_give(out, size, &freed, sizeof(freed));
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
    atomic_fetch_or(&cw_owner_at(index)->name, CW_OWNER_KEPT);
    return CUWARDEN_OK;
}
