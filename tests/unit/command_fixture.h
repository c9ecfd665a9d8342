/* SPDX-License-Identifier: MIT */
/* What main.c is to the files of the command: their messages are kept, not printed. */
#ifndef CW_TESTS_COMMAND_FIXTURE_H
#define CW_TESTS_COMMAND_FIXTURE_H

extern char command_said[1024]; /* the last message */
extern unsigned command_errors;

#endif
