/* SPDX-License-Identifier: MIT */
/*
 * "pool" of the JSON report. Where PyTorch counts the same thing, the field has PyTorch's name:
 * reserved, allocated and requested bytes, num_device_alloc, num_device_free, num_alloc_retries,
 * num_ooms.
 */
#ifndef CW_REPORT_JSON_POOL_H
#define CW_REPORT_JSON_POOL_H

#include "report/json/json_put.h"

void cw_json_pool(struct cw_json *json);

#endif
