/* SPDX-License-Identifier: MIT */
/* Tags and steps. */
#ifndef CW_API_TAGS_H
#define CW_API_TAGS_H

#include "api/api.h"

int cw_api_tag_push(const char *name);
int cw_api_tag_pop(void);
int cw_api_step(const char *name);

#endif
