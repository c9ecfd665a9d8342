/* SPDX-License-Identifier: MIT */
/* The codes. See fatal_code.h. */
#include "hook/resolve/fatal_code.h"

#include <stddef.h>

#include "base/compiler.h"

/* Errors after which cuda.h demands that the process be restarted, or the context be destroyed
 * (710). Numbers: older headers do not have all the names. */
static const int fatal_codes[] = {
    226, /* CONTAINED */
    700, /* ILLEGAL_ADDRESS */
    702, /* LAUNCH_TIMEOUT */
    710, /* ASSERT */
    714, /* HARDWARE_STACK_ERROR */
    715, /* ILLEGAL_INSTRUCTION */
    716, /* MISALIGNED_ADDRESS */
    717, /* INVALID_ADDRESS_SPACE */
    718, /* INVALID_PC */
    719, /* LAUNCH_FAILED */
    721, /* TENSOR_MEMORY_LEAK */
    810, /* MPS_CLIENT_TERMINATED */
    911, /* EXTERNAL_DEVICE */
};

int cw_fatal_code_is(int rc)
{
    if (CW_LIKELY(rc == 0))
        return 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(fatal_codes); i++)
        if (rc == fatal_codes[i])
            return 1;
    return 0;
}
