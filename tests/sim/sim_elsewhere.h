/* SPDX-License-Identifier: MIT */
/* Driver functions whose own headers may be missing, or need those of a graphics library. */
#ifndef CUSIM_SIM_ELSEWHERE_H
#define CUSIM_SIM_ELSEWHERE_H

#include <cuda.h>

CUresult cuProfilerStart(void), cuProfilerStop(void);
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *out, unsigned int buffer,
                                    unsigned int flags);

#endif
