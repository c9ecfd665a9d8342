/* SPDX-License-Identifier: MIT */
/*
 * Patience: how long a call of the program's waits for the device on our account.
 *
 * A strict free waits for its context because the driver's own free does. Whether it does is not
 * documented, and may depend on the size: a program whose kernel runs until the host says so, and
 * that frees a small block meanwhile, must not hang where it would not without us. So nothing here
 * waits in the driver. An event of the whole context is recorded and asked about, for 20 ms at
 * most, each time past the gate, so that the start of a capture never meets a wait of ours. To ask
 * on about an event that was recorded before is owed, whatever begins or ends meanwhile. While
 * another thread is inside the driver's free, not even that (cw_pool_context_is_in_free). When the
 * time is over the context is *busy*, and no other free waits for it again until the program has
 * synchronised it, or an event shows that the work it was busy with is done: that of a later free,
 * or the one of a free that then went to the driver and waited there. Frees that would be beside
 * one another have no event, and learn nothing there: for 20 ms of each 400 they stand back until
 * nobody is inside.
 *
 * What becomes of the block then is the driver's to say. The first goes to its own free, which
 * waits or does not; and the event tells afterwards which of the two it was. If work went on, the
 * driver itself has shown that its free of a block of that size does not wait: in a busy context
 * blocks up to that size are *put off*, pending like those of FREE_SYNC=deferred, and larger ones
 * still go to the driver. So a program that takes a free for a wait, because its driver's free is
 * one, is never told otherwise.
 *
 * Without such events (drivers before 12.5, or one is refused) there is no way to ask without
 * waiting: only a block of whole pages, which no driver can unmap under running work, is waited
 * for, and the others are the driver's to free.
 *
 * Owns `busy`, `busy_since`, `stood_back`, `unwaited` and `spare` of pool contexts, all atomic; no
 * lock.
 */
#ifndef CW_CORE_PATIENCE_H
#define CW_CORE_PATIENCE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/cache/pool_context.h"
#include "core/process/types.h"

#define CW_PATIENCE_NS UINT64_C(20000000)

enum cw_patience {
    CW_PATIENCE_PASSED,  /* all work that the context had is done: counts as a synchronisation */
    CW_PATIENCE_BUSY,    /* it is not, and will not be waited for */
    CW_PATIENCE_CUT,     /* a capture began, or a context ends, meanwhile */
    CW_PATIENCE_SHUT,    /* the gate is closed, or the context is not usable: nothing was done */
    CW_PATIENCE_REFUSED, /* there are no such events, or the driver gave none */
};

extern CW_HIDDEN _Atomic uint32_t cw_patience_busy; /* contexts that are; those that failed, too */

void cw_patience_reset(void);

/* Waits for the context's work as above. *out_code: the driver's. After BUSY *out_probe, if not
 * NULL, has the event, for cw_patience_learn. */
enum cw_patience cw_patience_wait(struct cw_pool_context *pool_context, int *out_code,
                                  struct cw_free_probe *out_probe);
/* The same without a probe, and for as long as the work lasts. */
enum cw_patience cw_patience_wait_on(struct cw_pool_context *pool_context, int *out_code);
/* The same in the driver, however long that takes, where there are no events. */
enum cw_patience cw_patience_wait_inside(struct cw_pool_context *pool_context, int *out_code);

/* The driver would not record an event of the context: counted, and said once. */
void cw_patience_refused(const struct cw_pool_context *pool_context);
/* The time is over: nobody waits for the context again. */
void cw_patience_end(struct cw_pool_context *pool_context);
/* The program has synchronised the context, or it is no more. */
void cw_patience_renew(struct cw_pool_context *pool_context);
/* An event of the context has passed that was recorded after a free with this stamp
 * (cw_batch_stamp): the work that the context was busy with may be done. */
void cw_patience_passed(struct cw_pool_context *pool_context, uint64_t stamp);

static inline int cw_patience_is_over(const struct cw_pool_context *pool_context)
{
    return CW_UNLIKELY(atomic_load_explicit(&pool_context->busy, memory_order_relaxed) != 0);
}

/* 1 if the context is busy and the driver's free of such a block does not wait for it. */
int cw_patience_is_put_off(const struct cw_pool_context *pool_context, int is_host, uint64_t held);
/* A free was put off for that. */
void cw_patience_put_off(struct cw_pool_context *pool_context);

/* The driver has freed the block that the probe was taken for; or it was not asked after all. */
void cw_patience_learn(const struct cw_free_probe *probe);
void cw_patience_drop(struct cw_free_probe *probe);

#endif
