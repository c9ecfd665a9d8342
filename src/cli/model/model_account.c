/* SPDX-License-Identifier: MIT */
/* Records of what was tried when memory had run out, and of the accounts of it. See model_reader.h.
 */
#include "cli/model/model_reader.h"

#include <string.h>

#include "live/view.h"

void cw_reader_begin_rung(struct cw_reader *self)
{
    self->now.rung_name = "";
    self->now.rung = (struct cw_model_rung){.tried = 0};
}

/* One of a later version has no place. */
void cw_reader_end_rung(struct cw_reader *self)
{
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++)
        if (strcmp(self->now.rung_name, cw_rung_name(i)) == 0)
            self->now.pressure.of.rung[i] = self->now.rung;
}

void cw_reader_begin_old(struct cw_reader *self)
{
    self->now.old = (struct cw_model_old){.site = CW_MODEL_NONE};
}

void cw_reader_end_old(struct cw_reader *self)
{
    struct cw_model_old *old = cw_reader_append(self, &self->model->old, &self->old, sizeof(*old));

    if (old)
        *old = self->now.old;
}

void cw_reader_begin_oom(struct cw_reader *self)
{
    self->now.oom = (struct cw_model_oom){.event = CW_MODEL_NONE,
                                          .device = CW_MODEL_HOST,
                                          .site = CW_MODEL_NONE,
                                          .cause = "",
                                          .fallback = "",
                                          .first_holder = (uint32_t)self->holder.count};
}

void cw_reader_end_oom(struct cw_reader *self)
{
    struct cw_model_oom *oom = cw_reader_append(self, &self->model->oom, &self->oom, sizeof(*oom));

    if (!oom)
        return;
    *oom = self->now.oom;
    oom->holders = (uint32_t)self->holder.count - oom->first_holder;
}

void cw_reader_begin_holder(struct cw_reader *self)
{
    self->now.holder = (struct cw_model_holder){.site = CW_MODEL_NONE, .api = ""};
}

void cw_reader_end_holder(struct cw_reader *self)
{
    struct cw_model_holder *holder =
        cw_reader_append(self, &self->model->holder, &self->holder, sizeof(*holder));

    if (holder)
        *holder = self->now.holder;
}
