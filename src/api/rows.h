/* SPDX-License-Identifier: MIT */
/*
 * Rows of a table that the program names by numbers: downloads, bridges, stream sets, prefetches.
 *
 * A row is somebody's from its claim to its drop, and its number finds it from settle to the
 * beginning of its end. A number is never used again. Whoever works with a row counts as its user,
 * so that it does not end under him; one thread at a time submits. All of that is guarded by the
 * table's lock (CW_RANK_ROWS), which also guards what the owner of the table says, and is never
 * held around a call of the driver. A forked child has no rows: CUDA does not come with it.
 */
#ifndef CW_API_ROWS_H
#define CW_API_ROWS_H

#include "api/api.h"
#include "api/buffer_ops.h"
#include "base/lock.h"

#define CW_ROW_NAME_MAX 48u

/* What each row begins with. */
struct cw_row {
    uint64_t id;       /* 0: no number finds it */
    unsigned users;    /* calls that are at work */
    int is_submitting; /* one of them submits, or makes or ends it */
    /* Constant as long as the row is somebody's. */
    char name[CW_ROW_NAME_MAX]; /* "": nobody's */
    struct cw_buffer_place place;
};

struct cw_rows {
    const char *what; /* "download" */
    struct cw_lock lock;
    void *first;
    size_t row_bytes;
    unsigned count;  /* a power of two */
    uint64_t serial; /* of the last row; guarded by the lock */
    /* Of these place, enter and leave are used. Set when the library is loaded. */
    const struct cw_buffer_ops *places;
};

#define CW_ROWS_INIT(its_what, its_rows)                                                           \
    {                                                                                              \
        .what = (its_what), .lock = CW_LOCK_INIT(CW_RANK_ROWS), .first = (its_rows),               \
        .row_bytes = sizeof((its_rows)[0]), .count = sizeof(its_rows) / sizeof((its_rows)[0])      \
    }

/* One call's way to a row and its context. */
struct cw_row_visit {
    struct cw_row *row;
    int is_submitting;
    unsigned depth;
    int pushed;
};

/* ---- making and ending ---- */

/* NOT_STARTED; INVALID: the name, or there is no place for the number. */
int cw_rows_check_make(const struct cw_rows *rows, const char *name, const void *out);
/* A row that its maker alone works on, all zero but for its name. EXISTS, OUT_OF_HOST. */
int cw_rows_claim(struct cw_rows *rows, const char *name, struct cw_row **out_row,
                  uint64_t *out_id);
/* Its place is that of the calling thread's current context. NOT_STARTED, DRIVER. */
int cw_rows_place_here(const struct cw_rows *rows, struct cw_row *row);
/* The context for calls on a device: the current one if it is there, else the one that the program
 * has there. NO_DEVICE; UNUSED_DEVICE: it has none. */
int cw_rows_place_on(const struct cw_rows *rows, const struct cw_row *row, int device,
                     struct cw_buffer_place *out);
/* The row is nobody's. */
void cw_rows_drop(struct cw_rows *rows, struct cw_row *row);
/* After what a claimed row is made of: with OK its number finds it from now on, and is written;
 * with another error the row is dropped. Returns the error. */
int cw_rows_settle(struct cw_rows *rows, struct cw_row *row, uint64_t id, int error,
                   uint64_t *out_id);
/* The visitor has the row alone, and its number is gone. NOT_FOUND, BUSY. */
int cw_rows_begin_end(struct cw_rows *rows, uint64_t id, struct cw_row_visit *visit);
/* In a forked child. Numbers go on, so that none of the parent's is one of the child's. */
void cw_rows_reset(struct cw_rows *rows);

/* ---- calls ---- */

/* The row is the visitor's until give_up: it does not end. NOT_FOUND, BUSY. */
int cw_rows_take(struct cw_rows *rows, uint64_t id, int is_submitting, struct cw_row_visit *visit);
/* The same for a submitter where none ever waits under way: another one is waited for. NOT_FOUND.
 */
int cw_rows_await(struct cw_rows *rows, uint64_t id, struct cw_row_visit *visit);
/* The visitor goes on with the row, and others may submit. */
void cw_rows_end_submitting(struct cw_rows *rows, struct cw_row_visit *visit);
void cw_rows_give_up(struct cw_rows *rows, const struct cw_row_visit *visit);
/* The thread is inside, and the row's context is current, until leave. DRIVER. */
int cw_rows_enter(const struct cw_rows *rows, struct cw_row_visit *visit);
void cw_rows_leave(const struct cw_rows *rows, const struct cw_row_visit *visit);
/* Both, for what calls the driver. */
int cw_rows_begin_call(struct cw_rows *rows, uint64_t id, int is_submitting,
                       struct cw_row_visit *visit);
void cw_rows_end_call(struct cw_rows *rows, const struct cw_row_visit *visit);

/* Says what the driver has refused; OK if the code is 0. */
int cw_rows_refused(const struct cw_rows *rows, const struct cw_row *row, int code,
                    const char *what);

#endif
