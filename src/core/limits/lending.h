/* SPDX-License-Identifier: MIT */
/*
 * What another process of the user that found no memory has asked this one to give back
 * (core/request/neighbours.h), until it stops waiting. Given back by core/reclaim/reclaim_turn.c,
 * in turns like all work that nobody here waits for. No lock: of two askers at a time the one that
 * wants more counts. One that asks at the very moment at which another of the same size is found to
 * have ended may go with it, and wait in vain.
 */
#ifndef CW_CORE_LENDING_H
#define CW_CORE_LENDING_H

#include <stdint.h>

void cw_lending_reset(void);

void cw_lending_want(uint8_t device, uint64_t bytes, uint64_t now_ns, uint64_t until_ns);
/* 0: enough was given, or nobody waits any more. */
uint64_t cw_lending_wanted(uint8_t device, uint64_t now_ns);
void cw_lending_given(uint8_t device, uint64_t bytes);

#endif
