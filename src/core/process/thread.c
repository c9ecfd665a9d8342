/* SPDX-License-Identifier: MIT */
/* The per-thread state and the epoch of its caches. See thread.h. */
#include "core/process/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/process/host.h"
#include "core/process/slot.h"

CW_TLS struct cw_thread cw_thread;

CW_HOT_DATA _Atomic uint32_t cw_epoch = 1;

void cw_epoch_advance(void)
{
    atomic_fetch_add(&cw_epoch, 1);
}

/* Bit n: slot n is taken, or has been at some time. Slot 0 is never given out. */
static _Atomic uint64_t slots = 1;
static _Atomic uint64_t slots_used;

void cw_thread_ends(void)
{
    if (cw_thread.slot != 0)
        atomic_fetch_and(&slots, ~((uint64_t)1 << cw_thread.slot));
    /* A later destructor of this thread may still allocate: in the shared slot 0. */
    cw_thread.slot = 0;
    cw_thread.ended = 1;
    if (cw_thread.caches != NULL)
        cw_mem_free(cw_thread.caches, sizeof(*cw_thread.caches));
    cw_thread.caches = NULL;
}

static uint8_t take_slot(void)
{
    uint64_t taken = atomic_load(&slots);

    while (~taken != 0) {
        unsigned slot = (unsigned)__builtin_ctzll(~taken);

        if (atomic_compare_exchange_weak(&slots, &taken, taken | (uint64_t)1 << slot)) {
            atomic_fetch_or(&slots_used, (uint64_t)1 << slot);
            return (uint8_t)slot;
        }
    }
    return 0;
}

uint64_t cw_slot_used(void)
{
    return atomic_load(&slots_used);
}

uint8_t cw_thread_slot_slowly(void)
{
    cw_thread.slot_asked = 1;
    if (cw_host->watch_thread != NULL && cw_host->watch_thread() == 0)
        cw_thread.slot = take_slot();
    return cw_thread.slot;
}

struct cw_thread_caches *cw_thread_make_caches(void)
{
    if (!cw_thread.ended)
        cw_thread.caches = cw_mem_alloc(sizeof(*cw_thread.caches));
    return cw_thread.caches;
}

void cw_thread_reset(void)
{
    cw_thread.tid = 0;
    cw_thread.depth = 0;
    cw_thread.api = 0;
    cw_thread.spares = 0;
    cw_thread.served_key = 0;
    for (unsigned i = 0; cw_thread.caches != NULL && i < CW_SITE_CACHE; i++)
        cw_thread.caches->site[i].site = 0;
    atomic_store(&slots, (uint64_t)1 | (uint64_t)(cw_thread.slot != 0) << cw_thread.slot);
    atomic_store(&slots_used, atomic_load(&slots) & ~(uint64_t)1);
    cw_epoch_advance();
}

uint32_t cw_thread_ask_tid(void)
{
    cw_thread.tid = (uint32_t)syscall(SYS_gettid);
    return cw_thread.tid;
}
