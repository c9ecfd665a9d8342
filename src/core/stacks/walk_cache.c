/* SPDX-License-Identifier: MIT */
/*
 * The cache of walks. See walk_cache.h.
 *
 * An entry holds the words of the stack that decided where a walk went, and what they were. They
 * are compared from the inside outwards, and the first that differs ends it.
 *
 * Why a match is the same stack. The unwinder goes from frame to frame by (pc, sp, fp) and by words
 * of the stack; tables belonging to pc say which. The first frame is the caller's own: its pc is
 * the same in every call, and its address is the key. Suppose that frame i is the same as it was.
 * Then its end, the next frame's sp, is where it was: it lies at a fixed distance from sp, or from
 * fp, or (a frame that realigned the stack) in a word of the frame. Its return address lies at a
 * fixed distance from that end or from fp, and so does the caller's fp if the frame keeps it. All
 * these words have been compared, so frame i + 1 has the same pc, sp and fp.
 *
 * fp is an ordinary register to code that does not use it as a frame pointer. It is followed only
 * where it can matter: where it points into its own frame, and from there inwards through the
 * frames that handed it on. Which word of a frame holds it the tables do not tell us, so all that
 * are equal to it are compared: a few too many at worst.
 *
 * Why all that is read can be read: word by word it belongs to a frame that is known to be there,
 * as all before it have matched. Nothing above the outermost frame that counts is looked at.
 *
 * What is not noted: frames interrupted by a signal, frames that end below their beginning (another
 * stack), a return address that is not where the ABI puts it, a caller's fp that is nowhere in the
 * frame, very large frames. Such stacks are walked every time.
 *
 * What could fool it: an assembly function whose frame varies in size and is found through another
 * register than sp or fp; code that is replaced at the same address by other code without dlclose
 * (which moves the epoch on), as a JIT may do, when also the leftovers in its frame are the same.
 */
#include "core/stacks/walk_cache.h"

#include <stddef.h>

#include "base/compiler.h"
#include "base/hash.h"

#define PROBES     8           /* entries looked at in one search */
#define WORDS_MAX  512         /* of one stack */
#define SCAN_MAX   (64u << 10) /* bytes of a frame that are searched for what it keeps */
#define FRAME_MAX  (1u << 20)  /* bytes of a frame that does not keep a frame pointer */
#define PAGE_SHIFT 12          /* of the smallest pages */

/* Other code wrote these words, with types of its own. */
typedef uint64_t __attribute__((may_alias)) word;

static uint64_t word_at(uint64_t address)
{
    return *(const word *)(uintptr_t)address;
}

/* ---- finding ---- */

/* Words that match, from the inside outwards. */
static uint32_t count_equal(const struct cw_walk_cache *walk_cache,
                            const struct cw_walk_cache_entry *entry)
{
    const uint32_t *offset = &walk_cache->offset[entry->first % CW_WALK_CACHE_SLOTS];
    const uint64_t *value = &walk_cache->value[entry->first % CW_WALK_CACHE_SLOTS];
    uint64_t frame = entry->frame;
    uint32_t i = 0;

    while (i < entry->count && word_at(frame + offset[i]) == value[i])
        i++;
    return i;
}

static int is_vacant(const struct cw_walk_cache *walk_cache,
                     const struct cw_walk_cache_entry *entry, uint32_t epoch)
{
    return entry->stack == 0 || entry->epoch != epoch ||
           walk_cache->noted - entry->first > CW_WALK_CACHE_SLOTS;
}

/* Stacks with a common beginning form a tree: the first word that differs from the entry found,
 * which could be read, tells where to look next. */
CW_HOT struct cw_walk_cache_entry *cw_walk_cache_find(struct cw_walk_cache *walk_cache,
                                                      const void *frame, uint64_t hint,
                                                      uint32_t epoch)
{
    uint64_t hash = cw_hash_mix((uint64_t)(uintptr_t)frame, hint), at;
    struct cw_walk_cache_entry *entry = NULL;

    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint32_t equal;

        entry = &walk_cache->entry[(hash >> 8) % CW_WALK_CACHE_STACKS];
        if (is_vacant(walk_cache, entry, epoch))
            break;
        if (CW_UNLIKELY(entry->frame != (uint64_t)(uintptr_t)frame)) {
            hash = cw_hash_mix(hash, probe);
            continue;
        }
        equal = count_equal(walk_cache, entry);
        if (CW_LIKELY(equal == entry->count))
            return entry;
        at = (entry->first + equal) % CW_WALK_CACHE_SLOTS;
        hash = cw_hash_mix(hash + walk_cache->offset[at],
                           word_at(entry->frame + walk_cache->offset[at]));
    }
    entry->stack = 0;
    return entry;
}

/* ---- noting ---- */

struct note {
    struct cw_walk_cache *walk_cache;
    const struct cw_walk *walk;
    uint64_t frame;
    uint64_t first;
    uint32_t count;
};

static int add_word(struct note *note, uint64_t address)
{
    uint64_t offset = address - note->frame, at = (note->first + note->count) % CW_WALK_CACHE_SLOTS;

    if (note->count == WORDS_MAX || offset > UINT32_MAX)
        return -1;
    note->walk_cache->offset[at] = (uint32_t)offset;
    note->walk_cache->value[at] = word_at(address);
    note->count++;
    return 0;
}

/* 1 if the word holds this return address. On aarch64 it may be signed in its upper bits. */
static int is_return(uint64_t address, uint64_t pc)
{
#if defined(__aarch64__)
    return (word_at(address) ^ pc) << 16 == 0;
#else
    return word_at(address) == pc;
#endif
}

