/* SPDX-License-Identifier: MIT */
/* Whose code a function is, for the colours of a flame graph. */
#ifndef CW_CLI_CODE_KIND_H
#define CW_CLI_CODE_KIND_H

#include "cli/model/calls.h"

/* "own": the program, its script and the libraries beside them; "framework": the CUDA toolkit, and
 * what allocates for the program; "python": the interpreter and packages; "library": all other. */
const char *cw_code_kind(const struct cw_report_model *model, const struct cw_call *call);

#endif
