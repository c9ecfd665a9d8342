/* SPDX-License-Identifier: MIT */
/*
 * Ranges and marks. See tag.h.
 *
 * Owns `life`, which numbers the sessions of a process and its forked children: a range that began
 * in an earlier one, or before the first, is counted as begun when it ends, so that no record has
 * more steps than beginnings.
 */
#include "core/tags/tag.h"

#include <string.h>

#include "core/process/deadline.h"
#include "core/process/session.h"

CW_TLS struct cw_tag_stack cw_tag_stack;

static _Atomic uint8_t life;    /* 0: not armed */
static uint8_t lives;           /* so far */
static _Atomic uint64_t serial; /* of ranges of the process */

void cw_tag_init(struct cw_arena *arena)
{
    cw_tag_name_init(arena);
    if (++lives == 0)
        lives = 1;
    atomic_store(&life, lives);
}

void cw_tag_reset(void)
{
    atomic_store(&life, 0);
    cw_tag_name_reset();
}

/* ---- counting ---- */

/* Returns the life in which it is counted. */
static uint8_t begun(uint16_t tag)
{
    uint8_t now = atomic_load_explicit(&life, memory_order_relaxed);

    if (tag == 0 || now == 0 || !cw_session_is_armed())
        return 0;
    cw_tag_name_begun(tag);
    return now;
}

static void ended(uint16_t tag, uint8_t begun_in)
{
    struct cw_view view;
    uint64_t now;

    if (tag == 0 || !cw_session_is_armed())
        return;
    now = cw_session_now();
    if (CW_UNLIKELY(begun_in != atomic_load_explicit(&life, memory_order_relaxed)))
        begun(tag);
    cw_arena_view(&cw_session.arena, &view);
    cw_tag_name_step(tag, now, cw_view_live(&view));
    cw_deadline_look(now); /* growth is over all steps, also of those that allocate nothing */
}

void cw_tag_mark(uint16_t tag)
{
    ended(tag, begun(tag));
}

/* ---- ranges of a thread ---- */

static int level_of(const struct cw_tag_stack *stack, uint8_t domain)
{
    uint32_t level = stack->deeper_in[domain];

    for (unsigned i = 0; i < stack->depth; i++)
        level += stack->range[i].domain == domain;
    return (int)level;
}

static uint16_t innermost_tag(const struct cw_tag_stack *stack)
{
    unsigned i = stack->depth;

    while (i > 0 && stack->range[i - 1].tag == 0)
        i--;
    return i > 0 ? stack->range[i - 1].tag : 0;
}

static void set_tag(struct cw_tag_stack *stack, uint16_t tag)
{
    stack->where = (uint32_t)tag << 16 | (stack->where & 0xffff);
}

/* 0: too deep, which is counted. */
static inline int has_room(struct cw_tag_stack *stack, uint8_t domain)
{
    if (CW_LIKELY(stack->depth < CW_TAG_DEPTH && stack->deeper == 0))
        return 1;
    stack->deeper++;
    stack->deeper_in[domain]++;
    return 0;
}

int cw_tag_push(uint8_t domain, uint16_t tag)
{
    struct cw_tag_stack *stack = &cw_tag_stack;
    int level = level_of(stack, domain);

    if (!has_room(stack, domain))
        return level;
    stack->range[stack->depth++] =
        (struct cw_tag_range){.tag = tag, .domain = domain, .life = begun(tag)};
    if (tag != 0)
        set_tag(stack, tag);
    return level;
}

void cw_tag_enter(uint16_t tag)
{
    struct cw_tag_stack *stack = &cw_tag_stack;

    if (!has_room(stack, CW_TAG_OWN))
        return;
    stack->range[stack->depth++] = (struct cw_tag_range){.tag = tag, .domain = CW_TAG_OWN};
    set_tag(stack, tag);
}

/* The domain's innermost range, which is now ended; *out was it. -1: there is none. */
static inline int take_innermost(struct cw_tag_stack *stack, uint8_t domain,
                                 struct cw_tag_range *out)
{
    unsigned at = stack->depth;

    while (at > 0 && stack->range[at - 1].domain != domain)
        at--;
    if (at-- == 0)
        return -1;
    *out = stack->range[at];
    stack->depth--;
    if (CW_UNLIKELY(at != stack->depth))
        memmove(&stack->range[at], &stack->range[at + 1], (stack->depth - at) * sizeof(*out));
    set_tag(stack, innermost_tag(stack));
    return 0;
}

/* 1: it was one too deep for the stack. */
static inline int take_deeper(struct cw_tag_stack *stack, uint8_t domain)
{
    if (CW_LIKELY(stack->deeper_in[domain] == 0))
        return 0;
    stack->deeper--;
    stack->deeper_in[domain]--;
    return 1;
}

int cw_tag_pop(uint8_t domain)
{
    struct cw_tag_stack *stack = &cw_tag_stack;
    struct cw_tag_range range;

    if (take_deeper(stack, domain))
        return level_of(stack, domain);
    if (take_innermost(stack, domain, &range) != 0)
        return -1;
    ended(range.tag, range.life);
    return level_of(stack, domain);
}

int cw_tag_leave(void)
{
    struct cw_tag_stack *stack = &cw_tag_stack;
    struct cw_tag_range range;

    return take_deeper(stack, CW_TAG_OWN) ? 0 : take_innermost(stack, CW_TAG_OWN, &range);
}

/* ---- ranges of the process: tag, life, and a serial number in one word ---- */

uint64_t cw_tag_begin(uint16_t tag)
{
    uint64_t number = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed) + 1;

    return number << 24 | (uint64_t)begun(tag) << 16 | tag;
}

void cw_tag_end(uint64_t range)
{
    uint16_t tag = (uint16_t)range;

    if (cw_tag_name_is_known(tag))
        ended(tag, (uint8_t)(range >> 16));
}
