/* SPDX-License-Identifier: MIT */
/* Merging of stacks. See merge.h. No state. */
#include "core/stacks/merge.h"

#include <string.h>

#include "live/layout.h"

struct progress {
    const struct cw_merge *merge;
    struct cw_merge_frame *out;
    unsigned count, max;
    unsigned natives_left; /* room for native frames */
    unsigned next, end;    /* the Python frames whose turn it is */
};

static int is_within(uint64_t pc, uint64_t start, uint64_t end)
{
    return pc - 1 >= start && pc - 1 < end; /* the call, not what follows it */
}

static int is_interpreter(const struct cw_merge *merge, unsigned native)
{
    return is_within(merge->native[native].pc, merge->interpreter->object,
                     merge->interpreter->object_end);
}

static int is_evaluator(const struct cw_merge *merge, unsigned native)
{
    return is_within(merge->native[native].pc, merge->interpreter->evaluator,
                     merge->interpreter->evaluator_end);
}

static unsigned count_shown(const struct cw_merge *merge)
{
    unsigned shown = 0;

    for (unsigned i = 0; i < merge->pythons; i++)
        shown += merge->python[i].code != 0;
    return shown;
}

/* The frame of the program's entry point, if the interpreter is the program. */
static int is_entry_point(const struct cw_merge *merge, unsigned native)
{
    return native > 0 && native == merge->natives - 1 && !merge->is_cut &&
           is_interpreter(merge, native) && !is_interpreter(merge, native - 1);
}

/* Where interpreter's frames begin that are not the entry point's alone. */
static int is_run(const struct cw_merge *merge, unsigned native)
{
    return is_interpreter(merge, native) && !is_entry_point(merge, native) &&
           (native == 0 || !is_interpreter(merge, native - 1));
}

/* Before which native frame the Python frames go that no evaluator stands for: it may be one that
 * is not known as such, so as far out as the interpreter reaches. */
static unsigned find_rest(const struct cw_merge *merge)
{
    unsigned at = merge->natives;

    if (merge->is_cut)
        return at;
    if (at > 0 && is_entry_point(merge, at - 1))
        at--;
    while (at > 0 && !is_interpreter(merge, at - 1))
        at--;
    return at > 0 ? at : merge->natives;
}

/* Of the runs, if no evaluator is known in any of them: the compiler may have put most of that
 * function elsewhere, under no name (Debian's 3.14). */
struct hidden {
    unsigned without; /* the inner ones of more runs than entries: extensions call functions of the
                       * interpreter that run no Python code */
    unsigned single;  /* then those that take one entry; the outermost takes the rest */
};

static struct hidden find_hidden(const struct cw_merge *merge)
{
    unsigned runs = 0, entries = 0;
    struct hidden hidden = {0};

    for (unsigned i = 0; i < merge->natives; i++) {
        if (is_evaluator(merge, i))
            return hidden;
        runs += is_run(merge, i) != 0;
    }
    for (unsigned i = 0; i < merge->pythons - merge->waiting; i++)
        entries += merge->python[i].is_entry != 0;
    hidden.without = runs > entries ? runs - entries : 0;
    hidden.single = runs > hidden.without ? runs - hidden.without - 1 : 0;
    return hidden;
}

static void put(struct progress *progress, uint64_t pc, uint32_t module)
{
    if (progress->count < progress->max)
        progress->out[progress->count++] = (struct cw_merge_frame){.pc = pc, .module = module};
}

static void put_native(struct progress *progress, unsigned native)
{
    const struct cw_merge_frame *frame = &progress->merge->native[native];

    if (progress->natives_left == 0)
        return;
    progress->natives_left--;
    put(progress, frame->pc, frame->module);
}

/* Those of one evaluator. */
static void put_python(struct progress *progress)
{
    const struct cw_merge *merge = progress->merge;
    int is_last = 0;

    while (!is_last && progress->next < progress->end) {
        const struct cw_merge_python *python = &merge->python[progress->next++];

        if (python->code != 0)
            put(progress, python->code, CW_MODULE_PYTHON);
        is_last = python->is_entry;
    }
}

static void put_rest(struct progress *progress)
{
    while (progress->next < progress->end)
        put_python(progress);
}

static void put_hidden(struct progress *progress, struct hidden *hidden)
{
    if (hidden->without > 0) {
        hidden->without--;
    } else if (hidden->single > 0) {
        hidden->single--;
        put_python(progress);
    }
}

static unsigned copy_natives(const struct cw_merge *merge, struct cw_merge_frame *out, unsigned max)
{
    unsigned count = merge->natives < max ? merge->natives : max;

    memcpy(out, merge->native, count * sizeof(*out));
    return count;
}

unsigned cw_merge_stacks(const struct cw_merge *merge, struct cw_merge_frame *out, unsigned max)
{
    struct progress progress = {
        .merge = merge, .out = out, .max = max, .end = merge->pythons - merge->waiting};
    unsigned shown = count_shown(merge), half = (max + 1) / 2;
    unsigned rest_at = find_rest(merge);
    struct hidden hidden = find_hidden(merge);

    if (shown == 0)
        return copy_natives(merge, out, max);
    progress.natives_left = max - (shown < half ? shown : half);
    for (unsigned i = 0; i < merge->natives; i++) {
        if (i == rest_at)
            put_rest(&progress);
        if (is_run(merge, i))
            put_hidden(&progress, &hidden);
        if (is_evaluator(merge, i))
            put_python(&progress);
        else if (!is_interpreter(merge, i))
            put_native(&progress, i);
    }
    progress.end = merge->pythons;
    put_rest(&progress);
    return progress.count;
}
