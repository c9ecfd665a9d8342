/* SPDX-License-Identifier: MIT */
/* Counts calls, bytes and misuse, writes the report and answers the cusim_* control functions.
 *
 * Misuse is kept as lines, the first MAX_LINES of them, and as a count per kind. Everything is
 * guarded by sim.lock except the call counters, which are atomic. The format of the report is
 * described in README.md.
 */
#include "sim_handles.h"
#include "sim_lazy.h"
#include "sim_observe.h"
#include "sim_script.h"
#include "sim_site.h"
#include "sim_take.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINES 256
#define MAX_KINDS 16

static char *lines[MAX_LINES];
static unsigned nlines;
static unsigned long long nmisuses;
static bool is_written; /* the final report: what comes later is appended */

static struct {
    const char *kind;
    unsigned long long count;
} kinds[MAX_KINDS];

struct usage {
    long long bytes, blocks, peak;
};

/* One row per kind; the last column is memory of no device. */
static struct usage usages[SIM_MEM_NKINDS][SIM_MAX_DEVICES + 1];

static const char *const kind_names[SIM_MEM_NKINDS] = {
    "device", "managed", "host",     "registered", "async",    "graph",    "array",
    "global", "import",  "external", "mapping",    "physical", "graphics",
};

static void append_late(const char *line)
{
    char path[600];
    int fd;

    snprintf(path, sizeof path, "%s", sim.config.report);
    fd = *path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    dprintf(fd, "misuse %s\n", line);
    close(fd);
}

static void count_kind(const char *kind)
{
    for (int i = 0; i < MAX_KINDS; i++) {
        if (kinds[i].kind && strcmp(kinds[i].kind, kind))
            continue;
        kinds[i].kind = kind;
        kinds[i].count++;
        return;
    }
}

void sim_misuse(const char *kind, const char *format, ...)
{
    char text[400], line[480];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%s %s", kind, text);
    count_kind(kind);
    nmisuses++;
    if (is_written)
        append_late(line);
    else if (nlines < MAX_LINES)
        lines[nlines++] = strdup(line);
}

void sim_live_bytes_add(enum sim_kind kind, int device, int64_t bytes, int64_t blocks)
{
    struct usage *usage = &usages[kind][device >= 0 ? device : SIM_MAX_DEVICES];

    usage->bytes += bytes;
    usage->blocks += blocks;
    if (usage->bytes > usage->peak)
        usage->peak = usage->bytes;
}

/* %p becomes the process id. The result replaces the pattern: a child must not reuse it. */
static void expand_path(void)
{
    char *percent = strstr(sim.config.report, "%p"), expanded[512];

    if (!percent)
        return;
    snprintf(expanded, sizeof expanded, "%.*s%ld%s", (int)(percent - sim.config.report),
             sim.config.report, (long)getpid(), percent + 2);
    memcpy(sim.config.report, expanded, sizeof expanded);
}

static void write_calls(FILE *out)
{
    for (unsigned i = 0; i < sim_nrows; i++) {
        unsigned long long calls =
            atomic_load_explicit(&sim_tallies[i].calls, memory_order_relaxed);

        if (calls)
            fprintf(out, "calls %s %llu\n", sim_rows[i].symbol, calls);
        if (sim_tallies[i].failed)
            fprintf(out, "failed %s %llu\n", sim_rows[i].symbol, sim_tallies[i].failed);
    }
}

static void write_memory(FILE *out)
{
    for (int i = 0; i < sim.config.ndevices; i++)
        fprintf(out, "device %d total %zu used %zu peak %zu\n", i, sim.devices[i].total,
                sim.devices[i].used, sim.devices[i].peak);
    for (int kind = 0; kind < SIM_MEM_NKINDS; kind++) {
        for (int i = 0; i <= SIM_MAX_DEVICES; i++) {
            const struct usage *usage = &usages[kind][i];

            if (usage->peak)
                fprintf(out, "live %s device %d blocks %lld bytes %lld peak %lld\n",
                        kind_names[kind], i < SIM_MAX_DEVICES ? i : -1, usage->blocks, usage->bytes,
                        usage->peak);
        }
    }
}

static void write_site(unsigned index, const char *site, unsigned long long calls, void *out)
{
    fprintf(out, "site %s %s %llu\n", sim_rows[index].symbol, site, calls);
}

/* A context that is on nobody's stack may well be alive; one too many there is seen by its depth.
 */
static void write_handles(FILE *out)
{
    for (enum sim_type type = 1; type < SIM_NTYPES; type++) {
        size_t most, count = sim_object_count(type, &most);

        if (most > 0)
            fprintf(out, "handles %s %zu\n", sim_object_name(type), count);
    }
    fprintf(out, "handles reservation %zu\nstack %u\n", sim_vmm_reservations(),
            sim_thread()->depth);
}

