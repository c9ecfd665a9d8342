/* SPDX-License-Identifier: MIT */
/* The processes that a run has left behind, also those that have no live file yet. */
#ifndef CW_CLI_RUN_LEFT_H
#define CW_CLI_RUN_LEFT_H

/* Those whose environment has the directory of the run; only those that we may look at. */
unsigned cw_run_left_count(const char *directory);

#endif
