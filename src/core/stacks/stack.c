/* SPDX-License-Identifier: MIT */
/*
 * Takes and interns stacks. See stack.h.
 *
 * Owns the heads of the chains of frames; frames are added under cw_intern_lock, and found without.
 */
#include "core/stacks/stack.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/mem.h"
#include "core/stacks/source_line.h"
#include "core/stacks/merge.h"
#include "core/stacks/unwind.h"
#include "core/stacks/walk_cache.h"
#include "core/stacks/module.h"
#include "core/python/python.h"
#include "core/process/intern.h"
#include "core/process/thread.h"

/* Heads of the hash chains; zero pages until touched. */
#define FRAME_HEADS (1u << 18)
#define PYTHON_SEED 0x2545f4914f6cdd1dull /* merged stacks lie in a cache with native ones */
#define CALLER_WALK 4u /* the innermost frame that shows something is among so many */

static struct cw_arena *arena;
CW_HOT_DATA enum cw_stacks cw_stack_mode;
static unsigned depth_limit;
static _Atomic uint32_t *frame_heads;
/* The epoch in which the table of modules was last read. Guarded by cw_intern_lock. */
static uint32_t modules_epoch;

int cw_stack_init(struct cw_arena *in, enum cw_stacks stacks, unsigned depth)
{
    arena = in;
    cw_stack_mode = stacks;
    depth_limit = depth < CW_DEPTH_MAX ? depth : CW_DEPTH_MAX;
    cw_source_line_init(in);
    cw_stack_note_python();
    frame_heads = cw_mem_alloc(FRAME_HEADS * sizeof(*frame_heads));
    return frame_heads != NULL ? 0 : -1;
}

void cw_stack_reset(void)
{
    frame_heads = NULL;
    modules_epoch = 0;
    cw_source_line_reset();
    cw_unwind_reset();
}

/* ---- interning ---- */

static struct cw_live_frame *frame_at(uint32_t frame)
{
    return cw_arena_at(arena, CW_TABLE_FRAME, frame);
}

static _Atomic uint32_t *frame_head(uint32_t parent, uint64_t pc)
{
    return &frame_heads[cw_hash_mix(parent, pc) & (FRAME_HEADS - 1)];
}

static uint32_t find_frame(uint32_t parent, uint64_t pc, uint32_t module)
{
    uint32_t i = atomic_load_explicit(frame_head(parent, pc), memory_order_acquire);

    while (i != 0) {
        const struct cw_live_frame *frame = frame_at(i);

        if (frame->pc == pc && frame->parent == parent && frame->module == module)
            return i;
        i = cw_arena_older(i, frame->hash_next);
    }
    return 0;
}

static uint32_t add_frame_locked(uint32_t parent, uint64_t pc, uint32_t module)
{
    _Atomic uint32_t *head = frame_head(parent, pc);
    uint32_t index = cw_arena_append(arena, CW_TABLE_FRAME);
    struct cw_live_frame *frame;

    if (index == 0)
        return 0;
    frame = frame_at(index);
    frame->pc = pc;
    frame->parent = parent;
    frame->module = module;
    frame->depth = parent ? frame_at(parent)->depth + 1 : 1;
    frame->hash_next = atomic_load_explicit(head, memory_order_relaxed);
    cw_arena_show(arena, frame, sizeof(*frame));
    atomic_store_explicit(head, index, memory_order_release);
    return index;
}

/* 1 if the table of modules is good for this stack: nothing was unloaded since it was read, and it
 * has all the addresses (an unknown one may be in an object loaded since). */
static int knows_modules_locked(const uint64_t *pcs, unsigned count, uint32_t epoch)
{
    if (modules_epoch != epoch)
        return 0;
    for (unsigned i = 0; i < count; i++)
        if (cw_module_find_locked(pcs[i] - 1) == 0)
            return 0;
    return 1;
}

static uint32_t extend_locked(uint32_t parent, uint64_t pc, uint32_t module)
{
    uint32_t frame = find_frame(parent, pc, module);

    return frame != 0 ? frame : add_frame_locked(parent, pc, module);
}

/* From the outermost frame inwards, so that stacks share their outer part. */
static uint32_t intern_locked(const uint64_t *pcs, unsigned count)
{
    uint32_t frame = 0;

    for (unsigned i = count; i-- > 0;) {
        /* pc - 1: a call that does not return may be the last instruction of its module. */
        frame = extend_locked(frame, pcs[i], cw_module_find_locked(pcs[i] - 1));
        if (frame == 0)
            return 0;
    }
    return frame;
}

