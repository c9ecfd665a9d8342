/* SPDX-License-Identifier: MIT */
/* Names of call stacks: they identify a call site across rebuilds. */
#ifndef CW_CLI_MATCH_NAME_H
#define CW_CLI_MATCH_NAME_H

#include "cli/compare/match.h"

/* By module number of each model: 1 if the other model has another build of the module. */
struct cw_match_builds {
    const struct cw_model *model; /* two */
    uint8_t *is_rebuilt[2];
};

/* 0, or -1 if out of memory. Free it in any case. */
int cw_match_builds_find(struct cw_match_builds *builds, const struct cw_model *model);
void cw_match_builds_free(struct cw_match_builds *builds);

/* A hash of the site's functions. 0: the site cannot be matched by name. *out_module is a rebuilt
 * module, or 0. */
uint64_t cw_match_name_hash(const struct cw_match_builds *builds, unsigned which,
                            const struct cw_snapshot_site *site, enum cw_match_how how,
                            uint32_t *out_module);

/* For keys: a collision among a million must be practically impossible. */
#define CW_MATCH_SEED UINT64_C(0x9e3779b97f4a7c15)
uint64_t cw_match_mix_text(uint64_t hash, const char *text);

#endif
