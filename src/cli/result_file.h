/* SPDX-License-Identifier: MIT */
/* Where a command writes its result: standard output, or a file that is there only when complete.
 */
#ifndef CW_CLI_RESULT_FILE_H
#define CW_CLI_RESULT_FILE_H

#include <stdio.h>

#include "report/path.h"

struct cw_result_file {
    const char *path; /* NULL: standard output */
    FILE *out;
    struct cw_report_file file;
};

/* path: NULL or "-" is standard output. 0, or -1 after a message. */
int cw_result_open(struct cw_result_file *result, const char *path);
/* Puts the file in place, or takes it away if something has failed. 0, or -1 after a message. */
int cw_result_close(struct cw_result_file *result, int failed);
/* 1 if it is a terminal that shows colours, and NO_COLOR is not set (https://no-color.org). */
int cw_result_has_color(const struct cw_result_file *result);

#endif
