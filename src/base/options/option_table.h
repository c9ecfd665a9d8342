/* SPDX-License-Identifier: MIT */
/*
 * Parsing one value of one option, for options.c. The rows and the printed values, also made by
 * option_table.c, are declared in options.h.
 */
#ifndef CW_BASE_OPTION_TABLE_H
#define CW_BASE_OPTION_TABLE_H

#include "base/options/options.h"
#include "base/out.h"

enum cw_option_verdict {
    CW_OPTION_TAKEN,
    CW_OPTION_TAKEN_WITH_COMPLAINT,
    CW_OPTION_REFUSED /* the member is unchanged */
};

/*
 * Parses `value` into the member of the option; errors go to `why`. `standing` is the option's
 * value when not set, for the devices missing in a list of sizes.
 */
enum cw_option_verdict cw_option_parse(size_t index, const char *standing, const char *value,
                                       struct cw_options *options, struct cw_out *why);

/* The user's text in quotes, truncated if long, without control characters. */
void cw_option_quote(struct cw_out *out, const char *text, size_t len);

#endif
