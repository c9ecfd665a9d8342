/* SPDX-License-Identifier: MIT */
/* The GPUs of this machine. See gpus.h. */
#include "cli/fleet/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/printable.h"
#include "cli/devices/nvml.h"
#include "cli/fleet/top_table.h"
#include "cli/ui/truncate.h"

#define BAR_CELLS     10
#define LINE_MAX      1024
#define NOT_KNOWN     UINT64_MAX
#define PROCESSES_MAX 4096

/* ---- what NVML tells ---- */

static int is_of_fleet(const struct cw_fleet *fleet, uint32_t pid)
{
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->process[i]->pid == pid && fleet->process[i]->state == CW_FLEET_RUNNING)
            return 1;
    return 0;
}

static void read_name(uint32_t pid, char *name, size_t cap)
{
    char path[32];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%u/comm", (unsigned)pid);
    file = fopen(path, "re");
    if (!file || !fgets(name, (int)cap, file))
        name[0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
}

static int compare_users(const void *left, const void *right)
{
    const struct cw_gpu_user *a = left, *b = right;
    uint64_t x = a->bytes == NOT_KNOWN ? 0 : a->bytes, y = b->bytes == NOT_KNOWN ? 0 : b->bytes;

    return (x < y) - (x > y);
}

static void read_users(const struct cw_nvml *nvml, void *device, const struct cw_fleet *fleet,
                       struct cw_gpu *gpu)
{
    static struct cw_nvml_process process[PROCESSES_MAX];
    unsigned int count = CW_ARRAY_LEN(process);

    if (!nvml->processes || nvml->processes(device, &count, process) != 0)
        return;
    for (unsigned int i = 0; i < count && i < CW_ARRAY_LEN(process); i++) {
        struct cw_gpu_user *user = &gpu->other[gpu->others];

        if (is_of_fleet(fleet, process[i].pid) || gpu->others == CW_GPU_USERS_MAX)
            continue;
        *user = (struct cw_gpu_user){.pid = process[i].pid, .bytes = process[i].used};
        read_name(user->pid, user->name, sizeof(user->name));
        gpu->others++;
    }
    qsort(gpu->other, gpu->others, sizeof(*gpu->other), compare_users);
}

static void ask_nvml(const struct cw_nvml *nvml, struct cw_gpus *gpus, const struct cw_fleet *fleet)
{
    unsigned int count = 0;

    if (nvml->count(&count) != 0)
        return;
    for (unsigned int i = 0; i < count && gpus->count < CW_GPUS_MAX; i++) {
        struct cw_gpu *gpu = &gpus->gpu[gpus->count];
        struct cw_nvml_memory memory;
        void *device;

        *gpu = (struct cw_gpu){.index = i};
        if (nvml->handle(i, &device) != 0 || cw_nvml_memory_of(nvml, device, &memory) != 0 ||
            nvml->uuid(device, gpu->uuid, sizeof(gpu->uuid)) != 0)
            continue;
        if (!nvml->name || nvml->name(device, gpu->name, sizeof(gpu->name)) != 0)
            gpu->name[0] = '\0';
        gpu->total = memory.total;
        gpu->used = memory.total > memory.free ? memory.total - memory.free : memory.used;
        read_users(nvml, device, fleet, gpu);
        gpus->count++;
    }
}

/* ---- what the processes were told ---- */

static struct cw_gpu *find(struct cw_gpus *gpus, const char *uuid)
{
    for (unsigned i = 0; i < gpus->count; i++)
        if (strcmp(gpus->gpu[i].uuid, uuid) == 0)
            return &gpus->gpu[i];
    return NULL;
}

static void add_device(struct cw_gpus *gpus, const struct cw_fleet_device *device)
{
    if (device->ordinal == CW_DEVICE_HOST || device->driver_total == 0 ||
        find(gpus, device->uuid) || gpus->count == CW_GPUS_MAX)
        return;
    gpus->gpu[gpus->count] = (struct cw_gpu){
        .index = device->ordinal, .total = device->driver_total, .used = device->driver_used};
    memcpy(gpus->gpu[gpus->count].uuid, device->uuid, sizeof(device->uuid));
    memcpy(gpus->gpu[gpus->count].name, device->name, sizeof(device->name));
    gpus->count++;
}

static int compare_gpus(const void *left, const void *right)
{
    const struct cw_gpu *a = left, *b = right;

    return (a->index > b->index) - (a->index < b->index);
}

void cw_gpus_look(struct cw_gpus *gpus, const struct cw_fleet *fleet)
{
    const struct cw_nvml *nvml = cw_nvml();

    gpus->count = 0;
    if (nvml)
        ask_nvml(nvml, gpus, fleet);
    if (gpus->count != 0)
        return;
    for (size_t i = 0; i < fleet->count; i++)
        for (uint32_t k = 0; k < fleet->process[i]->devices; k++)
            if (fleet->process[i]->state == CW_FLEET_RUNNING)
                add_device(gpus, &fleet->process[i]->device[k]);
    qsort(gpus->gpu, gpus->count, sizeof(*gpus->gpu), compare_gpus);
}

/* ---- a line ---- */

struct line {
    char text[LINE_MAX];
    size_t columns;
};

/* Adds the words if they fit. */
static int add(struct line *line, const char *words)
{
    size_t len = strlen(line->text);

    if (len + strlen(words) > line->columns || len + strlen(words) >= sizeof(line->text))
        return 0;
    memcpy(line->text + len, words, strlen(words) + 1);
    return 1;
}

/* `before` comes before the first. Returns how many were added. */
static unsigned add_users(struct line *line, const struct cw_gpu *gpu, const char *before)
{
    char words[128], size[16];

    for (unsigned i = 0; i < gpu->others; i++) {
        const struct cw_gpu_user *user = &gpu->other[i];

        snprintf(words, sizeof(words), "%s%s%s%u%s%s", i == 0 ? before : ", ", user->name,
                 user->name[0] ? " " : "", (unsigned)user->pid, user->bytes == NOT_KNOWN ? "" : " ",
                 user->bytes == NOT_KNOWN ? "" : cw_top_size(size, sizeof(size), user->bytes));
        if (!add(line, words))
            return i;
    }
    return gpu->others;
}

static void add_others(struct line *line, const struct cw_gpu *gpu)
{
    unsigned shown = add_users(line, gpu, "  others: ");
    char words[32];

    snprintf(words, sizeof(words), shown == 0 ? "  %u others" : ", %u more", gpu->others - shown);
    if (shown < gpu->others)
        add(line, words);
}

const char *cw_gpus_others(const struct cw_gpus *gpus, const char *uuid, char *buf, size_t cap)
{
    struct line line = {.columns = cap - 1};

    for (unsigned i = 0; i < gpus->count; i++)
        if (uuid[0] && strcmp(gpus->gpu[i].uuid, uuid) == 0)
            add_users(&line, &gpus->gpu[i], "");
    snprintf(buf, cap, "%s", line.text);
    return cw_printable_clean_string(buf);
}

void cw_gpu_format(const struct cw_gpu *gpu, size_t columns, char *buf, size_t cap)
{
    struct line line = {.columns = columns};
    char words[160], bar[BAR_CELLS + 1] = "", size[3][16];
    uint64_t free_bytes = gpu->total > gpu->used ? gpu->total - gpu->used : 0;
    unsigned cells =
        gpu->total == 0 ? 0 : (unsigned)((double)gpu->used / (double)gpu->total * BAR_CELLS + 0.5);

    for (unsigned i = 0; i < BAR_CELLS; i++)
        bar[i] = i < cells ? '#' : '.';
    snprintf(words, sizeof(words), "GPU %u", (unsigned)gpu->index);
    add(&line, words);
    snprintf(words, sizeof(words), " [%s]", bar);
    if (columns >= 40)
        add(&line, words);
    snprintf(words, sizeof(words), " %s of %s", cw_top_size(size[0], sizeof(size[0]), gpu->used),
             cw_top_size(size[1], sizeof(size[1]), gpu->total));
    add(&line, words);
    snprintf(words, sizeof(words), ", %s free", cw_top_size(size[2], sizeof(size[2]), free_bytes));
    add(&line, words);
    snprintf(words, sizeof(words), "  %s", gpu->name);
    if (gpu->name[0])
        add(&line, words);
    add_others(&line, gpu);
    cw_truncate(buf, cap, line.text, columns);
}
