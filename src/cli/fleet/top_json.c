/* SPDX-License-Identifier: MIT */
/* Processes and devices as JSON. See top_json.h. */
#include "cli/fleet/top_json.h"

#include <errno.h>
#include <time.h>

#include "report/json/json_put.h"

#define BUFFER_SIZE 4096

/* Less than 0: not known. */
static void put_share(struct cw_json *json, const char *key, double share)
{
    cw_json_share(json, key, share > 0 ? (uint64_t)(share * 1e6 + 0.5) : 0,
                  share >= 0 ? 1000000 : 0);
}

static void put_pool(struct cw_json *json, const struct cw_fleet_device *device)
{
    cw_json_number(json, "pool_hits", device->hits);
    cw_json_number(json, "pool_misses", device->misses);
    put_share(json, "hit_share", device->hit_share);
    put_share(json, "efficiency", device->efficiency);
    put_share(json, "fragmentation_now", device->fragmentation);
    put_share(json, "fragmentation_peak", device->peak_fragmentation);
}

static void put_device(struct cw_json *json, const struct cw_fleet_device *device)
{
    uint64_t ooms = 0;

    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        ooms += device->ooms[i];
    cw_json_element(json, '{');
    cw_json_device(json, "device", device->ordinal);
    cw_json_string(json, "name", device->name);
    cw_json_string(json, "uuid", device->uuid);
    cw_json_number(json, "live_bytes", device->live);
    cw_json_number(json, "idle_bytes", device->idle);
    cw_json_number(json, "held_bytes", device->held);
    cw_json_number(json, "peak_bytes", device->peak);
    cw_json_number(json, "peak_held_bytes", device->peak_held);
    cw_json_number(json, "limit_bytes", device->limit);
    cw_json_string(json, "level", cw_level_name(device->level));
    put_share(json, "pressure", device->pressure);
    if (device->oom_eta >= 0)
        cw_json_decimal(json, "oom_eta_seconds", device->oom_eta);
    if (device->driver_total != 0) {
        cw_json_number(json, "device_used_bytes", device->driver_used);
        cw_json_number(json, "device_total_bytes", device->driver_total);
    }
    cw_json_number(json, "live_blocks", device->live_blocks);
    cw_json_number(json, "allocs", device->allocs);
    cw_json_number(json, "frees", device->frees);
    cw_json_number(json, "failed", device->failed);
    cw_json_number(json, "ooms", ooms);
    cw_json_decimal(json, "allocs_per_s", device->alloc_rate);
    cw_json_number(json, "fallbacks", device->fallbacks);
    cw_json_number(json, "fallback_bytes", device->fallback_bytes);
    cw_json_open(json, "trimmed_bytes", '{');
    for (unsigned i = 0; i < CW_RELEASE_COUNT; i++)
        cw_json_number(json, cw_release_name(i), device->trimmed_bytes[i]);
    cw_json_close(json, '}');
    cw_json_open(json, "neighbours", '{');
    cw_json_number(json, "asked", device->neighbours_asked);
    cw_json_number(json, "silent", device->neighbours_silent);
    cw_json_number(json, "received_bytes", device->neighbours_bytes);
    cw_json_number(json, "served", device->neighbours_served);
    cw_json_close(json, '}');
    put_pool(json, device);
    cw_json_close(json, '}');
}

static void put_budget(struct cw_json *json, const struct cw_fleet_budget *budget)
{
    cw_json_element(json, '{');
    cw_json_string(json, "tag", budget->pattern);
    cw_json_number(json, "bytes", budget->bytes);
    cw_json_string(json, "beyond", budget->refuses ? "refuse" : "warn");
    cw_json_number(json, "live_bytes", budget->live);
    cw_json_number(json, "peak_bytes", budget->peak);
    cw_json_number(json, "exceeded", budget->exceeded);
    cw_json_number(json, "refused", budget->refused);
    cw_json_close(json, '}');
}

/* Its devices are in the rows of the process. */
static void put_process(struct cw_json *json, const struct cw_top_row *rows, long count)
{
    const struct cw_fleet_process *process = rows->process;

    cw_json_element(json, '{');
    cw_json_number(json, "pid", process->pid);
    cw_json_number(json, "ppid", process->ppid);
    cw_json_number(json, "uid", process->uid);
    cw_json_string(json, "user", process->user);
    cw_json_truth(json, "other_pid_namespace", process->is_in_other_pid_namespace);
    cw_json_string(json, "exe", process->exe);
    cw_json_string(json, "command", process->command);
    cw_json_string(json, "host", process->host);
    cw_json_string(json, "state", cw_fleet_state_name(process->state));
    cw_json_number(json, "start_time_ns", process->start_realtime_ns);
    cw_json_string(json, "live_file", process->path);
    cw_json_open(json, "devices", '[');
    for (long i = 0; i < count; i++) {
        if (rows[i].process == process && rows[i].device)
            put_device(json, rows[i].device);
    }
    cw_json_close(json, ']');
    cw_json_open(json, "budgets", '[');
    for (uint32_t i = 0; i < process->budgets; i++) {
        if (process->budget[i].is_set)
            put_budget(json, &process->budget[i]);
    }
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}

static int is_first_of_process(const struct cw_top_row *rows, long at)
{
    for (long i = 0; i < at; i++) {
        if (rows[i].process == rows[at].process)
            return 0;
    }
    return 1;
}

static void put_gpu(struct cw_json *json, const struct cw_gpu *gpu)
{
    cw_json_element(json, '{');
    cw_json_number(json, "index", gpu->index);
    cw_json_string(json, "name", gpu->name);
    cw_json_string(json, "uuid", gpu->uuid);
    cw_json_number(json, "total_bytes", gpu->total);
    cw_json_number(json, "used_bytes", gpu->used);
    cw_json_number(json, "free_bytes", gpu->total > gpu->used ? gpu->total - gpu->used : 0);
    cw_json_open(json, "others", '[');
    for (unsigned i = 0; i < gpu->others; i++) {
        cw_json_element(json, '{');
        cw_json_number(json, "pid", gpu->other[i].pid);
        cw_json_string(json, "name", gpu->other[i].name);
        if (gpu->other[i].bytes != UINT64_MAX)
            cw_json_number(json, "used_bytes", gpu->other[i].bytes);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}

int cw_top_print_json(FILE *to, const struct cw_fleet *fleet, const struct cw_gpus *gpus,
                      const struct cw_top_row *rows, long count)
{
    char buffer[BUFFER_SIZE];
    struct cw_out out;
    struct cw_json json = {.out = &out, .first = 1};
    struct timespec now;

    if (fflush(to) != 0)
        return errno;
    cw_out_init(&out, fileno(to), buffer, sizeof(buffer));
    clock_gettime(CLOCK_REALTIME, &now);
    cw_json_open(&json, NULL, '{');
    cw_json_string(&json, "schema", "cuwarden-top/1");
    cw_json_string(&json, "version", PACKAGE_VERSION);
    cw_json_number(&json, "time_ns", (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    cw_json_number(&json, "unreadable_files", fleet->unreadable);
    cw_json_open(&json, "processes", '[');
    for (long i = 0; i < count; i++) {
        if (is_first_of_process(rows, i))
            put_process(&json, rows + i, count - i);
    }
    cw_json_close(&json, ']');
    cw_json_open(&json, "gpus", '[');
    for (unsigned i = 0; i < gpus->count; i++)
        put_gpu(&json, &gpus->gpu[i]);
    cw_json_close(&json, ']');
    cw_json_close(&json, '}');
    cw_out_char(&out, '\n');
    return cw_out_flush(&out);
}
