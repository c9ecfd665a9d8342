/* SPDX-License-Identifier: MIT */
/*
 * Messages to the user: one line each on stderr, "cuwarden: warning: text" (error, debug; an info
 * line names no level). Control characters in the text become '?', so a line stays one line.
 *
 * One write(2) per line, no malloc, no stdio, no locale: the caller may be inside malloc or a
 * signal handler. errno is preserved. Nothing is ever written to stdout. A process prints at most
 * CW_LOG_CEILING lines at warn and above, then says once that it stops; a sick process is not
 * flooded. A line at debug that would have to wait for its reader is dropped: locks may be held.
 */
#ifndef CW_BASE_LOG_H
#define CW_BASE_LOG_H

#include <stdatomic.h>

#include "base/compiler.h"

enum cw_log_level { CW_LOG_OFF, CW_LOG_ERROR, CW_LOG_WARN, CW_LOG_INFO, CW_LOG_DEBUG };

#define CW_LOG_CEILING  100
#define CW_LOG_LINE_MAX 1024 /* with its newline; a longer line is cut and ends in "..." */

/* Least severe level that is printed; warn until set. Any thread. */
void cw_log_set_level(enum cw_log_level level);
extern CW_HIDDEN _Atomic int cw_log_printed;

static inline enum cw_log_level cw_log_get_level(void)
{
    return (enum cw_log_level)atomic_load_explicit(&cw_log_printed, memory_order_relaxed);
}

/* fmt as in base/out.h (a subset of printf, locale-free). */
void cw_log(enum cw_log_level level, const char *fmt, ...) CW_PRINTF(2, 3);

/* A line that names no level, printed where warnings are, with no bound on how many: for what the
 * user has asked for. */
void cw_log_note(const char *fmt, ...) CW_PRINTF(1, 2);

/* As cw_log, but only for the first caller that finds *said clear. A level that is not printed
 * leaves it clear. */
void cw_log_once(atomic_flag *said, enum cw_log_level level, const char *fmt, ...) CW_PRINTF(3, 4);

/* In a forked child: count lines towards the ceiling anew. */
void cw_log_reset(void);

#endif
