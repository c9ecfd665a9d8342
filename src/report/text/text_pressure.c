/* SPDX-License-Identifier: MIT */
/*
 * The section PRESSURE: limits, and levels with their durations, by device; memory released,
 * remedies tried, and refusals over all devices; advice; and the newest events. No line exceeds 100
 * columns.
 */
#include "report/text/text_sections.h"

#include "base/compiler.h"
#include "report/text/text_event.h"
#include "report/text/text_table.h"

#define EVENTS (1u << CW_EVENT_PRESSURE | 1u << CW_EVENT_TRIM | 1u << CW_EVENT_LIMIT)

static const struct cw_snapshot_pressure_device *device_at(const struct cw_text *text,
                                                           uint32_t index)
{
    return &text->snapshot->pressure.device[index];
}

/* ---- devices ---- */

static const char *const device_titles[] = {
    "device", "limit", "min free", "held", "peak held", "level", "highest use", "changes",
};

/* "-" for none. */
static void format_bytes(char *cell, uint64_t bytes)
{
    if (bytes != 0)
        cw_format_size(cell, CW_TEXT_CELL_MAX, bytes);
    else
        cw_format(cell, CW_TEXT_CELL_MAX, "-");
}

static void format_ordinal(char *cell, uint32_t index)
{
    cw_format(cell, CW_TEXT_CELL_MAX, index == CW_DEVICE_HOST ? "host" : "%u", index);
}

static void format_device(const struct cw_text *text, uint32_t index, unsigned column, char *cell)
{
    const struct cw_snapshot_pressure_device *device = device_at(text, index);

    switch (column) {
    case 0:
        format_ordinal(cell, index);
        return;
    case 1:
        format_bytes(cell, device->limit);
        return;
    case 2:
        format_bytes(cell, device->min_free);
        return;
    case 3:
        cw_format_size(cell, CW_TEXT_CELL_MAX, device->held);
        return;
    case 4:
        cw_format_size(cell, CW_TEXT_CELL_MAX, device->peak_held);
        return;
    case 5:
        cw_format(cell, CW_TEXT_CELL_MAX, "%s",
                  index == CW_DEVICE_HOST ? "-" : cw_level_name(device->level));
        return;
    case 6: /* 0: never sampled */
        cw_text_format_share(cell, CW_TEXT_CELL_MAX, device->highest_use,
                             device->highest_use != 0 ? 10000 : 0);
        return;
    default:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)device->changes);
        return;
    }
}

static const char *const time_titles[] = {"device",
#define X(id, name) name,
                                          CW_LEVELS(X)
#undef X
};

static void format_time(const struct cw_text *text, uint32_t index, unsigned column, char *cell)
{
    const struct cw_snapshot_pressure_device *device = device_at(text, index);
    char time[32], share[16];
    uint64_t ns = column > 0 ? device->level_ns[column - 1] : 0;

    if (column == 0)
        format_ordinal(cell, index);
    else if (ns == 0)
        cw_format(cell, CW_TEXT_CELL_MAX, "-");
    else
        cw_format(cell, CW_TEXT_CELL_MAX, "%s %5s", cw_format_duration(time, sizeof(time), ns),
                  cw_text_format_share(share, sizeof(share), ns, device->time_ns));
}

static void put_times(const struct cw_text *text, const uint32_t *rows, unsigned count)
{
    static const struct cw_text_table table = {.title = time_titles,
                                               .columns = CW_ARRAY_LEN(time_titles),
                                               .left = 1,
                                               .format = format_time};
    uint32_t moved[CW_DEVICES];
    unsigned moves = 0;

    for (unsigned i = 0; i < count; i++)
        if (device_at(text, rows[i])->changes != 0 || device_at(text, rows[i])->level != 0)
            moved[moves++] = rows[i];
    if (moves == 0)
        return;
    cw_text_blank(text);
    cw_text_line(text, "  time at each level");
    cw_text_table(text, &table, moved, moves);
}

static void put_devices(const struct cw_text *text)
{
    static const struct cw_text_table table = {.title = device_titles,
                                               .columns = CW_ARRAY_LEN(device_titles),
                                               .left = 1,
                                               .format = format_device};
    uint32_t rows[CW_DEVICES];
    unsigned count = 0;

    for (uint32_t i = 0; i < CW_DEVICES; i++)
        if (device_at(text, i)->used)
            rows[count++] = i;
    if (count == 0)
        return;
    cw_text_table(text, &table, rows, count);
    cw_text_line(text, "  highest use: of the device by anybody, or of a limit by this process");
    put_times(text, rows, count);
}

