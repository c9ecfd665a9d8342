/* SPDX-License-Identifier: MIT */
/*
 * Models of other allocators handling the same calls, for comparison. Their rules come from those
 * allocators' documentation and were verified against the allocators themselves (`make bench`, if
 * these are installed). They apply to device memory; other kinds go to the driver one by one.
 *
 * - unbounded: whole blocks in the pool's own sizes (core/account/size_class.h), never released. A
 *   request is a hit if any idle block is of its class, or at most an eighth larger: the reference
 *   for the hits of the other policies.
 * - pytorch: the caching allocator in its default configuration: multiples of 512 B; up to 1 MiB
 *   from segments of 2 MiB, up to 10 MiB from segments of 20 MiB, larger ones from segments of
 *   their own in steps of 2 MiB; the best fit is split if more than 1 MiB remains (512 B among
 *   small ones), and free neighbours are merged. If out of memory, all free segments are released,
 *   and the request is retried.
 * - rmm: pool_memory_resource as RMM recommends: half of the device from the start and up to nine
 *   tenths, growing by half of the rest, or less if there is not so much; multiples of 256 B; the
 *   best fit is split, free neighbours are merged, nothing is released.
 */
#ifndef CW_CLI_REPLAY_MODEL_H
#define CW_CLI_REPLAY_MODEL_H

#include "cli/replay/replay_engine.h"

extern const struct cw_replay_engine cw_replay_unbounded, cw_replay_pytorch, cw_replay_rmm;

#endif
