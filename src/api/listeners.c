/* SPDX-License-Identifier: MIT */
/* Callbacks. See listeners.h. */
#include "api/listeners.h"

#include <stdatomic.h>

#include "api/control.h"
#include "core/limits/pressure.h"
#include "core/request/ladder.h"

#define LISTENERS 8

typedef void (*any_fn)(void);

enum state { FREE, BEING_SET, SET };

struct listener {
    _Atomic int state; /* enum state */
    _Atomic(any_fn) fn;
    _Atomic(void *) arg;
};

static struct listener on_pressure[LISTENERS], on_memory[LISTENERS];
static _Atomic uint8_t told[CW_MAX_DEVICES]; /* levels */
static CW_TLS int is_asking;                 /* the thread is inside a listener for memory */

/* ---- the tables ---- */

static int add(struct listener *table, any_fn fn, void *arg)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        int state = FREE;

        if (!atomic_compare_exchange_strong(&table[i].state, &state, BEING_SET))
            continue;
        atomic_store(&table[i].fn, fn);
        atomic_store(&table[i].arg, arg);
        atomic_store(&table[i].state, SET);
        return CUWARDEN_OK;
    }
    return cw_api_fail(CUWARDEN_OUT_OF_HOST, "there are %u listeners already", LISTENERS);
}

static int remove_one(struct listener *table, any_fn fn, void *arg)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        int state = SET;

        if (atomic_load(&table[i].state) == SET && atomic_load(&table[i].fn) == fn &&
            atomic_load(&table[i].arg) == arg &&
            atomic_compare_exchange_strong(&table[i].state, &state, FREE))
            return CUWARDEN_OK;
    }
    return cw_api_fail(CUWARDEN_NOT_FOUND, "nobody listens by this function and argument");
}

static int change(struct listener *table, any_fn fn, void *arg, int is_on)
{
    int error = cw_session_is_armed() ? CUWARDEN_OK : cw_api_not_armed();

    if (error != CUWARDEN_OK)
        return error;
    if (fn == NULL)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a listener needs a function to call; this one is NULL");
    return is_on ? add(table, fn, arg) : remove_one(table, fn, arg);
}

static int is_set(const struct listener *listener)
{
    return atomic_load(&listener->state) == SET;
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

        if (!is_set(&on_pressure[i]))
            continue;
        outside = cw_api_pause();
        ((cuwarden_pressure_fn)atomic_load(&on_pressure[i].fn))(&now, before,
                                                                atomic_load(&on_pressure[i].arg));
        cw_api_resume(&outside);
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

        if (!is_set(&on_memory[i]))
            continue;
        outside = cw_api_pause();
        has_freed |= ((cuwarden_memory_fn)atomic_load(&on_memory[i].fn))(
                         device, bytes, atomic_load(&on_memory[i].arg)) != 0;
        cw_api_resume(&outside);
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

void cw_api_listeners_reset(void)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++)
        atomic_store(&told[i], CW_LEVEL_LOW);
    is_asking = 0;
}
