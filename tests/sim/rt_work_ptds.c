/* SPDX-License-Identifier: MIT */
/* The functions of rt_work.c for programs whose stream 0 is the per-thread one. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#include "rt_work.c"
