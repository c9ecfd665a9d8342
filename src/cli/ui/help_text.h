/* SPDX-License-Identifier: MIT */
/*
 * What a command's --help says, as data: the one place where its flags are described. The command
 * is run for it, in this process, with standard output set aside. A flag is a line of two blanks,
 * "-o, --output=FILE" and what it does; its values are known where that ends in a list ("text or
 * json"), or in "one of" and they have lines of their own with four blanks. Words under "Requests:"
 * and in small letters of the usage are operands.
 */
#ifndef CW_CLI_HELP_TEXT_H
#define CW_CLI_HELP_TEXT_H

#include <stddef.h>

#include "cli/cli.h"

#define CW_HELP_FLAGS_MAX 64
#define CW_HELP_WORDS_MAX 32

enum cw_help_value {
    CW_HELP_VALUE_NONE, /* the flag takes none */
    CW_HELP_VALUE_FILE,
    CW_HELP_VALUE_DIRECTORY,
    CW_HELP_VALUE_OTHER, /* one of `words`, if there are some */
};

struct cw_help_flag {
    char letter; /* '\0': none */
    char *name;
    char *help; /* one line */
    enum cw_help_value value;
    char *words; /* with a blank between them; "" where the value is not one of a few */
};

/* What may stand behind the flags. */
struct cw_help_operands {
    int program, pid, file; /* a program and its arguments, a process, a file or directory */
    char *words;            /* requests, or the like; with a blank between them, "" for none */
};

struct cw_help {
    struct cw_help_flag flag[CW_HELP_FLAGS_MAX];
    size_t flags;
    struct cw_help_operands operands;
};

/* 0, or -1 after a message. */
int cw_help_read(struct cw_help *help, const struct cw_command *command);
/* The same of a text. */
int cw_help_parse(struct cw_help *help, char *text);
void cw_help_free(struct cw_help *help);

#endif
