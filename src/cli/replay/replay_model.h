/* SPDX-License-Identifier: MIT */
/*
 * Models of what other allocators do with the same calls, for comparison. They have their rules
 * from those allocators' documents and were held against the allocators themselves (`make bench`,
 * where these are installed). They stand for device memory; other kinds go to the driver one by
 * one.
 *
 *   unbounded  whole blocks in the pool's own sizes (core/account/size_class.h), of which none ever
 * goes back. A request is a hit if any idle block is of its class, or at most an eighth larger than
 * it: what the other policies' hits are counted against. pytorch    the caching allocator as it is
 * set up by default: multiples of 512 B; up to 1 MiB from segments of 2 MiB, up to 10 MiB from
 * segments of 20 MiB, larger ones from segments of their own in steps of 2 MiB; the best fit is cut
 * where more than 1 MiB remains (among small ones, 512 B), and free neighbours are joined. When
 * there is no memory all free segments go back, and it asks once more. rmm pool_memory_resource as
 * RMM advises to set it up: half of the device from the start and up to nine tenths, growing by
 * half of what remains, or less if there is not so much; multiples of 256 B; the best fit is cut,
 * free neighbours are joined, nothing goes back.
 */
#ifndef CW_CLI_REPLAY_MODEL_H
#define CW_CLI_REPLAY_MODEL_H

#include "cli/replay/replay_engine.h"

extern const struct cw_replay_engine cw_replay_unbounded, cw_replay_pytorch, cw_replay_rmm;

#endif
