/* SPDX-License-Identifier: MIT */
/*
 * The audit compares what we have seen of the driver's memory with what another tool has seen.
 *
 * Both report the same calls, the tool later and in batches, so the order of one side's reports
 * against the other's does not matter: reports of one address are added up for each side, and an
 * address that both sides have reported equally often is settled and forgotten. Only one side has
 * seen what is left at the end. Frees with the end of a context are excused: the tool may report
 * them or not. So are registered memory, the levels of a mipmapped array beyond one, and a device's
 * own pool, of which we count no call.
 *
 * A tool that follows contexts, as CUPTI does, tells of a block once for each context that its
 * device has: as it is taken and given back, again as a context is made, and as one ends. The
 * context that told first speaks for the block; what others tell of it is a repetition. Where the
 * speaker's context ends before another that has the block, what was told is in doubt, and no
 * finding if we have not seen it.
 *
 * It compares what was taken from and given back to the driver (held bytes), not what the program
 * asked of our pool. Owns the table of what is not settled, guarded by one lock (CW_RANK_AUDIT).
 * Nothing is done, and one word is read for each block, until begin.
 */
#ifndef CW_CORE_AUDIT_H
#define CW_CORE_AUDIT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "live/arena.h"

/* What the tool tells. */
struct cw_audit_record {
    enum cw_audit_op op;
    enum cw_audit_class class;
    uint64_t address, bytes;
    uint32_t context;   /* the tool's number of the context that it tells this of; 0: of none */
    const char *source; /* path of the object that asked, or NULL */
};

extern CW_HIDDEN _Atomic int cw_audit_on;

/* From now on both sides report. Once in a session. */
void cw_audit_begin(struct cw_arena *arena, uint32_t tool_version);
/* The audit was asked for and there will be none. */
void cw_audit_refuse(struct cw_arena *arena, const char *why);

/* The tool's side, from any thread, until cw_audit_end. */
void cw_audit_seen(const struct cw_audit_record *record);
/* One report of the tool's, if it has one more than we, is of no call of the program's. */
void cw_audit_excuse(enum cw_audit_op op, enum cw_audit_class class);
void cw_audit_variable(const char *name, uint64_t bytes, int is_managed);
void cw_audit_dropped(uint64_t records);

/* Our side ends; the tool may still report earlier calls. */
void cw_audit_close(void);
/* Makes the account. */
void cw_audit_end(void);
/* The process ends without one. Takes no lock: it may have interrupted a holder. */
void cw_audit_cut(void);
void cw_audit_reset(void);

void cw_audit_block(const struct cw_live_block *block, enum cw_audit_op op, int with_context);

/* The driver gave the block. */
static inline void cw_audit_taken(const struct cw_live_block *block)
{
    if (CW_UNLIKELY(atomic_load_explicit(&cw_audit_on, memory_order_relaxed)))
        cw_audit_block(block, CW_AUDIT_TAKEN, 0);
}

/* The driver has the block again; with_context: it went with its context. While the record is still
 * whole. */
static inline void cw_audit_given(const struct cw_live_block *block, int with_context)
{
    if (CW_UNLIKELY(atomic_load_explicit(&cw_audit_on, memory_order_relaxed)))
        cw_audit_block(block, CW_AUDIT_GIVEN, with_context);
}

#endif
