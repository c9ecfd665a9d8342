/* SPDX-License-Identifier: MIT */
/* Names of the classes of leaks. See leak.h. */
#include "report/snapshot/leak.h"

const char *cw_leak_class_name(unsigned leak)
{
    static const char *const names[CW_LEAK_COUNT] = {
#define X(id, name, counted) [CW_LEAK_##id] = (name),
        CW_LEAKS(X)
#undef X
    };

    return leak < CW_LEAK_COUNT ? names[leak] : "";
}
