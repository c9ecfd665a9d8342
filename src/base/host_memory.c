/* SPDX-License-Identifier: MIT */
/* The memory that the host has to spare. See host_memory.h. */
#include "base/host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/out.h"
#include "base/sys.h"

#define NAME_MAX_LEN 1024
#define TEXT_MAX_LEN 8192 /* /proc/self/cgroup may have a dozen long lines */

/* Not on the stack: the thread's may be as small as the system allows. */
struct text_file {
    char name[NAME_MAX_LEN];
    char text[TEXT_MAX_LEN];
};

struct work {
    const char *proc, *sys;          /* roots */
    struct text_file groups, number; /* /proc/self/cgroup; any other */
};

static int read_file(struct text_file *file)
{
    return cw_sys_read_text(file->name, file->text, TEXT_MAX_LEN);
}

/* Digits after blanks; UINT64_MAX for "max", for none, and for what does not fit. */
static uint64_t number_at(const char *text)
{
    uint64_t number = 0;

    while (*text == ' ' || *text == '\t')
        text++;
    if (*text < '0' || *text > '9')
        return UINT64_MAX;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return UINT64_MAX;
    return number;
}

/* Bytes of the line with this name, which ends with its colon; 0 if there is none. */
static uint64_t bytes_in(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    uint64_t kib = line != NULL ? number_at(line + strlen(name)) : UINT64_MAX;

    return kib < UINT64_MAX / 1024 ? kib * 1024 : 0;
}

static int read_meminfo(struct work *work)
{
    cw_format(work->number.name, NAME_MAX_LEN, "%s/proc/meminfo", work->proc);
    return read_file(&work->number);
}

static uint64_t kernel_available(struct work *work)
{
    return read_meminfo(work) == 0 ? bytes_in(work->number.text, "MemAvailable:") : 0;
}

/* ---- without control groups ---- */

/* A node has no line MemAvailable. The kernel's own estimate of it leaves at most half of the file
 * cache, and of what of the slabs can be taken back, for its watermarks (Linux, mm/show_mem.c,
 * si_mem_available); here it is half. */
static int node_memory(struct work *work, int node, struct cw_host_memory *out)
{
    const char *text = work->number.text;

    cw_format(work->number.name, NAME_MAX_LEN, "%s/sys/devices/system/node/node%d/meminfo",
              work->sys, node);
    if (read_file(&work->number) != 0)
        return -1;
    out->total = bytes_in(text, " MemTotal:");
    out->available = bytes_in(text, " MemFree:") +
                     (bytes_in(text, " Active(file):") + bytes_in(text, " Inactive(file):") +
                      bytes_in(text, " SReclaimable:")) /
                         2;
    return 0;
}

static int whole_memory(struct work *work, struct cw_host_memory *out)
{
    if (read_meminfo(work) != 0)
        return -1;
    out->total = bytes_in(work->number.text, "MemTotal:");
    out->available = bytes_in(work->number.text, "MemAvailable:");
    return 0;
}

/* ---- control groups ---- */

struct controller {
    const char *mount; /* below the root of sys */
    const char *limit, *usage;
};

static const struct controller version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                            "memory.usage_in_bytes"};
static const struct controller version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current"};

static uint64_t number_in(struct work *work, const struct controller *of, const char *group,
                          const char *name)
{
    struct text_file *file = &work->number;

    cw_format(file->name, NAME_MAX_LEN, "%s%s%s/%s", work->sys, of->mount, group, name);
    return read_file(file) == 0 ? number_at(file->text) : UINT64_MAX;
}

static uint64_t room_in(struct work *work, const struct controller *of, const char *group)
{
    uint64_t limit = number_in(work, of, group, of->limit);
    uint64_t usage = number_in(work, of, group, of->usage);

    if (limit == UINT64_MAX || usage == UINT64_MAX)
        return UINT64_MAX;
    return limit > usage ? limit - usage : 0;
}

/* Every group from this one up to the root may have a limit. In a container the file names a group
 * that is not in sight; then the mount itself is the group. */
static uint64_t least_room(struct work *work, const struct controller *of, char *group)
{
    uint64_t least = room_in(work, of, ""), room;

    while (group[0] == '/' && group[1] != '\0') {
        room = room_in(work, of, group);
        if (room < least)
            least = room;
        *strrchr(group, '/') = '\0';
    }
    return least;
}

/* The path of "0::/a/b" or "7:cpu,memory:/a/b", cut off at the end of the line; NULL for other
 * lines. */
static char *group_of(char *line, const struct controller **out)
{
    char *list = strchr(line, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;

    if (path == NULL)
        return NULL;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (strcmp(list, ":") == 0)
        *out = &version_2;
    else if (strstr(list, "memory") != NULL)
        *out = &version_1;
    else
        return NULL;
    return path;
}

static uint64_t group_room(struct work *work)
{
    struct text_file *file = &work->groups;
    uint64_t least = UINT64_MAX, room;

    cw_format(file->name, NAME_MAX_LEN, "%s/proc/self/cgroup", work->proc);
    if (read_file(file) != 0)
        return UINT64_MAX;
    for (char *line = file->text, *next; line != NULL && *line != '\0'; line = next) {
        const struct controller *of = NULL;
        char *group;

        next = strchr(line, '\n');
        next = next != NULL ? next + 1 : NULL;
        group = group_of(line, &of);
        if (group == NULL)
            continue;
        room = least_room(work, of, group);
        if (room < least)
            least = room;
    }
    return least;
}

uint64_t cw_host_memory_available_at(const char *proc, const char *sys)
{
    struct work *work = cw_mem_alloc(sizeof(*work));
    uint64_t kernel, group;
    int saved = errno;

    if (work == NULL)
        return 0;
    work->proc = proc;
    work->sys = sys;
    kernel = kernel_available(work);
    group = group_room(work);
    cw_mem_free(work, sizeof(*work));
    errno = saved;
    return group < kernel ? group : kernel;
}

int cw_host_memory_of_at(const char *proc, const char *sys, int node, struct cw_host_memory *out)
{
    struct work *work = cw_mem_alloc(sizeof(*work));
    int saved = errno, rc;

    if (work == NULL)
        return -1;
    work->proc = proc;
    work->sys = sys;
    rc = node == CW_HOST_MEMORY_ALL ? whole_memory(work, out) : node_memory(work, node, out);
    cw_mem_free(work, sizeof(*work));
    errno = saved;
    return rc == 0 && out->total != 0 && out->available != 0 ? 0 : -1;
}

int cw_host_memory_of(int node, struct cw_host_memory *out)
{
    return cw_host_memory_of_at("", "", node, out);
}

uint64_t cw_host_memory_available(void)
{
    return cw_host_memory_available_at("", "");
}
