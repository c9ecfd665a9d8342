/* SPDX-License-Identifier: MIT */
/* The rows of downloads; see downloads.h. For downloads.c and download_frames.c alone. */
#ifndef CW_API_DOWNLOAD_TABLE_H
#define CW_API_DOWNLOAD_TABLE_H

#include "api/downloads.h"
#include "api/rows.h"
#include "api/transfers.h"

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
    uint16_t tag; /* of the thread that started it */
    struct cw_waits waits;
    uint64_t waited_ns; /* until it was complete */
    /* Constant as long as the row is somebody's. */
    char *data;
    void *begin, *done; /* events around the copy */
};

struct cw_download_row {
    struct cw_row own;
    struct cw_half half[CW_DOWNLOAD_HALVES];
    uint64_t last, seen; /* numbers of the last frame that was started, and taken */
    uint64_t taken, skipped, refused;
    struct cw_transfers done;
    /* Constant as long as the row is somebody's. */
    uint64_t most_bytes;
    void *stream, *ready; /* the event that is recorded in streams of the program */
};

extern CW_HIDDEN struct cw_rows cw_downloads;
extern CW_HIDDEN const struct cw_transfer_ops *cw_download_driver;

static inline struct cw_download_row *cw_download_of(const struct cw_row_visit *visit)
{
    return (struct cw_download_row *)visit->row;
}

/* Whatever has arrived is complete, and counted. Does not wait. 0: not all that is on its way could
 * be asked about (api/arrivals.h). */
int cw_download_settle(struct cw_download_row *row);

#endif
