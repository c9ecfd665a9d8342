/* SPDX-License-Identifier: MIT */
/* Stopping the owners of slots. See slot.h. */
#include "core/process/slot.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "core/process/session.h"

/* ThreadSanitizer does not know membarrier(2). */
#if defined(__SANITIZE_THREAD__) /* gcc */
#define HAS_MEMBARRIER 0
#elif defined(__has_feature) /* clang */
#define HAS_MEMBARRIER (!__has_feature(thread_sanitizer))
#else
#define HAS_MEMBARRIER 1
#endif

struct cw_slot cw_slots[CW_SLOTS];
CW_HOT_DATA int cw_slot_is_asymmetric;

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_SLOT); /* held by the one that stops */

static int ask_kernel(int command)
{
    return HAS_MEMBARRIER ? (int)syscall(SYS_membarrier, command, 0, 0) : -1;
}

void cw_slot_init(void)
{
    cw_slot_is_asymmetric = ask_kernel(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void cw_slot_reset(void)
{
    cw_lock_reset(&lock);
    for (int i = 0; i < CW_SLOTS; i++) {
        atomic_store(&cw_slots[i].busy, 0);
        atomic_store(&cw_slots[i].stop, 0);
        cw_slots[i].no_slack = 0;
    }
}

struct cw_slot *cw_slot_enter_always(void)
{
    struct cw_slot *slot;
    unsigned turns = 0;

    while ((slot = cw_slot_enter()) == NULL && cw_thread_slot() != 0)
        cw_lock_relax(&turns);
    return slot;
}

void cw_slot_barrier(void)
{
    int saved = errno;

    /* The registration may have been lost (a process restored from a checkpoint), or the call
     * forbidden. Without a barrier, owners' state cannot be trusted. */
    if (!cw_slot_is_asymmetric)
        atomic_thread_fence(memory_order_seq_cst);
    else if (ask_kernel(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
             (ask_kernel(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0 ||
              ask_kernel(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) &&
             ask_kernel(MEMBARRIER_CMD_GLOBAL) != 0)
        cw_session_disarm("the system refuses membarrier(2)");
    errno = saved;
}

void cw_slot_stop(uint64_t mask)
{
    unsigned turns = 0;

    cw_lock_acquire(&lock);
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
        atomic_store(&cw_slots[__builtin_ctzll(rest)].stop, 1);
    cw_slot_barrier();
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
        while (atomic_load_explicit(&cw_slots[__builtin_ctzll(rest)].busy, memory_order_acquire))
            cw_lock_relax(&turns);
}

void cw_slot_resume(uint64_t mask)
{
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1)
        atomic_store_explicit(&cw_slots[__builtin_ctzll(rest)].stop, 0, memory_order_release);
    cw_lock_release(&lock);
}
