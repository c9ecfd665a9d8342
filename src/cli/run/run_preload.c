/* SPDX-License-Identifier: MIT */
/* How the program finds the library. See run_preload.h. */
#include "cli/run/run_preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/message.h"

int cw_run_put_first(const char *variable, const char *entry)
{
    const char *others = getenv(variable);
    char *both;
    int failed;

    if (!others || !*others)
        return setenv(variable, entry, 1);
    if (asprintf(&both, "%s:%s", entry, others) < 0)
        return -1;
    failed = setenv(variable, both, 1);
    free(both);
    return failed;
}

/* The library comes first: others in the list may call CUDA themselves. */
static int preload_library(const char *library)
{
    if (strpbrk(library, " :"))
        cw_cli_warn("'%s' contains a space or a colon, which LD_PRELOAD does not support; move the "
                    "file or link to it",
                    library);
    return cw_run_put_first("LD_PRELOAD", library);
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
