/* SPDX-License-Identifier: MIT */
/*
 * Demand: how much memory the program has needed lately, and which idle blocks it has not.
 *
 * POOL_IDLE is divided into sweeps. Between two of them each bucket remembers the least number of
 * blocks that it ever had: so many nobody needed. A sweep ages them, and those that are due to go
 * by a smooth curve, all of them after POOL_IDLE, are doomed; core/reclaim/relief.c gives them
 * back. A sweep also takes from threads what they did not need (core/cache/thread_cache.h), and
 * closes one slot of a window of ten in which the most that was live on each device is kept. What
 * the pool may hold follows from that window (cw_demand_cap).
 *
 * Sweeps are made inside the program's calls, by the thread that finds the time come
 * (core/process/deadline.h), or by the background thread while the program makes none. No call of
 * the driver. One sweep at a time; the window is atomics.
 */
#ifndef CW_CORE_DEMAND_H
#define CW_CORE_DEMAND_H

#include <stdint.h>

#include "base/options/options.h"

/* Idle memory on a device, or of the host, that is not worth a thread, nor missed by anybody: a
 * context costs ten times as much. */
#define CW_DEMAND_LITTLE ((uint64_t)32 << 20)

/* Before arming, and again in a forked child. */
void cw_demand_init(const struct cw_options *options);
void cw_demand_reset(void);

/* What is live now, and so many bytes more, is part of the window: at moments when idle memory
 * grows, or more is about to be taken. Any thread. */
void cw_demand_note(uint8_t device, uint64_t more);

/* The most that was live on the device within the window. */
uint64_t cw_demand_live(uint8_t device);

/* What the process may hold on the device (CW_DEVICE_HOST: of pinned memory), idle memory included;
 * UINT64_MAX: as much as it likes, POOL_BUCKET_MAX says what is kept. */
uint64_t cw_demand_cap(uint8_t device);

/* So much was taken ahead of any request: it is wanted, whatever is live. */
void cw_demand_prewarmed(uint8_t device, uint64_t bytes);

/* Makes the sweep whose time has come. No lock held, not inside a slot. */
void cw_demand_serve(void);
/* A lot lies idle: should the program make no more calls, somebody has to see to it (CW_DUE_WATCH).
 * Ends when the watcher finds that it is over: 1. */
void cw_demand_watch(void);
int cw_demand_end_watch(void);

/* 1 if a sweep has been due for longer than the program would take to come by. */
int cw_demand_is_overdue(void);
/* Nanoseconds between two sweeps. */
uint64_t cw_demand_interval(void);

#endif
