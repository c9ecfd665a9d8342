/* SPDX-License-Identifier: MIT */
/* Contexts come and go. See context_life.h. */
#include "core/pool/context_life.h"

#include <stdatomic.h>
#include <stddef.h>

#include "core/cache/realm.h"
#include "core/cache/thread_cache.h"
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/pending/pending.h"
#include "core/pool/pool.h"
#include "core/pending/waiting.h"

/* The pool makes room for it; and a limit must know the device before the first capture, in which
 * the driver could not be asked. */
static void made(uint32_t context, struct cw_live_context *record)
{
    if (cw_pool_is_on())
        cw_realm_make(context, record);
    if (cw_limit_is_on())
        cw_device_describe((uint8_t)record->device);
}

static uint32_t drain(uint32_t context)
{
    struct cw_realm *realm = cw_realm_of(context);

    if (realm == NULL || !cw_pending_is_any() || !cw_realm_is_usable(realm))
        return 0;
    return cw_pending_drain(realm);
}

static void closing(uint32_t context)
{
    struct cw_realm *realm = cw_realm_of(context);

    if (realm == NULL)
        return;
    cw_realm_close(realm);
    /* First: what is pending is part of threads' grants. */
    cw_realm_to_limbo(realm, cw_pending_seize(realm));
    for (unsigned i = 0; i < CW_POOL_CLASSES; i++) {
        struct cw_pool *pool = atomic_load_explicit(&realm->pool[i], memory_order_acquire);

        if (pool == NULL)
            continue;
        cw_realm_to_limbo(realm, cw_thread_cache_seize(pool, CW_SIZE_CLASSES));
        cw_realm_to_limbo(realm, cw_bucket_take_all(pool));
    }
}

static void ended(uint32_t context, int gone)
{
    struct cw_realm *realm = cw_realm_of(context);

    if (realm == NULL)
        return;
    if (gone)
        cw_realm_forget(realm, cw_realm_die(realm));
    else
        cw_waiting_add(realm, cw_realm_reopen(realm));
}

const struct cw_context_listener cw_context_life_listener = {
    .made = made, .drain = drain, .closing = closing, .ended = ended};