static void write_report(const char *path)
{
    FILE *out = fopen(path, "we");

    if (!out)
        return;
    fprintf(out, "cusim-report 1\npid %ld\n", (long)getpid());
    write_calls(out);
    sim_site_visit(write_site, out);
    write_memory(out);
    write_handles(out);
    fprintf(out, "misuse_count %llu\n", nmisuses);
    for (unsigned i = 0; i < nlines; i++)
        fprintf(out, "misuse %s\n", lines[i]);
    fclose(out);
}

void sim_counter_fini(void)
{
    expand_path();
    if (*sim.config.report)
        write_report(sim.config.report);
    is_written = true;
}

/* ---- controls ---- */

static void lock(void)
{
    pthread_mutex_lock(&sim.lock);
    if (!sim.is_configured)
        sim_config_load();
}

static void unlock(void)
{
    pthread_mutex_unlock(&sim.lock);
}

unsigned long long cusim_calls(const char *symbol)
{
    int index = sim_row_find(symbol);

    return index < 0 ? 0 : atomic_load(&sim_tallies[index].calls);
}

static long long sum_usage(enum cusim_kind kind, int device, bool of_blocks)
{
    long long sum = 0;

    lock();
    for (int i = 0; i <= SIM_MAX_DEVICES; i++)
        if (device < 0 || device == i)
            sum += of_blocks ? usages[kind][i].blocks : usages[kind][i].bytes;
    unlock();
    return sum;
}

unsigned long long cusim_live_bytes(enum cusim_kind kind, int device)
{
    return (unsigned long long)sum_usage(kind, device, false);
}

unsigned long long cusim_live_blocks(enum cusim_kind kind, int device)
{
    return (unsigned long long)sum_usage(kind, device, true);
}

unsigned long long cusim_used_bytes(int device)
{
    unsigned long long used;

    lock();
    used = sim.devices[device].used;
    unlock();
    return used;
}

unsigned long long cusim_peak_bytes(int device)
{
    unsigned long long peak;

    lock();
    peak = sim.devices[device].peak;
    unlock();
    return peak;
}

unsigned long long cusim_misuse_count(void)
{
    unsigned long long count;

    lock();
    count = nmisuses;
    unlock();
    return count;
}

unsigned long long cusim_misuse_of(const char *kind)
{
    unsigned long long count = 0;

    lock();
    for (int i = 0; i < MAX_KINDS; i++)
        if (kinds[i].kind && !strcmp(kinds[i].kind, kind))
            count = kinds[i].count;
    unlock();
    return count;
}

void cusim_observe(void (*seen)(const struct cusim_event *event))
{
    lock();
    sim_observe_set(seen);
    unlock();
}

void cusim_set_delay_us(long delay_us)
{
    lock();
    sim.config.delay_us = delay_us;
    unlock();
}

void cusim_set_free_waits(int waits)
{
    lock();
    sim.config.free_waits = waits;
    unlock();
}

/* Also used while the configuration is read, hence without the lock. */
void cusim_set_cost_ns(const char *symbol, unsigned long long ns)
{
    for (unsigned i = 0; i < sim_nrows; i++) {
        bool is_meant = symbol ? !strcmp(sim_rows[i].symbol, symbol)
                               : (sim_rows[i].guard & (SIM_ALLOCATES | SIM_FREES)) != 0;

        if (is_meant)
            sim_tallies[i].cost_ns = ns;
    }
}

void cusim_take(const char *symbol, unsigned long long bytes)
{
    lock();
    sim_take_set(symbol, bytes);
    unlock();
}

void cusim_fail(const char *rules)
{
    lock();
    if (rules)
        sim_script_load(rules);
    else
        sim_script_reset();
    unlock();
}

void cusim_wait_idle(void)
{
    lock();
    sim_engine_settle();
    unlock();
}

void cusim_set_lazy(unsigned long long seed)
{
    lock();
    sim_engine_settle();
    sim_lazy_seed(seed);
    unlock();
}

void cusim_set_pause(void (*pause)(void))
{
    lock();
    sim_lazy_set_pause(pause);
    unlock();
}

unsigned cusim_step(unsigned most)
{
    unsigned n = 0;

    lock();
    while (n < most && sim.config.is_lazy && sim_engine_step(NULL))
        n++;
    unlock();
    return n;
}

void cusim_write_report(const char *path)
{
    lock();
    expand_path();
    write_report(path ? path : sim.config.report);
    unlock();
}
