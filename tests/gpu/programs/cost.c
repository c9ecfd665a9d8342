/* SPDX-License-Identifier: MIT */
/*
 * What the driver's own calls cost while a kernel runs. Not a test: ../bench.sh prints its tables.
 * Built with a C compiler alone. facts.c asks whether a free of one block waits; here are the sizes
 * that share a page of the driver with a neighbour and those that do not, pinned memory, and many
 * streams.
 *
 *   cost blocking   Markdown rows: do frees and allocations wait for a kernel in another,
 *                   non-blocking stream?
 *   cost events     Markdown rows: events of a whole context, and waits for it
 */
#include "cu.h"

#include <unistd.h>

#define RUNS         5
#define KERNEL_US    50000
#define STREAMS_MAX  64
#define EVENTS       16
#define CALLS        100
#define NON_BLOCKING 1
#define NO_TIMING    2
#define NOT_READY    600

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static void *context;
static struct cu_kernels kernels;

/* "64 KiB" */
static const char *size_text(size_t bytes)
{
    static char text[32];

    if (bytes >= GIB)
        snprintf(text, sizeof(text), "%zu GiB", bytes / GIB);
    else if (bytes >= MIB)
        snprintf(text, sizeof(text), "%zu MiB", bytes / MIB);
    else
        snprintf(text, sizeof(text), "%zu KiB", bytes / KIB);
    return text;
}

static size_t free_memory(void)
{
    size_t available, total;

    MUST(cu.info(&available, &total));
    return available;
}

static void *new_stream(void)
{
    void *stream;

    MUST(cu.stream(&stream, NON_BLOCKING));
    return stream;
}

static void *new_event(void)
{
    void *event;

    MUST(cu.event(&event, NO_TIMING));
    return event;
}

static int is_pending(void *event)
{
    int result = cu.query(event);

    if (result != NOT_READY)
        MUST(result);
    return result == NOT_READY;
}

/* ---- do frees wait? ---- */

struct kind {
    const char *take_name, *give_name;
    int (*take)(void **block, size_t bytes);
    int (*give)(void *block);
};

static int take_device(void **block, size_t bytes)
{
    cu_block address = 0;
    int result = cu.alloc(&address, bytes);

    *block = (void *)(uintptr_t)address;
    return result;
}

static int give_device(void *block)
{
    return cu.free_block((cu_block)(uintptr_t)block);
}

static int take_pinned(void **block, size_t bytes)
{
    return cu.alloc_host(block, bytes, 0);
}

static int give_pinned(void *block)
{
    return cu.free_host(block);
}

static const struct kind kinds[] = {
    {"cuMemAlloc", "cuMemFree", take_device, give_device},
    {"cuMemHostAlloc", "cuMemFreeHost", take_pinned, give_pinned},
};

struct timed {
    double us;   /* the least */
    int running; /* how often the kernel still ran when the call had returned */
};

struct row {
    const struct kind *kind;
    size_t bytes;
    void *stream, *ended, *block;
};

/* One call, of the kind's give or its take, while a kernel runs in the stream or while nothing
 * does. */
static void time_call(struct row *row, int is_give, int is_busy, struct timed *timed, int run)
{
    uint64_t start;
    double us;

    if (is_busy)
        MUST(cu_spin(&kernels, KERNEL_US, row->stream));
    MUST(cu.record(row->ended, row->stream));
    usleep(is_busy ? KERNEL_US / 20 : 0); /* it has begun by now */
    start = now_ns();
    MUST(is_give ? row->kind->give(row->block) : row->kind->take(&row->block, row->bytes));
    us = (double)(now_ns() - start) / 1e3;
    timed->running += is_busy && is_pending(row->ended);
    MUST(cu.synchronize());
    if (run == 0 || us < timed->us)
        timed->us = us;
}

static void blocking_row(const struct kind *kind, size_t bytes, int has_neighbour)
{
    struct timed take[2] = {{0, 0}}, give[2] = {{0, 0}};
    struct row row = {kind, bytes, new_stream(), new_event(), NULL};
    void *neighbour = NULL;

    if (has_neighbour)
        MUST(kind->take(&neighbour, bytes));
    for (int busy = 0; busy < 2; busy++)
        for (int run = 0; run < RUNS; run++) {
            time_call(&row, 0, busy, &take[busy], run);
            time_call(&row, 1, busy, &give[busy], run);
        }
    say("| %s, %s | %s | %s | %.1f | %.1f | %d of %d | %.1f | %.1f | %d of %d |", kind->take_name,
        kind->give_name, size_text(bytes), has_neighbour ? "yes" : "no", take[0].us, take[1].us,
        take[1].running, RUNS, give[0].us, give[1].us, give[1].running, RUNS);
    if (has_neighbour)
        MUST(kind->give(neighbour));
    MUST(cu.end_stream(row.stream));
}

