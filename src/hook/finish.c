/* SPDX-License-Identifier: MIT */
/* Ways to end, and the report. See finish.h. */
#include "hook/finish.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/prefetches.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/account/audit.h"
#include "core/account/budget.h"
#include "core/account/trace.h"
#include "core/control/lifecycle.h"
#include "core/process/session.h"
#include "hook/driver/cuda_ops.h"
#include "hook/resolve/deepbind.h"
#include "hook/resolve/object.h"
#include "hook/resolve/resolve.h"
#include "hook/services/background_thread.h"
#include "hook/settings.h"
#include "hook/tools/cupti.h"
#include "report/report.h"
#include "report/symbols/demangle.h"

/* Not at_quick_exit: that is in libc's static part, which would need libc_nonshared of the build
 * machine; this is what it calls, exported since glibc 2.10. */
extern int __cxa_at_quick_exit(void (*func)(void *), void *dso) CW_OPTIONAL;
extern int on_exit(void (*func)(int, void *), void *arg) CW_OPTIONAL;
extern void *__dso_handle;

static _Atomic int exit_status;

/* ---- the report ---- */

static int write_report(int orderly)
{
    const struct cw_options *options = cw_settings_options();
    /* Only C++ programs have one, and it takes memory from malloc. */
    void *demangler = orderly ? cw_object_next_symbol("__cxa_demangle") : NULL;
    struct cw_report_request request = {
        .form = cw_report_form_of(options),
        .destination = options->report[0] ? options->report : NULL,
        .env = cw_settings_environment(),
        .version = PACKAGE_VERSION,
        .suppressions = options->suppressions,
        .old_ns = options->old,
        .has_all_frames = options->frames == CW_FRAMES_ALL,
        .has_live_file = atomic_load(&cw_session.arena.backing.state) != CW_BACKING_NONE,
        .demangle = demangler ? cw_demangle : NULL,
        .demangle_arg = demangler,
    };
    struct cw_arena_copy copy;
    int rc;

    cw_arena_copy_begin(&cw_session.arena, &copy);
    rc = cw_report_write(&copy.view, &request);
    cw_arena_copy_end(&copy);
    return rc;
}

/* ---- what did not come here ---- */

/* Nobody's calls came, and so there is no account that could say it. Whoever asked for a report
 * gets one, and `cuwarden run` reads it; others get a line. */
static void tell_of_unseen(const char *object)
{
    const struct cw_options *options = cw_settings_options();

    cw_settings_announce();
    if (options->report[0] == '\0') {
        cw_log(CW_LOG_WARN,
               "what '%s' calls of CUDA does not come here: it was opened with RTLD_DEEPBIND%s",
               object,
               options->deepbind == CW_DEEPBIND_PATCH ? ", not even with CUWARDEN_DEEPBIND=patch"
                                                      : "; CUWARDEN_DEEPBIND=patch brings it");
        return;
    }
    cw_lifecycle_arm(&cw_cuda_ops, options, cw_settings_launcher(), 0);
    cw_session_set_unseen(object, 1);
}

/* A dlsym in front of ours need not hand on to it. A program that it has kept from us would be as
 * one that does not use CUDA. */
static void tell_of_lookups(void)
{
    struct cw_object other;

    if (cw_settings_options()->mode == CW_MODE_OFF || !cw_resolve_other_dlsym(&other))
        return;
    cw_resolve_libraries();
    if (!cw_resolve_is_loaded(CW_LIBRARY_DRIVER))
        return;
    cw_settings_announce();
    cw_log(CW_LOG_WARN,
           "CUDA's driver was loaded, but no call of it came here: '%s' has a dlsym of its own and "
           "comes before libcuwarden.so; put libcuwarden.so first in LD_PRELOAD",
           cw_object_basename(&other));
}

/* Only where all else is in order: a signal handler that ends the process may not make an arena. */
static void note_unseen(enum cw_exit_kind kind)
{
    const char *object;

    cw_deepbind_look();
    object = cw_deepbind_unseen();
    if (object != NULL && cw_session.pid == getpid())
        cw_session_set_unseen(object, 0);
    if (cw_session.pid != 0 || kind != CW_EXIT_EXIT)
        return;
    if (object != NULL)
        tell_of_unseen(object);
    else
        tell_of_lookups();
}

static void finish(enum cw_exit_kind kind, int status)
{
    note_unseen(kind);
    if (cw_session.pid != 0 &&
        cw_session.pid == getpid()) /* not a vfork child, whose clock is its parent's */
        cw_cuda_ops_end_exactly();
    if (!cw_lifecycle_finish(kind, status))
        return;
    cw_audit_cut();
    cw_trace_end();
    cw_background_thread_stop();
    cw_api_prefetches_stop();
    cw_mem_detach();
    if (write_report(kind == CW_EXIT_EXIT) == 0)
        cw_session_reported();
    cw_mem_attach();
    if (kind == CW_EXIT_EXIT)
        cw_budget_tell_unused();
}

/* ---- ways to end ---- */

static void note_status(int status, void *arg)
{
    (void)arg;
    atomic_store(&exit_status, status);
    /* The driver may be torn down before our destructor runs. */
    cw_background_thread_stop();
    cw_api_prefetches_stop();
}

static void quick_exiting(void *arg)
{
    (void)arg;
    cw_cupti_end();
    finish(CW_EXIT_QUICK_EXIT, 0);
}

/* Registered once CUPTI runs, so that it comes before CUPTI's own exit handlers. */
static void end_audit(int status, void *arg)
{
    (void)status;
    (void)arg;
    cw_cupti_end();
}

/* After main's return, exit handlers and static destructors; a block freed by a later library's
 * destructor function is still reported. */
static void __attribute__((destructor)) unload(void)
{
    finish(CW_EXIT_EXIT, atomic_load(&exit_status));
}

static void leave_now(int status) __attribute__((noreturn));

static void leave_now(int status)
{
    finish(CW_EXIT_UNDERSCORE, status);
    for (;;)
        syscall(SYS_exit_group, status);
}

CW_EXPORT void _exit(int status)
{
    leave_now(status);
}

CW_EXPORT void _Exit(int status)
{
    leave_now(status);
}

void cw_finish_register(void)
{
    if (__cxa_at_quick_exit != NULL)
        __cxa_at_quick_exit(quick_exiting, &__dso_handle);
    if (on_exit != NULL)
        on_exit(note_status, NULL);
}

void cw_finish_register_audit(void)
{
    if (on_exit != NULL)
        on_exit(end_audit, NULL);
}
