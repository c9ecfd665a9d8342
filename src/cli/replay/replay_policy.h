/* SPDX-License-Identifier: MIT */
/* The policies for replaying one trace, and their results. */
#ifndef CW_CLI_REPLAY_POLICY_H
#define CW_CLI_REPLAY_POLICY_H

#include <stdio.h>

#include "cli/replay/replay.h"

#define CW_POLICIES_MAX 9

/* The model against which all others' hits are counted (cli/replay/replay_model.h). */
#define CW_POLICY_UNBOUNDED "unbounded"

struct cw_policy {
    const char *name;
    const struct cw_replay_engine *engine;
    struct cw_options options;
    struct cw_replay_result result;
};

struct cw_policies {
    const char *trace;
    char shown[4096]; /* its name, as it may be printed */
    uint64_t device_bytes;
    unsigned count;
    struct cw_policy policy[CW_POLICIES_MAX];
};

/* Sets up one policy, from the options, or all policies to compare, each with the other options
 * applied. The struct is large and belongs on the heap. */
void cw_policies_one(struct cw_policies *policies, const struct cw_options *options);
void cw_policies_all(struct cw_policies *policies, const struct cw_options *options);

/* Replays under each policy, several in separate processes. 0, or -1 after a message. */
int cw_policies_run(struct cw_policies *policies);

/* ---- forms of the result ---- */

void cw_replay_print_text(const struct cw_policies *policies, FILE *out);
void cw_replay_print_json(const struct cw_policies *policies, FILE *out);
/* Plots live and held memory over time, and the limit. */
void cw_replay_print_svg(const struct cw_policies *policies, FILE *out);

/* The ceiling for this policy and its options, as shown in the plot and the text: the limit, or
 * else the device size. */
uint64_t cw_policy_ceiling(const struct cw_policies *policies, const struct cw_policy *policy);

#endif
