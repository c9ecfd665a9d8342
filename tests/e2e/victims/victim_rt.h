/* SPDX-License-Identifier: MIT */
/* What the victims that call the runtime share; how they say what they expect: victim.h. */
#ifndef VICTIM_RT_H
#define VICTIM_RT_H

#include <cuda_runtime_api.h>

#include "say.h"

#endif
