/* SPDX-License-Identifier: MIT */
/*
 * Drawing `top`. See top_screen.h.
 *
 * A line of totals, the heading, rows with the sites of the expanded one below it, and a line of
 * keys. Nothing is written outside the terminal, whatever its size.
 */
#include "cli/fleet/top_screen.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "cli/ui/truncate.h"

#define AROUND 3 /* lines above and below the rows, besides the GPUs' */

static void put(int y, int attributes, const char *text)
{
    char line[CW_TOP_LINE_MAX];

    if (y < 0 || y >= LINES)
        return;
    cw_truncate_fill(line, sizeof(line), text, (size_t)COLS);
    attron(attributes);
    mvaddstr(y, 0, line);
    attroff(attributes);
}

static void draw_totals(const struct cw_top_screen *screen)
{
    uint64_t live = 0, held = 0;
    unsigned running = 0;
    char text[512], clock[16], sizes[2][16];
    time_t now = time(NULL);
    struct tm parts;

    for (size_t i = 0; i < screen->fleet.count; i++) {
        const struct cw_fleet_process *process = screen->fleet.process[i];

        if (process->state != CW_FLEET_RUNNING)
            continue;
        running++;
        for (uint32_t k = 0; k < process->devices; k++) {
            live += process->device[k].live;
            held += process->device[k].held;
        }
    }
    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &parts));
    snprintf(text, sizeof(text),
             "cuwarden top %s%s  %u running, %zu dead  live %s held %s  every %gs", clock,
             screen->is_paused ? " PAUSED" : "", running, screen->fleet.count - running,
             cw_top_size(sizes[0], sizeof(sizes[0]), live),
             cw_top_size(sizes[1], sizeof(sizes[1]), held), (double)screen->interval_ns / 1e9);
    put(0, A_NORMAL, text);
}

/* One line each, where the rows keep at least half of the screen. */
static int gpu_lines(const struct cw_top_screen *screen)
{
    int most = (LINES - AROUND) / 2, count = (int)screen->gpus.count;

    return most < 0 ? 0 : count < most ? count : most;
}

static void draw_gpus(const struct cw_top_screen *screen)
{
    char text[1024];

    for (int i = 0; i < gpu_lines(screen); i++) {
        cw_gpu_format(&screen->gpus.gpu[i], (size_t)COLS, text, sizeof(text));
        put(1 + i, A_NORMAL, text);
    }
}

/* ---- rows ---- */

static int attributes_of(const struct cw_top_screen *screen, const struct cw_top_row *row)
{
    if (row->process->state != CW_FLEET_RUNNING)
        return A_DIM;
    if (!row->device || row->device->level == CW_LEVEL_LOW)
        return A_NORMAL;
    if (!screen->has_colours)
        return row->device->level == CW_LEVEL_CRITICAL ? A_BOLD : A_NORMAL;
    return COLOR_PAIR(row->device->level == CW_LEVEL_CRITICAL ? COLOR_RED : COLOR_YELLOW);
}

static int is_expanded(const struct cw_top_screen *screen, const struct cw_top_row *row)
{
    uint32_t device = row->device ? row->device->ordinal : CW_TOP_ANY_DEVICE;

    return screen->expanded.path && screen->expanded.device == device &&
           strcmp(screen->expanded.path, row->process->path) == 0;
}

/* Draws the sites from line y up to `end`; with y == end it only counts. Returns the lines. */
static int draw_sites(const struct cw_top_screen *screen, int y, int end)
{
    const struct cw_fleet_sites *sites = &screen->sites;
    const char *name[CW_FLEET_FRAMES];
    char text[1024], size[16];
    int lines = 0;

    for (uint32_t i = 0; i < sites->count; i++) {
        const struct cw_fleet_site *site = &sites->site[i];
        unsigned frames = cw_fleet_sites_stack(sites, site, name);

        snprintf(text, sizeof(text), "  %6s in %llu block%s, %s, %s",
                 cw_top_size(size, sizeof(size), site->live_bytes),
                 (unsigned long long)site->live_blocks, site->live_blocks == 1 ? "" : "s",
                 cw_fleet_sites_api(sites, site), cw_kind_label(site->kind));
        if (y + lines < end)
            put(y + lines, A_BOLD, text);
        lines++;
        for (unsigned k = 0; k < frames; k++, lines++) {
            snprintf(text, sizeof(text), "         #%u %s", k, name[k]);
            if (y + lines < end)
                put(y + lines, A_NORMAL, text);
        }
    }
    if (lines == 0 && y < end)
        put(y, A_NORMAL,
            screen->why[0] ? screen->why
                           : "         nothing is live here, or nothing was recorded");
    return lines ? lines : 1;
}

