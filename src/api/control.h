/* SPDX-License-Identifier: MIT */
/* Pressure, trims and limits at the program's request. */
#ifndef CW_API_CONTROL_H
#define CW_API_CONTROL_H

#include "api/api.h"

/* Of one device. */
void cw_api_pressure_of(uint8_t device, struct cuwarden_pressure *out);

int cw_api_pressure(int device, struct cuwarden_pressure *out, size_t size);
int cw_api_trim(int device, int how, uint64_t *out_bytes);
int cw_api_limit(int device, uint64_t bytes);
int cw_api_pool_max(int device, uint64_t bytes);

#endif
