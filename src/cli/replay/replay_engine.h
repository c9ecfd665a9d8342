/* SPDX-License-Identifier: MIT */
/*
 * What answers the calls of a replay: the pool's own code (cli/replay/replay_core.c), or a model of
 * another allocator (cli/replay/replay_model.h). State is global: one engine, once per process.
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
    uint64_t key;  /* 0: out of memory */
    uint8_t cause; /* the reason: enum cw_cause */
    uint8_t is_hit;
};

struct cw_replay_engine {
    int (*start)(const struct cw_options *options); /* 0, or -1 */
    void (*take)(struct cw_replay_take *take);
    /* 1 if the program's own free returned it to the driver. */
    int (*give)(const struct cw_replay_block *block);
    struct cw_live_sums (*sums)(uint8_t device);
    uint64_t (*limit)(uint8_t device); /* 0: none */
    /* Fills in each device's peaks, limit and requests at the end. 0, or -1 if out of memory. */
    int (*finish)(struct cw_replay_result *result);
    void (*stop)(void);
    int has_endless_device; /* ignores the device size */
};

extern const struct cw_replay_engine cw_replay_core;

/* The kinds of memory that a pool can serve. */
static inline int cw_replay_is_poolable(unsigned kind)
{
    return kind == CW_KIND_DEVICE || kind == CW_KIND_PITCHED || kind == CW_KIND_PINNED;
}

#endif
