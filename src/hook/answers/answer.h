/* SPDX-License-Identifier: MIT */
/*
 * Who calls us: the answers of dlsym, cuGetProcAddress and the runtime's entry point queries.
 *
 * Always: the real resolver is asked first, and a pointer is replaced by ours only if it is an
 * export of the loaded driver that has a row. A lookup that fails natively fails here too.
 */
#ifndef CW_HOOK_ANSWER_H
#define CW_HOOK_ANSWER_H

#include <stdint.h>

#include "base/compiler.h"
#include "hook/resolve/hook_table.h"

/* Our function of each row. */
extern CW_HIDDEN void *const cw_answer_ours[CW_HOOK_COUNT];

/* The answer in place of a pointer from the driver's cuGetProcAddress or the runtime's entry point
 * query: ours, or the same pointer. version 0: not known, then only exact exports are replaced. */
void *cw_answer_instead(void *pfn, const char *name, int version, uint64_t flags);

#endif
