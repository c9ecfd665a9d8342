/* SPDX-License-Identifier: MIT */
/* The control group of this process. See cgroup.h. */
#include "base/cgroup.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/out.h"
#include "base/sys.h"

#define MOUNT        "/sys/fs/cgroup"
#define TEXT_MAX_LEN 8192

/* Not on the stack: the thread's may be as small as the system allows. */
struct work {
    char path[CW_CGROUP_MAX], name[CW_CGROUP_MAX + 32];
    char text[TEXT_MAX_LEN];
    int is_short; /* of descriptors or memory */
};

/* ---- where it is ---- */

static int is_directory(const char *path)
{
    struct stat info;

    return cw_sys_stat_path(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* "0::/a/b", whose path begins with /.. where the group is above the namespace's root. */
static const char *own_line(char *text)
{
    char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");

    if (line == NULL)
        return NULL;
    line += *line == '\n' ? 4 : 3;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* The file work->name. 0 or -1. */
static int read_text(struct work *work)
{
    errno = 0;
    if (cw_sys_read_text(work->name, work->text, sizeof(work->text)) == 0)
        return 0;
    work->is_short |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return -1;
}

/* work->path, with the mount's length in *out_mount. */
static int find(const char *root, struct work *work, size_t *out_mount)
{
    const char *group;

    cw_format(work->name, sizeof(work->name), "%s/proc/self/cgroup", root);
    if (read_text(work) != 0 || (group = own_line(work->text)) == NULL)
        return -1;
    *out_mount = cw_format(work->path, sizeof(work->path), "%s" MOUNT, root);
    if (group[0] == '/' && group[1] != '\0' && strncmp(group, "/..", 3) != 0 &&
        *out_mount + strlen(group) < sizeof(work->path)) {
        memcpy(work->path + *out_mount, group, strlen(group) + 1);
        if (is_directory(work->path))
            return 0;
        work->path[*out_mount] = '\0';
    }
    return is_directory(work->path) ? 0 : -1;
}

int cw_cgroup_path(const char *root, char *buf, size_t cap)
{
    struct work *work = cw_mem_alloc(sizeof(*work));
    int saved = errno, rc = -1;
    size_t mount;

    if (work == NULL)
        return -1;
    if (find(root, work, &mount) == 0)
        rc = cw_format(buf, cap, "%s", work->path) < cap ? 0 : -1;
    cw_mem_free(work, sizeof(*work));
    errno = saved;
    return rc;
}

/* ---- its device memory ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* "0000:41:00.0" and "00000000:41:00.0" are the same place. */
static const char *read_bus(const char *at, uint64_t out[4])
{
    static const char after[4] = {':', ':', '.', '\0'};

    for (unsigned i = 0; i < 4; i++) {
        out[i] = 0;
        if (hex_value(*at) < 0)
            return NULL;
        while (hex_value(*at) >= 0)
            out[i] = out[i] << 4 | (unsigned)hex_value(*at++);
        if (after[i] != '\0' && *at++ != after[i])
            return NULL;
    }
    return at;
}

/* The line "nvidia/0000:41:00.0/vidmem NUMBER", or "max". */
static const char *value_in(const char *line, const uint64_t bus[4])
{
    static const char vendor[] = "nvidia/";
    uint64_t found[4];
    const char *at, *value;

    if (strncmp(line, vendor, sizeof(vendor) - 1) != 0)
        return NULL;
    at = read_bus(line + sizeof(vendor) - 1, found);
    if (at == NULL || *at != '/' || memcmp(found, bus, sizeof(found)) != 0)
        return NULL;
    value = at + strcspn(at, " \n");
    return *value == ' ' ? value + 1 : NULL;
}

/* 1 with the region's number in this file of the group; UINT64_MAX for "max". */
static int read_number(struct work *work, const char *file, const uint64_t bus[4], uint64_t *out)
{
    const char *value = NULL;

    cw_format(work->name, sizeof(work->name), "%s/%s", work->path, file);
    if (read_text(work) != 0)
        return 0;
    for (const char *line = work->text; line != NULL && value == NULL;) {
        value = value_in(line, bus);
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    if (value == NULL)
        return 0;
    *out = *value >= '0' && *value <= '9' ? 0 : UINT64_MAX;
    for (; *value >= '0' && *value <= '9'; value++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*value - '0'), out)) {
            *out = UINT64_MAX;
            break;
        }
    return 1;
}

/* Of two the one of which less is left. */
static int is_tighter(uint64_t most, uint64_t used, const struct cw_cgroup_dmem *than)
{
    uint64_t left = most > used ? most - used : 0;
    uint64_t before = than->hard > than->hard_used ? than->hard - than->hard_used : 0;

    return than->hard == 0 || left < before;
}

/* A maximum of 0 is none of the device at all: as small as can be. */
static int look(struct work *work, const uint64_t bus[4], int is_nearest,
                struct cw_cgroup_dmem *out)
{
    uint64_t most, least, used;

    if (!read_number(work, "dmem.max", bus, &most))
        return 0;
    if (!read_number(work, "dmem.current", bus, &used))
        used = 0;
    if (most != UINT64_MAX && is_tighter(most, used, out)) {
        out->hard = most != 0 ? most : 1;
        out->hard_used = used;
    }
    if (is_nearest && read_number(work, "dmem.min", bus, &least) && least != 0 &&
        least != UINT64_MAX) {
        out->soft = least;
        out->soft_used = used;
    }
    return 1;
}

int cw_cgroup_dmem(const char *root, const char *bus, struct cw_cgroup_dmem *out)
{
    struct work *work = cw_mem_alloc(sizeof(*work));
    int saved = errno, found = 0;
    uint64_t address[4];
    size_t mount;

    memset(out, 0, sizeof(*out));
    if (work == NULL)
        return -1;
    work->is_short = 0;
    if (read_bus(bus, address) != NULL && find(root, work, &mount) == 0) {
        for (;;) {
            found |= look(work, address, !found, out);
            if (work->path[mount] == '\0')
                break;
            *strrchr(work->path, '/') = '\0';
        }
    }
    if (work->is_short)
        found = -1;
    cw_mem_free(work, sizeof(*work));
    errno = saved;
    return found;
}