/* ---- bounds ---- */

/* "  device 0  soft  2.0 GiB  of the container  NVIDIA_GPU_MEMORY_REQUEST" */
static void put_bound(const struct cw_text *text, unsigned index,
                      const struct cw_snapshot_bound *bound)
{
    const struct cw_bound_kind *kind = cw_bound_kind((enum cw_bound)bound->bound);
    char size[24];

    cw_text_begin_line(text);
    cw_out_string(text->out, "    ");
    cw_text_device(text, index);
    cw_out_printf(text->out, "  %s  %10s  of the %-9s  %s\n", cw_bound_force_name(kind->force),
                  cw_format_size(size, sizeof(size), bound->bytes),
                  cw_bound_scope_name(kind->scope), kind->name);
}

static void put_borrowed(const struct cw_text *text, unsigned index)
{
    const struct cw_snapshot_pressure_device *device = device_at(text, index);
    char now[24], most[24];

    if (device->peak_borrowed == 0)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "    ");
    cw_text_device(text, index);
    cw_out_printf(text->out, "  %s borrowed beyond the soft limit, %s at most\n",
                  cw_format_size(now, sizeof(now), device->borrowed),
                  cw_format_size(most, sizeof(most), device->peak_borrowed));
}

static void put_bounds(const struct cw_text *text)
{
    int begun = 0;

    for (unsigned d = 0; d < CW_DEVICES; d++) {
        const struct cw_snapshot_pressure_device *device = device_at(text, d);

        for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
            if (device->bound[i].bytes == 0)
                continue;
            if (!begun++) {
                cw_text_blank(text);
                cw_text_line(text,
                             device->is_platform
                                 ? "  limits that are causes of pressure; the hard ones refuse "
                                   "(CUWARDEN_LIMIT=platform)"
                                 : "  limits that are causes of pressure, and refuse nothing");
            }
            put_bound(text, d, &device->bound[i]);
        }
        put_borrowed(text, d);
    }
}

/* ---- actions taken ---- */

static void put_amount(const struct cw_text *text, uint64_t bytes, uint64_t count, const char *noun,
                       const char *why)
{
    char size[24];

    cw_text_line(text, "    %10s in %ju %s%s  %s", cw_format_size(size, sizeof(size), bytes),
                 (uintmax_t)count, noun, count == 1 ? "" : "s", why);
}

static int width_of(uint64_t number)
{
    return (int)cw_format(NULL, 0, "%ju", (uintmax_t)number);
}

static void put_given_back(const struct cw_text *text,
                           const struct cw_snapshot_pressure_device *sums)
{
    if (sums->pressure_blocks == 0)
        return;
    cw_text_blank(text);
    cw_text_line(text, "  idle blocks released to the driver, because");
    put_amount(text, sums->pressure_bytes, sums->pressure_blocks, "block",
               "memory on the device was scarce");
}

static const char *const rung_titles[] = {
    "remedies when out of memory, in order",
    "tried",
    "helped",
    "given back",
};

static void format_rung(const struct cw_text *text, uint32_t index, unsigned column, char *cell)
{
    const struct cw_snapshot_rung *rung = &text->snapshot->pressure.all.rung[index];

    switch (column) {
    case 0:
        cw_format(cell, CW_TEXT_CELL_MAX, "  %s", cw_rung_label(index));
        return;
    case 1:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)rung->tried);
        return;
    case 2:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)rung->helped);
        return;
    default:
        format_bytes(cell, rung->released);
        return;
    }
}

static void put_ladder(const struct cw_text *text, const struct cw_snapshot_pressure_device *sums)
{
    static const struct cw_text_table table = {.title = rung_titles,
                                               .columns = CW_ARRAY_LEN(rung_titles),
                                               .left = 1,
                                               .format = format_rung};
    uint32_t rows[CW_RUNG_COUNT];
    unsigned count = 0;

    for (uint32_t i = 0; i < CW_RUNG_COUNT; i++)
        if (sums->rung[i].tried != 0)
            rows[count++] = i;
    if (count == 0)
        return;
    cw_text_blank(text);
    cw_text_table(text, &table, rows, count);
}

