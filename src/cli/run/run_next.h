/* SPDX-License-Identifier: MIT */
/* The command that tells more than the run that has ended: the same one, with a page. */
#ifndef CW_CLI_RUN_NEXT_H
#define CW_CLI_RUN_NEXT_H

#define CW_RUN_NEXT_MAX 66 /* what fits in a line of the verdict, so that it can be copied */

/* argv: of `run`, which it begins with. In words if it could not be copied from one line: it is too
 * long, or the line would not show each byte as it is. */
void cw_run_next_format(char **argv, char next[CW_RUN_NEXT_MAX]);

#endif
