/* SPDX-License-Identifier: MIT */
/* Buffers of OpenGL's, as far as CUDA maps them. */
#ifndef CUSIM_SIM_GRAPHICS_H
#define CUSIM_SIM_GRAPHICS_H

#include "sim.h"

/* The context ends, and with it what was registered there. */
void sim_graphics_forget(struct sim_context *ctx);

#endif
