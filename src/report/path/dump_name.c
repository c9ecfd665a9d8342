/* SPDX-License-Identifier: MIT */
/* Numbered names. See dump_name.h. Owns nothing; no lock: creating the file reserves the name. */
#include "report/path/dump_name.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/out.h"
#include "base/sys.h"

#define NUMBER_MAX 1000000u
#define JSON       ".json"

int cw_dump_name_number(char *buf, size_t cap, const char *pattern, unsigned number)
{
    char text[24];

    cw_format(text, sizeof(text), ".dump-%u", number);
    return cw_path_insert(buf, cap, pattern, text);
}

void cw_dump_name_escape(char *buf, size_t cap, const char *path)
{
    size_t len = 0;

    for (; *path != '\0' && len + 2 < cap; path++) {
        if (*path == '%')
            buf[len++] = '%';
        buf[len++] = *path;
    }
    buf[len] = '\0';
}

/* ---- taking a name ---- */

static int create(char *path)
{
    int fd = cw_report_path_create(path, O_WRONLY | O_EXCL);

    if (fd < 0)
        return errno;
    cw_sys_close(fd);
    return 0;
}

static int add_json(struct cw_dump_name *name)
{
    size_t len = strlen(name->path);

    if (len + sizeof(JSON) > sizeof(name->json))
        return ENAMETOOLONG;
    memcpy(name->json, name->path, len);
    memcpy(name->json + len, JSON, sizeof(JSON));
    return 0;
}

/* Tries one name; EEXIST: one of its files exists. */
static int take(struct cw_dump_name *name, int with_json, const struct cw_path_values *values)
{
    int error;

    name->json[0] = '\0';
    if (cw_path_expand(name->path, sizeof(name->path), name->pattern, values) != 0)
        return ENAMETOOLONG;
    if (with_json && (error = add_json(name)) != 0)
        return error;
    error = create(name->path);
    if (error == 0 && with_json && (error = create(name->json)) != 0)
        unlink(name->path);
    return error;
}

/* With a %n without a number yet, the first number whose name is free. */
static int take_numbered(struct cw_dump_name *name, int with_json, struct cw_path_values *values)
{
    int error = EEXIST;

    if (values->number != 0 || !cw_path_has_number(name->pattern))
        return take(name, with_json, values);
    while (error == EEXIST && values->number < NUMBER_MAX) {
        values->number++;
        error = take(name, with_json, values);
    }
    if (error != 0)
        values->number = 0;
    return error;
}

int cw_dump_name_take(struct cw_dump_name *name, const char *pattern, int with_json,
                      unsigned *number, struct cw_path_values *values)
{
    int error = EEXIST;

    name->path[0] = name->json[0] = '\0';
    for (unsigned n = *number; n < NUMBER_MAX && error == EEXIST; n++) {
        if (cw_dump_name_number(name->pattern, sizeof(name->pattern), pattern, n) != 0)
            return ENAMETOOLONG;
        error = take_numbered(name, with_json, values);
        if (error == 0)
            *number = n;
    }
    return error;
}

void cw_dump_name_drop(const struct cw_dump_name *name)
{
    unlink(name->path);
    if (name->json[0] != '\0')
        unlink(name->json);
}
