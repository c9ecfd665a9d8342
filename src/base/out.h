/* SPDX-License-Identifier: MIT */
/*
 * A buffered writer with its own formatter.
 *
 * Not stdio and not snprintf: they may allocate, lock, or follow the program's locale (a decimal
 * comma in a report). The formatter knows %d %i %u %x %c %s %p %% with l, ll, z, j lengths, field
 * width (also *), '-' and '0' flags, and a precision for %s (also .*); nothing else. From an
 * unknown conversion on, the format is copied as it stands.
 *
 * A writer belongs to one thread. The first failed write(2) is remembered in `error` and the rest
 * is dropped. No function here changes errno.
 */
#ifndef CW_BASE_OUT_H
#define CW_BASE_OUT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct cw_out {
    int fd;    /* -1: no file behind it, text past the buffer is dropped (`truncated` is set) */
    int error; /* errno of the first failed write, or 0 */
    int truncated;
    char *buf; /* caller's storage */
    size_t cap;
    size_t len;
    uint64_t total; /* bytes given since init, also those that were dropped */
};

/*
 * Writes all of data and returns 0, else the errno of the failed write(2). Not a cancellation
 * point, repeats after EINTR, and raises no SIGPIPE or SIGXFSZ: a closed pipe or a limit must not
 * kill a program that never wrote to it. A file descriptor that would block is waited for up to
 * wait_ms each time.
 */
int cw_write(int fd, const void *data, size_t len, int wait_ms);

/*
 * For a process that began without a stderr: what it opens first as 2 is a file of its own, and
 * nothing is written there any more (EBADF).
 */
void cw_write_never_to_stderr(void);

void cw_out_init(struct cw_out *out, int fd, char *buf, size_t cap);
/* Writes what is buffered; returns out->error. */
int cw_out_flush(struct cw_out *out);
void cw_out_write(struct cw_out *out, const void *data, size_t len);
void cw_out_string(struct cw_out *out, const char *s);
void cw_out_char(struct cw_out *out, char c);
void cw_out_printf(struct cw_out *out, const char *fmt, ...) CW_PRINTF(2, 3);
void cw_out_vprintf(struct cw_out *out, const char *fmt, va_list ap);

/* Formats into a string, always terminated; returns the length that the whole text would have. */
size_t cw_format(char *buf, size_t cap, const char *fmt, ...) CW_PRINTF(3, 4);
size_t cw_vformat(char *buf, size_t cap, const char *fmt, va_list ap);

/*
 * A size for people: "512 B", "4.0 KiB", "1.5 MiB", "61.2 GiB" (1024-based, one decimal, rounded
 * half up; never "1024.0 KiB"). buf of at least 16 bytes; returns buf.
 */
char *cw_format_size(char *buf, size_t cap, uint64_t bytes);

/* A duration for people: "120us", "0.004s", "12.3s", "00:41:07", "3d 04:05:06". buf of at least 24
 * bytes. */
char *cw_format_duration(char *buf, size_t cap, uint64_t ns);

/* JSON string with its quotes; invalid UTF-8 becomes U+FFFD, so the output is always valid JSON. */
/* What printable.h says of the text. */
void cw_out_printable(struct cw_out *out, const char *text, size_t len);
void cw_out_json_string(struct cw_out *out, const char *s, size_t len);

#endif
