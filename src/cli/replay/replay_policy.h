/* SPDX-License-Identifier: MIT */
/* The policies that one trace is replayed under, and their results. */
#ifndef CW_CLI_REPLAY_POLICY_H
#define CW_CLI_REPLAY_POLICY_H

#include <stdio.h>

#include "cli/replay/replay.h"

#define CW_POLICIES_MAX 9

/* A model that all others' hits are counted against (cli/replay/replay_model.h). */
#define CW_POLICY_UNBOUNDED "unbounded"

struct cw_policy {
    const char *name;
    const struct cw_replay_engine *engine;
    struct cw_options options;
    struct cw_replay_result result;
};

struct cw_policies {
    const char *trace;
    uint64_t device_bytes;
    unsigned count;
    struct cw_policy policy[CW_POLICIES_MAX];
};

/* Sets up one policy, as the options say it, or all that there are to compare, each with what the
 * options set besides. A struct of that size belongs on the heap. */
void cw_policies_one(struct cw_policies *policies, const struct cw_options *options);
void cw_policies_all(struct cw_policies *policies, const struct cw_options *options);

/* Replays under each of them, several in processes of their own. 0, or -1 after a message. */
int cw_policies_run(struct cw_policies *policies);

/* ---- forms of the result ---- */

void cw_replay_print_text(const struct cw_policies *policies, FILE *out);
void cw_replay_print_json(const struct cw_policies *policies, FILE *out);
/* A picture: what was live and held over time, and the limit. */
void cw_replay_print_svg(const struct cw_policies *policies, FILE *out);

/* The smallest that a process could hold on a device under this policy and its options, as the
 * picture and the text show it: the limit, else the device. */
uint64_t cw_policy_ceiling(const struct cw_policies *policies, const struct cw_policy *policy);

#endif
