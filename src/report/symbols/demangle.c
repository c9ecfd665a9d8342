/* SPDX-License-Identifier: MIT */
/* Demangled names. See demangle.h. */
#include "report/symbols/demangle.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangle_fn)(const char *mangled, char *buf, size_t *len, int *status);

const char *cw_demangle(const char *mangled, void *demangler)
{
    static char *last;
    int status = -1;

    if (strncmp(mangled, "_Z", 2) != 0)
        return NULL;
    free(last);
    last = ((demangle_fn)demangler)(mangled, NULL, NULL, &status);
    return status == 0 ? last : NULL;
}
