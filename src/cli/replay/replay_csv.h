/* SPDX-License-Identifier: MIT */
/*
 * Reads a trace: the log of RMM's logging resource adaptor, or what CUWARDEN_TRACE wrote, which has
 * more columns (core/account/trace.h). Columns go by the names in the first line, in any order;
 * Action, Pointer and Size must be there. The file may be compressed, by gzip. Uses one buffer,
 * however long the file is.
 *
 * The trace of a killed process ends in zeros or in mid-line: that is its end, and sets `is_cut`.
 * Any other bad line is an error that names file, line and value.
 */
#ifndef CW_CLI_REPLAY_CSV_H
#define CW_CLI_REPLAY_CSV_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

enum cw_csv_action { CW_CSV_ALLOCATE, CW_CSV_FREE, CW_CSV_FAILURE };

struct cw_csv_event {
    uint64_t line; /* starting at 1, the header */
    uint64_t ns;   /* never decreases; 0 if the file has no times */
    uint64_t pointer, bytes;
    uint8_t action; /* enum cw_csv_action */
    uint8_t device; /* ordinal or CW_DEVICE_HOST */
    uint8_t kind;   /* enum cw_kind */
};

enum cw_csv_column {
    CW_CSV_ACTION,
    CW_CSV_POINTER,
    CW_CSV_SIZE,
    CW_CSV_TIME,
    CW_CSV_NANOSECONDS,
    CW_CSV_DEVICE,
    CW_CSV_KIND,
    CW_CSV_OTHER, /* read by nobody */
};

#define CW_CSV_COLUMNS 32

struct cw_csv {
    const char *path;
    gzFile file;
    int is_cut;
    char *buf;
    size_t len, at;
    int at_end; /* of the file; the buffer may still contain data */
    uint64_t line;
    uint64_t ns, day_ns, clock_ns; /* last time; sum of past days; last time of day */
    unsigned columns;
    uint8_t column[CW_CSV_COLUMNS]; /* enum cw_csv_column by place */
    uint8_t has[CW_CSV_OTHER + 1];
};

/* "-" is standard input. 0, or -1 after a message. */
int cw_csv_open(struct cw_csv *csv, const char *path);
/* 1: *out is the next event; 0: end; -1 after a message. */
int cw_csv_next(struct cw_csv *csv, struct cw_csv_event *out);
void cw_csv_close(struct cw_csv *csv);

#endif
