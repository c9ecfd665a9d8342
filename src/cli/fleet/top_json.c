/* SPDX-License-Identifier: MIT */
/* Processes and devices as JSON. See top_json.h. */
#include "cli/fleet/top_json.h"

#include <string.h>
#include <time.h>
#include <yajl/yajl_gen.h>

#include "cli/ui/utf8.h"

#define TEXT_MAX 65536

static void put_text(yajl_gen gen, const char *text)
{
    static char clean[TEXT_MAX];

    cw_utf8_clean(clean, sizeof(clean), text);
    yajl_gen_string(gen, (const unsigned char *)clean, strlen(clean));
}

static void put_key(yajl_gen gen, const char *key)
{
    yajl_gen_string(gen, (const unsigned char *)key, strlen(key));
}

static void put_string(yajl_gen gen, const char *key, const char *text)
{
    put_key(gen, key);
    put_text(gen, text);
}

/* All 64 bits: yajl's own integer is signed. */
static void put_count(yajl_gen gen, const char *key, uint64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);

    put_key(gen, key);
    yajl_gen_number(gen, digits, (size_t)len);
}

static void put_double(yajl_gen gen, const char *key, double value)
{
    char digits[48];
    int len = snprintf(digits, sizeof(digits), "%.6g", value);

    put_key(gen, key);
    yajl_gen_number(gen, digits, (size_t)len);
}

static void put_share(yajl_gen gen, const char *key, double share)
{
    if (share >= 0) {
        put_double(gen, key, share);
        return;
    }
    put_key(gen, key);
    yajl_gen_null(gen);
}

static void put_pool(yajl_gen gen, const struct cw_fleet_device *device)
{
    put_count(gen, "pool_hits", device->hits);
    put_count(gen, "pool_misses", device->misses);
    put_share(gen, "hit_share", device->hit_share);
    put_share(gen, "efficiency", device->efficiency);
    put_share(gen, "fragmentation_now", device->fragmentation);
    put_share(gen, "fragmentation_peak", device->peak_fragmentation);
}

static void put_device(yajl_gen gen, const struct cw_fleet_device *device)
{
    uint64_t ooms = 0;

    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        ooms += device->ooms[i];
    yajl_gen_map_open(gen);
    put_key(gen, "device");
    if (device->ordinal == CW_DEVICE_HOST)
        put_text(gen, "host");
    else
        yajl_gen_integer(gen, (long long)device->ordinal);
    put_string(gen, "name", device->name);
    put_string(gen, "uuid", device->uuid);
    put_count(gen, "live_bytes", device->live);
    put_count(gen, "idle_bytes", device->idle);
    put_count(gen, "held_bytes", device->held);
    put_count(gen, "peak_bytes", device->peak);
    put_count(gen, "peak_held_bytes", device->peak_held);
    put_count(gen, "limit_bytes", device->limit);
    put_string(gen, "level", cw_level_name(device->level));
    put_count(gen, "allocs", device->allocs);
    put_count(gen, "frees", device->frees);
    put_count(gen, "failed", device->failed);
    put_count(gen, "ooms", ooms);
    put_double(gen, "allocs_per_s", device->alloc_rate);
    put_pool(gen, device);
    yajl_gen_map_close(gen);
}

/* Its devices are in the rows of the process. */
static void put_process(yajl_gen gen, const struct cw_top_row *rows, long count)
{
    const struct cw_fleet_process *process = rows->process;

    yajl_gen_map_open(gen);
    put_count(gen, "pid", process->pid);
    put_count(gen, "ppid", process->ppid);
    put_string(gen, "exe", process->exe);
    put_string(gen, "command", process->command);
    put_string(gen, "host", process->host);
    put_string(gen, "state", cw_fleet_state_name(process->state));
    put_count(gen, "start_time_ns", process->start_realtime_ns);
    put_string(gen, "live_file", process->path);
    put_key(gen, "devices");
    yajl_gen_array_open(gen);
    for (long i = 0; i < count; i++) {
        if (rows[i].process == process && rows[i].device)
            put_device(gen, rows[i].device);
    }
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
}

static int is_first_of_process(const struct cw_top_row *rows, long at)
{
    for (long i = 0; i < at; i++) {
        if (rows[i].process == rows[at].process)
            return 0;
    }
    return 1;
}

static void put_all(yajl_gen gen, const struct cw_fleet *fleet, const struct cw_top_row *rows,
                    long count)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    yajl_gen_map_open(gen);
    put_string(gen, "schema", "cuwarden-top/1");
    put_string(gen, "version", PACKAGE_VERSION);
    put_count(gen, "time_ns", (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    put_count(gen, "unreadable_files", fleet->unreadable);
    put_key(gen, "processes");
    yajl_gen_array_open(gen);
    for (long i = 0; i < count; i++) {
        if (is_first_of_process(rows, i))
            put_process(gen, rows + i, count - i);
    }
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
}

int cw_top_print_json(FILE *to, const struct cw_fleet *fleet, const struct cw_top_row *rows,
                      long count)
{
    yajl_gen gen = yajl_gen_alloc(NULL);
    const unsigned char *text;
    size_t len;
    int rc = -1;

    if (!gen)
        return -1;
    yajl_gen_config(gen, yajl_gen_beautify, 1);
    yajl_gen_config(gen, yajl_gen_indent_string, "  ");
    put_all(gen, fleet, rows, count);
    if (yajl_gen_get_buf(gen, &text, &len) == yajl_gen_status_ok) {
        fwrite(text, 1, len, to);
        rc = 0;
    }
    yajl_gen_free(gen);
    return rc;
}
