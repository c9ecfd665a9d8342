/* SPDX-License-Identifier: MIT */
/* The plot of a replay. See replay_policy.h: live and held for one policy, held for several. */
#include <inttypes.h>
#include <string.h>

#include "base/out.h"
#include "cli/replay/replay_engine.h"
#include "cli/replay/replay_policy.h"

#define WIDTH  960
#define HEIGHT 480
#define LEFT   90
#define RIGHT  150
#define TOP    50
#define BOTTOM 50
#define TICKS  5

#define LINE 1.5 /* pixels; each curve is drawn over by thinner ones only */

/* None is like the red of the limit. */
static const char *const colors[] = {"#555555", "#17a2b8", "#1f77b4",
                                     "#2e8b57", "#e08e0b", "#8e5bb5"};

struct picture {
    const struct cw_policies *policies;
    FILE *out;
    uint64_t right; /* end of the time axis */
    uint64_t top;   /* of bytes */
};

static double x_of(const struct picture *picture, double value)
{
    return LEFT + value * (WIDTH - LEFT - RIGHT) / (double)picture->right;
}

static double y_of(const struct picture *picture, double bytes)
{
    return HEIGHT - BOTTOM - bytes * (HEIGHT - TOP - BOTTOM) / (double)picture->top;
}

/* Escapes the file name: everything else printed here is a number. */
static void put_escaped(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else
            fputc(*text, out);
    }
}

/* The smallest step of 1, 2 or 5 times a power of ten (of two for bytes) that needs at most TICKS
 * ticks. */
static uint64_t step_for(uint64_t range, int is_binary)
{
    static const uint64_t decimal[] = {1, 2, 5};
    uint64_t unit = 1;

    if (is_binary) {
        while (range / unit > TICKS)
            unit *= 2;
        return unit;
    }
    for (;; unit *= 10)
        for (unsigned i = 0; i < 3; i++)
            if (range / (unit * decimal[i]) <= TICKS)
                return unit * decimal[i];
}

/* Omits the models: their held memory would flatten the other curves. */
static int is_left_out(const struct cw_policy *policy)
{
    return policy->engine != &cw_replay_core;
}

static void find_range(struct picture *picture)
{
    const struct cw_policies *policies = picture->policies;
    uint64_t ceiling = cw_policy_ceiling(policies, &policies->policy[policies->count > 1]),
             most = 1;

    picture->right = 1;
    for (unsigned i = 0; i < policies->count; i++) {
        const struct cw_curve *curve = &policies->policy[i].result.curve;

        if (is_left_out(&policies->policy[i]))
            continue;
        for (uint32_t k = 0; k < curve->count; k++)
            most = curve->point[k].held > most ? curve->point[k].held : most;
        if (curve->count * curve->span > picture->right)
            picture->right = curve->count * curve->span;
    }
    /* The plot includes the limit, unless that would flatten the curves. */
    picture->top = most + most / 20 + 1;
    if (ceiling > most && ceiling / 4 < most)
        picture->top = ceiling + ceiling / 20;
}