static void blocking(void)
{
    static const size_t sizes[] = {4 * KIB, 64 * KIB, MIB, 2 * MIB, 16 * MIB, 128 * MIB, GIB};

    say("A kernel of %d ms runs in a non-blocking stream. The least of %d times, in us; *runs*: "
        "how "
        "often the kernel was still running when the call had returned.\n",
        KERNEL_US / 1000, RUNS);
    say("| calls | size | neighbour | allocation, idle | allocation, kernel | runs | free, idle | "
        "free, kernel | runs |");
    say("|---|---|---|---|---|---|---|---|---|");
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            if (sizes[i] > free_memory() / 2)
                continue;
            blocking_row(&kinds[k], sizes[i], 0);
            if (sizes[i] < 2 * MIB)
                blocking_row(&kinds[k], sizes[i], 1);
        }
}

/* ---- events of a context ---- */

enum { RECORD, QUERY, STREAM_RECORD, SYNCHRONIZE, NCALLS };

static int record_context(void *event, void *stream)
{
    (void)stream;
    return cu.record_context(context, event);
}

static int query_event(void *event, void *stream)
{
    (void)stream;
    is_pending(event);
    return 0;
}

static int synchronize(void *event, void *stream)
{
    (void)event, (void)stream;
    return cu.synchronize();
}

/* us of one call, the mean of many: for each of the four, or -1 where it is not there, or would
 * measure the kernels.
 */
static void time_events(void **events, void *stream, int is_busy, double *us)
{
    int (*const calls[NCALLS])(void *, void *) = {record_context, query_event, cu.record,
                                                  synchronize};

    for (int call = 0; call < NCALLS; call++) {
        uint64_t start = now_ns();

        us[call] = -1;
        if ((call == RECORD && !cu.record_context) || (call == SYNCHRONIZE && is_busy))
            continue;
        for (int i = 0; i < CALLS; i++)
            MUST(calls[call](events[i % EVENTS], stream));
        us[call] = (double)(now_ns() - start) / CALLS / 1e3;
    }
}

static void print_cell(double us)
{
    if (us < 0)
        printf(" - |");
    else
        printf(" %.2f |", us);
}

/* All streams have done something; when busy, a kernel is in each of them, if only in line. */
static void events_row(int count, int is_busy)
{
    void *streams[STREAMS_MAX], *events[EVENTS], *ended = new_event();
    double least[NCALLS], us[NCALLS];
    int held = 1;

    for (int i = 0; i < EVENTS; i++)
        events[i] = new_event();
    for (int i = 0; i < count; i++)
        streams[i] = new_stream();
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < count; i++)
            MUST(cu_spin(&kernels, is_busy ? KERNEL_US : 1, streams[i]));
        MUST(cu.record(ended, streams[0]));
        if (!is_busy)
            MUST(cu.synchronize());
        time_events(events, streams[0], is_busy, us);
        held = held && (!is_busy || is_pending(ended));
        MUST(cu.synchronize());
        for (int call = 0; call < NCALLS; call++)
            if (run == 0 || us[call] < least[call])
                least[call] = us[call];
    }
    printf("| %d | %s%s |", count, is_busy ? "a kernel in each" : "idle",
           held ? "" : ", which ended too soon");
    for (int call = 0; call < NCALLS; call++)
        print_cell(least[call]);
    say("%s", "");
    for (int i = 0; i < count; i++)
        MUST(cu.end_stream(streams[i]));
}

static void events(void)
{
    say("The mean of %d calls, the least of %d times, in us.\n", CALLS, RUNS);
    say("| streams | they are | cuCtxRecordEvent | cuEventQuery of it | cuEventRecord | "
        "cuCtxSynchronize |");
    say("|---|---|---|---|---|---|");
    for (int busy = 0; busy < 2; busy++)
        for (int count = 1; count <= STREAMS_MAX; count *= 8)
            events_row(count, busy);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    context = cu_begin();
    kernels = cu_load_kernels();
    MUST(cu_spin(&kernels, 1, NULL)); /* the first launch may wait for the device */
    MUST(cu.synchronize());
    if (strcmp(what, "blocking") == 0)
        blocking();
    else if (strcmp(what, "events") == 0)
        events();
    else
        return 2;
    return 0;
}
