/* SPDX-License-Identifier: MIT */
/* The files of a model: which there are, and what kind each is. */
#ifndef CW_CLI_MODEL_FILES_H
#define CW_CLI_MODEL_FILES_H

#include "cli/estimate/facts.h"

/* A file, or the directory of a model. 0, or -1 after a message. */
int cw_model_files_read(struct cw_facts *facts, const char *path);

#endif
