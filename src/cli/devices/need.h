/* SPDX-License-Identifier: MIT */
/* Sizes and counts of the flags that ask for devices. */
#ifndef CW_CLI_NEED_H
#define CW_CLI_NEED_H

#include <stdint.h>

/* "14G"; a number without a unit is bytes, which nobody means. 0, or -1 after a message that names
 * --FLAG. */
int cw_need_parse(const char *flag, const char *value, int may_be_zero, uint64_t *out);
/* From 1 to CW_DEVICES_MAX. */
int cw_need_parse_count(const char *value, uint64_t *out);

#endif
