/* SPDX-License-Identifier: MIT */
/* Reports and recordings at the program's request. */
#ifndef CW_API_FILES_H
#define CW_API_FILES_H

#include "api/api.h"

int cw_api_report(const char *path);
int cw_api_record_start(const char *path);
int cw_api_record_stop(void);

#endif
