/* SPDX-License-Identifier: MIT */
/*
 * The walk over the calling thread's Python frames. See python.h.
 *
 * Owns what is known of the interpreter: written before `cw_python_is_armed` is set, constant until
 * it is taken back. No lock. It always holds that no frame is handed out whose code object was not
 * seen to be one.
 *
 * How the thread's own state is found. Up to 3.14 the interpreter keeps it under a thread-specific
 * key of the C library, whose number is in _PyRuntime: one read and one call of
 * pthread_getspecific, which takes no lock. What other threads do does not matter, no list that
 * they change is walked. The state that is found must carry the thread's own id. Of a thread in a
 * subinterpreter, up to 3.11, it is the state in the interpreter where the thread began.
 *
 * Why memory can be read as it is. _PyRuntime is data of a loaded object. A thread's state lives
 * until the thread gives it up, or until the interpreter ends, when another thread frees it: but
 * then `finalizing` names that other thread first, and nothing is read. Frames of running code, and
 * the code objects that they hold, stay while the call lasts that we are in; the thread cannot
 * leave it while it is here. What remains is a thread that outlives the interpreter (a daemon
 * thread) and is amid its walk, for less than a microsecond, when the main thread both begins to
 * end the interpreter and has already freed this thread's state.
 *
 * Whether the layout is the right one is another matter: until one chain has been followed to its
 * end with every structure first tried (cw_python_is_readable) and every reference found to be of
 * its type, each walk does that; and so it does with each state that the thread has not seen
 * before, as far as the state itself goes.
 */
#include "core/python/python.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/out.h"
#include "core/python/python_layout.h"
#include "core/python/python_read.h"
#include "core/python/python_waiting.h"

#define KEYS_MAX 1024                /* PTHREAD_KEYS_MAX */
#define NAME_MAX ((uint64_t)1 << 16) /* characters; longer is nonsense */
/* Shims and frames that are not Python's, for each frame that is asked for. */
#define STEPS_PER_MAX 4

static struct cw_python_symbols symbols;
static struct cw_python_layout layout;
static char status[80] = "no Python";
CW_HOT_DATA _Atomic int cw_python_is_armed;
CW_HOT_DATA const uintptr_t *_Atomic cw_python_finalizing;
static _Atomic int is_claimed;
static _Atomic uint32_t key_at;  /* offset in _PyRuntime where a state was found; 0: not yet */
static _Atomic int is_proven;    /* a chain was followed with every step checked */
static _Atomic int is_different; /* a step was wrong, and none proven */

/* The state of this thread that was last found to be its own. */
static CW_TLS uintptr_t known_state;
static CW_TLS struct cw_python_worker *worker; /* NULL: this thread is none */

/* ---- arming ---- */

static void forget(void)
{
    atomic_store(&cw_python_is_armed, 0);
    atomic_store(&cw_python_finalizing, NULL);
    atomic_store(&key_at, 0);
    atomic_store(&is_proven, 0);
    atomic_store(&is_different, 0);
    known_state = 0;
    cw_python_waiting_forget();
    atomic_store(&is_claimed, 0);
}

void cw_python_set_symbols(const struct cw_python_symbols *wanted)
{
    if (wanted == NULL) {
        forget();
        cw_format(status, sizeof(status), "no Python");
        return;
    }
    if (atomic_exchange(&is_claimed, 1))
        return;
    if (cw_python_layout_find(wanted, &layout, status, sizeof(status)) != 0)
        return;
    cw_format(status, sizeof(status), "3.%u", layout.minor);
    symbols = *wanted;
    atomic_store(&cw_python_finalizing,
                 (const uintptr_t *)((uintptr_t)symbols.runtime + layout.finalizing));
    atomic_store_explicit(&cw_python_is_armed, 1, memory_order_release);
}

/* The reader stays armed: addresses are the same in the child, where only this thread is left. The
 * one that another thread had only begun to set has to be set again. */
void cw_python_reset(void)
{
    if (!atomic_load(&cw_python_is_armed))
        forget();
    known_state = 0;
    cw_python_waiting_forget();
}

static int is_refuted(void)
{
    return atomic_load(&is_different) && !atomic_load(&is_proven);
}

int cw_python_is_missing(void)
{
    return atomic_load(&cw_python_is_armed) ? is_refuted() : atomic_load(&is_claimed);
}

const char *cw_python_status(void)
{
    if (is_refuted())
        return "this Python is not laid out as its version is";
    return status;
}

const struct cw_python_symbols *cw_python_symbols_now(void)
{
    return atomic_load_explicit(&cw_python_is_armed, memory_order_acquire) ? &symbols : NULL;
}

const struct cw_python_layout *cw_python_layout_now(const struct cw_python_symbols **out_symbols)
{
    if (!atomic_load_explicit(&cw_python_is_armed, memory_order_acquire))
        return NULL;
    *out_symbols = &symbols;
    return &layout;
}

/* ---- the thread's state ---- */

static int is_own_state(uintptr_t state)
{
    return cw_python_is_readable(state, cw_python_layout_thread_size(&layout)) &&
           cw_read_word(state + layout.thread_id) == symbols.thread_self();
}

