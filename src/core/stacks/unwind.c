/* SPDX-License-Identifier: MIT */
/*
 * The walk. See unwind.h. Owns which unwinder is used: set once, read without a lock.
 *
 * Loading one takes the loader's lock, which a thread holds while constructors run, and one of
 * those may wait for the thread that walks. So a thread loads only where the program itself would
 * take that lock, or nobody can hold it for long: in the first thread, in one that has opened a
 * library, and while none was opened. Any other uses the unwinder that the program is linked with;
 * one that is merely there may not be relocated yet, and may go. If there is none, a helper loads
 * it, which nobody waits for but that thread, and that not for long: until the helper is through,
 * stacks are their callers.
 */
#include "core/stacks/unwind.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/compiler.h"
#include "core/process/host.h"
#include "core/process/loader.h"
#include "core/stacks/module.h"

#if defined(__x86_64__)
#define FRAME_POINTER 6 /* rbp, in DWARF's numbers */
#elif defined(__aarch64__)
#define FRAME_POINTER 29
#endif

/* <execinfo.h>'s, as an optional function. */
extern int backtrace(void **buffer, int size) CW_OPTIONAL;
/* <gnu/libc-version.h>'s. */
extern const char *gnu_get_libc_version(void) CW_OPTIONAL;

/* How long a thread waits for the helper. Loading takes 0.15 ms (docs/measurements.md). */
#define PATIENCE_NS UINT64_C(200000000)
#define TRIES_MOST  64 /* of a process that may have none */

static struct cw_unwinder use;
static atomic_flag is_claimed = ATOMIC_FLAG_INIT;
static _Atomic int is_set;
static _Atomic int is_loaded;  /* by us: backtrace() loads nothing any more */
static _Atomic int is_loading; /* threads that are about it */
static _Atomic int has_helper;
static _Atomic unsigned tries;
static struct cw_alarm helped; /* the helper has loaded it */

static _Atomic int is_any_opened;  /* a library, by the program */
static CW_TLS int has_opened_some; /* this thread */

void cw_unwind_set(const struct cw_unwinder *unwinder)
{
    if (atomic_flag_test_and_set(&is_claimed))
        return;
    use = *unwinder;
    atomic_store_explicit(&is_set, 1, memory_order_release);
}

/* Two threads may both load: if one waited for the other, which may wait for the loader, the loader
 * might wait for the first. */
static void load(void)
{
    void *first[1];
    int frames = 0;

    atomic_fetch_add(&tries, 1);
    atomic_fetch_add(&is_loading, 1);
    if (backtrace != NULL)
        frames = backtrace(first, 1);
    cw_host->find_unwinder(0);
    if (frames > 0 || atomic_load(&is_set)) /* else it cannot be: no descriptor is left, say */
        atomic_store_explicit(&is_loaded, 1, memory_order_release);
    atomic_fetch_sub(&is_loading, 1);
}

static void load_as_helper(void)
{
    load();
    if (!atomic_load(&is_loaded))
        atomic_store(&has_helper, 0);
    cw_alarm_ring(&helped);
}

/* One at a time: what comes meanwhile does not wait. */
static void do_without_loading(void)
{
    if (atomic_exchange(&has_helper, 1))
        return;
    cw_host->find_unwinder(1);
    if (atomic_load(&is_set))
        return;
    if (cw_host->help != NULL && cw_host->help(load_as_helper) == 0)
        cw_alarm_wait(&helped, PATIENCE_NS);
    else
        atomic_store(&has_helper, 0);
}

static int is_first_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

/* glibc before 2.34 lets one thread wait in backtrace() for another's. */
static int loads_in_turn(void)
{
    const char *version = gnu_get_libc_version != NULL ? gnu_get_libc_version() : "";
    unsigned minor = 0;

    if (strncmp(version, "2.", 2) != 0)
        return 1;
    for (version += 2; *version >= '0' && *version <= '9'; version++)
        minor = minor * 10 + (unsigned)(*version - '0');
    return minor < 34;
}

/* A thread that has opened a library may hold the lock that another waits for. */
static int may_load(void)
{
    if (has_opened_some)
        return atomic_load(&is_loading) == 0 || !loads_in_turn();
    return !atomic_load(&is_any_opened) || is_first_thread();
}

CW_NOINLINE void cw_unwind_prepare(void)
{
    if (cw_host->find_unwinder == NULL || atomic_load(&is_set) || atomic_load(&is_loaded) ||
        atomic_load(&tries) >= TRIES_MOST)
        return;
    if (may_load())
        load();
    else
        do_without_loading();
}

