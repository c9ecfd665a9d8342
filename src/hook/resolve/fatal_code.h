/* SPDX-License-Identifier: MIT */
/* Codes of the driver that stick to a context. Stateless. */
#ifndef CW_HOOK_FATAL_CODE_H
#define CW_HOOK_FATAL_CODE_H

/* 1 for a code after which cuda.h demands a new process or context. */
int cw_fatal_code_is(int rc);

#endif
