/* SPDX-License-Identifier: MIT */
/*
 * The frames by which sites differ. See contrast.h.
 *
 * Each stack is read from the frame that names it outwards, then from there inwards, first as what
 * people see of the frames, then once more by address. In the order of these sequences, a stack
 * differs from another first where it differs from one of those between them: so what is common
 * to neighbours gives, by the least so far to either side, each place where it differs from any.
 */
#include "report/model/contrast.h"

#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/symbols/stack.h"

#define PLACES (2 * CW_DEPTH_MAX) /* of a sequence */

struct cw_contrast_stack {
    uint32_t number;
    uint32_t common; /* with the one before, in places */
    struct cw_contrast_mark mark;
};

/* ---- the frame that names a stack ---- */

int cw_report_is_own(const struct cw_report_frame *frame)
{
    return cw_report_is_code(frame) && !cw_file_is_installed(frame->file);
}

unsigned cw_report_script_frame(const struct cw_report_frame *frame, const uint32_t *number,
                                unsigned count)
{
    unsigned python = count;

    for (unsigned i = 0; i < count; i++) {
        if (cw_report_is_own(&frame[number[i]]))
            return i;
        if (python == count && cw_report_is_code(&frame[number[i]]))
            python = i;
    }
    return python;
}

/* ---- sequences ---- */

struct sequence {
    const struct cw_report_place *place; /* the model's */
    const struct cw_report_frame *frame;
    const uint32_t *number;
    unsigned count, name; /* name: position of the frame that names it */
};

static struct sequence sequence_of(const struct cw_report_model *model, uint32_t number)
{
    const struct cw_report_stack *stack = cw_report_stack(model, number);
    struct sequence sequence = {.place = model->place, .frame = model->frame};

    if (!stack || stack->shown == 0)
        return sequence;
    sequence.number = &model->stack_frame[stack->first + stack->shown_first];
    sequence.count = stack->shown < CW_DEPTH_MAX ? stack->shown : CW_DEPTH_MAX;
    sequence.name = cw_report_script_frame(sequence.frame, sequence.number, sequence.count);
    if (sequence.name == sequence.count)
        sequence.name = 0;
    return sequence;
}

static unsigned position_of(const struct sequence *sequence, unsigned at)
{
    unsigned outwards = sequence->count - sequence->name;

    return at < outwards ? sequence->name + at : sequence->count - 1 - at;
}

static const struct cw_report_frame *frame_of(const struct sequence *sequence, unsigned at)
{
    return &sequence->frame[sequence->number[position_of(sequence, at)]];
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_texts(const char *a, const char *b)
{
    if (a == b)
        return 0;
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_addresses(const struct cw_report_frame *a, const struct cw_report_frame *b)
{
    int order = compare_numbers(a->module, b->module);

    if (order == 0)
        order = compare_numbers(a->offset, b->offset);
    return order == 0 && a->module == 0 ? compare_numbers(a->address, b->address) : order;
}

static int compare_places(const struct cw_report_place *a, const struct cw_report_place *b)
{
    int order = compare_texts(a->function, b->function);

    if (order == 0)
        order = compare_texts(a->file, b->file);
    return order == 0 ? compare_numbers(a->line, b->line) : order;
}

/* What people see of it. */
static int compare_names(const struct cw_report_place *place, const struct cw_report_frame *a,
                         const struct cw_report_frame *b)
{
    int order = compare_places(&(struct cw_report_place){a->function, a->file, a->line},
                               &(struct cw_report_place){b->function, b->file, b->line});

    if (!a->function && !b->function)
        return compare_addresses(a, b);
    if (order == 0)
        order = compare_numbers(a->module, b->module);
    if (order == 0)
        order = compare_numbers(a->inlines, b->inlines);
    for (uint32_t i = 0; order == 0 && i < a->inlines; i++)
        order = compare_places(&place[a->inlined + i], &place[b->inlined + i]);
    return order;
}

/* common: the number of equal places before the first that differs. */
static int compare(const struct sequence *a, const struct sequence *b, uint32_t *common)
{
    unsigned count = a->count < b->count ? a->count : b->count;
    int order;

    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned at = 0; at < count; at++) {
            const struct cw_report_frame *one = frame_of(a, at), *other = frame_of(b, at);

            order = one == other ? 0
                    : pass == 0  ? compare_names(a->place, one, other)
                                 : compare_addresses(one, other);
            *common = pass * CW_DEPTH_MAX + at;
            if (order != 0)
                return order;
        }
        *common = pass * CW_DEPTH_MAX + count;
        if (a->count != b->count)
            return compare_numbers(a->count, b->count);
    }
    *common = PLACES;
    return 0;
}

