/* SPDX-License-Identifier: MIT */
/* An operand names a process by its id, its live file, or its report in JSON. */
#ifndef CW_CLI_OPERAND_H
#define CW_CLI_OPERAND_H

#include <stddef.h>

/* Files of processes: the operands, with each directory replaced by its files. */
struct cw_operands {
    char **name;
    size_t count;
};

/* A directory adds its live files and its reports in JSON, except intermediate ones
 * ("r.dump-1.json"), sorted by name. 0, or -1 after a message. */
int cw_operands_add(struct cw_operands *operands, const char *operand);
void cw_operands_free(struct cw_operands *operands);

#endif
