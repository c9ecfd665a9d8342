/* SPDX-License-Identifier: MIT */
/* Arming. See start.h. */
#include "hook/start.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "api/thread.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "core/account/trace.h"
#include "core/control/lifecycle.h"
#include "core/process/host.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/stacks/unwind.h"
#include "hook/driver/cuda_ops.h"
#include "hook/finish.h"
#include "hook/resolve/object.h"
#include "hook/resolve/resolve.h"
#include "hook/resolve/searchlist.h"
#include "hook/services/dump.h"
#include "hook/services/dump_signal.h"
#include "hook/services/helper_thread.h"
#include "hook/services/background_thread.h"
#include "hook/services/platform.h"
#include "hook/services/trace_file.h"
#include "hook/settings.h"
#include "hook/tools/cupti.h"
#include "hook/tools/python_watch.h"

static struct cw_once announcing; /* complaints are said once per process */

/* ---- the end of a thread ---- */

/* pthread_key_create and pthread_setspecific are looked up: glibc moved them between libraries, and
 * a reference would carry the version of the build machine. They neither wait for the loader nor
 * allocate, as what C++ uses for thread_local objects does. */
typedef int (*key_create_fn)(unsigned *key, void (*destroy)(void *));
typedef int (*setspecific_fn)(unsigned key, const void *value);

static unsigned thread_key;
static setspecific_fn set_specific;

static void thread_ends(void *value)
{
    (void)value;
    cw_thread.depth++; /* a signal handler's calls must not find a half-ended thread */
    cw_lifecycle_thread_ends();
    cw_api_thread_ends();
    cw_thread.depth--;
}

static int watch_thread(void)
{
    return set_specific != NULL ? set_specific(thread_key, &thread_key) : -1;
}

static void make_thread_key(void)
{
    key_create_fn create = (key_create_fn)cw_object_next_symbol("pthread_key_create");

    if (create != NULL && create(&thread_key, thread_ends) == 0)
        set_specific = (setspecific_fn)cw_object_next_symbol("pthread_setspecific");
}

/* ---- the first call ---- */

static void announce(void)
{
    if (!cw_once_begin(&announcing))
        return;
    cw_settings_read();
    cw_settings_announce();
    if (cw_settings_options()->mode != CW_MODE_OFF) {
        make_thread_key();
        cw_finish_register();
    }
    cw_once_end(&announcing);
}

/* Not by dlsym: libgcc_s is loaded locally, out of reach of its default search. */
static int match_unwinder(const struct cw_object *object, void *arg)
{
    struct cw_unwinder *unwinder = arg;

    if (strcmp(cw_object_basename(object), "libgcc_s.so.1") != 0)
        return 0;
    *unwinder = (struct cw_unwinder){
        .backtrace = (__typeof__(&_Unwind_Backtrace))cw_object_symbol(object, "_Unwind_Backtrace"),
        .ip_info = (__typeof__(&_Unwind_GetIPInfo))cw_object_symbol(object, "_Unwind_GetIPInfo"),
        .cfa = (__typeof__(&_Unwind_GetCFA))cw_object_symbol(object, "_Unwind_GetCFA"),
        .gr = (__typeof__(&_Unwind_GetGR))cw_object_symbol(object, "_Unwind_GetGR")};
    return unwinder->backtrace != NULL && unwinder->ip_info != NULL && unwinder->cfa != NULL &&
           unwinder->gr != NULL;
}

/* In an object that was there from the start, and stays. */
static int match_linked(struct cw_unwinder *unwinder)
{
    const void *function = cw_searchlist_program_symbol("_Unwind_Backtrace");
    struct cw_object object;

    return function != NULL && cw_object_at(function, &object) == 0 &&
           match_unwinder(&object, unwinder);
}

static void find_unwinder(int is_linked)
{
    struct cw_unwinder unwinder;

    if (is_linked ? match_linked(&unwinder) : cw_object_visit(match_unwinder, &unwinder))
        cw_unwind_set(&unwinder);
}

/* By our own functions, found by their names: they stand above this file. */
static int free_by(const char *name, uint64_t address)
{
    struct cw_object self;
    int (*function)(uint64_t address) = NULL;

    if (cw_object_at((const void *)&cw_session, &self) == 0)
        function = (int (*)(uint64_t))cw_object_symbol(&self, name);
    return function != NULL ? function(address) : -1;
}

