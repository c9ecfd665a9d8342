/* SPDX-License-Identifier: MIT */
/*
 * Messages to the user on stderr.
 *
 * Owns the level and the count of lines printed, both atomic; no lock, since a signal handler may
 * log. A line is put together on the stack and leaves in one write, so lines of several threads
 * never mix.
 */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/out.h"
#include "base/printable.h"

_Atomic int cw_log_printed = CW_LOG_WARN;
static _Atomic uint32_t warnings; /* lines due at warn and above; stops just past the ceiling */

static const char *const prefixes[] = {
    [CW_LOG_OFF] = "",
    [CW_LOG_ERROR] = "cuwarden: error: ",
    [CW_LOG_WARN] = "cuwarden: warning: ",
    [CW_LOG_INFO] = "cuwarden: ",
    [CW_LOG_DEBUG] = "cuwarden: debug: ",
};

void cw_log_set_level(enum cw_log_level level)
{
    atomic_store_explicit(&cw_log_printed, (int)level, memory_order_relaxed);
}

void cw_log_reset(void)
{
    atomic_store_explicit(&warnings, 0, memory_order_relaxed);
}

static int is_printed(enum cw_log_level level)
{
    return level != CW_LOG_OFF && level <= cw_log_get_level();
}

/* A cut must not leave half a character behind. */
static size_t cut_to_utf8_boundary(const char *text, size_t len)
{
    size_t start = len;

    while (start > 0 && len - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && (unsigned char)text[start - 1] >= 0xc0)
        return start - 1;
    return len;
}

static void write_line(enum cw_log_level level, const char *fmt, va_list ap)
{
    static const char ellipsis[] = "...";
    char line[CW_LOG_LINE_MAX];
    struct cw_out out;
    size_t len;

    cw_out_init(&out, -1, line, sizeof(line) - sizeof(ellipsis));
    cw_out_string(&out, prefixes[level]);
    cw_out_vprintf(&out, fmt, ap);
    len = out.len;
    if (out.truncated) {
        len = cut_to_utf8_boundary(line, len);
        memcpy(line + len, ellipsis, sizeof(ellipsis) - 1);
        len += sizeof(ellipsis) - 1;
    }
    len = cw_printable_clean(line, len); /* a value may hold a newline or an escape sequence */
    line[len++] = '\n';
    /* Nobody is left to tell when this fails, and waiting would stall the program. */
    (void)cw_write(STDERR_FILENO, line, len, 0);
}

static void write_farewell(enum cw_log_level level, const char *fmt, ...) CW_PRINTF(2, 3);

static void write_farewell(enum cw_log_level level, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, fmt, ap);
    va_end(ap);
}

/* Says whether one more line may be printed; the first one past the ceiling is the farewell. */
static int is_below_ceiling(enum cw_log_level level)
{
    uint32_t before;

    if (level > CW_LOG_WARN)
        return 1;
    if (atomic_load_explicit(&warnings, memory_order_relaxed) > CW_LOG_CEILING)
        return 0;
    before = atomic_fetch_add_explicit(&warnings, 1, memory_order_relaxed);
    if (before == CW_LOG_CEILING)
        write_farewell(CW_LOG_WARN, "%d messages so far; this process prints no more of them",
                       CW_LOG_CEILING);
    return before < CW_LOG_CEILING;
}

/* Nobody reads the pipe, or the terminal is stopped. */
static int would_wait(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    struct timespec now = {.tv_sec = 0};
    int saved = errno, rc = (int)syscall(SYS_ppoll, &ready, 1, &now, NULL, 0);

    errno = saved;
    return rc == 0;
}

void cw_log(enum cw_log_level level, const char *fmt, ...)
{
    va_list ap;

    if (!is_printed(level) || !is_below_ceiling(level))
        return;
    if (level == CW_LOG_DEBUG && would_wait(STDERR_FILENO))
        return;
    va_start(ap, fmt);
    write_line(level, fmt, ap);
    va_end(ap);
}

void cw_log_note(const char *fmt, ...)
{
    va_list ap;

    if (!is_printed(CW_LOG_WARN))
        return;
    va_start(ap, fmt);
    write_line(CW_LOG_INFO, fmt, ap);
    va_end(ap);
}

void cw_log_once(atomic_flag *said, enum cw_log_level level, const char *fmt, ...)
{
    va_list ap;

    if (!is_printed(level) || atomic_flag_test_and_set_explicit(said, memory_order_relaxed))
        return;
    if (!is_below_ceiling(level))
        return;
    va_start(ap, fmt);
    write_line(level, fmt, ap);
    va_end(ap);
}
