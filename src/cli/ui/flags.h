/* SPDX-License-Identifier: MIT */
/*
 * The command line of a subcommand: one table, from which getopt, --help, the completions of shells
 * and the manual are made. Every command has -h, --help without a row.
 */
#ifndef CW_CLI_FLAGS_H
#define CW_CLI_FLAGS_H

#include <stddef.h>
#include <stdio.h>

#define CW_FLAG_GROUPS 4

/* A value, or a request, with a line of its own in --help. The last one has no name. */
struct cw_flag_word {
    const char *name; /* a request may end in "=VALUE" */
    const char *help;
};

struct cw_flag {
    int id;            /* what the command's function is told; that of a flag with a letter */
    const char *name;  /* "output", for --output */
    const char *value; /* as --help calls it; "FILE" and "DIR" are completed; NULL: takes none */
    const char *help;  /* one sentence; "%w" becomes the list of words */
    const char *words; /* all values, with a blank between, the default with a star; NULL: any */
    const struct cw_flag_word *each; /* or: all values with a line each */
    const char *offers;              /* values that are completed; others may be right */
    const char *below;               /* a line below the help */
    int is_option;                   /* a row of options.def, which the manual has elsewhere */
};

/* Flags that belong together, maybe below a heading. */
struct cw_flag_group {
    const struct cw_flag *flag;
    size_t count;
    const char *heading;
};

enum cw_operand_kind {
    CW_OPERAND_PROGRAM = 1, /* and its arguments: flags behind it are its own */
    CW_OPERAND_PID = 2,
    CW_OPERAND_FILE = 4, /* or directory */
};

struct cw_command_line {
    const char *usage;         /* what follows "cuwarden NAME"; of two forms, in two lines */
    const char *about, *notes; /* paragraphs above and below the flags, "\n" between them */
    struct cw_flag_group group[CW_FLAG_GROUPS];
    unsigned operands;                   /* enum cw_operand_kind */
    const struct cw_flag_word *requests; /* operands that are one of these; NULL: none */
    const char *words;                   /* the same, without help */
    int least, most;                     /* how many operands; most 0: none, -1: any number */
    const char *missing;                 /* "file or process id", where `least` is not reached */
};

/* 0, or -1 after a message. value: NULL where the flag takes none. */
typedef int (*cw_flag_fn)(void *request, int id, char *value);

/* Tells `set` each flag. -1: go on, optind is the first operand; else the command ends with that
 * status, after --help or a message. */
int cw_flags_parse(const struct cw_command_line *line, int argc, char **argv, cw_flag_fn set,
                   void *request);

/* The letter, or 0. */
char cw_flag_letter(const struct cw_flag *flag);
/* All values that are known, with a blank between them; buf may stay empty. Returns buf. */
const char *cw_flag_values(const struct cw_flag *flag, char *buf, size_t cap);
/* The help as running text. Returns buf. */
const char *cw_flag_help(const struct cw_flag *flag, char *buf, size_t cap);
/* The i-th flag, --help the last; NULL behind it. */
const struct cw_flag *cw_flags_at(const struct cw_command_line *line, size_t i);
/* Requests and words, with a blank between them; a request keeps its '='. Returns buf. */
const char *cw_flags_operand_words(const struct cw_command_line *line, char *buf, size_t cap);

void cw_flags_print_help(FILE *to, const char *name, const struct cw_command_line *line);
/* In mdoc(7): a synopsis, and a list of the flags. */
void cw_flags_print_synopsis(FILE *to, const char *name, const struct cw_command_line *line);
void cw_flags_print_man(FILE *to, const char *name, const struct cw_command_line *line);

#endif
