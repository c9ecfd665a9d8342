/* SPDX-License-Identifier: MIT */
/*
 * The table of `top`: one row for each device of each process. Determines the rows, their order,
 * the columns that fit, and their contents, for both the screen and the plain format.
 */
#ifndef CW_CLI_TOP_TABLE_H
#define CW_CLI_TOP_TABLE_H

#include <stddef.h>

#include "cli/fleet/fleet.h"

/* X(ID, "heading", width, rank): columns of low rank are dropped last if space is short; width 0:
 * the remaining space. */
#define CW_TOP_COLUMNS(X)                                                                          \
    X(PID, "PID", 7, 1)                                                                            \
    X(USER, "USER", 8, 22)                                                                         \
    X(DEVICE, "DEV", 4, 2)                                                                         \
    X(LIVE, "LIVE", 6, 3)                                                                          \
    X(IDLE, "IDLE", 6, 7)                                                                          \
    X(HELD, "HELD", 6, 4)                                                                          \
    X(PEAK, "PEAK", 6, 6)                                                                          \
    X(LIMIT, "LIMIT", 6, 8)                                                                        \
    X(LEVEL, "LEVEL", 8, 9)                                                                        \
    X(RATE, "ALLOC/S", 7, 5)                                                                       \
    X(HIT, "HIT%", 4, 10)                                                                          \
    X(FAILED, "FAIL", 5, 11)                                                                       \
    X(EFFICIENCY, "EFF%", 5, 14)                                                                   \
    X(FRAGMENTATION, "FRAG%", 6, 13)                                                               \
    X(PEAK_FRAGMENTATION, "PKFRAG%", 8, 15)                                                        \
    X(USE, "USE%", 5, 16)                                                                          \
    X(BLOCKS, "BLOCKS", 8, 17)                                                                     \
    X(FALLBACK, "FALLBACK", 9, 18)                                                                 \
    X(TRIMMED, "TRIMMED", 8, 19)                                                                   \
    X(OOM, "OOM IN", 6, 12)                                                                        \
    X(BUDGET, "BUDG%", 6, 20)                                                                      \
    X(LENT, "LENT", 6, 21)                                                                         \
    X(COMMAND, "COMMAND", 0, 0)

enum cw_top_column {
#define X(id, heading, width, rank) CW_TOP_##id,
    CW_TOP_COLUMNS(X)
#undef X
        CW_TOP_COLUMN_COUNT
};

#define CW_TOP_ANY_DEVICE UINT32_MAX

struct cw_top_choice {
    enum cw_top_column sort;
    int is_reversed;
    int shows_dead;
    uint32_t device;    /* ordinal, CW_DEVICE_HOST, or CW_TOP_ANY_DEVICE */
    const char *filter; /* part of the command, id or device, ignoring case; "": all */
};

struct cw_top_row {
    const struct cw_fleet_process *process;
    const struct cw_fleet_device *device; /* NULL: the process has used none yet */
};

/* The selected rows in order, to be freed; NULL if there are none, with *out_count 0, or -1 if out
 * of memory. */
struct cw_top_row *cw_top_rows(const struct cw_fleet *fleet, const struct cw_top_choice *choice,
                               long *out_count);

struct cw_top_layout {
    int is_shown[CW_TOP_COLUMN_COUNT];
    size_t command; /* columns for the command */
};

/* As many columns as fit in this width; SIZE_MAX: all, and the whole command. Where another user's
 * processes are among them, the user is one of the first. */
void cw_top_fit(struct cw_top_layout *layout, const struct cw_fleet *fleet, size_t columns);

#define CW_TOP_LINE_MAX 8192

void cw_top_print_heading(char *buf, size_t cap, const struct cw_top_layout *layout,
                          const struct cw_top_choice *choice);
void cw_top_print_row(char *buf, size_t cap, const struct cw_top_layout *layout,
                      const struct cw_top_row *row);

const char *cw_top_column_name(enum cw_top_column column);
/* "512B", "1.5K", "10.2M", "1023M": five characters at most. */
const char *cw_top_size(char *buf, size_t cap, uint64_t bytes);
/* -1 if there is no such column; ignores case. */
int cw_top_parse_sort(const char *text, enum cw_top_column *out);
/* "0", "host"; -1 if it is not a device. */
int cw_top_parse_device(const char *text, uint32_t *out);

#endif
