/* SPDX-License-Identifier: MIT */
/* How the program finds the library. See run_preload.h. */
#include "cli/run/run_preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/message.h"

/* The library comes first: others in the list may call CUDA themselves. */
static int preload_library(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *both;
    int failed;

    if (strpbrk(library, " :"))
        cw_cli_warn("'%s' contains a space or a colon, which LD_PRELOAD does not support; move the "
                    "file or link to it",
                    library);
    if (!others || !*others)
        return setenv("LD_PRELOAD", library, 1);
    if (asprintf(&both, "%s:%s", library, others) < 0)
        return -1;
    failed = setenv("LD_PRELOAD", both, 1);
    free(both);
    return failed;
}

/* Keeps a tool that the user has already set. */
static int announce_to_nvtx(const char *library)
{
    return setenv("NVTX_INJECTION64_PATH", library, 0);
}

const char *cw_run_preload(const char *library)
{
    if (preload_library(library) != 0)
        return "LD_PRELOAD";
    return announce_to_nvtx(library) != 0 ? "NVTX_INJECTION64_PATH" : NULL;
}
