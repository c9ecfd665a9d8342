/* SPDX-License-Identifier: MIT */
/* The section GROWTH, from the model. It reads as the library's own. See form_sites.h. */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/text/form_sites.h"
#include "report/snapshot/snapshot_growth.h"
#include "report/text/text_put.h"

#define SUSPECTS_MAX 10
#define TRAIL_WIDTH  76
#define INDENT       7

/* ---- words ---- */

/* By the longest time in which it is not too small to be read. */
void cw_form_slope(const struct cw_say *to, double per_second)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"day", 86400}};
    unsigned at = to->model->growth_end_ns >= UINT64_C(60000000000) ? 1 : 0;

    while (at + 1 < CW_ARRAY_LEN(units) && per_second * units[at].seconds < 1024)
        at++;
    fputc('+', to->out);
    cw_say_size(to, cw_trend_to_bytes(per_second * units[at].seconds));
    fprintf(to->out, "/%s", units[at].name);
}

static void put_hundredths(const struct cw_say *to, double value)
{
    uint64_t hundredths = cw_trend_to_bytes(value * 100);

    fprintf(to->out, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
}

static void put_from_to(const struct cw_say *to, uint64_t first, uint64_t last)
{
    cw_say_size(to, first);
    fputs(" -> ", to->out);
    cw_say_size(to, last);
}

static void put_floors(const struct cw_say *to, const struct cw_model_growth *growth)
{
    fputs("floor ", to->out);
    put_from_to(to, growth->floor[0], growth->floor[CW_TREND_QUARTERS - 1]);
}

static void put_per_step(const struct cw_say *to, double bytes, const char *name)
{
    fputc('+', to->out);
    cw_say_size(to, cw_trend_to_bytes(bytes));
    fputs(" per step of \"", to->out);
    cw_say_clean(to, name, CW_SAY_NAME_MAX);
    fputc('"', to->out);
}

static void begin_detail(const struct cw_say *to)
{
    cw_say_begin(to);
    fprintf(to->out, "%*s", INDENT, "");
}

/* The end of the line, and the place on one of its own. */
static void put_place(const struct cw_say *to, const struct cw_model_site *site)
{
    fprintf(to->out, "  site %08" PRIx32 "  ", site->id);
    cw_say_call(to, site, CW_TEXT_NAME_WIDTH);
    fputc('\n', to->out);
    begin_detail(to);
    cw_say_trail(to, site, TRAIL_WIDTH);
    fputc('\n', to->out);
}

/* ---- places ---- */

static int is_listed(const struct cw_model *model, const uint8_t *is_shown, uint32_t site)
{
    return site < model->sites && is_shown[site];
}

static void put_suspect(const struct cw_say *to, const struct cw_model_site *site)
{
    const struct cw_model_growth *growth = &site->growth;

    cw_say_begin(to);
    fputs("  ", to->out);
    cw_form_slope(to, growth->slope_bytes_per_s);
    fputs("  R2 ", to->out);
    put_hundredths(to, growth->r2);
    fprintf(to->out, ", %" PRIu32 " samples  ", growth->samples);
    put_floors(to, growth);
    if (site->live.count == 0)
        fputs(site->reclaimed.count > 0 ? ", gone with its context" : ", all freed", to->out);
    put_place(to, site);
    if (!growth->step[0])
        return;
    begin_detail(to);
    put_per_step(to, growth->step_bytes, growth->step);
    fputc('\n', to->out);
}

static uint32_t count_suspects(const struct cw_model *model, const uint8_t *is_shown)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->suspects; i++)
        count += is_listed(model, is_shown, model->suspect[i]);
    return count;
}

static void put_suspects(const struct cw_say *to, const struct cw_form_request *request,
                         const uint8_t *is_shown, uint32_t count)
{
    uint32_t shown = cw_form_shown(request, count, SUSPECTS_MAX), put = 0;

    for (uint32_t i = 0; i < to->model->suspects && put < shown; i++) {
        if (!is_listed(to->model, is_shown, to->model->suspect[i]))
            continue;
        put_suspect(to, &to->model->site[to->model->suspect[i]]);
        put++;
    }
    if (count == shown)
        return;
    cw_say_begin(to);
    fputs("  ... ", to->out);
    cw_say_count(to, count - shown, "more site");
    fputc('\n', to->out);
}

/* ---- steps ---- */

static double growth_of(const struct cw_model_step *step)
{
    return step->slope_bytes * ((double)step->steps - 1);
}

/* Those that grew most, by insertion. */
static uint32_t find_rising(const struct cw_model *model,
                            const struct cw_model_step *rising[CW_STEPS_SHOWN])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->steps; i++) {
        const struct cw_model_step *step = &model->step[i];
        uint32_t at = count;

        if (!step->is_rising)
            continue;
        while (at > 0 && growth_of(rising[at - 1]) < growth_of(step))
            at--;
        if (at == CW_STEPS_SHOWN)
            continue;
        if (count < CW_STEPS_SHOWN)
            count++;
        memmove(&rising[at + 1], &rising[at], (count - 1 - at) * sizeof(rising[0]));
        rising[at] = step;
    }
    return count;
}

