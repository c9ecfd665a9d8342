/* SPDX-License-Identifier: MIT */
/* Completes the account of an out of memory (core/request/oom.h) with the holders of the memory,
 * and prints it. The complete report goes to a file (hook/services/dump.h), which its last line
 * names. */
#ifndef CW_HOOK_OOM_DUMP_H
#define CW_HOOK_OOM_DUMP_H

#include <stdint.h>

/* Inside the hook whose call has failed, with no lock held. */
void cw_oom_dump(uint32_t account);

#endif