/* What this thread has under the key that is there, if one is. */
static uintptr_t value_at(uint32_t at)
{
    const char *key = (const char *)symbols.runtime + at;
    int is_made = __atomic_load_n((const int *)key, __ATOMIC_RELAXED);
    unsigned number = __atomic_load_n((const unsigned *)(key + sizeof(int)), __ATOMIC_RELAXED);

    return is_made == 1 && number < KEYS_MAX ? (uintptr_t)symbols.thread_value(number) : 0;
}

/* The place of the key differs between releases of one minor version and between machines; what is
 * found through it tells whether it is the one. A Python thread finds it at its first walk. */
static CW_NOINLINE uintptr_t search_state(void)
{
    for (int32_t step = 0; step <= layout.key_slack; step += 4)
        for (int sign = 1; sign >= -1; sign -= 2) {
            uint32_t at = (uint32_t)(layout.key + sign * step);
            uintptr_t state = value_at(at);

            if (state == 0 || !is_own_state(state))
                continue;
            atomic_store_explicit(&key_at, at, memory_order_relaxed);
            return state;
        }
    return 0;
}

/* From 3.15 on it is in thread-local storage, which only a function of the interpreter knows. It
 * does nothing but return it. */
static uintptr_t find_state(void)
{
    uint32_t at = atomic_load_explicit(&key_at, memory_order_relaxed);

    if (layout.key == CW_PYTHON_NONE)
        return (uintptr_t)symbols.thread_state();
    return CW_LIKELY(at != 0) ? value_at(at) : search_state();
}

static uintptr_t own_state(void)
{
    uintptr_t state = find_state();
    uintptr_t ended_by;

    if (state == 0)
        return 0;
    ended_by = __atomic_load_n((const uintptr_t *)((uintptr_t)symbols.runtime + layout.finalizing),
                               __ATOMIC_ACQUIRE);
    if (ended_by != 0 && ended_by != state)
        return 0;
    /* The thread still has it, so it lives, and its id can be read. */
    if (CW_LIKELY(state == known_state &&
                  cw_read_word(state + layout.thread_id) == symbols.thread_self()))
        return state;
    known_state = is_own_state(state) ? state : 0;
    worker = known_state != 0 ? cw_python_waiting_meet(state) : NULL;
    return known_state;
}

/* ---- frames ---- */

struct progress {
    struct cw_python_frame *out;
    unsigned count, max;
    int is_careful, is_wrong;
};

static int has_type(uintptr_t object, const void *type)
{
    return cw_read_word(object + CW_PYTHON_TYPE) == (uintptr_t)type;
}

static int is_text(uintptr_t object)
{
    return cw_python_is_readable(object, layout.compact) && has_type(object, symbols.unicode_type);
}

static int is_whole_text(uintptr_t object)
{
    return is_text(object) &&
           cw_python_is_readable(object, cw_python_text_size(&layout, &symbols, object));
}

static int is_table(uintptr_t object)
{
    return cw_python_is_readable(object, CW_PYTHON_BYTES) &&
           cw_read_word(object + CW_PYTHON_SIZE) < (uintptr_t)CW_PYTHON_INSTR_MAX &&
           cw_python_is_readable(object, CW_PYTHON_BYTES + cw_read_word(object + CW_PYTHON_SIZE));
}

static int is_good_code(uintptr_t code)
{
    return is_whole_text(cw_read_word(code + layout.file)) &&
           is_text(cw_read_word(code + layout.name)) &&
           is_whole_text(cw_read_word(code + layout.function)) &&
           is_table(cw_read_word(code + layout.line_table));
}

/* Where the characters of a str begin, and where they end. */
static uintptr_t text_start(uintptr_t object)
{
    int is_ascii = (cw_read_int(object + CW_PYTHON_TEXT_STATE) >> layout.kind_bit & 16) != 0;

    return object + (is_ascii ? layout.ascii : layout.compact);
}

static uintptr_t text_end(uintptr_t object)
{
    uint32_t state = cw_read_int(object + CW_PYTHON_TEXT_STATE) >> layout.kind_bit;
    uint64_t length = cw_read_word(object + CW_PYTHON_TEXT_LENGTH);

    /* Its characters may lie elsewhere. */
    return text_start(object) + (state & 8 && length <= NAME_MAX ? length * (state & 7) : 0);
}

/* A program that compiles in a loop gets code objects, names and tables at the same addresses again
 * and again: what they say counts, not where they lie. Their ends are looked at, where generated
 * code and the names of its files differ. Of what is shorter than that, what lies before or behind
 * is taken in: it belongs to the same objects, and hardly changes while they live. */