static void put_refused(const struct cw_text *text, const struct cw_snapshot_pressure_device *sums)
{
    uint64_t most = sums->limited;
    int width;

    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        most = sums->refused[i] > most ? sums->refused[i] : most;
    width = width_of(most);
    if (most != 0) {
        cw_text_blank(text);
        cw_text_line(text, "  requests");
    }
    if (sums->limited != 0)
        cw_text_line(text,
                     "    %*ju  did not fit at first because of the memory limit or "
                     "CUWARDEN_MIN_FREE",
                     width, (uintmax_t)sums->limited);
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        if (sums->refused[i] != 0)
            cw_text_line(text, "    %*ju  refused: %s", width, (uintmax_t)sums->refused[i],
                         cw_cause_label(i));
}

static void put_fallbacks(const struct cw_text *text,
                          const struct cw_snapshot_pressure_device *sums)
{
    if (sums->fallbacks == 0)
        return;
    cw_text_blank(text);
    cw_text_line(text, "  served from managed memory, counted as host memory");
    put_amount(text, sums->fallback_bytes, sums->fallbacks, "request",
               "(CUWARDEN_FALLBACK=managed)");
}

static void put_neighbours(const struct cw_text *text,
                           const struct cw_snapshot_pressure_device *sums)
{
    char time[32];

    if ((sums->neighbours.asked | sums->neighbours.served) == 0)
        return;
    cw_text_blank(text);
    cw_text_line(text, "  other processes on the device (CUWARDEN_NEIGHBOURS)");
    if (sums->neighbours.asked != 0)
        cw_text_line(
            text, "    %10ju request%s to them for idle memory, %ju without an answer; %s waited",
            (uintmax_t)sums->neighbours.asked, sums->neighbours.asked == 1 ? "" : "s",
            (uintmax_t)sums->neighbours.silent,
            cw_format_duration(time, sizeof(time), sums->neighbours.wait_ns));
    if (sums->neighbours.served != 0)
        cw_text_line(text, "    %10ju request%s of theirs carried out",
                     (uintmax_t)sums->neighbours.served, sums->neighbours.served == 1 ? "" : "s");
}

/* ---- advice ---- */

static int has_bound(const struct cw_snapshot_pressure_device *device)
{
    for (unsigned i = 0; i < CW_BOUND_COUNT; i++)
        if (device->bound[i].bytes != 0)
            return 1;
    return 0;
}

/* Whether the device was critical for more than a tenth of the time. */
static int is_often_critical(const struct cw_snapshot_pressure_device *device)
{
    return device->level_ns[CW_LEVEL_CRITICAL] > device->time_ns / 10;
}

static void put_critical(const struct cw_text *text, unsigned index)
{
    const struct cw_snapshot_pressure_device *device = device_at(text, index);
    char share[16];

    cw_text_begin_line(text);
    cw_out_string(text->out, "  ");
    cw_text_device(text, index);
    cw_out_printf(text->out, " was critical for %s of the time, when its pool keeps nothing:\n",
                  cw_text_format_share(share, sizeof(share), device->level_ns[CW_LEVEL_CRITICAL],
                                       device->time_ns));
    cw_text_line(text,
                 has_bound(device) ? "    let the program use less, or raise the lowest limit above"
                 : device->limit != 0
                     ? "    raise CUWARDEN_LIMIT, or move the levels with CUWARDEN_PRESSURE"
                     : "    let the program or its neighbours use less, or move the levels with "
                       "CUWARDEN_PRESSURE");
}

static void put_ways_out(const struct cw_text *text, const struct cw_snapshot_pressure_device *sums)
{
    static const char *const ways[CW_CAUSE_COUNT] = {
        [CW_CAUSE_DRIVER] = "the device was full: use less",
        [CW_CAUSE_LIMIT] = "refused by the memory limit: raise it (CUWARDEN_LIMIT)",
        [CW_CAUSE_MIN_FREE] = "refused by CUWARDEN_MIN_FREE: lower it",
        [CW_CAUSE_INJECTED] = "injected by CUWARDEN_FAIL, a test: unset it",
        [CW_CAUSE_PLATFORM] = "refused by a limit of the platform: have it raised",
        [CW_CAUSE_BUDGET] = "refused by the budget of a tag: raise it, or let it warn",
    };
    int begun = 0;

    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++) {
        int falls_back = sums->fallbacks != 0 || i == CW_CAUSE_INJECTED || i == CW_CAUSE_BUDGET;

        if (sums->refused[i] == 0 || !ways[i])
            continue;
        if (!begun++)
            cw_text_blank(text);
        cw_text_line(text, "  %s%s", ways[i],
                     falls_back ? "" : ", or set CUWARDEN_FALLBACK=managed");
    }
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        if (!is_often_critical(device_at(text, i)))
            continue;
        if (!begun++)
            cw_text_blank(text);
        put_critical(text, i);
    }
}

