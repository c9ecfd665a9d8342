/* SPDX-License-Identifier: MIT */
/*
 * Where lifetimes begin and change: the library is loaded, the process forks, an object is
 * unloaded.
 *
 * Until the program calls CUDA (hook/start.c), the library only reads the options: no message, no
 * file, no memory, no thread. How the process ends is hook/finish.c.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "api/api.h"
#include "api/buffer_memory.h"
#include "api/buffers.h"
#include "api/bridges.h"
#include "api/downloads.h"
#include "api/placements.h"
#include "api/prefetches.h"
#include "api/listeners.h"
#include "api/streams.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/out.h"
#include "base/sys.h"
#include "core/control/lifecycle.h"
#include "core/process/loader.h"
#include "core/process/thread.h"
#include "hook/bodies/bridge_driver.h"
#include "hook/bodies/buffer_driver.h"
#include "hook/bodies/call.h"
#include "hook/bodies/device_driver.h"
#include "hook/bodies/runtime.h"
#include "hook/bodies/transfer_driver.h"
#include "hook/resolve/deepbind.h"
#include "hook/resolve/object.h"
#include "hook/resolve/resolve.h"
#include "hook/services/dump.h"
#include "hook/services/dump_signal.h"
#include "hook/services/background_thread.h"
#include "hook/services/dispatch.h"
#include "hook/services/helper_thread.h"
#include "hook/services/trace_file.h"
#include "hook/settings.h"
#include "hook/start.h"
#include "hook/tools/cupti.h"
#include "hook/tools/python_watch.h"

/* Not pthread_atfork: that is in libc's static part, which would need libc_nonshared of the build
 * machine; this is what it calls, exported since glibc 2.3.2. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *dso) CW_OPTIONAL;
extern void *__dso_handle;

static void forked(void)
{
    cw_dump_signal_reset(); /* first: a signal must not find what is half taken down */
    cw_loader_fork_end_child();
    cw_log_reset();
    cw_resolve_reset();
    cw_deepbind_reset();
    cw_lifecycle_reset();
    cw_background_thread_reset();
    cw_dispatch_reset();
    cw_api_reset();
    cw_api_listeners_reset();
    cw_api_buffers_reset();
    cw_api_downloads_reset();
    cw_api_bridges_reset();
    cw_api_streams_forked();
    cw_api_prefetches_reset();
    cw_api_placements_reset();
    cw_dump_reset();
    cw_trace_file_forked();
    cw_call_reset();
    cw_python_watch_reset();
    cw_cupti_forked();
    cw_start_reset();
}

static void __attribute__((constructor)) load(void)
{
    cw_settings_read();
    cw_api_init(cw_settings_options());
    cw_buffer_memory_init(&cw_buffer_driver);
    cw_api_downloads_init(&cw_buffer_driver, &cw_transfer_driver);
    cw_api_bridges_init(&cw_buffer_driver, &cw_transfer_driver, &cw_bridge_over_driver);
    cw_api_streams_init(&cw_buffer_driver, &cw_transfer_driver);
    cw_api_prefetches_init(&cw_buffer_driver, &cw_transfer_driver, &cw_bridge_over_driver,
                           cw_helper_thread_start);
    cw_api_placements_init(&cw_buffer_driver, &cw_device_driver);
    if (cw_sys_fcntl(STDERR_FILENO, F_GETFD, 0) < 0)
        cw_write_never_to_stderr();
    /* Before we take any lock: the program may fork at any time. */
    if (__register_atfork != NULL)
        __register_atfork(cw_loader_fork_begin, cw_loader_fork_end_parent, forked, &__dso_handle);
}

/* ---- unloading ---- */
typedef int (*dlclose_fn)(void *handle);

/* Another object may be loaded at the addresses of the unloaded one. */
CW_EXPORT int dlclose(void *handle)
{
    static _Atomic(void *) next;
    void *real = atomic_load_explicit(&next, memory_order_relaxed);
    int rc;

    if (real == NULL) {
        real = cw_object_next_symbol("dlclose");
        atomic_store_explicit(&next, real, memory_order_relaxed);
    }
    if (real == NULL)
        return -1;
    cw_deepbind_look(); /* while it is there */
    cw_python_unload_begin();
    rc = ((dlclose_fn)real)(handle);
    cw_epoch_advance();
    cw_runtime_unloaded();
    cw_python_unload_end();
    cw_resolve_forget_unloaded();
    return rc;
}
