/* SPDX-License-Identifier: MIT */
/* The processes of a parallel job side by side, for `cuwarden merge`. */
#ifndef CW_CLI_RANKS_H
#define CW_CLI_RANKS_H

#include <stdint.h>
#include <stdio.h>

#include "cli/compare/match.h"
#include "cli/model/model.h"
#include "cli/model/select.h"

#define CW_RANK_LABEL_MAX 48
#define CW_OUTLIER_NUM    5 /* a rank is an outlier if its peak exceeds 5/4 of the median */
#define CW_OUTLIER_DEN    4

struct cw_rank {
    char label[CW_RANK_LABEL_MAX]; /* "3"; where two have it, "3:PID" or "3:PID#2"; "#2": the third
                                      file, rank unknown */
    uint64_t peak;                 /* of its devices, host excluded; with --device, of that alone */
    int is_outlier;
};

/* One rank's leaks on one device. */
struct cw_ranks_leaks {
    uint64_t bytes, blocks;
    uint32_t sites;
};

struct cw_ranks_spread {
    uint64_t min, median, max, sum;
    uint64_t mean;
    uint32_t max_rank; /* index; the first of several */
    uint32_t ranks;    /* that have the site */
};

struct cw_ranks {
    struct cw_model *model; /* by rank */
    struct cw_rank *rank;
    uint32_t count;
    struct cw_selection selection;
    int by_device;
    struct cw_match match;
    struct cw_ranked
        *row; /* selected sites of the match that hold something, the largest maximum first */
    uint32_t rows;
    uint64_t median_peak;
    uint64_t *scratch; /* of ranks numbers */
};

/* `model` follows the order of the operands. 0, or -1 after a message. Free it in any case. */
int cw_ranks_make(struct cw_ranks *ranks);
void cw_ranks_free(struct cw_ranks *ranks);

/* Over all ranks; a rank without the site counts as 0. */
struct cw_ranks_spread cw_ranks_spread(const struct cw_ranks *ranks, uint32_t site);
struct cw_ranks_leaks cw_ranks_leaks(const struct cw_ranks *ranks, uint32_t rank, uint32_t device);

/* Whether --device leaves the device in. */
static inline int cw_ranks_has_device(const struct cw_ranks *ranks, uint32_t device)
{
    return !ranks->selection.has_device || ranks->selection.device == device;
}

/* Sums over all ranks. */
struct cw_ranks_sums {
    uint64_t live, held, peak; /* of all devices and hosts, or of what --device selects */
    struct cw_snapshot_summary summary;
};
void cw_ranks_sums(const struct cw_ranks *ranks, struct cw_ranks_sums *sums);

/* ---- forms ---- */

void cw_ranks_text(const struct cw_ranks *ranks, FILE *out, int has_color);
int cw_ranks_json(const struct cw_ranks *ranks,
                  FILE *out); /* 0, or -1 with errno on a write error */

#endif
