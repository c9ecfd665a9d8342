/* SPDX-License-Identifier: MIT */
/* Records of what grew, beyond that of each site, and of the rules of suppressions. See
 * model_reader.h. */
#include "cli/model/model_reader.h"

/* Of a trend, or the peaks of a device: one for each quarter. */
void cw_reader_begin_floors(struct cw_reader *self)
{
    self->now.floors = 0;
}

void cw_reader_end_floor(struct cw_reader *self)
{
    uint64_t *floor = self->level[self->depth].base;

    if (self->now.floors < CW_TREND_QUARTERS)
        floor[self->now.floors++] = self->now.moment_bytes;
}

void cw_reader_end_suspect(struct cw_reader *self)
{
    uint32_t *suspect =
        cw_reader_append(self, &self->model->suspect, &self->suspect, sizeof(*suspect));

    if (suspect)
        *suspect = self->now.suspect;
}

void cw_reader_begin_growth_device(struct cw_reader *self)
{
    self->now.growth_device = CW_MODEL_HOST;
    self->now.rise = (struct cw_model_rise){.idle = {.step = ""}};
}

void cw_reader_end_growth_device(struct cw_reader *self)
{
    struct cw_reader_device *about = cw_reader_about(self, self->now.growth_device);

    if (!about)
        return;
    about->rise = self->now.rise;
    about->is_there = 1;
}

void cw_reader_begin_rule(struct cw_reader *self)
{
    self->now.rule = (struct cw_model_rule){.pattern = "", .source = "", .owner = "", .leak = ""};
}

void cw_reader_end_rule(struct cw_reader *self)
{
    struct cw_model_rule *rule =
        cw_reader_append(self, &self->model->rule, &self->rule, sizeof(*rule));

    if (rule)
        *rule = self->now.rule;
}
