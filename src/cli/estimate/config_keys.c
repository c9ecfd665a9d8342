/* SPDX-License-Identifier: MIT */
/* Keys of a config.json that no table has. See config_keys.h. */
#include "cli/estimate/config_keys.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/estimate/shape.h"
#include "base/printable.h"

#define LISTED_MAX 4
#define MORE       " and %u more"
#define NAME_MAX_  64 /* as much of a name as a message has room for */

static int is_harmless(const char *key)
{
    static const char *const patterns[] = {
#define X(pattern) pattern,
#include "cli/estimate/config_keys.def"
#undef X
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(patterns); i++)
        if (fnmatch(patterns[i], key, 0) == 0)
            return 1;
    return 0;
}

/* A blank would make two of it. */
static size_t clean(const char *key, char name[NAME_MAX_])
{
    size_t len;

    snprintf(name, NAME_MAX_, "%s", key);
    (void)cw_printable_clean_string(name);
    len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (name[i] == ' ')
            name[i] = '_';
    return len;
}

void cw_unknown_keys_add(struct cw_unknown_keys *keys, const char *key)
{
    char name[NAME_MAX_];
    size_t len;

    if (keys->lost != 0)
        return;
    len = clean(key, name);
    if (cw_shape_has_word(keys->text, name, len) || is_harmless(key))
        return;
    if (keys->len + len + 2 > sizeof(keys->text)) {
        keys->lost++;
        return;
    }
    keys->len +=
        (size_t)snprintf(keys->text + keys->len, sizeof(keys->text) - keys->len, "%s ", name);
}

unsigned cw_unknown_keys_list(const struct cw_unknown_keys *keys, const char *harmless, char *out,
                              size_t cap)
{
    unsigned count = 0, listed = 0;
    size_t len = strlen(out), n;

    for (const char *at = keys->text; *at; at += n + 1) {
        n = strcspn(at, " ");
        if (cw_shape_has_word(harmless, at, n))
            continue;
        count++;
        if (listed == LISTED_MAX || len + n + sizeof(MORE) + 2 >= cap)
            continue;
        len += (size_t)snprintf(out + len, cap - len, "%s%.*s", len > 0 ? ", " : "", (int)n, at);
        listed++;
    }
    count += keys->lost;
    if (count > listed)
        snprintf(out + len, cap - len, MORE, count - listed);
    return count;
}
