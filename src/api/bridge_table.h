/* SPDX-License-Identifier: MIT */
/* The rows of bridges; see bridges.h. For bridges.c and bridge_copies.c alone. */
#ifndef CW_API_BRIDGE_TABLE_H
#define CW_API_BRIDGE_TABLE_H

#include "api/bridges.h"
#include "api/rows.h"
#include "api/transfers.h"

#define CW_BRIDGE_HALVES 2

/* One end of a bridge. Constant as long as the row is somebody's. */
struct cw_bridge_side {
    struct cw_buffer_place place;
    void *stream;
    void *ready; /* recorded in streams of the program that are of this context */
};

/* One copy on its way. */
struct cw_bridge_copy {
    void *begin, *done; /* timed, of the far side; constant as long as the row is somebody's */
    uint64_t number;    /* 0: none */
    uint64_t bytes;
    uint16_t tag; /* of the thread that started it */
    struct cw_waits waits;
    enum cw_transfer_way way;
    int is_submitted;
};

struct cw_bridge_half {
    char *data;         /* NULL: no copy was staged yet; the submitter's */
    void *full, *empty; /* of the near and the far side */
};

struct cw_bridge_row {
    struct cw_row own; /* its place is the far side's */
    struct cw_bridge_copy copy[CW_BRIDGE_COPIES];
    uint64_t last; /* number of the last copy that was started */
    uint64_t failed;
    int code; /* what the driver said of the copy `failed`, the first that has */
    uint64_t refused;
    struct cw_transfers done;
    struct cw_carried carried;
    struct cw_bridge_half half[CW_BRIDGE_HALVES];
    uint64_t turn; /* halves that were filled; the submitter's */
    /* Constant as long as the row is somebody's. */
    struct cw_bridge_side near, far;
    uint64_t chunk_bytes;
    enum cw_transfer_way way; /* of what peers reach */
};

extern CW_HIDDEN struct cw_rows cw_bridges;
extern CW_HIDDEN const struct cw_transfer_ops *cw_bridge_transfers;
extern CW_HIDDEN const struct cw_bridge_ops *cw_bridge_driver;

static inline struct cw_bridge_row *cw_bridge_of(const struct cw_row_visit *visit)
{
    return (struct cw_bridge_row *)visit->row;
}

/* Whatever has arrived is counted. Does not wait; the far side's context is current. 0: not all
 * that is on its way could be asked about (api/arrivals.h). */
int cw_bridge_settle(struct cw_bridge_row *row);

/* The row has halves; the near side's context is current. The driver's code. */
int cw_bridge_get_halves(struct cw_bridge_row *row);

#endif
