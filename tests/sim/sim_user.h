/* SPDX-License-Identifier: MIT */
/* The shares that graphs have in user objects. */
#ifndef CUSIM_SIM_USER_H
#define CUSIM_SIM_USER_H

#include "sim.h"

/* The copy of a graph has as many of its own. */
void sim_user_copy_shares(struct sim_graph *to, const struct sim_graph *from);
void sim_user_drop_shares(struct sim_graph *graph);

#endif
