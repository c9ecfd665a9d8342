/* SPDX-License-Identifier: MIT */
/* The tensors of a framework in the page's data: the lines with most at the peak. */
#ifndef CW_CLI_HTML_TENSORS_H
#define CW_CLI_HTML_TENSORS_H

#include <stdio.h>

#include "report/model/tensors.h"

/* The member "tensors" of an object that is open and not empty. */
void cw_html_put_tensors(FILE *out, const struct cw_report_tensors *tensors);

#endif