void cw_unwind_reset(void)
{
    atomic_store(&is_loading, 0);
    atomic_store(&has_helper, 0);
    cw_alarm_reset(&helped);
}

/* ---- stacks that end elsewhere ---- */

enum { NO_SWITCHER, EXPECTED, KNOWN };

static struct {
    _Atomic int state;
    uint64_t base, end; /* once it is known */
    atomic_flag is_claimed;
} switcher = {.is_claimed = ATOMIC_FLAG_INIT};

/* "greenlet.so" before 1.0, and "_greenlet.cpython-312-x86_64-linux-gnu.so" */
static int is_switcher(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    return strncmp(name + (*name == '_'), "greenlet.", 9) == 0;
}

void cw_unwind_opening(const char *path)
{
    int none = NO_SWITCHER;

    has_opened_some = 1;
    atomic_store(&is_any_opened, 1);
    if (CW_UNLIKELY(is_switcher(path)))
        atomic_compare_exchange_strong(&switcher.state, &none, EXPECTED);
}

static int match_switcher(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (!is_switcher(info->dlpi_name) || atomic_flag_test_and_set(&switcher.is_claimed))
        return 0;
    switcher.base = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type != PT_LOAD)
            continue;
        switcher.base = start < switcher.base ? start : switcher.base;
        switcher.end = start + segment->p_memsz;
    }
    atomic_store_explicit(&switcher.state, KNOWN, memory_order_release);
    return 1;
}

static int is_in_switcher(uint64_t pc)
{
    return CW_UNLIKELY(atomic_load_explicit(&switcher.state, memory_order_acquire) == KNOWN) &&
           pc >= switcher.base && pc < switcher.end;
}

/* ---- the walk ---- */

struct progress {
    struct cw_walk *walk;
    unsigned max;
    int is_inexact;
};

static int is_enough(const struct cw_walk *walk, unsigned max)
{
    return walk->count - walk->own == max || walk->count == max + CW_OWN_FRAMES;
}

/* Stops where glibc's backtrace() does. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *arg)
{
    struct progress *progress = arg;
    struct cw_walk *walk = progress->walk;
    unsigned at = walk->count;
    int is_interrupted = 0;

    walk->pc[at] = use.ip_info(context, &is_interrupted);
    walk->sp[at] = use.cfa(context);
    if (walk->pc[at] == 0) {
        walk->is_whole = 1;
        return _URC_END_OF_STACK;
    }
    if (at > 0 && walk->pc[at] == walk->pc[at - 1] && walk->sp[at] == walk->sp[at - 1]) {
        walk->exact = 0; /* a frame that is its own caller */
        return _URC_END_OF_STACK;
    }
    walk->fp[at] = use.gr(context, FRAME_POINTER);
    progress->is_inexact |= is_interrupted;
    walk->exact += !progress->is_inexact;
    walk->own += walk->own == at && cw_module_is_self(walk->pc[at]);
    walk->count++;
    if (is_in_switcher(walk->pc[at])) {
        walk->exact = 0;
        return _URC_END_OF_STACK;
    }
    return is_enough(walk, progress->max) ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static CW_NOINLINE void walk_inexactly(struct cw_walk *walk, unsigned max)
{
    void *raw[CW_WALK_MAX];
    int taken = backtrace != NULL ? backtrace(raw, (int)(max + CW_OWN_FRAMES)) : 0;

    for (int i = 0; i < taken && !is_enough(walk, max); i++) {
        walk->pc[walk->count] = (uint64_t)(uintptr_t)raw[i];
        walk->own += walk->own == walk->count && cw_module_is_self(walk->pc[walk->count]);
        walk->count++;
    }
}

/* Without an unwinder that could be loaded: no frame. */
static CW_NOINLINE void walk_otherwise(struct cw_walk *walk, unsigned max)
{
    struct progress progress = {.walk = walk, .max = max};

    cw_unwind_prepare();
    if (atomic_load_explicit(&is_set, memory_order_acquire))
        use.backtrace(take_frame, &progress);
    else if (cw_host->find_unwinder == NULL || atomic_load(&is_loaded))
        walk_inexactly(walk, max);
}

void cw_unwind_walk(struct cw_walk *out, unsigned max)
{
    struct progress progress = {.walk = out, .max = max};

    if (CW_UNLIKELY(atomic_load_explicit(&switcher.state, memory_order_relaxed) == EXPECTED))
        cw_loader_visit(match_switcher, NULL);
    out->count = out->own = out->exact = 0;
    out->is_whole = 0;
    if (CW_LIKELY(atomic_load_explicit(&is_set, memory_order_acquire)))
        use.backtrace(take_frame, &progress);
    else
        walk_otherwise(out, max);
}
