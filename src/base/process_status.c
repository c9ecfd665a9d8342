/* SPDX-License-Identifier: MIT */
/* See process_status.h. */
#include "base/process_status.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "base/sys.h"

#define STATUS_MAX 4096 /* the lines that are asked for lie in the first 2000 bytes */
#define KEY_MAX    32

long cw_process_status(const char *key)
{
    char text[STATUS_MAX], line[KEY_MAX];
    const char *found;

    if (cw_sys_read_text("/proc/self/status", text, sizeof(text)) != 0)
        return -1;
    cw_format(line, sizeof(line), "\n%s:\t", key);
    found = strstr(text, line);
    return found != NULL ? strtol(found + strlen(line), NULL, 10) : -1;
}
