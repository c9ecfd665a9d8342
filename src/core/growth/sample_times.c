/* SPDX-License-Identifier: MIT */
/* Thinning. See sample_times.h. */
#include "core/growth/sample_times.h"

void cw_sample_times_init(struct cw_sample_times *moments, uint64_t *number, unsigned slots,
                          uint64_t period_ns)
{
    *moments = (struct cw_sample_times){
        .number = number, .slots = slots, .stride = 1, .period_ns = period_ns};
}

/* The oldest moment that is between two of the stride; the number of slots if there is none. */
static unsigned find_odd(const struct cw_sample_times *moments)
{
    unsigned oldest = moments->slots;

    for (unsigned i = 0; i < moments->slots; i++)
        if (moments->number[i] % moments->stride != 0 &&
            (oldest == moments->slots || moments->number[i] < moments->number[oldest]))
            oldest = i;
    return oldest;
}

/* Raises the period to the pace of the moments at once. If it only doubled, a row of doublings
 * would follow, each of which thins the old moments and leaves the new ones as dense as before. */
static void lengthen(struct cw_sample_times *moments)
{
    uint64_t gap = (moments->last_ns - moments->first_ns) / (moments->slots - 1);

    moments->stride *= 2;
    do
        moments->period_ns *= 2;
    while (moments->period_ns < gap + gap / 2);
}

unsigned cw_sample_times_take(struct cw_sample_times *moments, uint64_t t_ns)
{
    unsigned slot = moments->used;

    if (moments->taken != 0 && t_ns == moments->last_ns)
        return moments->newest;
    if (slot < moments->slots) {
        moments->used++;
    } else {
        slot = find_odd(moments);
        if (slot == moments->slots) {
            lengthen(moments);
            slot = find_odd(moments);
        }
    }
    if (moments->taken++ == 0)
        moments->first_ns = t_ns;
    moments->last_ns = t_ns;
    moments->newest = slot;
    moments->number[slot] = moments->next;
    moments->next += moments->stride;
    return slot;
}
