/* SPDX-License-Identifier: MIT */
/*
 * Sections of the text report, made from the model, that list call sites. Of all sites they are the
 * library's own, word by word; of a selection they have what was selected, in its order.
 */
#ifndef CW_CLI_FORM_SITES_H
#define CW_CLI_FORM_SITES_H

#include "cli/text/form.h"
#include "cli/text/say.h"

/* Sites of one sort. */
struct cw_form_list {
    uint32_t *site; /* indexes; room for all of the request's */
    uint32_t count;
    struct cw_model_amount sum; /* what was never freed of them */
};

typedef int (*cw_form_sort_fn)(const struct cw_model_site *site);

/* Those of the request's sites for which is_wanted holds, in its order. */
void cw_form_list(const struct cw_form_request *request, cw_form_sort_fn is_wanted,
                  struct cw_form_list *out);
/* Which sites the request has, by their index, to be freed; NULL after a message: no memory. */
uint8_t *cw_form_mark_shown(const struct cw_form_request *request);
/* How many of a list are shown, of which `max` are without a wish of the user. */
uint32_t cw_form_shown(const struct cw_form_request *request, uint32_t count, uint32_t max);
/* Nothing was selected, sorted or measured otherwise. */
int cw_form_is_whole(const struct cw_form_request *request);
/* The blocks of a site that were never freed. */
struct cw_model_amount cw_form_left_of(const struct cw_model_site *site);
/* What the list holds behind its first `shown` sites. */
void cw_form_rest(const struct cw_say *to, const struct cw_form_request *request,
                  const struct cw_form_list *list, uint32_t shown);

/* LEAKS, LIBRARIES, CACHES, IMPORTS, and of a selection APART: what else does not count. The list
 * is room to work in. (form_leaks.c) */
void cw_form_leaks(const struct cw_say *to, const struct cw_form_request *request,
                   struct cw_form_list *list);

/* GROWTH (form_growth.c). Of sites only those that `is_shown` names, by their index. */
void cw_form_growth(const struct cw_say *to, const struct cw_form_request *request,
                    const uint8_t *is_shown);
/* "+37.4 MiB/min" */
void cw_form_slope(const struct cw_say *to, double per_second);

#endif
