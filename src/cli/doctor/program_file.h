/* SPDX-License-Identifier: MIT */
/*
 * The file that is executed for a program's name: searched like the shell does, and followed from
 * scripts to their interpreters.
 */
#ifndef CW_CLI_PROGRAM_FILE_H
#define CW_CLI_PROGRAM_FILE_H

#include <limits.h>
#include <sys/stat.h>

#include "cli/doctor/elf_facts.h"

#define CW_PROGRAM_STEPS 5 /* nested interpreters, as many as Linux follows */

enum cw_program_state {
    CW_PROGRAM_FOUND,
    CW_PROGRAM_MISSING,
    CW_PROGRAM_DIRECTORY,
    CW_PROGRAM_NOT_EXECUTABLE,
    CW_PROGRAM_UNREADABLE,
    CW_PROGRAM_NO_FORMAT, /* neither ELF nor script */
    CW_PROGRAM_LOOP,      /* an endless chain of scripts */
};

struct cw_program_step {
    char path[PATH_MAX]; /* inside the system, links resolved */
    char name[PATH_MAX]; /* as requested */
};

struct cw_program_file {
    enum cw_program_state state;
    int error;                                     /* errno if the state is not FOUND */
    struct cw_program_step step[CW_PROGRAM_STEPS]; /* scripts, then what is executed */
    unsigned steps;                                /* `state` refers to the last one */
    int drops_environment;                         /* a script uses env -i */
    struct stat status;                            /* of the last one */
    struct cw_elf_facts facts;                     /* of the last one */
};

/* `search` is PATH, or NULL. */
void cw_program_file_find(struct cw_program_file *file, const char *root, const char *name,
                          const char *search);
void cw_program_file_free(struct cw_program_file *file);

#endif
