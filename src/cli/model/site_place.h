/* SPDX-License-Identifier: MIT */
/*
 * Where a call site is, for one line: the innermost call in the program's own code, and its
 * callers, by which sites in the same place are told apart.
 */
#ifndef CW_CLI_SITE_PLACE_H
#define CW_CLI_SITE_PLACE_H

#include "report/model/report_model.h"

#define CW_SITE_PLACES    4
#define CW_SITE_PLACE_MAX 160

struct cw_site_place {
    char call[CW_SITE_PLACES][CW_SITE_PLACE_MAX]; /* "load_weights leak.c:15", innermost first */
    unsigned calls;                               /* 0: the site has no stack */
};

/*
 * The program's own code is, in this order: a script (a line of Python outside of installed
 * packages), the program's file, whatever called CUDA.
 */
void cw_site_place_find(const struct cw_report_model *model, const struct cw_snapshot_site *site,
                        struct cw_site_place *place);

/*
 * The call in `text`, and where `others` have a site in the same place, the first caller that
 * differs: "f a.c:15 < g a.c:30". Returns text.
 */
char *cw_site_place_format(const struct cw_site_place *place,
                           const struct cw_site_place *const *others, unsigned count, char *text,
                           size_t cap);

#endif
