/* SPDX-License-Identifier: MIT */
/*
 * Interning of code. See source_line.h.
 *
 * Owns two caches of fixed size, in which a new entry replaces the old one: of code objects and
 * instructions (`known`), so that they are rarely read again, and of texts (`texts`), so that each
 * name is mostly stored once. Records are compared by content, never by the address of a code
 * object: a program that compiles the same lines over and over does not make the table grow.
 */
#include "core/stacks/source_line.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/mem.h"
#include "core/process/intern.h"

#define KNOWN 4096 /* powers of two */
#define HEADS 4096
#define TEXTS 1024

struct known {
    uint64_t code;
    int32_t instr;
    uint32_t stamp, record;
};

struct tables {
    struct known known[KNOWN];
    uint32_t heads[HEADS]; /* of the chains of records */
    uint32_t texts[TEXTS];
};

static struct cw_arena *arena;
static struct tables *tables; /* made for the first frame, from cw_mem */

void cw_source_line_init(struct cw_arena *in)
{
    arena = in;
}

void cw_source_line_reset(void)
{
    tables = NULL;
}

/* ---- code objects that were read ---- */

static struct known *known_of(const struct cw_python_frame *frame)
{
    uint64_t hash = cw_hash_mix(frame->code, (uint64_t)(uint32_t)frame->instr << 32 | frame->stamp);

    return &tables->known[hash % KNOWN];
}

static uint32_t recall_locked(const struct cw_python_frame *frame)
{
    const struct known *known = known_of(frame);

    return known->code == frame->code && known->instr == frame->instr &&
                   known->stamp == frame->stamp
               ? known->record
               : 0;
}

/* ---- records ---- */

static const char *text_at(uint32_t text)
{
    return cw_arena_text_at(arena, text);
}

static uint32_t keep_text_locked(const char *s, uint64_t hash)
{
    uint32_t *text = &tables->texts[hash % TEXTS];

    if (*text == 0 || strcmp(text_at(*text), s) != 0)
        *text = cw_arena_text(arena, s, strlen(s));
    return *text;
}

static uint32_t add_locked(const struct cw_python_text *text, uint32_t *head)
{
    uint32_t index = cw_arena_append(arena, CW_TABLE_CODE);
    struct cw_live_code *code;

    if (index == 0)
        return 0;
    code = cw_arena_at(arena, CW_TABLE_CODE, index);
    code->file = keep_text_locked(text->file, cw_hash_text(text->file));
    code->function = keep_text_locked(text->function, cw_hash_text(text->function));
    code->line = text->line > 0 ? (uint32_t)text->line : 0;
    code->hash_next = *head;
    cw_arena_show(arena, code, sizeof(*code));
    *head = index;
    return index;
}

static uint32_t intern_locked(const struct cw_python_text *text)
{
    uint64_t hash = cw_hash_mix(cw_hash_mix(cw_hash_text(text->file), cw_hash_text(text->function)),
                                (uint64_t)(uint32_t)text->line);
    uint32_t *head = &tables->heads[hash % HEADS];
    uint32_t line = text->line > 0 ? (uint32_t)text->line : 0;
    uint32_t i = *head;

    while (i != 0) {
        const struct cw_live_code *code = cw_arena_at(arena, CW_TABLE_CODE, i);

        if (code->line == line && strcmp(text_at(code->file), text->file) == 0 &&
            strcmp(text_at(code->function), text->function) == 0)
            return i;
        i = cw_arena_older(i, code->hash_next);
    }
    return add_locked(text, head);
}

/* ---- the whole ---- */

static uint32_t describe(const struct cw_python_frame *frame)
{
    struct cw_python_text text;
    uint32_t record;

    if (cw_python_describe(frame, &text) != 0)
        return 0;
    cw_lock_acquire(&cw_intern_lock);
    record = intern_locked(&text);
    if (record != 0 && !frame->is_copied)
        *known_of(frame) = (struct known){
            .code = frame->code, .instr = frame->instr, .stamp = frame->stamp, .record = record};
    cw_lock_release(&cw_intern_lock);
    return record;
}

void cw_source_line_find(const struct cw_python_frame *frames, unsigned count, uint32_t *out)
{
    int is_ready;

    memset(out, 0, count * sizeof(*out));
    cw_lock_acquire(&cw_intern_lock);
    if (tables == NULL)
        tables = cw_mem_alloc(sizeof(*tables));
    is_ready = tables != NULL;
    for (unsigned i = 0; is_ready && i < count; i++)
        out[i] = frames[i].is_copied ? 0 : recall_locked(&frames[i]);
    cw_lock_release(&cw_intern_lock);
    for (unsigned i = 0; is_ready && i < count; i++)
        if (out[i] == 0 && frames[i].code != 0)
            out[i] = describe(&frames[i]);
}
