/* SPDX-License-Identifier: MIT */
/* Pattern matching. See pattern.h. No recursion: it backtracks to the last *. */
#include "base/pattern.h"

#include <string.h>

int cw_pattern_matches(const char *pattern, const char *text)
{
    int anchored = pattern[0] == '^';
    const char *at = pattern + anchored;
    size_t len = strlen(at);
    int to_end = len > 0 && at[len - 1] == '$';
    const char *end = at + len - to_end;
    const char *star = anchored ? NULL : at; /* what follows the last * */
    const char *retry = text;

    for (const char *s = text;;) {
        if (at == end && (!to_end || *s == '\0'))
            return 1;
        if (at < end && *at == '*') {
            star = ++at;
            retry = s;
            continue;
        }
        if (at < end && *s != '\0' && *at == *s) {
            at++;
            s++;
            continue;
        }
        if (!star || *retry == '\0')
            return 0;
        at = star;
        s = ++retry;
    }
}
