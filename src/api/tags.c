/* SPDX-License-Identifier: MIT */
/* Tags and steps. See api.h. */
#include "api/tags.h"

#include "core/tags/tag.h"

static int check_name(const char *name)
{
    return CW_LIKELY(name != NULL && name[0] != '\0')
               ? CUWARDEN_OK
               : cw_api_fail(CUWARDEN_INVALID, "a tag, or a step, needs a name; this one is %s",
                             name == NULL ? "NULL" : "empty");
}

int cw_api_tag_push(const char *name)
{
    int error = cw_api_check_active();

    if (CW_LIKELY(error == CUWARDEN_OK))
        error = check_name(name);
    if (CW_LIKELY(error == CUWARDEN_OK))
        cw_tag_enter(cw_tag_name_again(name));
    return error;
}

int cw_api_tag_pop(void)
{
    int error = cw_api_check_active();

    if (CW_UNLIKELY(error != CUWARDEN_OK))
        return error;
    if (CW_LIKELY(cw_tag_leave() == 0))
        return CUWARDEN_OK;
    return cw_api_fail(CUWARDEN_UNBALANCED,
                       "a pop without a push: this thread has no tag to end (ranges of NVTX are "
                       "ended by NVTX)");
}

int cw_api_step(const char *name)
{
    int error = cw_api_check_active();

    if (error == CUWARDEN_OK)
        error = check_name(name);
    if (error == CUWARDEN_OK)
        cw_tag_mark(cw_tag_name_again(name));
    return error;
}
