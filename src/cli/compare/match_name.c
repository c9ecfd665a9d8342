/* SPDX-License-Identifier: MIT */
/* Matching by name. See match_name.h. */
#include "cli/compare/match_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

uint64_t cw_match_mix_text(uint64_t hash, const char *text)
{
    return cw_hash_mix(cw_hash_add_text(hash, text), 0xff);
}

/* ---- builds ---- */

/* 1 if no module of that name in the other model is the same build, and there is one. A module
 * without a build-id may be another build. */
static int is_rebuilt(const struct cw_model *model, uint32_t module, const struct cw_model *other)
{
    const char *name = cw_model_module_name(model, module);
    const char *id = model->module[module].build_id;
    int has_namesake = 0;

    for (uint32_t i = 0; i < other->modules; i++) {
        if (strcmp(cw_model_module_name(other, i), name) != 0)
            continue;
        has_namesake = 1;
        if (*id && strcmp(other->module[i].build_id, id) == 0)
            return 0;
    }
    return has_namesake;
}

int cw_match_builds_find(struct cw_match_builds *builds, const struct cw_model *model)
{
    *builds = (struct cw_match_builds){.model = model};
    for (unsigned i = 0; i < 2; i++) {
        builds->is_rebuilt[i] = calloc(model[i].modules + 1u, 1);
        if (!builds->is_rebuilt[i])
            return -1;
        for (uint32_t k = 0; k < model[i].modules; k++)
            builds->is_rebuilt[i][k] = (uint8_t)is_rebuilt(&model[i], k, &model[1 - i]);
    }
    return 0;
}

void cw_match_builds_free(struct cw_match_builds *builds)
{
    free(builds->is_rebuilt[0]);
    free(builds->is_rebuilt[1]);
}

/* ---- names of stacks ---- */

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* 0: this frame has neither a name nor an address that says the same in both models. */
static uint64_t mix_frame(uint64_t hash, const struct cw_model *model,
                          const struct cw_model_frame *frame, int is_moved, enum cw_match_how how)
{
    if (frame->is_python) {
        hash = cw_match_mix_text(hash, last_component(frame->file));
        if (how != CW_MATCH_NAME)
            hash = cw_hash_mix(hash, frame->line);
        return cw_match_mix_text(hash, frame->function);
    }
    hash = cw_match_mix_text(hash, cw_model_module_name(model, frame->module));
    if (frame->function[0])
        return cw_match_mix_text(hash, frame->function);
    return is_moved ? 0 : cw_hash_mix(hash, frame->offset);
}

uint64_t cw_match_name_hash(const struct cw_match_builds *builds, unsigned which,
                            const struct cw_model_site *site, enum cw_match_how how,
                            uint32_t *out_module)
{
    const struct cw_model *model = &builds->model[which];
    const struct cw_model_stack *stack;
    uint64_t hash = CW_MATCH_SEED;

    *out_module = CW_MODEL_NONE;
    if (site->stack == CW_MODEL_NONE)
        return 0;
    stack = &model->stack[site->stack];
    for (uint32_t i = 0; i < stack->count && hash != 0; i++) {
        const struct cw_model_frame *frame = &model->frame[model->stack_frame[stack->first + i]];
        int is_moved = frame->module < model->modules && builds->is_rebuilt[which][frame->module];

        if (frame->is_inlined) /* only where there is debug information */
            continue;
        if (is_moved && *out_module == CW_MODEL_NONE)
            *out_module = frame->module;
        hash = mix_frame(hash, model, frame, is_moved, how);
    }
    return stack->count > 0 && (*out_module != CW_MODEL_NONE || how == CW_MATCH_NAME) ? hash : 0;
}
