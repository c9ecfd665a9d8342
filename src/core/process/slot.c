/* SPDX-License-Identifier: MIT */
/* Stopping the owners of slots. See slot.h. */
#include "core/process/slot.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/process_status.h"
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

/* ---- whether the kernel may be asked ---- */

#define CHILD_STACK 16384 /* of the program's thread, whose stack may have 64 KiB */

/* A seccomp filter may kill whoever makes a call that it does not know. */
static int is_filtered(void)
{
    return cw_process_status("Seccomp") != 0;
}

/* The child: no core file of it, which would be one of the program. The registration is the
 * memory's, which both share. */
static int register_in_child(void *arg)
{
    struct rlimit none = {.rlim_cur = 1,
                          .rlim_max = 1}; /* 1: no program at the end of a pipe either */

    syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL);
    if (ask_kernel(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
        ask_kernel(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        atomic_store((_Atomic int *)arg, 1);
    return 0;
}

/* The call is tried by a child that ends without a signal to the program, and before we go on. */
static int is_safe_to_register(void)
{
    _Alignas(16) char stack[CHILD_STACK];
    _Atomic int is_registered = 0;
    uint64_t all = UINT64_MAX, before = 0; /* the child has handlers of the program */
    int child;

    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
    child = clone(register_in_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK,
                  (void *)&is_registered);
    if (child > 0)
        syscall(SYS_wait4, child, NULL, __WALL, NULL);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
    return atomic_load(&is_registered);
}

void cw_slot_prepare(void)
{
    int saved = errno;

    if (HAS_MEMBARRIER && !is_filtered())
        ask_kernel(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    errno = saved;
}

/* What is left: a filter that kills for a new process, too, and one that is installed later. */
void cw_slot_init(void)
{
    int saved = errno;

    cw_slot_is_asymmetric =
        HAS_MEMBARRIER &&
        (is_filtered() ? is_safe_to_register()
                       : ask_kernel(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0);
    errno = saved;
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
             ask_kernel(MEMBARRIER_CMD_GLOBAL) != 0) {
        __atomic_store_n(&cw_slot_is_asymmetric, 0, __ATOMIC_SEQ_CST);
        cw_session_disarm("the system refuses membarrier(2)");
    }
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
