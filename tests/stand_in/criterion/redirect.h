/* SPDX-License-Identifier: MIT */
/* Standard error of a test, of the stand-in for Criterion. */
#ifndef CRITERION_STANDIN_REDIRECT_H
#define CRITERION_STANDIN_REDIRECT_H

#include "criterion.h"

void cr_redirect_stderr(void);
/* What was written since and is not read yet. */
FILE *cr_get_redirected_stderr(void);
int cr_stderr_is(const char *text);

#define cr_assert_stderr_eq_str(text, ...) CR_CHECK(1, cr_stderr_is(text), "stderr", ##__VA_ARGS__)

#endif
