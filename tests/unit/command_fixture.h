/* SPDX-License-Identifier: MIT */
/* The messages of the command are kept, not printed. */
#ifndef CW_TESTS_COMMAND_FIXTURE_H
#define CW_TESTS_COMMAND_FIXTURE_H

extern char command_said[1024]; /* the last line */
extern unsigned command_errors; /* lines */

/* From now on, what goes to stderr; the .init of a test suite, each test a process of its own. */
void command_listen(void);

#endif