static int is_before(const void *a, const void *b, const void *arg)
{
    const struct cw_contrast_stack *one = a, *other = b;
    struct sequence first = sequence_of(arg, one->number);
    struct sequence second = sequence_of(arg, other->number);
    uint32_t common;
    int order = compare(&first, &second, &common);

    return order == 0 ? one->number < other->number : order < 0;
}

static int is_before_by_number(const void *a, const void *b, const void *arg)
{
    (void)arg;
    return ((const struct cw_contrast_stack *)a)->number <
           ((const struct cw_contrast_stack *)b)->number;
}

/* ---- marks ---- */

/* The places where a stack differs from any of those to one side. */
struct places {
    uint64_t set[PLACES / 64];
};

/* One more stack, with which so many places are common; those that are further differ from it no
 * more than this one does. */
static void step_on(struct places *places, uint32_t common)
{
    for (unsigned at = common; at < PLACES; at++)
        places->set[at / 64] &= ~(UINT64_C(1) << at % 64);
    if (common < PLACES)
        places->set[common / 64] |= UINT64_C(1) << common % 64;
}

static void mark(const struct cw_report_model *model, struct cw_contrast_stack *stack,
                 const struct places *places)
{
    struct sequence sequence = sequence_of(model, stack->number);

    for (unsigned at = 0; at < sequence.count; at++) {
        unsigned position = position_of(&sequence, at);

        if (cw_contrast_has(places->set, at))
            stack->mark.frame[position / 64] |= UINT64_C(1) << position % 64;
        if (cw_contrast_has(places->set + CW_CONTRAST_WORDS, at))
            stack->mark.address[position / 64] |= UINT64_C(1) << position % 64;
    }
}

static void mark_all(struct cw_contrast *contrast)
{
    struct places places = {{0}};

    for (uint32_t i = 1; i < contrast->count; i++) {
        struct sequence before = sequence_of(contrast->model, contrast->stack[i - 1].number);
        struct sequence here = sequence_of(contrast->model, contrast->stack[i].number);

        compare(&before, &here, &contrast->stack[i].common);
        step_on(&places, contrast->stack[i].common);
        mark(contrast->model, &contrast->stack[i], &places);
    }
    places = (struct places){{0}};
    for (uint32_t i = contrast->count; i-- > 1;) {
        step_on(&places, contrast->stack[i].common);
        mark(contrast->model, &contrast->stack[i - 1], &places);
    }
}

/* ---- the list ---- */

void cw_contrast_init(struct cw_contrast *contrast, const struct cw_report_model *model,
                      const uint32_t *site, size_t stride, uint32_t count)
{
    uint32_t kept = 0;

    *contrast = (struct cw_contrast){.model = model, .cap = count};
    contrast->stack = count > 1 ? cw_mem_alloc(count * sizeof(*contrast->stack)) : NULL;
    if (!contrast->stack)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_snapshot_site *found =
            cw_report_site(model, *(const uint32_t *)((const char *)site + i * stride));

        if (found && found->stack != 0)
            contrast->stack[contrast->count++].number = found->stack;
    }
    cw_sort(contrast->stack, contrast->count, sizeof(*contrast->stack), is_before_by_number, NULL);
    for (uint32_t i = 0; i < contrast->count; i++)
        if (kept == 0 || contrast->stack[i].number != contrast->stack[kept - 1].number)
            contrast->stack[kept++] = contrast->stack[i];
    contrast->count = kept;
    cw_sort(contrast->stack, contrast->count, sizeof(*contrast->stack), is_before, model);
    mark_all(contrast);
    cw_sort(contrast->stack, contrast->count, sizeof(*contrast->stack), is_before_by_number, NULL);
}

void cw_contrast_free(struct cw_contrast *contrast)
{
    if (contrast->stack)
        cw_mem_free(contrast->stack, contrast->cap * sizeof(*contrast->stack));
    contrast->stack = NULL;
    contrast->count = 0;
}

struct cw_contrast_mark cw_contrast_marks(const struct cw_contrast *contrast, uint32_t stack)
{
    uint32_t low = 0, high = contrast ? contrast->count : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (contrast->stack[middle].number == stack)
            return contrast->stack[middle].mark;
        if (contrast->stack[middle].number < stack)
            low = middle + 1;
        else
            high = middle;
    }
    return (struct cw_contrast_mark){{0}, {0}};
}
