/* SPDX-License-Identifier: MIT */
/*
 * Batches of frees: the calling thread's frees from begin to end do not wait one by one, as with
 * FREE_SYNC=deferred; the end of the outermost waits once, for the current context and for as long
 * as that has work, as the driver's own frees would have. Without context events nothing is put
 * off. Owns `batches` of a thread; no lock.
 */
#ifndef CW_CORE_FREE_BATCH_H
#define CW_CORE_FREE_BATCH_H

void cw_free_batch_begin(void);
/* *out_code: the driver's, of that wait. -1: there is no batch to end. */
int cw_free_batch_end(int *out_code);
/* The same without a wait: what was put off stays so. */
int cw_free_batch_leave(void);

#endif
