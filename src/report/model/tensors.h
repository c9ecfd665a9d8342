/* SPDX-License-Identifier: MIT */
/*
 * The tensors in a framework's cache, by the line of Python that made them: what the framework
 * itself says (cli/run/torch.h), which sees inside of the blocks that the account knows.
 */
#ifndef CW_REPORT_TENSORS_H
#define CW_REPORT_TENSORS_H

#include <stdint.h>

/* Of one line, on one device. */
struct cw_report_tensor {
    const char *function, *file; /* file NULL: no line of Python made them */
    uint32_t line;
    uint32_t device;
    uint32_t site; /* the call site whose blocks hold most of them, or CW_SITE_NONE */
    uint64_t half_tensors, half_bytes; /* in the last snapshot of the first half of the time */
    uint64_t peak_tensors, peak_bytes; /* in the one with most */
    uint64_t exit_tensors, exit_bytes; /* in the one at exit, if there is one */
};

struct cw_report_tensors {
    const char *framework; /* NULL: nothing is known */
    const char *version;
    const char *error;        /* why there are no rows, or NULL */
    uint64_t most_bytes;      /* that tensors held, as the framework counts; 0: not known */
    uint64_t peak_ns;         /* of the snapshot with most; its segments: */
    uint64_t segments, known; /* known: those that are live blocks of the account */
    uint64_t segment_bytes, known_bytes;
    uint64_t peak_tensors, peak_bytes, exit_tensors, exit_bytes; /* sums of the rows */
    uint8_t has_exit;
    struct cw_report_tensor *row; /* most bytes at the peak first */
    uint32_t rows;
};

/* Whether a snapshot comes near enough to the peak to tell who held the memory. */
static inline int cw_report_tensors_tell(const struct cw_report_tensors *tensors)
{
    return tensors->framework && !tensors->error && tensors->peak_bytes > 0 &&
           tensors->peak_bytes >= tensors->most_bytes / 2;
}

#endif
