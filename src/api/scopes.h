/* SPDX-License-Identifier: MIT */
/*
 * Batches of frees, which share one wait, and scopes, which free what was allocated in them.
 *
 * Both belong to the calling thread and need no lock. A scope is a mark (core/account/owner.h):
 * what the thread has allocated since, and still has at the end, is freed by the functions that the
 * program would have called, but for blocks that are kept, and those of which a leak check says
 * that they are somebody else's.
 */
#ifndef CW_API_SCOPES_H
#define CW_API_SCOPES_H

#include "api/api.h"

int cw_api_batch_begin(void);
int cw_api_batch_end(void);

int cw_api_scope_begin(const char *name);
int cw_api_scope_end(struct cuwarden_freed *out, size_t size);
int cw_api_keep(const void *address);

#endif
