/* SPDX-License-Identifier: MIT */
/*
 * The flags that say where debug information is (--debug-dir, --debuginfod, --no-lines,
 * --sysroot), and what reads it: once for all files of a command.
 */
#ifndef CW_CLI_LINES_H
#define CW_CLI_LINES_H

#include <getopt.h>

#include "cli/debug/debug_info.h"

/* Zeroed: the files of this machine, with lines. */
struct cw_lines {
    struct cw_debug_options debug;
    int is_off;
    struct cw_debug_info *info; /* NULL: nobody reads source lines */
};

/* Flags for getopt_long, whose values begin at CW_LINES_FLAG. */
#define CW_LINES_FLAG  0x400
#define CW_LINES_FLAGS 4

void cw_lines_fill_flags(struct option *flags); /* CW_LINES_FLAGS of them */
/* Whether the flag is one of these. */
int cw_lines_has_flag(int flag);
/* 0, or -1 after a message that names the flag and the value. The value stays. */
int cw_lines_set(struct cw_lines *lines, int flag, char *value);
/* The flags as lines of --help. */
void cw_lines_print_help(void);

/* When all flags are set. One warning where lines are wanted and this command has none. */
void cw_lines_open(struct cw_lines *lines);
void cw_lines_close(struct cw_lines *lines);

#endif
