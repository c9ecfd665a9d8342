/* SPDX-License-Identifier: MIT */
/*
 * The life of one call, as the hook layer tells it.
 *
 * An allocation: the driver is called first; granted or failed comes after. A free: begin, the
 * driver, end. Out of memory: cw_request_wants_retry, and the hook calls the driver once more. None
 * of these functions is called under a lock, and none holds one across a call of the driver's.
 */
#ifndef CW_CORE_REQUEST_H
#define CW_CORE_REQUEST_H

#include <stdint.h>

#include "core/types.h"

/* The driver gave a block; `api` is the text of the name that the program called. Its record, or 0.
 */
uint32_t cw_request_granted(const struct cw_request *request, uint32_t api);

/* The driver refused `bytes`; code is its own. Out of memory becomes an event of the report. */
void cw_request_failed(const struct cw_request *request, uint32_t api, int code, int is_oom);

struct cw_request_free {
    enum cw_space space;
    uint64_t key;
    uint32_t block; /* 0: not known to us */
};
void cw_request_free_begin(enum cw_space space, uint64_t key, struct cw_request_free *out);
/* A refused free (result CW_FREE_REFUSED) becomes an event with the code and the stack. */
void cw_request_free_end(const struct cw_request_free *call, uint32_t api,
                         enum cw_free_result result, int code);

/*
 * A hooked call returned out of memory: gives back what lies idle. 1 if anything did, so that the
 * call is worth repeating; always 0 while a capture runs, and while nothing is registered that
 * could hold idle memory. `reclaim` returns the bytes that it gave back to the driver.
 */
typedef uint64_t (*cw_reclaim_fn)(uint8_t device);
void cw_request_set_reclaim(cw_reclaim_fn reclaim);
/* since: cw_request_reclaims() before the driver was asked; another thread's reclaim counts too. */
int cw_request_wants_retry(uint8_t device, uint32_t since);
uint32_t cw_request_reclaims(void);

/* The current context took an error after which the driver demands a restart of the process. */
void cw_request_fatal(uint32_t api, int code);
/* This context did. */
void cw_request_fatal_in(uint32_t context, uint32_t api, int code);

/* Samples the memory use of the current context's device; at most every 100 ms per device. */
void cw_request_sample(void);
/* The program asked the driver itself: the same sample for nothing. */
void cw_request_sampled(uint64_t free_bytes, uint64_t total_bytes);

#endif
