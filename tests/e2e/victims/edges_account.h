/* SPDX-License-Identifier: MIT */
/* What the bare driver would have taken of device 0 for what lives: exactly, so that it is known of
 * every request whether it would have had it.
 *
 * Units as CUSIM_ALLOC_GRANULARITY has them. Beneath a limit it is the bytes that count, rounded up
 * or not, and no context. Not guarded: the caller's lock, if there are threads.
 */
#ifndef EDGES_ACCOUNT_H
#define EDGES_ACCOUNT_H

#include "edges.h"

struct account {
    size_t total;    /* of the device, or the limit */
    size_t unit;     /* in which blocks of more than half of it are charged */
    size_t fixed;    /* taken by contexts */
    size_t whole;    /* units of large blocks, in bytes */
    size_t packed;   /* bytes of small blocks */
    size_t asked;    /* bytes of all blocks, as asked for */
    bool is_limited; /* total is a limit */
    bool is_refused; /* a request that the driver would have granted, within the pool's budget */
};

/* For the current context of device 0, which is all there is. */
void account_begin(struct account *out);
/* What would be taken with one block more. */
size_t account_after(const struct account *account, size_t bytes);
size_t account_used(const struct account *account);
void account_add(struct account *account, size_t bytes);
void account_sub(struct account *account, size_t bytes);
/* What the pool may have made more of everything that lives. */
size_t account_budget(const struct account *account);
/* The request has been answered; the account is as it was before. */
void account_judge(struct account *account, size_t bytes, CUresult code);

#endif
