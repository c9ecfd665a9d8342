/* SPDX-License-Identifier: MIT */
/*
 * What is opened with RTLD_DEEPBIND (hook/resolve/deepbind.h) or RTLD_GLOBAL
 * (hook/resolve/searchlist.h), and what switches stacks (core/stacks/unwind.h).
 *
 * dlopen looks at the flags and goes on to the real one by a jump, because that one finds the
 * caller by the return address: whose RUNPATH is searched, what $ORIGIN is, in which namespace. So
 * we do not learn of its end. What we do learn of is the moment before constructors run, when all
 * is relocated: the start code of each object calls __gmon_start__ if there is one (glibc's crti.S;
 * it is there for profilers), and RTLD_DEEPBIND keeps nobody from finding ours, since nobody else
 * has one.
 */
#include <dlfcn.h>

#include "base/compiler.h"
#include "core/stacks/unwind.h"
#include "hook/answers/dlsym.h"
#include "hook/resolve/deepbind.h"
#include "hook/resolve/next.h"
#include "hook/resolve/searchlist.h"
#include "hook/settings.h"

struct cw_dlsym_answer cw_dlopen_filter(const char *file, int flags, const void *caller)
{
    (void)caller;
    if (file != NULL) {
        cw_unwind_opening(file);
        if (flags & RTLD_GLOBAL)
            cw_searchlist_opening(file);
    }
#ifdef RTLD_DEEPBIND
    if (CW_UNLIKELY(flags & RTLD_DEEPBIND)) {
        cw_settings_read();
        if (cw_settings_options()->mode != CW_MODE_OFF)
            cw_deepbind_opening(cw_settings_options()->deepbind == CW_DEEPBIND_PATCH);
    }
#endif
    return (struct cw_dlsym_answer){.jump = cw_next_dlopen()};
}

void __gmon_start__(void);

CW_EXPORT void __gmon_start__(void)
{
    cw_deepbind_loaded();
}
