/* SPDX-License-Identifier: MIT */
/* What the command ends with. */
#ifndef CW_CLI_EXIT_STATUS_H
#define CW_CLI_EXIT_STATUS_H

enum cw_exit {
    CW_EXIT_OK = 0,
    CW_EXIT_FAILURE = 1,      /* could not do it: unreadable file, failed write */
    CW_EXIT_USAGE = 2,        /* bad option, argument or value */
    CW_EXIT_SELF = 125,       /* run: failed before the program was tried, as in env(1) */
    CW_EXIT_CANNOT_RUN = 126, /* run: the program is there but cannot be executed */
    CW_EXIT_NOT_FOUND = 127,  /* run: there is no such program */
};

#endif