/* Number of lines of a row, including its sites. */
static int height_of(const struct cw_top_screen *screen, long row)
{
    return 1 + (is_expanded(screen, &screen->rows[row]) ? draw_sites(screen, 0, 0) : 0);
}

/* Keeps the row with the cursor on the screen, and as much as possible of what is below it. */
static void scroll_to_cursor(struct cw_top_screen *screen, int height)
{
    int above = 0;

    if (screen->first > screen->selected)
        screen->first = screen->selected;
    for (long i = screen->first; i <= screen->selected && i < screen->count; i++)
        above += height_of(screen, i);
    while (screen->first < screen->selected && above > height)
        above -= height_of(screen, screen->first++);
}

static void draw_rows(struct cw_top_screen *screen, const struct cw_top_layout *layout)
{
    int end = LINES - 1, y = AROUND - 1 + gpu_lines(screen);
    char text[CW_TOP_LINE_MAX];

    scroll_to_cursor(screen, LINES - AROUND - gpu_lines(screen));
    for (long i = screen->first; i < screen->count && y < end; i++) {
        const struct cw_top_row *row = &screen->rows[i];

        cw_top_print_row(text, sizeof(text), layout, row);
        put(y++, attributes_of(screen, row) | (i == screen->selected ? (int)A_REVERSE : 0), text);
        if (is_expanded(screen, row))
            y += draw_sites(screen, y, end);
    }
    if (screen->count > 0)
        return;
    put(y, A_NORMAL, screen->filter[0] ? "No matching rows." : "No processes.");
    if (!screen->filter[0])
        put(y + 1 < end ? y + 1 : -1, A_NORMAL, "Waiting; start one with 'cuwarden run PROGRAM'.");
}

/* ---- the last line, and help ---- */

static void draw_last_line(const struct cw_top_screen *screen)
{
    char text[1024];

    if (screen->mode == CW_TOP_FILTER)
        snprintf(text, sizeof(text), "filter: %s_", screen->filter);
    else if (screen->fleet.unreadable)
        snprintf(text, sizeof(text), "%zu unreadable: %s", screen->fleet.unreadable,
                 screen->fleet.why);
    else
        snprintf(text, sizeof(text),
                 "sorted by %s%s%s%s  s sort r reverse / filter Enter sites d dead h help q quit",
                 cw_top_column_name(screen->choice.sort),
                 screen->choice.is_reversed ? " reversed" : "", screen->filter[0] ? ", only " : "",
                 screen->filter);
    put(LINES - 1, A_BOLD, text);
}

static void draw_help(void)
{
    static const char *const lines[] = {
        "s    sort by next column       r      reverse",
        "/    filter rows by text       Enter  sites of a row",
        "d    show dead processes       p      pause",
        "+ -  longer, shorter interval  q      quit",
        "arrows, PgUp, PgDn, Home, End  move",
        "LIVE requested; IDLE kept by the pool; HELD from the driver",
        "PEAK of LIVE; HIT% served by the pool; FAIL failed calls",
        "EFF% of memory in use was requested; FRAG% of HELD is not LIVE",
        "PKFRAG% of peak HELD was never LIVE at once",
        "USE% of device or limit in use; FALLBACK from managed memory",
        "TRIMMED idle memory given back to the driver",
        "OOM IN how long the memory lasts if LIVE goes on growing",
        "BUDG% of the fullest budget of a tag is LIVE",
        "any key: back",
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(lines); i++)
        put((int)i + 1, A_NORMAL, lines[i]);
}

void cw_top_draw(struct cw_top_screen *screen)
{
    struct cw_top_layout layout;
    char text[CW_TOP_LINE_MAX];

    erase();
    draw_totals(screen);
    if (screen->mode == CW_TOP_HELP) {
        draw_help();
    } else {
        cw_top_fit(&layout, &screen->fleet, (size_t)COLS);
        cw_top_print_heading(text, sizeof(text), &layout, &screen->choice);
        draw_gpus(screen);
        put(1 + gpu_lines(screen), A_REVERSE, text);
        draw_rows(screen, &layout);
        draw_last_line(screen);
    }
    refresh();
}
