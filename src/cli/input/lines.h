/* SPDX-License-Identifier: MIT */
/*
 * The flags for locating debug information (--debug-dir, --debuginfod, --no-lines, --sysroot), and
 * its reader: one for all files of a command.
 */
#ifndef CW_CLI_LINES_H
#define CW_CLI_LINES_H

#include "cli/debug/debug_info.h"
#include "cli/ui/flags.h"

/* Zero-initialized: the files of this machine, with lines. */
struct cw_lines {
    struct cw_debug_options debug;
    int is_off;
    struct cw_debug_info *info; /* NULL: no source lines */
};

/* Flags of a command line; ids begin at CW_LINES_FLAG. */
#define CW_LINES_FLAG  0x400
#define CW_LINES_FLAGS 4

extern const struct cw_flag cw_lines_flags[CW_LINES_FLAGS];

/* Whether the flag is one of these. */
int cw_lines_has_flag(int flag);
/* 0, or -1 after a message that names the flag and the value. The value must stay valid. */
int cw_lines_set(struct cw_lines *lines, int flag, char *value);

/* Call after all flags are set. Warns once if lines are wanted but unavailable. */
void cw_lines_open(struct cw_lines *lines);
/* Says once if lines were left out because looking them up took too long. */
void cw_lines_tell(struct cw_lines *lines);
void cw_lines_close(struct cw_lines *lines);

#endif
