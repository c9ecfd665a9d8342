/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden run --torch`: PyTorch's tensors by the line of Python that made them.
 *
 * A directory with a sitecustomize.py (see there) comes first on PYTHONPATH; each process that
 * initialises CUDA through PyTorch leaves its snapshots in it, in torch.PID: lines of fields
 * separated by tabs.
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

#include "base/options/options.h"
#include "live/view.h"
#include "report/model/tensors.h"

#define CW_TORCH_PATH_MAX 512

struct cw_torch {
    char directory[CW_TORCH_PATH_MAX]; /* "": none */
    int is_wanted;
    unsigned processes; /* that left something */
};

/* Makes the directory and sets PYTHONPATH. 0, or -1 after a message. */
int cw_torch_begin(struct cw_torch *torch, const struct cw_options *options);
/* Removes the directory. */
void cw_torch_end(struct cw_torch *torch);

/* What the process of this live layout left; `site` of a row is one of the layout's. NULL: nothing,
 * or no memory. */
struct cw_report_tensors *cw_torch_read(struct cw_torch *torch, const struct cw_view *view);
void cw_torch_free(struct cw_report_tensors *tensors);

#endif
