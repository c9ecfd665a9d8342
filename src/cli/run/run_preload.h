/* SPDX-License-Identifier: MIT */
/* How the program finds the library. */
#ifndef CW_CLI_RUN_PRELOAD_H
#define CW_CLI_RUN_PRELOAD_H

/* Sets what loads it. NULL, or the name of the variable that cannot be set, with errno. */
const char *cw_run_preload(const char *library);

/* Makes the entry the first of a list that colons separate. 0, or -1 with errno. */
int cw_run_put_first(const char *variable, const char *entry);

#endif