/* ---- events ---- */

/* "12.4s  device 0  " */
static void begin_event(const struct cw_text *text, const struct cw_report_event *event)
{
    cw_text_begin_line(text);
    cw_out_string(text->out, "    ");
    cw_text_time(text, event->t_ns);
    cw_out_string(text->out, "  ");
    cw_text_device(text, event->device);
    cw_out_string(text->out, "  ");
}

/* The action taken, and how often. */
static void put_answer(const struct cw_text *text, const struct cw_report_event *event)
{
    if (event->released == 0 && event->count < 2)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "        ");
    cw_text_size(text, event->released);
    cw_out_string(text->out, " given back");
    cw_text_times(text, event->count);
    cw_text_end_line(text);
}

static void put_level_change(const struct cw_text *text, const struct cw_report_event *event)
{
    const char *of = event->share_of == CW_SHARE_OF_LIMIT   ? "the memory limit"
                     : event->share_of == CW_SHARE_OF_BOUND ? cw_bound_name(event->bound)
                                                            : "the device";
    char share[16];

    cw_text_format_share(share, sizeof(share), event->share, 10000);
    cw_out_printf(text->out, "%s -> %s: %s of %s, ", cw_level_name(event->level_before),
                  cw_level_name(event->level), share, of);
    cw_text_size(text, event->bytes);
    cw_out_string(text->out, event->share_of == CW_SHARE_OF_DEVICE ? " in use" : " held");
    cw_text_end_line(text);
}

static void put_trim(const struct cw_text *text, const struct cw_report_event *event)
{
    if (event->bytes != 0) {
        cw_text_size(text, event->bytes);
        cw_out_char(text->out, ' ');
    }
    cw_out_string(text->out, "served in the end\n");
    cw_text_line(text, "        first failure: %s", cw_cause_label(event->cause));
    cw_text_line(text, "        remedy: %s", cw_rung_label(event->rung));
}

static void put_limit_change(const struct cw_text *text, const struct cw_report_event *event)
{
    if (event->bytes == 0) {
        cw_out_string(text->out, "limit lifted");
    } else {
        cw_out_string(text->out, "limit changed to ");
        cw_text_size(text, event->bytes);
    }
    cw_text_end_line(text);
}

static void put_origin(const struct cw_text *text, const struct cw_report_event *event)
{
    const struct cw_snapshot_site *site = cw_report_site(text->model, event->site);

    if (!site)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "        ");
    cw_text_clean(text, site->api, CW_TEXT_NAME_WIDTH);
    cw_out_string(text->out, "  ");
    cw_text_trail(text, site->stack,
                  text->columns - 2 - cw_text_clean_len(site->api, CW_TEXT_NAME_WIDTH));
    cw_text_end_line(text);
}

static void put_event(const struct cw_text *text, const struct cw_report_event *event)
{
    begin_event(text, event);
    if (event->type == CW_EVENT_PRESSURE)
        put_level_change(text, event);
    else if (event->type == CW_EVENT_TRIM)
        put_trim(text, event);
    else
        put_limit_change(text, event);
    put_answer(text, event);
    put_origin(text, event);
}

static void put_events(const struct cw_text *text, const struct cw_newest *newest)
{
    if (newest->count == 0)
        return;
    cw_text_blank(text);
    cw_text_begin_line(text);
    cw_out_string(text->out, "  events: ");
    cw_text_count(text, newest->of, "change");
    cw_text_newest_note(text, newest->of, newest->of, newest->count);
    for (unsigned i = 0; i < newest->count; i++)
        put_event(text, &text->model->event[newest->event[i]]);
}

/* ---- the section ---- */

void cw_text_pressure(const struct cw_text *text)
{
    const struct cw_snapshot_pressure_device *sums = &text->snapshot->pressure.all;
    struct cw_newest newest;

    cw_newest_find(text->model, EVENTS, &newest);
    if (newest.count == 0 && !sums->used)
        return;
    cw_text_heading(text, "PRESSURE\n");
    put_devices(text);
    put_bounds(text);
    put_given_back(text, sums);
    put_ladder(text, sums);
    put_refused(text, sums);
    put_fallbacks(text, sums);
    put_neighbours(text, sums);
    put_ways_out(text, sums);
    put_events(text, &newest);
}
