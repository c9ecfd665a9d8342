/* SPDX-License-Identifier: MIT */
/* Whose code a frame is. */
#ifndef CW_REPORT_CODE_KIND_H
#define CW_REPORT_CODE_KIND_H

#include <stddef.h>

#include "report/model/report_model.h"

enum cw_code_kind {
    CW_CODE_OWN,       /* the program, its script and the libraries beside them */
    CW_CODE_FRAMEWORK, /* the CUDA toolkit, and what allocates for the program */
    CW_CODE_PYTHON,    /* the interpreter and packages */
    CW_CODE_LIBRARY,   /* all other */
};

/* Uses only what says where the frame is: is_python, file and module. */
enum cw_code_kind cw_code_kind(const struct cw_report_model *model,
                               const struct cw_report_frame *frame);

/* What the code is known by: "libtorch_cuda.so", of a package "torch", of Python's own library
 * "Python", "?" if in no module. The model's, or in buf. */
const char *cw_code_name(const struct cw_report_model *model, const struct cw_report_frame *frame,
                         char *buf, size_t cap);

#endif
