/* SPDX-License-Identifier: MIT */
/* Matching by name. See match_name.h. */
#include "cli/compare/match_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cli/model/site_text.h"

uint64_t cw_match_mix_text(uint64_t hash, const char *text)
{
    return cw_hash_mix(cw_hash_add_text(hash, text), 0xff);
}

/* ---- builds ---- */

/* 1 if the other model has modules of that name and none is the same build. A module without a
 * build-id may be another build. */
static int is_rebuilt(const struct cw_report_model *model, uint32_t module,
                      const struct cw_report_model *other)
{
    const char *name = cw_report_module_name(model, module);
    const char *id = model->module[module - 1].build_id;
    int has_namesake = 0;

    for (uint32_t i = 1; i <= other->modules; i++) {
        if (strcmp(cw_report_module_name(other, i), name) != 0)
            continue;
        has_namesake = 1;
        if (*id && strcmp(other->module[i - 1].build_id, id) == 0)
            return 0;
    }
    return has_namesake;
}

int cw_match_builds_find(struct cw_match_builds *builds, const struct cw_model *model)
{
    *builds = (struct cw_match_builds){.model = model};
    for (unsigned i = 0; i < 2; i++) {
        const struct cw_report_model *one = model[i].report, *other = model[1 - i].report;

        builds->is_rebuilt[i] = calloc(one->modules + 1u, 1);
        if (!builds->is_rebuilt[i])
            return -1;
        for (uint32_t k = 1; k <= one->modules; k++)
            builds->is_rebuilt[i][k] = (uint8_t)is_rebuilt(one, k, other);
    }
    return 0;
}

void cw_match_builds_free(struct cw_match_builds *builds)
{
    free(builds->is_rebuilt[0]);
    free(builds->is_rebuilt[1]);
}

/* ---- names of stacks ---- */

/* 0: the frame has no name, and its address differs between builds. */
static uint64_t mix_frame(uint64_t hash, const struct cw_report_model *model,
                          const struct cw_report_frame *frame, int is_moved, enum cw_match_how how)
{
    if (frame->is_python) {
        hash = cw_match_mix_text(hash, frame->file ? cw_last_component(frame->file) : "");
        if (how != CW_MATCH_NAME)
            hash = cw_hash_mix(hash, frame->line);
        return cw_match_mix_text(hash, frame->function ? frame->function : "");
    }
    hash = cw_match_mix_text(hash, cw_report_module_name(model, frame->module));
    if (frame->function)
        return cw_match_mix_text(hash, frame->function);
    return is_moved ? 0 : cw_hash_mix(hash, frame->offset);
}

uint64_t cw_match_name_hash(const struct cw_match_builds *builds, unsigned which,
                            const struct cw_snapshot_site *site, enum cw_match_how how,
                            uint32_t *out_module)
{
    const struct cw_report_model *model = builds->model[which].report;
    const struct cw_report_stack *stack = cw_report_stack(model, site->stack);
    uint64_t hash = CW_MATCH_SEED;

    *out_module = 0;
    if (!stack)
        return 0;
    /* Inlined functions do not count: only debug information has them. */
    for (uint32_t i = 0; i < stack->shown && hash != 0; i++) {
        const struct cw_report_frame *frame = cw_report_shown_frame(model, stack, i);
        int is_moved = frame->module <= model->modules && builds->is_rebuilt[which][frame->module];

        if (is_moved && *out_module == 0)
            *out_module = frame->module;
        hash = mix_frame(hash, model, frame, is_moved, how);
    }
    return stack->shown > 0 && (*out_module != 0 || how == CW_MATCH_NAME) ? hash : 0;
}
