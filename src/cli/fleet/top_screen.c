/* SPDX-License-Identifier: MIT */
/* Rows and state of `top` on a terminal, and its keys. See top_screen.h; drawing is
 * top_draw.c's. */
#include "cli/fleet/top_screen.h"

#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define SITES_MOST 10
#define KEY_ESCAPE 27

static uint32_t device_of(const struct cw_top_row *row)
{
    return row->device ? row->device->ordinal : CW_TOP_ANY_DEVICE;
}

static int is_marked(const struct cw_top_mark *mark, const struct cw_top_row *row)
{
    return mark->path && mark->device == device_of(row) &&
           strcmp(mark->path, row->process->path) == 0;
}

static void set_mark(struct cw_top_mark *mark, const struct cw_top_row *row)
{
    free(mark->path);
    *mark = (struct cw_top_mark){.path = row ? strdup(row->process->path) : NULL};
    if (row)
        mark->device = device_of(row);
}

static void collapse(struct cw_top_screen *screen)
{
    set_mark(&screen->expanded, NULL);
    cw_fleet_sites_free(&screen->sites);
    screen->why[0] = '\0';
}

static void move_to(struct cw_top_screen *screen, long row)
{
    if (row >= screen->count)
        row = screen->count - 1;
    if (row < 0)
        row = 0;
    screen->selected = row;
    set_mark(&screen->cursor, row < screen->count ? &screen->rows[row] : NULL);
}

int cw_top_refresh(struct cw_top_screen *screen)
{
    int is_expanded = 0;
    long selected = -1;

    free(screen->rows);
    screen->rows = cw_top_rows(&screen->fleet, &screen->choice, &screen->count);
    if (screen->count < 0) {
        screen->count = 0;
        return -1;
    }
    for (long i = 0; i < screen->count; i++) {
        if (is_marked(&screen->cursor, &screen->rows[i]))
            selected = i;
        is_expanded |= is_marked(&screen->expanded, &screen->rows[i]);
    }
    /* Its process is gone: the cursor keeps its position on the screen. */
    move_to(screen, selected >= 0 ? selected : screen->selected);
    if (!is_expanded)
        collapse(screen);
    return 0;
}

void cw_top_look_at_sites(struct cw_top_screen *screen)
{
    const struct cw_top_mark *mark = &screen->expanded;

    if (!mark->path)
        return;
    screen->why[0] = '\0';
    (void)cw_fleet_sites_look(&screen->sites, mark->path, mark->device, SITES_MOST, screen->why,
                              sizeof(screen->why));
}

/* ---- keys ---- */

static void press_sort(struct cw_top_screen *screen)
{
    screen->choice.sort = (enum cw_top_column)((screen->choice.sort + 1) % CW_TOP_COLUMN_COUNT);
}

static void press_reverse(struct cw_top_screen *screen)
{
    screen->choice.is_reversed = !screen->choice.is_reversed;
}

static void press_filter(struct cw_top_screen *screen)
{
    screen->mode = CW_TOP_FILTER;
}

static void press_help(struct cw_top_screen *screen)
{
    screen->mode = CW_TOP_HELP;
}

static void press_dead(struct cw_top_screen *screen)
{
    screen->choice.shows_dead = !screen->choice.shows_dead;
}

static void press_pause(struct cw_top_screen *screen)
{
    screen->is_paused = !screen->is_paused;
}

static void press_quit(struct cw_top_screen *screen)
{
    screen->is_done = 1;
}

static void press_faster(struct cw_top_screen *screen)
{
    screen->interval_ns /= 2;
    if (screen->interval_ns < CW_TOP_INTERVAL_LEAST)
        screen->interval_ns = CW_TOP_INTERVAL_LEAST;
}

static void press_slower(struct cw_top_screen *screen)
{
    screen->interval_ns *= 2;
    if (screen->interval_ns > CW_TOP_INTERVAL_MOST)
        screen->interval_ns = CW_TOP_INTERVAL_MOST;
}

static void press_expand(struct cw_top_screen *screen)
{
    const struct cw_top_row *row;
    int was_expanded;

    if (screen->count == 0)
        return;
    row = &screen->rows[screen->selected];
    was_expanded = is_marked(&screen->expanded, row);
    collapse(screen);
    if (was_expanded)
        return;
    set_mark(&screen->expanded, row);
    cw_top_look_at_sites(screen);
}

static void press_up(struct cw_top_screen *screen)
{
    move_to(screen, screen->selected - 1);
}

static void press_down(struct cw_top_screen *screen)
{
    move_to(screen, screen->selected + 1);
}

static void press_page_up(struct cw_top_screen *screen)
{
    move_to(screen, screen->selected - LINES / 2);
}

static void press_page_down(struct cw_top_screen *screen)
{
    move_to(screen, screen->selected + LINES / 2);
}

static void press_home(struct cw_top_screen *screen)
{
    move_to(screen, 0);
}

static void press_end(struct cw_top_screen *screen)
{
    move_to(screen, screen->count - 1);
}

static const struct {
    int key;
    void (*press)(struct cw_top_screen *screen);
} keys[] = {
    {'s', press_sort},          {'r', press_reverse},
    {'/', press_filter},        {'h', press_help},
    {'?', press_help},          {'d', press_dead},
    {'p', press_pause},         {'q', press_quit},
    {'Q', press_quit},          {'+', press_slower},
    {'-', press_faster},        {'\n', press_expand},
    {'\r', press_expand},       {KEY_ENTER, press_expand},
    {KEY_UP, press_up},         {'k', press_up},
    {KEY_DOWN, press_down},     {'j', press_down},
    {KEY_PPAGE, press_page_up}, {KEY_NPAGE, press_page_down},
    {KEY_HOME, press_home},     {KEY_END, press_end},
};

/* Bytes, not keys: a multi-byte character arrives as several. */
static void press_in_filter(struct cw_top_screen *screen, int key)
{
    size_t len = strlen(screen->filter);

    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        screen->mode = CW_TOP_TABLE;
    } else if (key == KEY_ESCAPE) {
        screen->filter[0] = '\0';
        screen->mode = CW_TOP_TABLE;
    } else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
        while (len > 0 && (screen->filter[--len] & 0xc0) == 0x80)
            screen->filter[len] = '\0';
        screen->filter[len] = '\0';
    } else if (key >= ' ' && key <= 0xff && len + 1 < sizeof(screen->filter)) {
        screen->filter[len] = (char)key;
        screen->filter[len + 1] = '\0';
    }
}

void cw_top_press(struct cw_top_screen *screen, int key)
{
    if (key == KEY_RESIZE)
        return; /* it is redrawn in any case */
    if (screen->mode == CW_TOP_FILTER) {
        press_in_filter(screen, key);
        return;
    }
    if (screen->mode == CW_TOP_HELP) {
        screen->mode = CW_TOP_TABLE;
        return;
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(keys); i++) {
        if (keys[i].key == key)
            keys[i].press(screen);
    }
}

void cw_top_screen_free(struct cw_top_screen *screen)
{
    collapse(screen);
    set_mark(&screen->cursor, NULL);
    free(screen->rows);
    screen->rows = NULL;
    cw_fleet_free(&screen->fleet);
}
