/* SPDX-License-Identifier: MIT */
/* The walk. See unwind.h. Owns which unwinder is used: set once, read without a lock. */
#include "core/stacks/unwind.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>

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

static struct cw_unwinder use;
static atomic_flag is_claimed = ATOMIC_FLAG_INIT;
static _Atomic int is_set;
static _Atomic int is_looked_for;

/* backtrace() loads libgcc_s. Two threads may both look: if one waited for the other, which may
 * wait for the loader, the loader might wait for the first. */
static CW_NOINLINE void find_unwinder(void)
{
    void *first[1];

    if (cw_host->find_unwinder != NULL) {
        if (backtrace != NULL)
            backtrace(first, 1);
        cw_host->find_unwinder();
    }
    atomic_store_explicit(&is_looked_for, 1, memory_order_release);
}

void cw_unwind_set(const struct cw_unwinder *unwinder)
{
    if (atomic_flag_test_and_set(&is_claimed))
        return;
    use = *unwinder;
    atomic_store_explicit(&is_set, 1, memory_order_release);
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

void cw_unwind_walk(struct cw_walk *out, unsigned max)
{
    struct progress progress = {.walk = out, .max = max};

    if (CW_UNLIKELY(!atomic_load_explicit(&is_looked_for, memory_order_acquire)))
        find_unwinder();
    if (CW_UNLIKELY(atomic_load_explicit(&switcher.state, memory_order_relaxed) == EXPECTED))
        cw_loader_visit(match_switcher, NULL);
    out->count = out->own = out->exact = 0;
    out->is_whole = 0;
    if (CW_LIKELY(atomic_load_explicit(&is_set, memory_order_acquire)))
        use.backtrace(take_frame, &progress);
    else
        walk_inexactly(out, max);
}
