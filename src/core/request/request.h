/* SPDX-License-Identifier: MIT */
/*
 * The life of one call, as the hook layer tells it.
 *
 * An allocation: the driver is called first; granted or failed comes after. A free: begin, the
 * driver, end. core/request/ladder.h says what is tried when there is no memory. None of these
 * functions is called under a lock, and none holds one across a call of the driver's.
 */
#ifndef CW_CORE_REQUEST_H
#define CW_CORE_REQUEST_H

#include <stdint.h>

#include "core/process/types.h"

/* The driver gave a block. api: text of the name that the program called. Its record, or 0. */
uint32_t cw_request_granted(const struct cw_request *request, uint32_t api);

/* The call failed with the driver's code, or with ours of the same meaning. cause: CW_CAUSE_COUNT
 * if it was not for lack of memory; else it becomes an event, and the account of what holds the
 * memory (core/request/oom.h) may have to be completed by the caller: its index, or 0. */
uint32_t cw_request_failed(const struct cw_request *request, uint32_t api, int code,
                           enum cw_cause cause);

void cw_request_free_begin(enum cw_space space, uint64_t key, struct cw_request_free *out);
/* A refused free (result CW_FREE_REFUSED or CW_FREE_STREAM) becomes an event with the code, the
 * stack and what is known of the address: why it was refused. */
void cw_request_free_end(const struct cw_request_free *call, uint32_t api,
                         enum cw_free_result result, int code);

/* The current context took an error after which the driver demands a restart of the process. */
void cw_request_fatal(uint32_t api, int code);
/* This context did. */
void cw_request_fatal_in(uint32_t context, uint32_t api, int code);

/* In a forked child. */
void cw_request_reset(void);

#endif