static uint32_t stamp_of(uintptr_t code)
{
    uintptr_t file = text_end(cw_read_word(code + layout.file));
    uintptr_t function = cw_read_word(code + layout.function);
    uintptr_t lines = cw_read_word(code + layout.line_table) + CW_PYTHON_BYTES;
    uintptr_t size = cw_read_word(lines - CW_PYTHON_BYTES + CW_PYTHON_SIZE);
    uintptr_t length = layout.instr == CW_PYTHON_INSTR_ADDRESS ? cw_read_word(code + CW_PYTHON_SIZE)
                                                               : cw_read_word(code + layout.bytes);
    /* The products do not wait for each other. */
    uint64_t mixed = (cw_read_word(file - 8) + size) * UINT64_C(0x9e3779b97f4a7c15) +
                     (cw_read_word(file - 16) + length) * UINT64_C(0xbf58476d1ce4e5b9) +
                     cw_read_word(text_start(function)) * UINT64_C(0x94d049bb133111eb) +
                     cw_read_word(text_end(function) - 8) * UINT64_C(0xff51afd7ed558ccd) +
                     cw_read_word(lines) * UINT64_C(0xc4ceb9fe1a85ec53) +
                     cw_read_word(size < 16 ? lines : lines + 8) * UINT64_C(0xd6e8feb86659fd93) +
                     cw_read_word(lines + size - 8) * UINT64_C(0xa0761d6478bd642f) +
                     cw_read_word(lines + size - 16) * UINT64_C(0xe7037ed1a0b428db);

    mixed = (mixed ^ file ^ cw_read_int(code + layout.first_line)) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(mixed >> 32);
}

/* An evaluator begins with the frame that was taken last; if that one had its own, it stands for a
 * frame that is gone, or was never of Python code. */
static void end_evaluator(struct progress *progress)
{
    struct cw_python_frame *last = progress->count > 0 ? &progress->out[progress->count - 1] : NULL;

    if (last != NULL && !last->is_entry)
        last->is_entry = 1;
    else if (progress->count < progress->max)
        progress->out[progress->count++] = (struct cw_python_frame){.instr = -1, .is_entry = 1};
}

/* 0 when the frame is not what a frame is. */
static int take(struct progress *progress, uintptr_t frame)
{
    uintptr_t code = cw_python_code_of(&layout, frame);
    int is_entry = layout.owner == CW_PYTHON_NONE ||
                   (layout.is_entry != CW_PYTHON_NONE && cw_read_byte(frame + layout.is_entry));

    if (progress->is_careful && !cw_python_is_readable(code, cw_python_layout_code_size(&layout)))
        return 0;
    if (code == 0 || code % sizeof(void *) != 0)
        return 0;
    if (CW_UNLIKELY(!has_type(code, symbols.code_type)))
        return layout.minor >= 13; /* a frame that an extension pushed */
    if (progress->is_careful && !is_good_code(code))
        return 0;
    if (cw_python_is_own_code(&layout, code))
        return 1;
    progress->out[progress->count++] = (struct cw_python_frame){
        .code = code,
        .instr = cw_python_instr_of(&layout, frame, code),
        .stamp = stamp_of(code),
        .is_entry = is_entry,
    };
    return 1;
}

static uintptr_t innermost(uintptr_t state, struct progress *progress)
{
    uintptr_t at = cw_read_word(state + layout.thread_frame);

    if (layout.cframe_frame == CW_PYTHON_NONE || at == 0)
        return at;
    if (progress->is_careful && !cw_python_is_readable(at, layout.cframe_frame + sizeof(at))) {
        progress->is_wrong = 1;
        return 0;
    }
    return cw_read_word(at + layout.cframe_frame);
}

static int is_good_frame(const struct progress *progress, uintptr_t frame)
{
    return !progress->is_careful ||
           cw_python_is_readable(frame, cw_python_layout_frame_size(&layout));
}

static void follow(uintptr_t state, struct progress *progress)
{
    uintptr_t frame = innermost(state, progress);
    uint64_t steps = (uint64_t)progress->max * STEPS_PER_MAX;
    unsigned *count = &progress->count;

    for (; frame != 0 && steps > 0; steps--) {
        if (!is_good_frame(progress, frame))
            break;
        if (cw_python_is_shim(&layout, frame)) {
            if (cw_read_byte(frame + layout.owner) == CW_PYTHON_OWNER_SHIM)
                end_evaluator(progress);
        } else if (*count == progress->max) {
            return;
        } else if (!take(progress, frame)) {
            break;
        }
        frame = cw_read_word(frame + layout.previous);
    }
    progress->is_wrong |= frame != 0 && steps > 0;
}

unsigned cw_python_walk(struct cw_python_frame *out, unsigned max)
{
    struct progress progress = {.out = out, .max = max};
    uintptr_t state;

    if (max == 0 || !atomic_load_explicit(&cw_python_is_armed, memory_order_acquire))
        return 0;
    state = own_state();
    if (state == 0)
        return 0;
    progress.is_careful = !atomic_load_explicit(&is_proven, memory_order_relaxed);
    follow(state, &progress);
    if (CW_UNLIKELY(progress.is_careful)) {
        if (progress.is_wrong)
            atomic_store(&is_different, 1);
        else if (progress.count > 0)
            atomic_store(&is_proven, 1);
    }
    if (CW_UNLIKELY(worker != NULL) && !is_refuted())
        progress.count +=
            cw_python_waiting_walk(worker, out + progress.count, max - progress.count);
    return progress.count;
}
