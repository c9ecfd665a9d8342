/* SPDX-License-Identifier: MIT */
/* How the program finds the library. */
#ifndef CW_CLI_RUN_PRELOAD_H
#define CW_CLI_RUN_PRELOAD_H

/* Sets what loads it. NULL, or the name of the variable that cannot be set, with errno. */
const char *cw_run_preload(const char *library);

#endif
