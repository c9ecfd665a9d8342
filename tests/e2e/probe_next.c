/* SPDX-License-Identifier: MIT */
/* A library that asks for the next one of its own kind, as OpenMP runtimes look for the next
 * ompt_start_tool: compiled twice, as NUMBER 1 and 2, it counts how many there are behind the
 * first. Who finds itself again counts for ever; here, up to 10. */
#include <dlfcn.h>

int how_many(int depth)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "how_many");

    if (depth > 10)
        return 10;
    return (next ? next(depth + 1) : 0) + 1 + 0 * NUMBER;
}
