/* SPDX-License-Identifier: MIT */
/*
 * The Python frames of the thread that waits for the calling one.
 *
 * PyTorch's backward pass runs in threads of C++, one a device, named pt_autograd_0 and so on,
 * while the thread that called backward() waits in one function of torch.autograd. Its frames tell
 * what the memory is for; the worker has none of its own, or those of a Python function that C++
 * called.
 *
 * Another thread's memory can change or go while it is read. So the kernel copies it
 * (process_vm_readv(2) of this process), which refuses what is not there, and what was copied is
 * believed only if the thread has used no processor time meanwhile, or is where it was. Until it
 * uses some it is not read again: a worker asks for little more than that time. Where a system call
 * is refused there are no such frames.
 */
#ifndef CW_CORE_PYTHON_WAITING_H
#define CW_CORE_PYTHON_WAITING_H

#include <stdint.h>

#include "core/python/python.h"

struct cw_python_worker;

/* The calling thread was found to have this state: once, whenever it has another one. Remembers it,
 * for workers to look at, unless the thread is a worker. NULL: it is none, or there are too many.
 */
struct cw_python_worker *cw_python_waiting_meet(uintptr_t state);
/* Of all threads. When the interpreter goes, and in a forked child. */
void cw_python_waiting_forget(void);

/* By the worker's own thread: innermost first, at most max; how many. 0: no thread waits, or more
 * than one does. */
unsigned cw_python_waiting_walk(struct cw_python_worker *worker, struct cw_python_frame *out,
                                unsigned max);
/* As cw_python_describe; the frame may be gone. */
int cw_python_waiting_describe(const struct cw_python_frame *frame, struct cw_python_text *out);

#endif
