/* SPDX-License-Identifier: MIT */
/* What a model takes of a device (base/estimate), from the program's numbers. No state. */
#ifndef CW_API_ESTIMATES_H
#define CW_API_ESTIMATES_H

#include "api/api.h"

int cw_api_estimate(const struct cuwarden_model *model, size_t model_size,
                    struct cuwarden_estimate *out, size_t size);

#endif
