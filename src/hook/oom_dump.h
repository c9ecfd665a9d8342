/* SPDX-License-Identifier: MIT */
/* Completes the account of an out of memory (core/oom.h) with who holds the memory, and prints it.
 */
#ifndef CW_HOOK_OOM_DUMP_H
#define CW_HOOK_OOM_DUMP_H

#include <stdint.h>

/* Inside the hook whose call has failed, with no lock held. */
void cw_oom_dump(uint32_t account);

#endif