/* 1 if fp points into the frame: then it may be what the frame's end is counted from. */
static int is_anchored(const struct cw_walk *walk, unsigned i)
{
    return walk->fp[i] >= walk->sp[i] && walk->fp[i] < walk->sp[i + 1];
}

/* 1 if fp points to the pair of the caller's fp and the return address, as the ABIs want it. */
static int has_record(const struct cw_walk *walk, unsigned i)
{
    uint64_t fp = walk->fp[i];

    if (!is_anchored(walk, i) || walk->sp[i + 1] - fp < 16 || fp % 8 != 0)
        return 0;
#if defined(__x86_64__)
    if (fp + 16 != walk->sp[i + 1])
        return 0; /* realigned, and the pair a copy */
#endif
    return word_at(fp) == walk->fp[i + 1] && is_return(fp + 8, walk->pc[i + 1]);
}

static int is_return_slot(const struct cw_walk *walk, unsigned i, uint64_t address)
{
#if defined(__x86_64__)
    if (address != walk->sp[i + 1] - 8)
        return 0;
#endif
    return is_return(address, walk->pc[i + 1]);
}

/* wants_fp: the caller's fp matters. */
static int search_frame(struct note *note, unsigned i, int wants_fp)
{
    const struct cw_walk *walk = note->walk;
    uint64_t end = walk->sp[i + 1];
    int has_fp = !wants_fp || walk->fp[i] == walk->fp[i + 1], has_return = 0;

    for (uint64_t address = walk->sp[i]; address < end; address += 8) {
        int is_fp = wants_fp && word_at(address) == walk->fp[i + 1];
        int is_end = is_anchored(walk, i) && word_at(address) == end;
        int returns = is_return_slot(walk, i, address);

        if ((is_fp || is_end || returns) && add_word(note, address) != 0)
            return -1;
        has_fp |= is_fp;
        has_return |= returns;
    }
    return has_fp && has_return ? 0 : -1;
}

/* The words of frame i that decide about the next. */
static int note_frame(struct note *note, unsigned i, int wants_fp)
{
    const struct cw_walk *walk = note->walk;
    uint64_t sp = walk->sp[i], end = walk->sp[i + 1];

    if (end <= sp || (sp | end) % 8 != 0)
        return -1;
    if (has_record(walk, i)) {
        if (wants_fp && add_word(note, walk->fp[i]) != 0)
            return -1;
        return add_word(note, walk->fp[i] + 8);
    }
#if defined(__x86_64__)
    if (!wants_fp && !is_anchored(walk, i)) {
        if (end - sp > FRAME_MAX || !is_return(end - 8, walk->pc[i + 1]))
            return -1;
        return add_word(note, end - 8);
    }
#endif
    return end - sp > SCAN_MAX ? -1 : search_frame(note, i, wants_fp);
}

/* The outermost frame of a whole stack: that it has no caller may be a word too, a return address
 * of 0. In the code that starts a program or a thread it is not: its frame holds nothing, and what
 * lies above may not even be readable. */
static int note_end(struct note *note, unsigned last)
{
    uint64_t sp = note->walk->sp[last], end = note->walk->sp[last + 1];

#if defined(__x86_64__)
    if (end - sp == 8)
        return 0;
    if (end < sp || (end - 8) >> PAGE_SHIFT != (sp - 8) >> PAGE_SHIFT)
        return -1;
    return word_at(end - 8) == 0 ? add_word(note, end - 8) : 0;
#else
    return end == sp ? 0 : -1;
#endif
}

static int note_frames(struct note *note, unsigned first, unsigned last)
{
    const struct cw_walk *walk = note->walk;
    uint8_t wants_fp[CW_WALK_MAX];

    wants_fp[last] = walk->is_whole && is_anchored(walk, last);
    for (unsigned i = last; i-- > first;)
        wants_fp[i] = is_anchored(walk, i) || (wants_fp[i + 1] && walk->fp[i] == walk->fp[i + 1]);
    for (unsigned i = first; i < last; i++)
        if (note_frame(note, i, wants_fp[i + 1]) != 0)
            return -1;
    return walk->is_whole ? note_end(note, last) : 0;
}

void cw_walk_cache_note(struct cw_walk_cache *walk_cache, struct cw_walk_cache_entry *entry,
                        const void *frame, const struct cw_walk *walk, uint32_t stack,
                        uint32_t epoch)
{
    struct note note = {
        .walk_cache = walk_cache, .walk = walk, .frame = (uint64_t)(uintptr_t)frame};
    unsigned first = 0, last = walk->count - 1;

    if (last >= walk->exact)
        return;
    while (first < last && walk->sp[first + 1] <= note.frame)
        first++;
    if (first == last || walk->sp[first] > note.frame || walk->fp[first] != note.frame)
        return;
    /* The words of one stack lie in one piece. */
    note.first = walk_cache->noted;
    if (note.first % CW_WALK_CACHE_SLOTS + WORDS_MAX > CW_WALK_CACHE_SLOTS)
        note.first += CW_WALK_CACHE_SLOTS - note.first % CW_WALK_CACHE_SLOTS;
    if (note_frames(&note, first, last) == 0)
        *entry = (struct cw_walk_cache_entry){.frame = note.frame,
                                              .first = note.first,
                                              .count = note.count,
                                              .stack = stack,
                                              .epoch = epoch};
    /* Also after a failure: the oldest entry's words have been overwritten. */
    walk_cache->noted = note.first + note.count;
}
