/* SPDX-License-Identifier: MIT */
/* See rows.h. */
#include "api/rows.h"

#include <string.h>

#include "api/place.h"
#include "core/device/context.h"

static struct cw_row *row_at(const struct cw_rows *rows, uint64_t index)
{
    return (struct cw_row *)((char *)rows->first + index * rows->row_bytes);
}

/* ---- making and ending ---- */

int cw_rows_check_make(const struct cw_rows *rows, const char *name, const void *out)
{
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (name == NULL || name[0] == '\0' || out == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "a %s needs a name, and a place for its number",
                           rows->what);
    if (strlen(name) >= CW_ROW_NAME_MAX)
        return cw_api_fail(CUWARDEN_INVALID,
                           "the name '%.20s...' of a %s has %zu bytes, and may have %u", name,
                           rows->what, strlen(name), CW_ROW_NAME_MAX - 1);
    return CUWARDEN_OK;
}

int cw_rows_claim(struct cw_rows *rows, const char *name, struct cw_row **out_row, uint64_t *out_id)
{
    struct cw_row *taken = NULL;
    uint64_t at = 0;
    int exists = 0;

    cw_lock_acquire(&rows->lock);
    for (uint64_t i = 0; i < rows->count; i++) {
        struct cw_row *row = row_at(rows, i);

        exists |= strcmp(row->name, name) == 0;
        if (taken == NULL && row->name[0] == '\0') {
            taken = row;
            at = i;
        }
    }
    if (!exists && taken != NULL) {
        memset(taken, 0, rows->row_bytes);
        memcpy(taken->name, name, strlen(name) + 1);
        *out_row = taken;
        *out_id = ++rows->serial * rows->count + at;
    }
    cw_lock_release(&rows->lock);
    if (exists)
        return cw_api_fail(CUWARDEN_EXISTS, "there is a %s '%s' already", rows->what, name);
    if (taken == NULL)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST, "no room for %s '%s': there are %u already",
                           rows->what, name, rows->count);
    return CUWARDEN_OK;
}

static int place_here(const struct cw_rows *rows, struct cw_buffer_place *out)
{
    unsigned depth = cw_api_enter();
    int code = cw_place_here(rows->places, out);

    cw_api_leave(depth);
    return code;
}

int cw_rows_place_here(const struct cw_rows *rows, struct cw_row *row)
{
    int code = place_here(rows, &row->place);

    if (code == CW_BUFFER_NO_CONTEXT)
        return cw_api_fail(CUWARDEN_NOT_STARTED,
                           "%s '%s' needs a context: none is current in this thread; "
                           "cudaFree(0) is enough",
                           rows->what, row->name);
    return cw_rows_refused(rows, row, code, "begin");
}

int cw_rows_place_on(const struct cw_rows *rows, const struct cw_row *row, int device,
                     struct cw_buffer_place *out)
{
    struct cw_buffer_place place;
    uint8_t first, end;
    int error = device == CUWARDEN_ALL_DEVICES || device == CUWARDEN_HOST
                    ? cw_api_fail(CUWARDEN_NO_DEVICE, "%s '%s' needs a device: %d is none",
                                  rows->what, row->name, device)
                    : cw_api_check_device(device, &first, &end);

    if (error != CUWARDEN_OK)
        return error;
    if (place_here(rows, &place) != 0 || place.device != device)
        place = (struct cw_buffer_place){.context = cw_context_on((unsigned)device),
                                         .device = (uint8_t)device};
    if (place.context.handle == 0)
        return cw_api_fail(CUWARDEN_UNUSED_DEVICE,
                           "%s '%s' needs a context on device %d: the program has none there; "
                           "cudaSetDevice(%d) and cudaFree(0) are enough",
                           rows->what, row->name, device, device);
    *out = place;
    return CUWARDEN_OK;
}

void cw_rows_drop(struct cw_rows *rows, struct cw_row *row)
{
    cw_lock_acquire(&rows->lock);
    memset(row, 0, rows->row_bytes);
    cw_lock_release(&rows->lock);
}

int cw_rows_settle(struct cw_rows *rows, struct cw_row *row, uint64_t id, int error,
                   uint64_t *out_id)
{
    if (error != CUWARDEN_OK) {
        cw_rows_drop(rows, row);
        return error;
    }
    cw_lock_acquire(&rows->lock);
    row->id = id;
    cw_lock_release(&rows->lock);
    *out_id = id;
    return CUWARDEN_OK;
}

void cw_rows_reset(struct cw_rows *rows)
{
    cw_lock_reset(&rows->lock);
    memset(rows->first, 0, rows->count * rows->row_bytes);
}

