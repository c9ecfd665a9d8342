/* SPDX-License-Identifier: MIT */
/* A report restricted to some call sites (select.h). */
#ifndef CW_CLI_SELECTION_H
#define CW_CLI_SELECTION_H

#include "cli/model/model.h"
#include "cli/model/select.h"

enum cw_selection_form {
    CW_SELECTION_TEXT, /* all lists; states the selection only if it omits or ranks sites */
    CW_SELECTION_JSON, /* always states it; keeps lists of the whole process */
};

/*
 * The caller owns `site`, which must outlive the model. Needed even without flags for models read
 * from JSON, which have no lists of classes and peaks. 0, or -1 after a message. Call once per
 * model, and cw_selection_free before cw_model_free.
 */
int cw_selection_apply(struct cw_model *model, const struct cw_selection *selection,
                       const uint32_t *site, uint32_t sites, enum cw_selection_form form);
void cw_selection_free(struct cw_model *model);

#endif
