/* SPDX-License-Identifier: MIT */
/* Names of the driver's error codes, as far as frees, allocations and broken contexts have them. */
#ifndef CW_REPORT_ERROR_NAME_H
#define CW_REPORT_ERROR_NAME_H

#include <stddef.h>

#define CW_ERROR_NAME_MAX 64

/* 1 for the code by which MPS tells a client that it was ended, maybe because it had borrowed. */
int cw_error_is_eviction(int code);

/* "CUDA_ERROR_ILLEGAL_ADDRESS (700)", or "error 12345". Returns buf. */
char *cw_error_format(char *buf, size_t cap, int code);

#endif
