/* SPDX-License-Identifier: MIT */
/*
 * One value of one option, as options.c wants it read. The rows and the printed values, which
 * option_table.c makes too, are in options.h.
 */
#ifndef CW_BASE_OPTION_TABLE_H
#define CW_BASE_OPTION_TABLE_H

#include "base/options/options.h"
#include "base/out.h"

enum cw_option_verdict {
    CW_OPTION_TAKEN,
    CW_OPTION_TAKEN_WITH_COMPLAINT,
    CW_OPTION_REFUSED /* the member is as it was */
};

/*
 * Reads `value` into the member of the option; what is wrong with it goes to `why`. `standing`: the
 * value that the option has when nobody sets it, for the devices that a list of sizes leaves out.
 */
enum cw_option_verdict cw_option_parse(size_t index, const char *standing, const char *value,
                                       struct cw_options *options, struct cw_out *why);

/* Text of the user in quotes, cut when it is long, and without control characters. */
void cw_option_quote(struct cw_out *out, const char *text, size_t len);

#endif
