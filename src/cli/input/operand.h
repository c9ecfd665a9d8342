/* SPDX-License-Identifier: MIT */
/* An operand names a process by its id, its live file, or its report in JSON. */
#ifndef CW_CLI_OPERAND_H
#define CW_CLI_OPERAND_H

#include <stddef.h>

/* Files of processes: the operands, with each directory replaced by its files. */
struct cw_operand {
    char *name;
    size_t named; /* how much of the name is a directory that had the file; 0: the user named it */
};

struct cw_operands {
    struct cw_operand *operand;
    size_t count;
};

/* A directory adds its live files and its reports in JSON, except intermediate ones
 * ("r.dump-1.json"), sorted by name. 0, or -1 after a message. */
int cw_operands_add(struct cw_operands *operands, const char *operand);
void cw_operands_free(struct cw_operands *operands);

#endif