static void put_axes(const struct picture *picture)
{
    int has_times = picture->policies->policy[0].result.has_times;
    uint64_t step = step_for(picture->top, 1);
    char label[32];

    for (uint64_t at = 0; at <= picture->top && at + step > at; at += step) {
        double y = y_of(picture, (double)at);

        fprintf(picture->out,
                "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#dddddd'/>"
                "<text x='%d' y='%.1f' text-anchor='end'>%s</text>\n",
                LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4,
                cw_format_size(label, sizeof(label), at));
    }
    step = step_for(picture->right, 0);
    for (uint64_t at = 0; at <= picture->right && at + step > at; at += step) {
        double x = x_of(picture, (double)at);

        if (has_times && picture->right >= UINT64_C(1000000000))
            snprintf(label, sizeof(label), "%g s", (double)at / 1e9);
        else if (has_times)
            snprintf(label, sizeof(label), "%g ms", (double)at / 1e6);
        else
            snprintf(label, sizeof(label), "%" PRIu64, at);
        fprintf(picture->out,
                "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='#999999'/>"
                "<text x='%.1f' y='%d' text-anchor='middle'>%s</text>\n",
                x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5, x, HEIGHT - BOTTOM + 20, label);
    }
    if (!has_times)
        fprintf(picture->out, "<text x='%d' y='%d' text-anchor='middle'>events</text>\n",
                (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
}

/* A step line of that width; 0: the area below it. */
static void put_curve(const struct picture *picture, const struct cw_curve *curve, int is_held,
                      double width, const char *color)
{
    double y = y_of(picture, 0);

    fprintf(picture->out, "<path d='M%d %.1f", LEFT, y);
    for (uint32_t i = 0; i < curve->count; i++) {
        uint64_t bytes = is_held ? curve->point[i].held : curve->point[i].live;

        y = y_of(picture, (double)bytes);
        fprintf(picture->out, "V%.1fH%.1f", y,
                x_of(picture, (double)(i + 1) * (double)curve->span));
    }
    if (width == 0)
        fprintf(picture->out, "V%.1fZ' fill='%s' fill-opacity='0.25' stroke='none'/>\n",
                y_of(picture, 0), color);
    else
        fprintf(picture->out, "' fill='none' stroke='%s' stroke-width='%.1f'/>\n", color, width);
}

static void put_key(const struct picture *picture, unsigned row, const char *color, double width,
                    const char *dashes, const char *text)
{
    int y = TOP + 10 + 20 * (int)row, x = WIDTH - RIGHT + 12;

    fprintf(picture->out,
            "<line x1='%d' y1='%d' x2='%d' y2='%d' stroke='%s' stroke-width='%.1f' "
            "stroke-dasharray='%s'/><text x='%d' y='%d'>%s</text>\n",
            x, y, x + 20, y, color, width, dashes, x + 26, y + 4, text);
}

static void put_limit(const struct picture *picture, unsigned row)
{
    const struct cw_policies *policies = picture->policies;
    uint64_t bytes = cw_policy_ceiling(policies, &policies->policy[policies->count > 1]);
    double y = y_of(picture, (double)bytes);

    if (bytes > picture->top)
        return;
    fprintf(picture->out,
            "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#c00000' "
            "stroke-dasharray='6 4'/>\n",
            LEFT, y, WIDTH - RIGHT, y);
    put_key(picture, row, "#c00000", LINE, "6 4",
            bytes < policies->device_bytes ? "limit" : "device");
}

/* Marks where memory first ran out. */
static void put_failure(const struct picture *picture, const struct cw_replay_result *result,
                        const char *color)
{
    double x = x_of(picture, (double)(result->has_times ? result->oom.ns : result->oom.event));
    double y = y_of(picture, (double)result->oom.held);

    if (result->ooms == 0)
        return;
    fprintf(picture->out,
            "<circle cx='%.1f' cy='%.1f' r='5' fill='%s'><title>line %" PRIu64
            ": out of memory</title></circle>\n",
            x, y, color, result->oom.line);
}

static unsigned put_curves(const struct picture *picture)
{
    const struct cw_policies *policies = picture->policies;
    const struct cw_policy *first = &policies->policy[0];
    unsigned row = 0, shown = 0;

    if (policies->count == 1) {
        put_curve(picture, &first->result.curve, 1, 0, colors[2]);
        put_curve(picture, &first->result.curve, 1, 3 * LINE, colors[2]);
        put_curve(picture, &first->result.curve, 0, LINE, colors[0]);
        put_failure(picture, &first->result, "#c00000");
        put_key(picture, row++, colors[2], 3 * LINE, "none", "held");
        put_key(picture, row++, colors[0], LINE, "none", "live");
        return row;
    }
    while (shown < policies->count && !is_left_out(&policies->policy[shown]))
        shown++;
    for (unsigned i = 0; i < shown; i++) {
        double width = LINE * (2 * (shown - i) - 1);

        put_curve(picture, &policies->policy[i].result.curve, 1, width, colors[i]);
        put_failure(picture, &policies->policy[i].result, colors[i]);
        put_key(picture, row++, colors[i], width, "none", policies->policy[i].name);
    }
    return row;
}

void cw_replay_print_svg(const struct cw_policies *policies, FILE *out)
{
    struct picture picture = {.policies = policies, .out = out};
    unsigned rows;

    find_range(&picture);
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
            "font-family='sans-serif' font-size='12' fill='#333333'>\n"
            "<rect width='%d' height='%d' fill='white'/>\n<text x='%d' y='28' font-size='15'>",
            WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    put_escaped(policies->shown, out);
    fprintf(out, "%s</text>\n",
            policies->count > 1 ? ": memory held on the devices" : ": memory of the devices");
    put_axes(&picture);
    rows = put_curves(&picture);
    put_limit(&picture, rows);
    fprintf(out, "</svg>\n");
}
