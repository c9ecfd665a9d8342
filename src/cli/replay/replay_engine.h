/* SPDX-License-Identifier: MIT */
/*
 * Who answers the calls of a replay: the pool's own code (cli/replay/replay_core.c), or a model of
 * what another allocator does (cli/replay/replay_model.h). State is the process's: one engine,
 * once.
 */
#ifndef CW_CLI_REPLAY_ENGINE_H
#define CW_CLI_REPLAY_ENGINE_H

#include <stdint.h>

#include "base/options/options.h"
#include "cli/replay/replay.h"
#include "cli/replay/replay_map.h"
#include "live/view.h"

struct cw_replay_take {
    uint64_t bytes;
    uint8_t device; /* ordinal or CW_DEVICE_HOST */
    uint8_t kind;   /* enum cw_kind */
    /* The answer. */
    uint64_t key;  /* 0: no memory */
    uint8_t cause; /* why: enum cw_cause */
    uint8_t is_hit;
};

struct cw_replay_engine {
    int (*start)(const struct cw_options *options); /* 0, or -1 */
    void (*take)(struct cw_replay_take *take);
    /* 1: the driver has it again, by the program's own free. */
    int (*give)(const struct cw_replay_block *block);
    struct cw_live_sums (*sums)(uint8_t device);
    uint64_t (*limit)(uint8_t device); /* 0: none */
    /* What is known of each device at the end: peaks, limit, requests. 0, or -1 without memory. */
    int (*finish)(struct cw_replay_result *result);
    void (*stop)(void);
    int has_endless_device; /* whatever size was asked for */
};

extern const struct cw_replay_engine cw_replay_core;

/* Of these kinds a pool can serve requests. */
static inline int cw_replay_is_poolable(unsigned kind)
{
    return kind == CW_KIND_DEVICE || kind == CW_KIND_PITCHED || kind == CW_KIND_PINNED;
}

#endif
