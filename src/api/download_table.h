/* SPDX-License-Identifier: MIT */
/* The rows of downloads; see downloads.h. For downloads.c and download_frames.c alone. */
#ifndef CW_API_DOWNLOAD_TABLE_H
#define CW_API_DOWNLOAD_TABLE_H

#include "api/downloads.h"
#include "api/transfers.h"
#include "base/lock.h"

#define CW_DOWNLOAD_HALVES 2

enum cw_half_state {
    CW_HALF_EMPTY,
    CW_HALF_STARTING,
    CW_HALF_IN_FLIGHT,
    CW_HALF_HELD,
    CW_HALF_COMPLETE
};

struct cw_half {
    enum cw_half_state state;
    int code; /* what the driver says of it once it is complete */
    uint64_t number, bytes;
    uint64_t waited_since_ns; /* 0: nobody has waited for it */
    uint64_t waited_ns;       /* until it was complete */
    /* Constant as long as the row is somebody's. */
    char *data;
    void *begin, *done; /* events around the copy */
};

struct cw_download_row {
    uint64_t id;       /* 0: nobody's */
    unsigned users;    /* calls that are at work */
    int is_submitting; /* one of them submits, or makes or ends it */
    struct cw_half half[CW_DOWNLOAD_HALVES];
    uint64_t last, seen; /* numbers of the last frame that was started, and taken */
    uint64_t taken, skipped, refused;
    struct cw_transfers done;
    /* Constant as long as the row is somebody's. */
    char name[CW_DOWNLOAD_NAME_MAX];
    uint64_t most_bytes;
    struct cw_buffer_place place;
    void *stream, *ready; /* the event that is recorded in streams of the program */
};

/* One call's way to a row and its context. */
struct cw_download_visit {
    struct cw_download_row *row;
    int is_submitting;
    unsigned depth;
    int pushed;
};

extern CW_HIDDEN struct cw_lock cw_download_lock;
extern CW_HIDDEN const struct cw_transfer_ops *cw_download_driver;

/* The row is the visitor's until give_up: it does not end. alone: nobody else may be at work on it.
 * NOT_FOUND, BUSY. */
int cw_download_take(uint64_t download, int is_submitting, int alone,
                     struct cw_download_visit *visit);
void cw_download_give_up(struct cw_download_visit *visit);

/* The same for what calls the driver: the row's context is current until end_call. */
int cw_download_begin_call(uint64_t download, int is_submitting, struct cw_download_visit *visit);
void cw_download_end_call(struct cw_download_visit *visit);

/* Whatever has arrived is complete, and counted. Does not wait. */
void cw_download_settle(struct cw_download_row *row);

/* Says what the driver has refused; OK if the code is 0. */
int cw_download_refused(const struct cw_download_row *row, int code, const char *what);

#endif
