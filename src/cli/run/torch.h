/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden run --torch`: PyTorch's tensors by the line of Python that made them.
 *
 * A directory beside the library, with a sitecustomize.py (see there), comes first on PYTHONPATH.
 * Processes that outlive the run, here or on other machines, keep it there, so it is one that stays
 * and that nobody else can make. Each process that initialises CUDA through PyTorch leaves its
 * snapshots in the run's directory (cli/input/run_live.h), which the variable CW_TORCH_VARIABLE
 * names, in torch.PID: lines of fields separated by tabs.
 *
 *   cuwarden-torch 1 VERSION     the head
 *   E TEXT                       why there are no snapshots
 *   P BYTES                      what the tensors of each device held at most, added up
 *   S KIND TIME                  a snapshot: half, peak or exit; CLOCK_MONOTONIC, ns
 *   G DEVICE ADDRESS BYTES       a segment, as PyTorch took it from the driver; 0 0: given back
 *   K                            a stack; segments and stacks count from 0 in each snapshot
 *   F FILE LINE FUNCTION         its frames, innermost first
 *   B SEGMENT STACK COUNT BYTES  tensors of that stack in that segment
 */
#ifndef CW_CLI_TORCH_H
#define CW_CLI_TORCH_H

#include <stddef.h>

#include "live/live_dir.h"
#include "live/view.h"
#include "report/model/tensors.h"

/* Directories of runs inside each other are separated by colons. */
#define CW_TORCH_VARIABLE "_CUWARDEN_TORCH"

struct cw_torch {
    char directory[CW_PLACE_MAX]; /* "": none */
    int is_wanted;
    unsigned processes; /* that left something */
};

/* Sets the variables, for the directory of the run and what lies beside the library. If that fails,
 * it prints a message, and no process leaves anything. */
void cw_torch_begin(struct cw_torch *torch, const char *directory, const char *library);
/* Removes what is left in the directory. */
void cw_torch_end(struct cw_torch *torch);

/* What the process of this live layout left; `site` of a row is one of the layout's. NULL: nothing,
 * or no memory. */
struct cw_report_tensors *cw_torch_read(struct cw_torch *torch, const struct cw_view *view);
void cw_torch_free(struct cw_report_tensors *tensors);

#endif
