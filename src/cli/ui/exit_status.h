/* SPDX-License-Identifier: MIT */
/* Exit status of the command. */
#ifndef CW_CLI_EXIT_STATUS_H
#define CW_CLI_EXIT_STATUS_H

enum cw_exit {
    CW_EXIT_OK = 0,
    CW_EXIT_FAILURE = 1,      /* failure: unreadable file, failed write */
    CW_EXIT_USAGE = 2,        /* bad option, argument or value */
    CW_EXIT_NO_ROOM = 3,      /* pick: no device has enough memory */
    CW_EXIT_SELF = 125,       /* run: failed before executing the program, as in env(1) */
    CW_EXIT_CANNOT_RUN = 126, /* run: the program was found but cannot be executed */
    CW_EXIT_NOT_FOUND = 127,  /* run: the program was not found */
};

#endif
