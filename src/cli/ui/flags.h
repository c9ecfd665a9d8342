/* SPDX-License-Identifier: MIT */
/*
 * The command line of a subcommand: one table that drives getopt, --help, the shell completions and
 * the manual. Every command has -h, --help without a row.
 */
#ifndef CW_CLI_FLAGS_H
#define CW_CLI_FLAGS_H

#include <stddef.h>
#include <stdio.h>

#define CW_FLAG_GROUPS 4

/* A value or a request with its own line in --help. The last one has no name. */
struct cw_flag_word {
    const char *name; /* a request may end in "=VALUE" */
    const char *help;
};

struct cw_flag {
    int id;            /* passed to the command's function; the letter, if the flag has one */
    const char *name;  /* "output", for --output */
    const char *value; /* name in --help; "FILE" and "DIR" are completed; NULL: no value */
    const char *help;  /* one sentence; "%w" becomes the list of words */
    const char *words; /* all values, separated by blanks, the default with a star; NULL: any */
    const struct cw_flag_word *each; /* or: all values, one line each */
    const char *offers;              /* completion candidates; other values may be valid */
    const char *below;               /* a line below the help */
    int is_option;                   /* a row of options.def, listed elsewhere in the manual */
};

/* A group of flags, with an optional heading. */
struct cw_flag_group {
    const struct cw_flag *flag;
    size_t count;
    const char *heading;
};

enum cw_operand_kind {
    CW_OPERAND_PROGRAM = 1, /* and its arguments: flags after it are its own */
    CW_OPERAND_PID = 2,
    CW_OPERAND_FILE = 4, /* or directory */
};

struct cw_command_line {
    const char *usage;         /* what follows "cuwarden NAME"; two forms are two lines */
    const char *about, *notes; /* paragraphs above and below the flags, separated by "\n" */
    struct cw_flag_group group[CW_FLAG_GROUPS];
    unsigned operands;                   /* enum cw_operand_kind */
    const struct cw_flag_word *requests; /* valid operands; NULL: none */
    const char *words;                   /* the same, without help */
    int least, most;                     /* number of operands; most 0: none, -1: unlimited */
    const char *missing;                 /* "file or process id", if there are fewer than `least` */
};

/* 0, or -1 after a message. value is NULL if the flag takes none. */
typedef int (*cw_flag_fn)(void *request, int id, char *value);

/* Calls `set` for each flag. -1: continue, optind is the first operand; otherwise the exit status
 * of the command, after --help or a message. */
int cw_flags_parse(const struct cw_command_line *line, int argc, char **argv, cw_flag_fn set,
                   void *request);

/* The letter, or 0. */
char cw_flag_letter(const struct cw_flag *flag);
/* All known values, separated by blanks; may be empty. Returns buf. */
const char *cw_flag_values(const struct cw_flag *flag, char *buf, size_t cap);
/* The help as running text. Returns buf. */
const char *cw_flag_help(const struct cw_flag *flag, char *buf, size_t cap);
/* The i-th flag, ending with --help; then NULL. */
const struct cw_flag *cw_flags_at(const struct cw_command_line *line, size_t i);
/* Requests and words, separated by blanks; a request keeps its '='. Returns buf. */
const char *cw_flags_operand_words(const struct cw_command_line *line, char *buf, size_t cap);

void cw_flags_print_help(FILE *to, const char *name, const struct cw_command_line *line);
/* In mdoc(7): a synopsis, and a list of the flags. */
void cw_flags_print_synopsis(FILE *to, const char *name, const struct cw_command_line *line);
void cw_flags_print_man(FILE *to, const char *name, const struct cw_command_line *line);

#endif
