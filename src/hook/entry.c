/* SPDX-License-Identifier: MIT */
/*
 * Where lifetimes start and end. See entry.h.
 *
 * Owns the options, read once when the library is loaded and constant afterwards. Until the program
 * calls CUDA nothing else happens: no message, no file, no memory, no thread. At the end the report
 * is written from our own state; the driver is not called any more.
 */
#include "hook/entry.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/launcher.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/options/options.h"
#include "base/out.h"
#include "core/control/lifecycle.h"
#include "core/account/audit.h"
#include "core/control/control.h"
#include "base/sys.h"
#include "core/process/loader.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/process/thread.h"
#include "core/account/trace.h"
#include "core/stacks/unwind.h"
#include "hook/bodies/call.h"
#include "hook/driver/cuda_ops.h"
#include "hook/tools/cupti.h"
#include "hook/services/dump.h"
#include "hook/services/dump_signal.h"
#include "hook/services/helper.h"
#include "hook/resolve/object.h"
#include "hook/tools/python_watch.h"
#include "hook/resolve/resolve.h"
#include "hook/services/serve.h"
#include "hook/services/trace_file.h"
#include "report/path/path.h"
#include "report/report.h"

extern char **environ;

char *const *cw_entry_environment(void)
{
    return environ;
}

/* Not pthread_atfork and at_quick_exit: those are in libc's static part, which would need
 * libc_nonshared of the build machine; these are what they call, exported since glibc 2.3.2
 * and 2.10. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *dso) CW_OPTIONAL;
extern int __cxa_at_quick_exit(void (*func)(void *), void *dso) CW_OPTIONAL;
extern int on_exit(void (*func)(int, void *), void *arg) CW_OPTIONAL;
extern void *__dso_handle;

enum { READ_NOT_YET, READ_DONE };

static struct cw_options options;
static struct cw_option_complaints complaints;
static struct cw_launcher launcher; /* read at the first call: a parent may set it in its child */
static _Atomic int options_read;
static struct cw_once announcing; /* complaints are said once per process */
static _Atomic int exit_status;

/* A relative name counts from where the program first calls CUDA, not from where it happens to end:
 * a server may have moved to / by then. Not from its start: a process without CUDA asks for
 * nothing. is_template: a % in the directory's name is no escape. */
static void pin(cw_option_path path, int is_template)
{
    char start[CW_OPTION_VALUE_MAX], pinned[CW_OPTION_VALUE_MAX];
    size_t len = 0;

    if (path[0] == '\0' || path[0] == '/' || getcwd(start, sizeof(start)) == NULL)
        return;
    for (const char *from = start; *from != '\0' && len + 2 < sizeof(pinned); from++) {
        if (*from == '%' && is_template)
            pinned[len++] = '%';
        pinned[len++] = *from;
    }
    pinned[len] = '\0';
    if (len + 1 + strlen(path) >= CW_OPTION_VALUE_MAX)
        return;
    memcpy(start, path, sizeof(start));
    cw_format(path, CW_OPTION_VALUE_MAX, "%s/%s", pinned, start);
}

static void pin_files(void)
{
    if (strcmp(options.report, "-") != 0)
        pin(options.report, 1);
    pin(options.suppressions, 0);
    pin(options.trace, 1);
}

/* The ranks of a job have the same environment but for their number. The dumps follow, and what a
 * forked child finds tells it from others already. */
static void name_rank(void)
{
    char named[CW_OPTION_VALUE_MAX];

    if (options.report[0] == '\0' || strcmp(options.report, "-") == 0 || launcher.rank[0] == '\0' ||
        launcher.size < 2 || !cw_path_is_shared(options.report) ||
        cw_path_insert(named, sizeof(named), options.report, ".rank-%r") != 0)
        return;
    memcpy(options.report, named, strlen(named) + 1);
    cw_log(CW_LOG_INFO,
           "rank %s of a job of %ju: the report's name gets \".rank-%s\", because CUWARDEN_REPORT "
           "is the same for all ranks",
           launcher.rank, (uintmax_t)launcher.size, launcher.rank);
}

static void read_options(void)
{
    int before = READ_NOT_YET;

    /* A constructor of another library may call CUDA before ours has run. */
    if (!atomic_compare_exchange_strong(&options_read, &before, READ_DONE))
        return;
    cw_options_parse(environ, !getauxval(AT_SECURE), &options, &complaints);
    /* A setuid program: whoever put us here did it for all programs; stay out of the privileged
     * ones. */
    if (getauxval(AT_SECURE))
        options.mode = CW_MODE_OFF;
    cw_log_set_level(options.log);
}

static void forked(void);

static void __attribute__((constructor)) load(void)
{
    read_options();
    if (cw_sys_fcntl(STDERR_FILENO, F_GETFD, 0) < 0)
        cw_write_never_to_stderr();
    /* Before any lock of ours can be taken: a fork may come at any time. */
    if (__register_atfork != NULL)
        __register_atfork(cw_loader_fork_begin, cw_loader_fork_end_parent, forked, &__dso_handle);
}

/* ---- the report --------------------------------------------------------------------------------
 */

static enum cw_report_form report_form(void)
{
    if (options.report[0] == '\0' && options.format == CW_FORMAT_TEXT)
        return CW_REPORT_SHORT_IF_LEAKED;
    if (options.format == CW_FORMAT_JSON)
        return CW_REPORT_JSON;
    return options.format == CW_FORMAT_BOTH ? CW_REPORT_BOTH : CW_REPORT_TEXT;
}

/* Found where it lives if the program has it: C++ programs do. Only at an orderly exit: it
 * allocates. */
typedef char *(*demangle_fn)(const char *mangled, char *buf, size_t *len, int *status);

