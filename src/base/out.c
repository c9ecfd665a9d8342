/* SPDX-License-Identifier: MIT */
/*
 * The buffered writer and its formatter.
 *
 * Owns one flag, which is atomic: descriptor 2 is not stderr. Every writer and buffer is the
 * caller's, so there is no lock. Nothing here allocates, follows the locale or changes errno. `len`
 * never exceeds `cap`; after the first error `len` is 0.
 */
#include "base/out.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/utf8.h"

/* How long a report waits for a reader that left its pipe non-blocking and full. */
#define FLUSH_WAIT_MS 1000

/* ---- write(2) without SIGPIPE and SIGXFSZ ---- */

/* The kernel's own signal set; glibc's sigset_t is larger than what the system calls take. */
struct signal_guard {
    uint64_t old_mask;
    uint64_t was_pending;
};

static const uint64_t pipe_bit = UINT64_C(1) << (SIGPIPE - 1);
static const uint64_t size_bit = UINT64_C(1) << (SIGXFSZ - 1); /* past RLIMIT_FSIZE */

static void block_signals(struct signal_guard *guard)
{
    uint64_t both = pipe_bit | size_bit;

    guard->old_mask = 0;
    guard->was_pending = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &both, &guard->old_mask, sizeof(both));
    syscall(SYS_rt_sigpending, &guard->was_pending, sizeof(guard->was_pending));
}

/* Takes back the signal that our write raised, but not one that was there before. */
static void unblock_signals(const struct signal_guard *guard, int error)
{
    static const struct timespec at_once = {0, 0};
    uint64_t raised = error == EPIPE ? pipe_bit : error == EFBIG ? size_bit : 0;

    if (raised != 0 && !(guard->was_pending & raised))
        syscall(SYS_rt_sigtimedwait, &raised, NULL, &at_once, sizeof(raised));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &guard->old_mask, NULL, sizeof(guard->old_mask));
}

static int wait_writable(int fd, int wait_ms)
{
    struct pollfd poll = {.fd = fd, .events = POLLOUT};
    struct timespec timeout = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L};

    return wait_ms > 0 && syscall(SYS_ppoll, &poll, 1, &timeout, NULL, 0) > 0;
}