static int free_block(enum cw_kind kind, uint64_t address)
{
    switch (kind) {
    case CW_KIND_DEVICE:
    case CW_KIND_PITCHED:
    case CW_KIND_MANAGED:
    case CW_KIND_ASYNC:
        return free_by("cuMemFree_v2", address);
    case CW_KIND_PINNED:
        return free_by("cuMemFreeHost", address);
    default:
        return -1;
    }
}

static const struct cw_host_ops host = {
    .watch_thread = watch_thread,
    .find_unwinder = find_unwinder,
    .help = cw_helper_thread_start,
    .dump = cw_dump_for_process,
    .record = cw_trace_file_start,
    .end_record = cw_trace_stop,
    .free_block = free_block,
    .bounds = cw_platform_bounds,
};

/* Nothing that it does with the calls happens, so the program has other answers than without us. */
static void tell_interposer(void)
{
    struct cw_object other;

    if (cw_resolve_interposer(&other))
        cw_log(
            CW_LOG_WARN,
            "'%s' intercepts CUDA calls, too, and comes after libcuwarden.so, so it does not see "
            "them; put it first in LD_PRELOAD, or use one of the two",
            other.name);
}

/* There is no memory of a device that could be watched. */
static int is_without_driver(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct cw_object other;

    if (cw_settings_options()->mode == CW_MODE_OFF || !cw_resolve_stand_in(&other))
        return 0;
    cw_resolve_libraries();
    if (cw_resolve_is_loaded(CW_LIBRARY_DRIVER))
        return 0;
    cw_log_once(&said, CW_LOG_WARN,
                "'%s' answers CUDA calls, and CUDA's driver is not loaded, so nothing is watched",
                other.name);
    return 1;
}

/* The caller counts as inside a hook, so that calls of CUDA on the way are not accounted for. */
static void arm(const struct cw_options *options)
{
    /* Before the core can ask its host for anything. */
    cw_host_set(&host);
    /* The first stack already shows Python frames. */
    cw_python_watch(options);
    cw_lifecycle_arm(&cw_cuda_ops, options, cw_settings_launcher(), cw_cuda_driver_version());
    if (!cw_session_is_armed())
        return;
    tell_interposer();
    cw_resolve_tell_second();
    /* First: other threads may allocate by now, and the trace should miss as little as possible. */
    if (options->probes == CW_PROBES_OTEL)
        cw_trace_begin_otel();
    cw_trace_file_open(options);
    /* The handler wakes the background thread, which therefore comes first. */
    cw_background_thread_start(options);
    cw_dump_signal_install(options);
    /* Last: CUPTI calls back as soon as it runs, and compares with what the tracker counts. Its
     * exit handlers are registered by now, so ours, registered later, runs before them. */
    if (cw_cupti_start(options))
        cw_finish_register_audit();
}

void cw_start_prepare(void)
{
    cw_settings_read();
    if (cw_settings_options()->mode != CW_MODE_OFF &&
        atomic_load_explicit(&cw_session.state, memory_order_relaxed) == CW_SESSION_NEW)
        cw_lifecycle_prepare();
}

int cw_start_arm(void)
{
    const struct cw_options *options = cw_settings_options();

    if (CW_UNLIKELY(!cw_once_is_done(&announcing)))
        announce();
    if (options->mode == CW_MODE_OFF)
        return 0;
    if (atomic_load_explicit(&cw_session.state, memory_order_acquire) == CW_SESSION_NEW) {
        cw_thread.depth++;
        arm(options);
        cw_thread.depth--;
    }
    return cw_session_is_armed();
}

int cw_start_arm_at_driver(void)
{
    if (cw_session_is_armed())
        return 1;
    if (CW_UNLIKELY(!cw_once_is_done(&announcing)))
        announce();
    return !is_without_driver() && cw_start_arm();
}

void cw_start_refused(int code)
{
    if (CW_UNLIKELY(!cw_once_is_done(&announcing)))
        announce();
    if (cw_settings_options()->report[0] != '\0' && cw_start_arm_at_driver())
        cw_session_set_init_error(code);
}

void cw_start_reset(void)
{
    announcing = (struct cw_once){0};
    cw_cuda_ops_forked();
}