/* Reads the loader's list first if need be: without the lock, and only then, because the loader's
 * own lock is the whole process's. A caller alone does not show that an interpreter was loaded. */
static uint32_t intern(const uint64_t *pcs, unsigned count, uint32_t epoch)
{
    uint32_t stack = 0;
    int known;

    cw_lock_acquire(&cw_intern_lock);
    known = cw_stack_mode != CW_STACKS_CALLER && knows_modules_locked(pcs, count, epoch);
    if (known)
        stack = intern_locked(pcs, count);
    cw_lock_release(&cw_intern_lock);
    if (known)
        return stack;
    cw_module_refresh();
    cw_lock_acquire(&cw_intern_lock);
    modules_epoch = epoch;
    stack = intern_locked(pcs, count);
    cw_lock_release(&cw_intern_lock);
    return stack;
}

uint32_t cw_stack_intern(const uint64_t *pcs, unsigned count)
{
    uint32_t epoch = atomic_load_explicit(&cw_epoch, memory_order_relaxed);
    struct cw_thread_caches *caches = cw_thread_caches_here();
    struct cw_stack_cache_entry *cached = NULL;
    uint64_t hash = count;
    uint32_t stack;

    if (count == 0)
        return 0;
    for (unsigned i = 0; i < count; i++)
        hash = cw_hash_mix(hash, pcs[i]);
    if (CW_LIKELY(caches != NULL))
        cached = &caches->stack[hash & (CW_STACK_CACHE - 1)];
    if (CW_LIKELY(cached != NULL && cached->hash == hash && cached->epoch == epoch))
        return cached->stack;

    stack = intern(pcs, count, epoch);
    if (stack != 0 && cached != NULL)
        *cached = (struct cw_stack_cache_entry){.hash = hash, .stack = stack, .epoch = epoch};
    return stack;
}

/* ---- Python ---- */

void cw_stack_note_python(void)
{
    const char *why = cw_python_status();

    if (arena == NULL || arena->header == NULL || !cw_python_is_missing() ||
        atomic_load(&arena->header->python) != 0)
        return;
    atomic_store(&arena->header->python, cw_arena_text(arena, why, strlen(why)));
}

/* Frames that are interned already. */
static unsigned read_natives(uint32_t stack, struct cw_merge_frame *out)
{
    unsigned count = 0;

    for (uint32_t at = stack; at != 0 && count < CW_DEPTH_MAX; at = frame_at(at)->parent)
        out[count++] =
            (struct cw_merge_frame){.pc = frame_at(at)->pc, .module = frame_at(at)->module};
    return count;
}

static uint32_t intern_merged(const struct cw_merge_frame *frames, unsigned count)
{
    uint32_t stack = 0;

    cw_lock_acquire(&cw_intern_lock);
    for (unsigned i = count; i-- > 0;) {
        stack = extend_locked(stack, frames[i].pc, frames[i].module);
        if (stack == 0)
            break;
    }
    cw_lock_release(&cw_intern_lock);
    return stack;
}

/* A framework's machine code may fill the depth: Python frames get as much room again. */
static unsigned merged_limit(void)
{
    return 2 * depth_limit < CW_DEPTH_MAX ? 2 * depth_limit : CW_DEPTH_MAX;
}

static CW_NOINLINE uint32_t merge(uint32_t native, const struct cw_python_frame *frames,
                                  unsigned count)
{
    struct cw_merge_frame natives[CW_DEPTH_MAX], merged[CW_DEPTH_MAX];
    struct cw_merge_python python[CW_DEPTH_MAX];
    uint32_t code[CW_DEPTH_MAX];
    struct cw_merge merge = {.native = natives,
                             .python = python,
                             .pythons = count,
                             .interpreter = cw_python_symbols_now()};

    if (merge.interpreter == NULL)
        return native;
    cw_source_line_find(frames, count, code);
    for (unsigned i = 0; i < count; i++) {
        python[i] = (struct cw_merge_python){.code = code[i], .is_entry = frames[i].is_entry};
        merge.waiting += frames[i].is_copied != 0;
    }
    merge.natives = cw_stack_mode == CW_STACKS_FULL ? read_natives(native, natives) : 0;
    merge.is_cut = merge.natives == depth_limit;
    count = cw_merge_stacks(&merge, merged, cw_stack_mode == CW_STACKS_FULL ? merged_limit() : 1);
    return count > 0 ? intern_merged(merged, count) : native;
}

