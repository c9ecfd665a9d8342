/* SPDX-License-Identifier: MIT */
/* Addresses in words that are the same in each run. */
#ifndef REAL_WORDS_H
#define REAL_WORDS_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What an answer points at that nobody has written. */
static char words_mark;

/* None, untouched, or the file and what is there: the name in the library under test, the offset in
 * any other, because functions of the driver have several names, or none. */
static const char *words_of(const void *answer)
{
    static char text[300];
    const char *file;
    Dl_info info;

    if (answer == NULL)
        return "none";
    if (answer == &words_mark)
        return "untouched";
    if (dladdr(answer, &info) == 0 || info.dli_fname == NULL)
        return "nowhere";
    file = strrchr(info.dli_fname, '/');
    file = file ? file + 1 : info.dli_fname;
    if (strncmp(file, "libcuwarden", 11) == 0)
        snprintf(text, sizeof(text), "%s:%s", file,
                 info.dli_saddr == answer ? info.dli_sname : "inside");
    else
        snprintf(text, sizeof(text), "%s+%lx", file,
                 (unsigned long)((const char *)answer - (const char *)info.dli_fbase));
    return text;
}

#endif