/* ---- calls ---- */

enum taken { TAKEN, GONE, HELD };

/* alone: nobody else may be at work on it, and its number is gone. */
static enum taken try_take(struct cw_rows *rows, uint64_t id, int is_submitting, int alone,
                           struct cw_row_visit *visit)
{
    struct cw_row *row = row_at(rows, id & (rows->count - 1));
    int is_busy = 0;

    cw_lock_acquire(&rows->lock);
    if (id == 0 || row->id != id)
        row = NULL;
    if (row != NULL)
        is_busy = (is_submitting && row->is_submitting) || (alone && row->users != 0);
    if (row != NULL && !is_busy) {
        row->users++;
        row->is_submitting |= is_submitting;
        row->id = alone ? 0 : id;
    }
    cw_lock_release(&rows->lock);
    *visit = (struct cw_row_visit){.row = row, .is_submitting = is_submitting};
    return row == NULL ? GONE : is_busy ? HELD : TAKEN;
}

static int take(struct cw_rows *rows, uint64_t id, int is_submitting, int alone,
                struct cw_row_visit *visit)
{
    switch (try_take(rows, id, is_submitting, alone, visit)) {
    case GONE:
        return cw_api_not_there(rows->what, id);
    case HELD:
        return cw_api_fail(CUWARDEN_BUSY, "another thread is at work on %s %ju; ask again",
                           rows->what, (uintmax_t)id);
    default:
        return CUWARDEN_OK;
    }
}

int cw_rows_take(struct cw_rows *rows, uint64_t id, int is_submitting, struct cw_row_visit *visit)
{
    return take(rows, id, is_submitting, 0, visit);
}

int cw_rows_await(struct cw_rows *rows, uint64_t id, struct cw_row_visit *visit)
{
    enum taken taken;
    unsigned turns = 0;

    while ((taken = try_take(rows, id, 1, 0, visit)) == HELD)
        cw_lock_doze(&turns);
    return taken == GONE ? cw_api_not_there(rows->what, id) : CUWARDEN_OK;
}

void cw_rows_end_submitting(struct cw_rows *rows, struct cw_row_visit *visit)
{
    cw_lock_acquire(&rows->lock);
    visit->row->is_submitting = 0;
    cw_lock_release(&rows->lock);
    visit->is_submitting = 0;
}

void cw_rows_give_up(struct cw_rows *rows, const struct cw_row_visit *visit)
{
    cw_lock_acquire(&rows->lock);
    visit->row->users--;
    if (visit->is_submitting)
        visit->row->is_submitting = 0;
    cw_lock_release(&rows->lock);
}

int cw_rows_begin_end(struct cw_rows *rows, uint64_t id, struct cw_row_visit *visit)
{
    int error = cw_api_check_driver();

    return error == CUWARDEN_OK ? take(rows, id, 1, 1, visit) : error;
}

int cw_rows_enter(const struct cw_rows *rows, struct cw_row_visit *visit)
{
    int code;

    visit->depth = cw_api_enter();
    code = cw_place_enter(rows->places, &visit->row->place, &visit->pushed);
    if (code == 0)
        return CUWARDEN_OK;
    cw_api_leave(visit->depth);
    return cw_rows_refused(rows, visit->row, code, "go on");
}

void cw_rows_leave(const struct cw_rows *rows, const struct cw_row_visit *visit)
{
    rows->places->leave(visit->row->place.context, visit->pushed);
    cw_api_leave(visit->depth);
}

int cw_rows_begin_call(struct cw_rows *rows, uint64_t id, int is_submitting,
                       struct cw_row_visit *visit)
{
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = cw_rows_take(rows, id, is_submitting, visit);
    if (error != CUWARDEN_OK)
        return error;
    error = cw_rows_enter(rows, visit);
    if (error != CUWARDEN_OK)
        cw_rows_give_up(rows, visit);
    return error;
}

void cw_rows_end_call(struct cw_rows *rows, const struct cw_row_visit *visit)
{
    cw_rows_leave(rows, visit);
    cw_rows_give_up(rows, visit);
}

int cw_rows_refused(const struct cw_rows *rows, const struct cw_row *row, int code,
                    const char *what)
{
    if (code == 0)
        return CUWARDEN_OK;
    return cw_api_fail(CUWARDEN_DRIVER, "%s '%s' cannot %s: %s is %d", rows->what, row->name, what,
                       code == CW_BUFFER_CONTEXT_ENDED ? "its context has ended; the driver's code"
                                                       : "the driver's code",
                       code);
}
