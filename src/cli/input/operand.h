/* SPDX-License-Identifier: MIT */
/* What a command line calls a process: its id, its live file, or its report in JSON. */
#ifndef CW_CLI_OPERAND_H
#define CW_CLI_OPERAND_H

#include <stddef.h>

/* Files of processes: operands, with those that a directory has in its place. */
struct cw_operands {
    char **name;
    size_t count;
};

/* Of a directory: its live files, and its reports in JSON but for those made while their process
 * ran ("r.dump-1.json"), by name. 0, or -1 after a message. */
int cw_operands_add(struct cw_operands *operands, const char *operand);
void cw_operands_free(struct cw_operands *operands);

#endif
