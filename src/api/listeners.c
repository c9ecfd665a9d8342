/* SPDX-License-Identifier: MIT */
/* Callbacks. See listeners.h. */
#include "api/listeners.h"

#include <stdatomic.h>

#include "api/control.h"
#include "base/lock.h"
#include "core/limits/pressure.h"
#include "core/request/ladder.h"

#define LISTENERS 8

typedef void (*any_fn)(void);

/* A row's turn: what state it is in, and above that how often it has changed. */
#define STATES 4u
enum state { FREE, BEING_SET, SET, LEAVING };

struct listener {
    _Atomic uint64_t turn;
    _Atomic uint32_t calls; /* of its function that run, or are about to */
    _Atomic(any_fn) fn;
    _Atomic(void *) arg;
};

/* Of one turn of a row. */
struct listening {
    uint64_t turn;
    any_fn fn;
    void *arg;
};

static struct listener on_pressure[LISTENERS], on_memory[LISTENERS];
static _Atomic uint8_t told[CW_MAX_DEVICES]; /* levels */
static CW_TLS uint8_t depth,
    is_asking; /* of the thread's listeners; one for memory is among them */

/* ---- the tables ---- */

static enum state state_of(uint64_t turn)
{
    return (enum state)(turn % STATES);
}

static uint64_t next_turn(uint64_t turn, enum state state)
{
    return (turn / STATES + 1) * STATES + (uint64_t)state;
}

/* 1: somebody listens by this row. Who replaces another meanwhile is not mixed up with him: then
 * the turn has changed. */
static int read_row(const struct listener *row, struct listening *out)
{
    do {
        out->turn = atomic_load(&row->turn);
        if (state_of(out->turn) != SET)
            return 0;
        out->fn = atomic_load(&row->fn);
        out->arg = atomic_load(&row->arg);
    } while (atomic_load(&row->turn) != out->turn);
    return 1;
}

/* 1: its function is called now, and whoever removes it waits for leave_row. */
static int enter_row(struct listener *row, struct listening *out)
{
    if (!read_row(row, out))
        return 0;
    atomic_fetch_add(&row->calls, 1);
    if (atomic_load(&row->turn) == out->turn) {
        depth++;
        return 1;
    }
    atomic_fetch_sub(&row->calls, 1);
    return 0;
}

/* In a child that its function made calls from before have no count any more. */
static void leave_row(struct listener *row, int is_child)
{
    depth--;
    if (!is_child)
        atomic_fetch_sub(&row->calls, 1);
}

/* A listener that removes one does not wait for calls: they may be its own, or wait for it. */
static void wait_for_calls(const struct listener *row)
{
    unsigned turns = 0;

    while (depth == 0 && atomic_load(&row->calls) != 0)
        cw_lock_doze(&turns);
}

static int add(struct listener *table, any_fn fn, void *arg)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        uint64_t turn = atomic_load(&table[i].turn), mine = next_turn(turn, BEING_SET);

        if (state_of(turn) != FREE || !atomic_compare_exchange_strong(&table[i].turn, &turn, mine))
            continue;
        atomic_store(&table[i].fn, fn);
        atomic_store(&table[i].arg, arg);
        atomic_store(&table[i].turn, next_turn(mine, SET));
        return CUWARDEN_OK;
    }
    return cw_api_fail(CUWARDEN_OUT_OF_HOST, "there are %u listeners already", LISTENERS);
}

static int remove_one(struct listener *table, any_fn fn, void *arg)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        struct listening one;
        uint64_t leaving;

        if (!read_row(&table[i], &one) || one.fn != fn || one.arg != arg)
            continue;
        leaving = next_turn(one.turn, LEAVING);
        if (!atomic_compare_exchange_strong(&table[i].turn, &one.turn, leaving))
            continue;
        wait_for_calls(&table[i]);
        atomic_store(&table[i].turn, next_turn(leaving, FREE));
        return CUWARDEN_OK;
    }
    return cw_api_fail(CUWARDEN_NOT_FOUND, "nobody listens by this function and argument");
}

static int change(struct listener *table, any_fn fn, void *arg, int is_on)
{
    int error = cw_api_check_active();

    if (error != CUWARDEN_OK)
        return error;
    if (fn == NULL)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a listener needs a function to call; this one is NULL");
    return is_on ? add(table, fn, arg) : remove_one(table, fn, arg);
}

/* ---- pressure ---- */

int cw_api_pressure_listen(cuwarden_pressure_fn fn, void *arg, int is_on)
{
    return change(on_pressure, (any_fn)fn, arg, is_on);
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
        struct listening one;

        if (!enter_row(&on_pressure[i], &one))
            continue;
        outside = cw_api_pause();
        ((cuwarden_pressure_fn)one.fn)(&now, before, one.arg);
        leave_row(&on_pressure[i], cw_api_resume(&outside));
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

static int ask(uint8_t device, uint64_t bytes)
{
    int has_freed = 0;

    if (is_asking || cw_thread.is_helper)
        return 0;
    is_asking = 1;
    for (unsigned i = 0; i < LISTENERS; i++) {
        struct cw_api_outside outside;
        struct listening one;

        if (!enter_row(&on_memory[i], &one))
            continue;
        outside = cw_api_pause();
        has_freed |= ((cuwarden_memory_fn)one.fn)(device, bytes, one.arg) != 0;
        leave_row(&on_memory[i], cw_api_resume(&outside));
    }
    is_asking = 0;
    return has_freed;
}

int cw_api_memory_listen(cuwarden_memory_fn fn, void *arg, int is_on)
{
    int error = change(on_memory, (any_fn)fn, arg, is_on);

    if (error == CUWARDEN_OK && is_on)
        cw_ladder_set_ask(ask);
    return error;
}

/* The threads that were about to set or remove them, or called them, are not in the child. */
static void reset_table(struct listener *table)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        uint64_t turn = atomic_load(&table[i].turn);

        atomic_store(&table[i].calls, 0);
        if (state_of(turn) == BEING_SET || state_of(turn) == LEAVING)
            atomic_store(&table[i].turn, next_turn(turn, FREE));
    }
}

void cw_api_listeners_reset(void)
{
    reset_table(on_pressure);
    reset_table(on_memory);
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++)
        atomic_store(&told[i], CW_LEVEL_LOW);
    is_asking = 0;
}
