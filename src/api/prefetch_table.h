/* SPDX-License-Identifier: MIT */
/* The rows of prefetches; see prefetches.h. For prefetches.c, prefetch_requests.c and
 * prefetch_reader.c alone. */
#ifndef CW_API_PREFETCH_TABLE_H
#define CW_API_PREFETCH_TABLE_H

#include "api/prefetches.h"
#include "api/rows.h"
#include "api/transfers.h"

#define CW_PREFETCH_HALVES 2

struct cw_prefetch_request {
    uint64_t number; /* 0: none yet */
    int32_t stage;   /* enum cuwarden_stage */
    int is_cut;      /* nothing more of the file is given to the driver */
    int error, code; /* enum cuwarden_error; what the driver or the system said */
    uint64_t offset, bytes, to;
    uint64_t handed; /* to the driver */
    uint64_t base;   /* of the block */
    char *path;      /* NULL: of a file that the program had open, as `fd_was` */
    int fd, fd_was;  /* -1: not open */
    int has_begun;   /* `begin` is recorded; the reader's */
    int is_captured; /* a capture refused the reader's last look at its half */
    int is_after;    /* `ready` */
    uint16_t tag;    /* of the thread that started it */
    struct cw_waits waits;
};

/* Of the requests with one place in the row; read without the lock. */
struct cw_prefetch_events {
    void *ready; /* recorded in the program's stream */
    void *begin, *done;
};

/* The reader's. */
struct cw_prefetch_half {
    char *data;      /* constant as long as the row is somebody's */
    void *empty;     /* so is this: the event after its last copy */
    int is_busy;     /* the event may not have passed */
    int is_unmarked; /* nor does it stand for the last copy: it could not be recorded */
    uint64_t bytes;  /* that were read into it, for the driver */
};

struct cw_prefetch_row {
    struct cw_row own;
    struct cw_prefetch_request request[CW_PREFETCH_REQUESTS]; /* by their numbers */
    uint64_t last;                                            /* number that was started */
    uint64_t next;                                            /* number that is to be read */
    unsigned enders;                                          /* if any, the reader leaves it */
    int is_read;                                              /* the reader is at work on it */
    int is_lost;      /* with its context all that it is made of has gone */
    uint32_t context; /* of core/device/context.h: a reset leaves its name to the next one */
    uint64_t failed, refused;
    struct cw_transfers done;
    struct cw_prefetch_half half[CW_PREFETCH_HALVES];
    unsigned turn;        /* the half that is to be filled; the reader's */
    uint32_t frees_ended; /* `passed` of the pool context when it looked last; so is this */
    /* Constant as long as the row is somebody's. */
    uint64_t chunk_bytes;
    void *stream;
    struct cw_prefetch_events events[CW_PREFETCH_REQUESTS];
};

extern CW_HIDDEN struct cw_rows cw_prefetches;
extern CW_HIDDEN const struct cw_transfer_ops *cw_prefetch_driver;
extern CW_HIDDEN const struct cw_bridge_ops *cw_prefetch_memory;
extern CW_HIDDEN cw_prefetch_thread_fn cw_prefetch_thread;

static inline struct cw_prefetch_row *cw_prefetch_of(const struct cw_row_visit *visit)
{
    return (struct cw_prefetch_row *)visit->row;
}

static inline struct cw_prefetch_request *cw_prefetch_at(struct cw_prefetch_row *row,
                                                         uint64_t number)
{
    return &row->request[number % CW_PREFETCH_REQUESTS];
}

static inline const struct cw_prefetch_events *
cw_prefetch_events_at(const struct cw_prefetch_row *row, uint64_t number)
{
    return &row->events[number % CW_PREFETCH_REQUESTS];
}

/* The row by its place in the table. */
struct cw_prefetch_row *cw_prefetch_row_at(unsigned index);

/* Whatever has arrived is counted, unless the gate is closed. Does not wait; the row's context is
 * current. */
void cw_prefetch_settle(struct cw_prefetch_row *row);

/* Inside the gate, before the driver is called for the row: 0, or the code of its refusal, as the
 * context has ended. */
int cw_prefetch_lost_code(const struct cw_prefetch_row *row);
/* The reader is not at work on the row. It comes back unless something keeps it. */
void cw_prefetch_await_reader(const struct cw_prefetch_row *row);

/* Nothing of it is to be read any more, for this reason if it is one; the lock is held. */
void cw_prefetch_cut_locked(struct cw_prefetch_request *request, int error);

/* There is something to read: the reader runs, and looks. 0, or -1: no thread can be made, and all
 * that is to be read has failed. */
int cw_prefetch_wake(void);
/* Nothing is read any more in this process. */
int cw_prefetch_is_stopped(void);
/* The file of a request is closed; the lock is held by nobody. */
void cw_prefetch_close(struct cw_prefetch_request *request);
/* The guard of frees is on while there is something to read; the lock is held. */
void cw_prefetch_guard_locked(void);

#endif
