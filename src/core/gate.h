/* SPDX-License-Identifier: MIT */
/*
 * The gate that every driver call of our own passes, so that none lands inside a capture or in the
 * end of a context.
 *
 * It is a count of our calls in flight and a count of reasons to stay shut. cw_gate_close returns
 * when no call of ours is in flight; while it is closed cw_gate_enter fails at once and the caller
 * does without. A stream capture keeps it closed from before its start until it has ended: a query
 * that lands in a capture can invalidate it (cuda.h: cuThreadExchangeStreamCaptureMode). That is
 * stricter than asking which context captures, and costs us only a sample of memory use.
 */
#ifndef CW_CORE_GATE_H
#define CW_CORE_GATE_H

/* 1: go on, and call cw_gate_leave afterwards. 0: closed. Never waits. */
int cw_gate_enter(void);
void cw_gate_leave(void);

/* Nests. Not to be called between cw_gate_enter and cw_gate_leave. */
void cw_gate_close(void);
void cw_gate_open(void);

/* In a forked child: open, nobody inside. */
void cw_gate_reset(void);

#endif
