/* SPDX-License-Identifier: MIT */
/* Contexts of things. See place.h. */
#include "api/place.h"

#include "core/device/context.h"
#include "core/device/living.h"

int cw_place_here(const struct cw_buffer_ops *ops, struct cw_buffer_place *out)
{
    int code = ops != NULL ? ops->place(out) : CW_BUFFER_NO_CONTEXT;
    uint8_t device;

    if (code == 0)
        out->record = cw_context_current(&device);
    return code;
}

int cw_place_enter(const struct cw_buffer_ops *ops, const struct cw_buffer_place *place,
                   int *out_pushed)
{
    *out_pushed = 0;
    if (place->record != 0 && cw_living_next(place->record - 1) != place->record)
        return CW_BUFFER_CONTEXT_ENDED;
    return ops->enter(place->context, out_pushed);
}
