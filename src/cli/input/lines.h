/* SPDX-License-Identifier: MIT */
/*
 * The flags that say where debug information is (--debug-dir, --debuginfod, --no-lines,
 * --sysroot), and what reads it: once for all files of a command.
 */
#ifndef CW_CLI_LINES_H
#define CW_CLI_LINES_H

#include "cli/debug/debug_info.h"
#include "cli/ui/flags.h"

/* Zeroed: the files of this machine, with lines. */
struct cw_lines {
    struct cw_debug_options debug;
    int is_off;
    struct cw_debug_info *info; /* NULL: nobody reads source lines */
};

/* Rows of a command line, whose ids begin at CW_LINES_FLAG. */
#define CW_LINES_FLAG  0x400
#define CW_LINES_FLAGS 4

extern const struct cw_flag cw_lines_flags[CW_LINES_FLAGS];

/* Whether the flag is one of these. */
int cw_lines_has_flag(int flag);
/* 0, or -1 after a message that names the flag and the value. The value stays. */
int cw_lines_set(struct cw_lines *lines, int flag, char *value);

/* When all flags are set. One warning where lines are wanted and this command has none. */
void cw_lines_open(struct cw_lines *lines);
void cw_lines_close(struct cw_lines *lines);

#endif
