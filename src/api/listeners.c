/* SPDX-License-Identifier: MIT */
/* Callbacks. See listeners.h. */
#include "api/listeners.h"

#include <stdatomic.h>

#include "api/control.h"
#include "base/lock.h"
#include "core/limits/pressure.h"
#include "core/request/ladder.h"

#define LISTENERS 8 /* of one kind */

typedef void (*any_fn)(void);

enum kind { ON_PRESSURE, ON_MEMORY, KINDS };

enum state { FREE, BEING_SET, SET, LEAVING, STATES };

struct listener {
    _Atomic unsigned
        word;  /* enum state + STATES * threads that look at it or are in its function */
    any_fn fn; /* as long as the row is SET, or somebody is inside */
    void *arg;
};

static struct listener table[KINDS * LISTENERS];
static _Atomic uint8_t told[CW_MAX_DEVICES]; /* levels */
static CW_TLS unsigned inside;               /* bit n: the thread is in the function of row n */

/* ---- rows ---- */

static enum state state_of(unsigned word)
{
    return (enum state)(word % STATES);
}

/* The last one out of a row that is LEAVING frees it. */
static void unpin(struct listener *row)
{
    unsigned word = atomic_load(&row->word), next;

    do {
        next = word - STATES;
        if (next == LEAVING)
            next = FREE;
    } while (!atomic_compare_exchange_weak(&row->word, &word, next));
}

/* 1: the row is SET, and its function and argument stay until it is unpinned. */
static int pin(struct listener *row)
{
    if (state_of(atomic_load(&row->word)) != SET)
        return 0;
    if (state_of(atomic_fetch_add(&row->word, STATES)) == SET)
        return 1;
    unpin(row);
    return 0;
}

/* From a state to another one; 0: it is not in the first. */
static int move(struct listener *row, enum state from, enum state to)
{
    unsigned word = atomic_load(&row->word);

    while (state_of(word) == from)
        if (atomic_compare_exchange_weak(&row->word, &word, word - from + to))
            return 1;
    return 0;
}

static int add(struct listener *rows, any_fn fn, void *arg)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        if (!move(&rows[i], FREE, BEING_SET))
            continue;
        rows[i].fn = fn;
        rows[i].arg = arg;
        move(&rows[i], BEING_SET, SET);
        return CUWARDEN_OK;
    }
    return cw_api_fail(CUWARDEN_OUT_OF_HOST, "there are %u listeners already", LISTENERS);
}

/* Not inside a listener: two that take each other out would wait for ever. */
static void wait_for_others(const struct listener *row)
{
    unsigned turns = 0;

    while (inside == 0 && state_of(atomic_load(&row->word)) == LEAVING)
        cw_lock_relax(&turns);
}

static int remove_one(struct listener *rows, any_fn fn, void *arg)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        int is_removed;

        if (!pin(&rows[i]))
            continue;
        is_removed = rows[i].fn == fn && rows[i].arg == arg && move(&rows[i], SET, LEAVING);
        unpin(&rows[i]);
        if (!is_removed)
            continue;
        wait_for_others(&rows[i]);
        return CUWARDEN_OK;
    }
    return cw_api_fail(CUWARDEN_NOT_FOUND, "nobody listens by this function and argument");
}

static int change(enum kind kind, any_fn fn, void *arg, int is_on)
{
    struct listener *rows = &table[kind * LISTENERS];
    int error = cw_api_check_active();

    if (error != CUWARDEN_OK)
        return error;
    if (fn == NULL)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a listener needs a function to call; this one is NULL");
    return is_on ? add(rows, fn, arg) : remove_one(rows, fn, arg);
}

/* ---- calls ---- */

/* To the program's function; NULL: there is none, or the thread is in it already. */
static const struct listener *enter(enum kind kind, unsigned index, struct cw_api_outside *out)
{
    unsigned at = kind * LISTENERS + index;

    if ((inside & 1u << at) != 0 || !pin(&table[at]))
        return NULL;
    inside |= 1u << at;
    *out = cw_api_pause();
    return &table[at];
}

static void leave(const struct listener *row, const struct cw_api_outside *outside)
{
    unsigned at = (unsigned)(row - table);

    cw_api_resume(outside);
    inside &= ~(1u << at);
    unpin(&table[at]);
}

/* ---- pressure ---- */

int cw_api_pressure_listen(cuwarden_pressure_fn fn, void *arg, int is_on)
{
    return change(ON_PRESSURE, (any_fn)fn, arg, is_on);
}

int cw_api_notice_is_here(void)
{
    return !cw_thread.is_helper;
}

static void tell(uint8_t device, int before)
{
    struct cuwarden_pressure now;

    cw_api_pressure_of(device, &now);
    for (unsigned i = 0; i < LISTENERS; i++) {
        struct cw_api_outside outside;
        const struct listener *row = enter(ON_PRESSURE, i, &outside);

        if (row == NULL)
            continue;
        ((cuwarden_pressure_fn)row->fn)(&now, before, row->arg);
        leave(row, &outside);
    }
}

void cw_api_notice_serve(void)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        uint8_t now = (uint8_t)cw_pressure_level((uint8_t)i);
        uint8_t before = atomic_exchange(&told[i], now);

        if (now != before)
            tell((uint8_t)i, before);
    }
}

/* ---- lack of memory ---- */

static int is_asking(void)
{
    return inside >> (ON_MEMORY * LISTENERS) != 0;
}

static int ask(uint8_t device, uint64_t bytes)
{
    int has_freed = 0;

    if (is_asking() || cw_thread.is_helper)
        return 0;
    for (unsigned i = 0; i < LISTENERS; i++) {
        struct cw_api_outside outside;
        const struct listener *row = enter(ON_MEMORY, i, &outside);

        if (row == NULL)
            continue;
        has_freed |= ((cuwarden_memory_fn)row->fn)(device, bytes, row->arg) != 0;
        leave(row, &outside);
    }
    return has_freed;
}

int cw_api_memory_listen(cuwarden_memory_fn fn, void *arg, int is_on)
{
    int error = change(ON_MEMORY, (any_fn)fn, arg, is_on);

    if (error == CUWARDEN_OK && is_on)
        cw_ladder_set_ask(ask);
    return error;
}

/* Of those who were in a row, only this thread is here. */
static void reset_row(unsigned at)
{
    enum state state = state_of(atomic_load(&table[at].word));
    unsigned is_inside = inside >> at & 1;

    if (state == BEING_SET || (state == LEAVING && !is_inside))
        state = FREE;
    atomic_store(&table[at].word, state + STATES * is_inside);
}

void cw_api_listeners_reset(void)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++)
        atomic_store(&told[i], CW_LEVEL_LOW);
    for (unsigned i = 0; i < KINDS * LISTENERS; i++)
        reset_row(i);
}