/* By syscall(): write() is a cancellation point, and the thread may have a cancel pending. */
static int write_all(int fd, const char *data, size_t len, int wait_ms)
{
    while (len > 0) {
        long written = syscall(SYS_write, fd, data, len);

        if (written >= 0) {
            data += written;
            len -= (size_t)written;
        } else if (errno == EAGAIN) {
            if (!wait_writable(fd, wait_ms))
                return EAGAIN;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static _Atomic int has_no_stderr;

void cw_write_never_to_stderr(void)
{
    atomic_store_explicit(&has_no_stderr, 1, memory_order_relaxed);
}

int cw_write(int fd, const void *data, size_t len, int wait_ms)
{
    struct signal_guard guard;
    int saved = errno;
    int error;

    if (fd == STDERR_FILENO && atomic_load_explicit(&has_no_stderr, memory_order_relaxed))
        return EBADF;
    block_signals(&guard);
    error = write_all(fd, data, len, wait_ms);
    unblock_signals(&guard, error);
    errno = saved;
    return error;
}

/* ---- the writer ---- */

void cw_out_init(struct cw_out *out, int fd, char *buf, size_t cap)
{
    *out = (struct cw_out){.fd = fd, .buf = buf, .cap = cap};
}

int cw_out_flush(struct cw_out *out)
{
    if (out->fd < 0)
        return out->error;
    if (out->len > 0)
        out->error = cw_write(out->fd, out->buf, out->len, FLUSH_WAIT_MS);
    out->len = 0;
    return out->error;
}

/* Room for at least one more byte, or 0. */
static size_t make_room(struct cw_out *out)
{
    if (out->len == out->cap)
        cw_out_flush(out);
    if (out->error)
        return 0;
    if (out->len == out->cap)
        out->truncated = 1;
    return out->cap - out->len;
}

void cw_out_write(struct cw_out *out, const void *data, size_t len)
{
    const char *from = data;

    out->total += len;
    if (!out->error && len < out->cap - out->len) {
        memcpy(out->buf + out->len, data, len);
        out->len += len;
        return;
    }
    while (len > 0) {
        size_t room = make_room(out);
        size_t n = len < room ? len : room;

        if (n == 0)
            return;
        memcpy(out->buf + out->len, from, n);
        out->len += n;
        from += n;
        len -= n;
    }
}

void cw_out_string(struct cw_out *out, const char *s)
{
    cw_out_write(out, s, strlen(s));
}

void cw_out_char(struct cw_out *out, char c)
{
    cw_out_write(out, &c, 1);
}

/* ---- the formatter ---- */

enum length { LENGTH_INT, LENGTH_LONG, LENGTH_LLONG, LENGTH_SIZE, LENGTH_MAX };

struct spec {
    int left;
    int zero;
    size_t width;
    size_t precision; /* SIZE_MAX: none given */
    enum length length;
};

/* In a struct, so that a pointer to it means the same where va_list is an array type. */
struct args {
    va_list list;
};

static void put_padding(struct cw_out *out, char c, size_t count)
{
    while (count-- > 0)
        cw_out_char(out, c);
}

static void put_padded(struct cw_out *out, const struct spec *spec, const char *text, size_t len)
{
    size_t padding = spec->width > len ? spec->width - len : 0;

    if (!spec->left)
        put_padding(out, ' ', padding);
    cw_out_write(out, text, len);
    if (spec->left)
        put_padding(out, ' ', padding);
}

/* sign: "", "-" or "0x"; it stands before the zeros of a '0' flag. */
static void put_number(struct cw_out *out, const struct spec *spec, const char *sign,
                       uint64_t magnitude, unsigned base)
{
    char digits[32];
    size_t at = sizeof(digits);
    size_t sign_len = strlen(sign);

    do {
        digits[--at] = "0123456789abcdef"[magnitude % base];
        magnitude /= base;
    } while (magnitude > 0);
    if (spec->zero && !spec->left) {
        size_t len = sizeof(digits) - at + sign_len;

        cw_out_string(out, sign);
        put_padding(out, '0', spec->width > len ? spec->width - len : 0);
        cw_out_write(out, digits + at, sizeof(digits) - at);
        return;
    }
    at -= sign_len;
    memcpy(digits + at, sign, sign_len);
    put_padded(out, spec, digits + at, sizeof(digits) - at);
}

static int64_t next_signed(enum length length, struct args *args)
{
    switch (length) {
    case LENGTH_LONG:
        return va_arg(args->list, long);
    case LENGTH_LLONG:
        return va_arg(args->list, long long);
    case LENGTH_SIZE:
        return va_arg(args->list, ssize_t);
    case LENGTH_MAX:
        return va_arg(args->list, intmax_t);
    default:
        return va_arg(args->list, int);
    }
}

static uint64_t next_unsigned(enum length length, struct args *args)
{
    switch (length) {
    case LENGTH_LONG:
        return va_arg(args->list, unsigned long);
    case LENGTH_LLONG:
        return va_arg(args->list, unsigned long long);
    case LENGTH_SIZE:
        return va_arg(args->list, size_t);
    case LENGTH_MAX:
        return va_arg(args->list, uintmax_t);
    default:
        return va_arg(args->list, unsigned);
    }
}

static void put_signed(struct cw_out *out, const struct spec *spec, struct args *args)
{
    int64_t value = next_signed(spec->length, args);
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    put_number(out, spec, value < 0 ? "-" : "", magnitude, 10);
}

static void put_text(struct cw_out *out, const struct spec *spec, struct args *args)
{
    const char *text = va_arg(args->list, const char *);

    if (!text)
        text = "(null)";
    put_padded(out, spec, text, strnlen(text, spec->precision));
}

static void put_character(struct cw_out *out, const struct spec *spec, struct args *args)
{
    char c = (char)va_arg(args->list, int);

    put_padded(out, spec, &c, 1);
}

/* Prints one conversion; 0 when the letter is unknown. */
static int put_conversion(struct cw_out *out, char letter, const struct spec *spec,
                          struct args *args)
{
    switch (letter) {
    case 'd':
    case 'i':
        put_signed(out, spec, args);
        return 1;
    case 'u':
        put_number(out, spec, "", next_unsigned(spec->length, args), 10);
        return 1;
    case 'x':
        put_number(out, spec, "", next_unsigned(spec->length, args), 16);
        return 1;
    case 'p':
        put_number(out, spec, "0x", (uintptr_t)va_arg(args->list, void *), 16);
        return 1;
    case 's':
        put_text(out, spec, args);
        return 1;
    case 'c':
        put_character(out, spec, args);
        return 1;
    case '%':
        cw_out_char(out, '%');
        return 1;
    default:
        return 0;
    }
}

static const char *parse_number(const char *at, size_t *number)
{
    *number = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        *number = *number * 10 + (size_t)(*at - '0');
    return at;
}

static const char *parse_width(const char *at, struct spec *spec, struct args *args)
{
    int width;

    if (*at != '*')
        return parse_number(at, &spec->width);
    width = va_arg(args->list, int);
    spec->left |= width < 0;
    spec->width = width < 0 ? 0 - (size_t)width : (size_t)width;
    return at + 1;
}

static const char *parse_precision(const char *at, struct spec *spec, struct args *args)
{
    int precision;

    if (*at != '.')
        return at;
    if (at[1] != '*')
        return parse_number(at + 1, &spec->precision);
    precision = va_arg(args->list, int);
    if (precision >= 0)
        spec->precision = (size_t)precision;
    return at + 2;
}

static const char *parse_length(const char *at, struct spec *spec)
{
    if (at[0] == 'l' && at[1] == 'l') {
        spec->length = LENGTH_LLONG;
        return at + 2;
    }
    if (*at == 'l')
        spec->length = LENGTH_LONG;
    else if (*at == 'z')
        spec->length = LENGTH_SIZE;
    else if (*at == 'j')
        spec->length = LENGTH_MAX;
    else
        return at;
    return at + 1;
}

/* From behind the '%' to the conversion's letter. */
static const char *parse_spec(const char *at, struct spec *spec, struct args *args)
{
    *spec = (struct spec){.precision = SIZE_MAX, .length = LENGTH_INT};
    for (; *at == '-' || *at == '0'; at++) {
        spec->left |= *at == '-';
        spec->zero |= *at == '0';
    }
    at = parse_width(at, spec, args);
    at = parse_precision(at, spec, args);
    return parse_length(at, spec);
}

static void format(struct cw_out *out, const char *fmt, struct args *args)
{
    while (*fmt) {
        const char *percent = strchrnul(fmt, '%');
        const char *letter;
        struct spec spec;

        cw_out_write(out, fmt, (size_t)(percent - fmt));
        if (!*percent)
            return;
        letter = parse_spec(percent + 1, &spec, args);
        if (!put_conversion(out, *letter, &spec, args)) {
            /* The arguments that follow cannot be told apart any more. */
            cw_out_string(out, percent);
            return;
        }
        fmt = letter + 1;
    }
}

void cw_out_vprintf(struct cw_out *out, const char *fmt, va_list ap)
{
    struct args args;

    va_copy(args.list, ap);
    format(out, fmt, &args);
    va_end(args.list);
}

void cw_out_printf(struct cw_out *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    cw_out_vprintf(out, fmt, ap);
    va_end(ap);
}

size_t cw_vformat(char *buf, size_t cap, const char *fmt, va_list ap)
{
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap > 0 ? cap - 1 : 0);
    cw_out_vprintf(&out, fmt, ap);
    if (cap > 0)
        buf[out.len] = '\0';
    return (size_t)out.total;
}

size_t cw_format(char *buf, size_t cap, const char *fmt, ...)
{
    va_list ap;
    size_t len;

    va_start(ap, fmt);
    len = cw_vformat(buf, cap, fmt, ap);
    va_end(ap);
    return len;
}

/* ---- sizes and durations ---- */

/* Tenths of 2^shift in bytes, rounded half up. No overflow: the fraction is below 2^60. */
static uint64_t tenths_of(uint64_t bytes, unsigned shift)
{
    uint64_t fraction = bytes & ((UINT64_C(1) << shift) - 1);

    return (bytes >> shift) * 10 + ((fraction * 10 + (UINT64_C(1) << (shift - 1))) >> shift);
}

char *cw_format_size(char *buf, size_t cap, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    uint64_t tenths;
    unsigned unit = 0;

    if (bytes < 1024) {
        cw_format(buf, cap, "%ju B", (uintmax_t)bytes);
        return buf;
    }
    /* Judged after rounding, so 1023.95 KiB becomes 1.0 MiB. */
    while ((tenths = tenths_of(bytes, 10 * (unit + 1))) >= 10240 && units[unit + 1])
        unit++;
    cw_format(buf, cap, "%ju.%ju %ciB", (uintmax_t)(tenths / 10), (uintmax_t)(tenths % 10),
              units[unit]);
    return buf;
}

static void format_clock(char *buf, size_t cap, uint64_t seconds)
{
    uint64_t days = seconds / 86400;
    unsigned hours = (unsigned)(seconds / 3600 % 24);
    unsigned minutes = (unsigned)(seconds / 60 % 60);
    unsigned rest = (unsigned)(seconds % 60);

    if (days > 0)
        cw_format(buf, cap, "%jud %02u:%02u:%02u", (uintmax_t)days, hours, minutes, rest);
    else
        cw_format(buf, cap, "%02u:%02u:%02u", hours, minutes, rest);
}

char *cw_format_duration(char *buf, size_t cap, uint64_t ns)
{
    const uint64_t ms = UINT64_C(1000000);
    const uint64_t second = 1000 * ms;

    /* Judged after rounding too: never "1.000s" or "60.0s". A clock shows the seconds gone by. */
    if (ns < ms)
        cw_format(buf, cap, "%uus", (unsigned)(ns >= 1000 || ns == 0 ? ns / 1000 : 1));
    else if (ns < second - ms / 2)
        cw_format(buf, cap, "0.%03us", (unsigned)((ns + ms / 2) / ms));
    else if (ns < 60 * second - 50 * ms)
        cw_format(buf, cap, "%u.%us", (unsigned)((ns + 50 * ms) / second),
                  (unsigned)((ns + 50 * ms) / (100 * ms) % 10));
    else
        format_clock(buf, cap, ns < 60 * second ? 60 : ns / second);
    return buf;
}

void cw_out_printable(struct cw_out *out, const char *text, size_t len)
{
    for (size_t at = 0, size; at < len; at += size) {
        int is_printable;

        size = cw_printable_scan(text + at, len - at, &is_printable);
        if (is_printable)
            cw_out_write(out, text + at, size);
        else
            cw_out_char(out, '?');
    }
}

/* ---- JSON ---- */

static void put_json_ascii(struct cw_out *out, unsigned char byte)
{
    static const char named[] = "\b\f\n\r\t\"\\";
    static const char letter[] = "bfnrt\"\\";
    const char *found = byte ? strchr(named, byte) : NULL;

    if (found)
        cw_out_printf(out, "\\%c", letter[found - named]);
    else if (byte < 0x20 || byte == 0x7f)
        cw_out_printf(out, "\\u%04x", byte);
    else
        cw_out_char(out, (char)byte);
}

/* Bytes that stand for themselves: most of them, so they go out at once. */
static size_t count_json_plain(const unsigned char *at, size_t len)
{
    size_t n = 0;

    while (n < len && at[n] >= 0x20 && at[n] < 0x7f && at[n] != '"' && at[n] != '\\')
        n++;
    return n;
}

void cw_out_json_string(struct cw_out *out, const char *s, size_t len)
{
    const unsigned char *at = (const unsigned char *)s;
    size_t n;

    cw_out_char(out, '"');
    for (size_t i = 0; i < len; i += n) {
        int complete, is_printable;

        n = count_json_plain(at + i, len - i);
        if (n > 0) {
            cw_out_write(out, at + i, n);
            continue;
        }
        n = 1;
        if (at[i] < 0x80) {
            put_json_ascii(out, at[i]);
            continue;
        }
        n = cw_utf8_scan(s + i, len - i, &complete);
        (void)cw_printable_scan(s + i, len - i, &is_printable);
        if (is_printable)
            cw_out_write(out, at + i, n);
        else if (complete) /* none of them is past U+FFFF */
            cw_out_printf(out, "\\u%04x", (unsigned)cw_utf8_decode(s + i, n));
        else
            cw_out_string(out, CW_UTF8_REPLACEMENT);
    }
    cw_out_char(out, '"');
}
