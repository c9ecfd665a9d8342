/* SPDX-License-Identifier: MIT */
/* A report on some of the call sites: the model says only what they have part in (select.h). */
#ifndef CW_CLI_SELECTION_H
#define CW_CLI_SELECTION_H

#include "cli/model/model.h"
#include "cli/model/select.h"

enum cw_selection_form {
    CW_SELECTION_TEXT, /* all lists; names the selection only where it leaves out or ranks sites */
    CW_SELECTION_JSON, /* names it always; lists of the whole process stay */
};

/*
 * `site` stays the caller's, and must live as long as the model. Without any flag it is for models
 * that were read from JSON, which have no lists of classes and peaks. 0, or -1 after a message;
 * once for a model, before cw_model_free, with cw_selection_free.
 */
int cw_selection_apply(struct cw_model *model, const struct cw_selection *selection,
                       const uint32_t *site, uint32_t sites, enum cw_selection_form form);
void cw_selection_free(struct cw_model *model);

#endif