/* Distinguished by their frames: the same native stack belongs to many lines. */
static CW_NOINLINE uint32_t with_python(uint32_t native, uint32_t epoch)
{
    struct cw_python_frame frames[CW_DEPTH_MAX];
    unsigned count =
        cw_python_walk(frames, cw_stack_mode == CW_STACKS_FULL ? depth_limit : CALLER_WALK);
    struct cw_thread_caches *caches = cw_thread_caches_here();
    struct cw_stack_cache_entry *cached = NULL;
    uint64_t hash = cw_hash_mix(PYTHON_SEED, native);
    uint32_t stack;

    if (count == 0)
        return native;
    for (unsigned i = 0; i < count; i++)
        hash = cw_hash_mix(cw_hash_mix(hash, frames[i].code),
                           (uint64_t)(uint32_t)frames[i].instr << 32 | frames[i].stamp);
    if (CW_LIKELY(caches != NULL))
        cached = &caches->stack[hash & (CW_STACK_CACHE - 1)];
    if (CW_LIKELY(cached != NULL && cached->hash == hash && cached->epoch == epoch))
        return cached->stack;

    stack = merge(native, frames, count);
    if (stack != 0 && cached != NULL)
        *cached = (struct cw_stack_cache_entry){.hash = hash, .stack = stack, .epoch = epoch};
    return stack != 0 ? stack : native;
}

/* In a process without Python: one branch. */
static inline uint32_t finish(uint32_t native, uint32_t epoch)
{
    return CW_LIKELY(!atomic_load_explicit(&cw_python_is_armed, memory_order_relaxed))
               ? native
               : with_python(native, epoch);
}

/* ---- taking ---- */

/* STACKS=caller, or the unwinder found nothing (no libgcc_s, no unwind tables). */
static unsigned take_caller(uint64_t *pc)
{
    *pc = (uint64_t)(uintptr_t)cw_thread.caller;
    return cw_thread.caller != NULL;
}

/* Frames of the program that a walk is to find; 0: its caller is known without one. What a function
 * of include/cuwarden asks for in the program's place has a caller of our own. */
static inline unsigned depth_here(void)
{
    if (CW_LIKELY(cw_stack_mode == CW_STACKS_FULL))
        return depth_limit;
    return cw_module_is_self((uint64_t)(uintptr_t)cw_thread.caller) ? 1 : 0;
}

static uint32_t caller_here(void)
{
    uint64_t pc;

    return cw_stack_intern(&pc, take_caller(&pc));
}

static CW_NOINLINE uint32_t walk_here(const void *frame, struct cw_thread_caches *caches,
                                      struct cw_walk_cache_entry *entry, uint32_t epoch,
                                      unsigned depth)
{
    struct cw_walk walk;
    uint32_t stack;

    cw_unwind_walk(&walk, depth);
    if (walk.count == walk.own)
        return caller_here();
    stack = cw_stack_intern(&walk.pc[walk.own], walk.count - walk.own);
    if (stack != 0 && entry != NULL)
        cw_walk_cache_note(&caches->walk_cache, entry, frame, &walk, stack, epoch);
    return stack;
}

/* Not inlined: the walk cache knows places by this frame. */
CW_HOT CW_NOINLINE uint32_t cw_stack_take(void)
{
    const void *frame = __builtin_frame_address(0);
    uint32_t epoch = atomic_load_explicit(&cw_epoch, memory_order_relaxed), stack;
    struct cw_thread_caches *caches;
    struct cw_walk_cache_entry *entry = NULL;
    unsigned depth = depth_here();

    if (depth == 0)
        return finish(caller_here(), epoch);
    caches = cw_thread_caches_here();
    if (CW_LIKELY(caches != NULL)) {
        /* The outermost hook's caller: close to the program's own line. */
        entry = cw_walk_cache_find(&caches->walk_cache, frame,
                                   (uint64_t)(uintptr_t)cw_thread.caller, epoch);
        if (CW_LIKELY(entry->stack != 0))
            return finish(entry->stack, epoch);
    }
    stack = walk_here(frame, caches, entry, epoch, depth);
    __asm__ volatile("" ::: "memory"); /* something to come back for: the walk needs this frame */
    return finish(stack, epoch);
}
