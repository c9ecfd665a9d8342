/* SPDX-License-Identifier: MIT */
/* Sections of the text report, made from the model, that are about the process as a whole. */
#ifndef CW_CLI_FORM_WHOLE_H
#define CW_CLI_FORM_WHOLE_H

#include "cli/text/say.h"

struct cw_text;

/* DEVICES, POOL and PRESSURE. As a cw_form_fn. */
int cw_form_whole(const struct cw_say *to);

/* OLD, OUT OF MEMORY, INVALID FREES and FATAL ERRORS (form_events.c). Of sites only those that
 * `is_shown` names, by their index, get a line in OLD. */
void cw_form_old(const struct cw_say *to, const uint8_t *is_shown);
void cw_form_ooms(const struct cw_say *to);
void cw_form_errors(const struct cw_say *to);
/* "the driver had none"; the name itself of a cause of a later version. */
const char *cw_form_cause_label(const char *name);

struct cw_form_part {
    const char *label;
    uint64_t bytes;
};
#define CW_FORM_PARTS 6

/* Where the memory of the device was, without what is nothing: how many parts. */
unsigned cw_form_oom_parts(const struct cw_model_oom *oom, struct cw_form_part part[CW_FORM_PARTS]);

/* What follows a refused call in OUT OF MEMORY (form_account.c). */
void cw_form_account(const struct cw_say *to, const struct cw_model_oom *oom);
/* AUDIT (form_audit.c). As a cw_form_fn. */
int cw_form_audit(const struct cw_say *to);
/* SUPPRESSED (form_suppressed.c). As a cw_form_fn. */
int cw_form_suppressed(const struct cw_say *to);
/* "past the cap of ...", under a site of LEAKS that is. */
void cw_form_past_cap(const struct cw_say *to, const struct cw_model_site *site);
/* The rule that the report knows by this number, or NULL. */
const struct cw_model_rule *cw_form_rule(const struct cw_model *model, uint32_t id);

/* Lets the report layer write with `text`, whose output is set here. 0, or -1: it could not be
 * written. */
int cw_form_borrow(const struct cw_say *to, struct cw_text *text,
                   void (*write)(const struct cw_text *text));

/* The changes at the end of PRESSURE. */
void cw_form_changes(const struct cw_say *to);

#endif