static const char *demangle(const char *mangled, void *arg)
{
    static char *last;
    int status = -1;

    free(last);
    last = ((demangle_fn)arg)(mangled, NULL, NULL, &status);
    return status == 0 ? last : NULL;
}

static int write_report(int orderly)
{
    void *demangler = orderly ? cw_object_next_symbol("__cxa_demangle") : NULL;
    struct cw_report_request request = {
        .form = report_form(),
        .destination = options.report[0] ? options.report : NULL,
        .env = environ,
        .version = PACKAGE_VERSION,
        .suppressions = options.suppressions,
        .old_ns = options.old,
        .demangle = demangler ? demangle : NULL,
        .demangle_arg = demangler,
    };
    struct cw_view view;

    cw_arena_view(&cw_session.arena, &view);
    return cw_report_write(&view, &request);
}

static void finish(enum cw_exit_kind kind, int status)
{
    if (!cw_lifecycle_finish(kind, status))
        return;
    cw_audit_cut();
    cw_trace_end();
    cw_helper_stop();
    cw_mem_detach();
    if (write_report(kind == CW_EXIT_EXIT) == 0)
        cw_session_reported();
    cw_mem_attach();
}

static void note_status(int status, void *arg)
{
    (void)arg;
    atomic_store(&exit_status, status);
    cw_helper_stop(); /* the driver may be torn down before our destructor runs */
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

/* ---- the first call, and children ---------------------------------------------------------------
 */

static void forked(void)
{
    cw_dump_signal_reset(); /* first: a signal must not find what is half taken down */
    cw_loader_fork_end_child();
    cw_log_reset();
    cw_resolve_reset();
    cw_lifecycle_reset();
    cw_helper_reset();
    cw_serve_reset();
    cw_dump_reset();
    cw_trace_file_forked();
    cw_call_reset();
    cw_python_watch_reset();
    cw_cupti_forked();
    announcing = (struct cw_once){0};
}

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
    cw_thread.depth++; /* a signal handler's calls are not to meet what is half taken down */
    cw_lifecycle_thread_ends();
    cw_thread.depth--;
}

static int watch_thread(void)
{
    return set_specific(thread_key, &thread_key);
}

static void watch_threads(void)
{
    key_create_fn create = (key_create_fn)cw_object_next_symbol("pthread_key_create");

    set_specific = (setspecific_fn)cw_object_next_symbol("pthread_setspecific");
    if (create != NULL && set_specific != NULL && create(&thread_key, thread_ends) == 0)
        cw_thread_set_watch(watch_thread);
}

static void announce(void)
{
    if (!cw_once_begin(&announcing))
        return;
    read_options();
    for (unsigned i = 0; i < complaints.count && i < CW_OPTION_COMPLAINTS; i++)
        cw_log(CW_LOG_WARN, "%s", complaints.line[i]);
    if (complaints.count > CW_OPTION_COMPLAINTS)
        cw_log(CW_LOG_WARN, "%u more complaints about CUWARDEN_ variables; see 'cuwarden options'",
               complaints.count - CW_OPTION_COMPLAINTS);
    if (options.mode != CW_MODE_OFF) {
        cw_launcher_read(&launcher, environ);
        pin_files();
        name_rank();
        watch_threads();
    }
    if (options.mode != CW_MODE_OFF && __cxa_at_quick_exit != NULL)
        __cxa_at_quick_exit(quick_exiting, &__dso_handle);
    if (options.mode != CW_MODE_OFF && on_exit != NULL)
        on_exit(note_status, NULL);
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

static void find_unwinder(void)
{
    struct cw_unwinder unwinder;

    if (cw_object_visit(match_unwinder, &unwinder))
        cw_unwind_set(&unwinder);
}

int cw_entry_arm(void)
{
    if (CW_UNLIKELY(!cw_once_is_done(&announcing)))
        announce();
    if (options.mode == CW_MODE_OFF)
        return 0;
    if (atomic_load_explicit(&cw_session.state, memory_order_acquire) == CW_SESSION_NEW) {
        cw_thread.depth++;
        if (options.stacks == CW_STACKS_FULL)
            cw_unwind_set_find(find_unwinder);
        cw_python_watch(&options);
        cw_lifecycle_arm(&cw_cuda_ops, &options, &launcher, cw_cuda_driver_version());
        cw_control_set_dump(cw_dump_for_process);
        if (cw_session_is_armed()) {
            cw_trace_file_open(&options);
            cw_helper_start(&options);
            cw_dump_signal_install(&options);
            if (cw_cupti_start(&options) && on_exit != NULL)
                on_exit(end_audit, NULL);
        }
        cw_thread.depth--;
    }
    return cw_session_is_armed();
}

int cw_entry_wants_tags(void)
{
    read_options(); /* a constructor of the program may use NVTX before ours has run */
    return options.mode != CW_MODE_OFF && options.growth == CW_GROWTH_ON;
}

/* ---- unloading
 * ----------------------------------------------------------------------------------- */

typedef int (*dlclose_fn)(void *handle);

/* What was unloaded may be followed by something else at the same addresses. */
CW_EXPORT int dlclose(void *handle)
{
    static _Atomic(void *) next;
    void *real = atomic_load_explicit(&next, memory_order_relaxed);
    int rc, has_left;

    if (real == NULL) {
        real = cw_object_next_symbol("dlclose");
        atomic_store_explicit(&next, real, memory_order_relaxed);
    }
    if (real == NULL)
        return -1;
    has_left = cw_python_unload_begin();
    rc = ((dlclose_fn)real)(handle);
    cw_epoch_advance();
    if (has_left)
        cw_python_unload_end();
    cw_resolve_forget_unloaded();
    return rc;
}