static void put_step(const struct cw_say *to, const struct cw_model_step *step)
{
    cw_say_begin(to);
    fputs("  whole process: ", to->out);
    put_per_step(to, step->slope_bytes, step->name);
    fputs("  R2 ", to->out);
    put_hundredths(to, step->r2);
    fprintf(to->out, ", %" PRIu64 " steps  ", step->steps);
    put_from_to(to, step->first_bytes, step->last_bytes);
    fputc('\n', to->out);
}

/* ---- regrowth ---- */

static uint32_t find_regrowths(const struct cw_model *model, const uint8_t *is_shown,
                               const struct cw_model_regrowth *found[CW_REGROWTHS_SHOWN])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->regrowths && count < CW_REGROWTHS_SHOWN; i++) {
        const struct cw_model_regrowth *one = &model->regrowth[i];
        struct cw_growth_regrowth amount = {.resizes = one->resizes,
                                            .copied_bytes = one->copied_bytes};

        if (is_listed(model, is_shown, one->site) && cw_snapshot_regrowth_is_large(&amount))
            found[count++] = one;
    }
    return count;
}

static void put_regrowth(const struct cw_say *to, const struct cw_model_regrowth *regrowth)
{
    cw_say_begin(to);
    fprintf(to->out, "  regrown %" PRIu64 " times, by ", regrowth->resizes);
    put_hundredths(to, regrowth->factor);
    fputs(" on average, ", to->out);
    cw_say_size(to, regrowth->copied_bytes);
    fputs(" copied", to->out);
    put_place(to, &to->model->site[regrowth->site]);
    begin_detail(to);
    fputs("an initial capacity of ", to->out);
    cw_say_size(to, regrowth->capacity_bytes);
    fputs(" would have avoided them", to->out);
    if (regrowth->chains > 1) {
        fputs(" for each of ", to->out);
        cw_say_count(to, regrowth->chains, "block");
    }
    fputc('\n', to->out);
}

/* ---- devices ---- */

static void begin_device(const struct cw_say *to, const struct cw_model_device *device)
{
    cw_say_begin(to);
    fputs("  ", to->out);
    cw_say_device(to, device->ordinal);
}

static void put_device(const struct cw_say *to, const struct cw_model_device *device)
{
    const struct cw_model_rise *rise = &device->rise;
    uint64_t before = 0;

    for (unsigned i = 0; i + 1 < CW_TREND_QUARTERS; i++)
        before = rise->peak[i] > before ? rise->peak[i] : before;
    if (rise->peak_rose) {
        begin_device(to, device);
        fputs(": the peak still rose in the last quarter of the run, ", to->out);
        put_from_to(to, before, rise->peak[CW_TREND_QUARTERS - 1]);
        fputc('\n', to->out);
    }
    if (rise->idle.is_suspect) {
        begin_device(to, device);
        fputs(": what the pool keeps idle grew steadily, ", to->out);
        cw_form_slope(to, rise->idle.slope_bytes_per_s);
        fputs(", ", to->out);
        put_floors(to, &rise->idle);
        fputc('\n', to->out);
    }
}

/* ---- the section ---- */

static int was_watched(const struct cw_model *model)
{
    return model->growth_end_ns >= CW_TREND_SPAN_MIN && model->samples >= CW_TREND_POINTS_MIN;
}

static int has_risen(const struct cw_model *model)
{
    for (uint32_t i = 0; i < model->devices; i++)
        if (model->device[i].rise.peak_rose || model->device[i].rise.idle.is_suspect)
            return 1;
    return 0;
}

void cw_form_growth(const struct cw_say *to, const struct cw_form_request *request,
                    const uint8_t *is_shown)
{
    const struct cw_model_regrowth *regrowth[CW_REGROWTHS_SHOWN];
    const struct cw_model_step *rising[CW_STEPS_SHOWN];
    const struct cw_model *model = to->model;
    uint32_t regrowths = find_regrowths(model, is_shown, regrowth);
    uint32_t risings = find_rising(model, rising);
    uint32_t suspects = count_suspects(model, is_shown);
    int more = risings > 0 || regrowths > 0 || has_risen(model);

    if (suspects == 0 && !more && !was_watched(model))
        return;
    cw_say_heading(to, "GROWTH  ");
    if (suspects > 0) {
        cw_say_count(to, suspects, "call site");
        fputs(" grew steadily\n", to->out);
    } else {
        fputs(more ? "no call site grew steadily\n" : "nothing grew steadily\n", to->out);
    }
    put_suspects(to, request, is_shown, suspects);
    for (uint32_t i = 0; i < risings; i++)
        put_step(to, rising[i]);
    for (uint32_t i = 0; i < regrowths; i++)
        put_regrowth(to, regrowth[i]);
    for (uint32_t i = 0; i < model->devices; i++)
        put_device(to, &model->device[i]);
}
