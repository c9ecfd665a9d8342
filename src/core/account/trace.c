/* SPDX-License-Identifier: MIT */
/* The window of the file, and its lines. See trace.h. */
#include "core/account/trace.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/file_room.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "core/account/owner.h"
#include "core/account/site.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "live/view.h"

#define WINDOW       (UINT64_C(1) << 20)
#define LINE_MAX_LEN 512u
#define NAME_MAX_LEN 256u /* of a function */

CW_HOT_DATA _Atomic int cw_trace_on;

static struct {
    struct cw_lock lock;
    struct cw_arena *arena;
    const char *path;
    int fd;
    dev_t device;
    ino_t inode;
    char *base;              /* of the window's addresses, which stay for the life of the process */
    uint64_t start;          /* of the window in the file */
    _Atomic uint64_t length; /* of all lines so far */
    _Atomic int ended;
} self = {.lock = CW_LOCK_INIT(CW_RANK_TRACE), .fd = -1};

/* ---- the window ---- */

/* 1 if there was one. */
static int end_file(void)
{
    return (atomic_fetch_and(&cw_trace_on, ~CW_TRACE_FILE) & CW_TRACE_FILE) != 0;
}

/* 0 if it is our file, ESTALE if it is another, or the errno. */
static int check_file(int fd)
{
    struct stat info;

    if (fd < 0)
        return EBADF;
    if (cw_sys_stat(fd, &info) != 0)
        return errno;
    return info.st_ino == self.inode && info.st_dev == self.device ? 0 : ESTALE;
}

/* The program may have closed our descriptor and reused its number for another file. */
static int find_file(void)
{
    int error = check_file(self.fd), fd;

    if (error != EBADF && error != ESTALE)
        return error;
    fd = cw_sys_open(self.path, O_RDWR | O_NOFOLLOW, 0);
    if (fd >= 0 && check_file(fd) == 0) {
        self.fd = fd;
        return 0;
    }
    if (fd >= 0)
        cw_sys_close(fd);
    self.fd = -1;
    return ENOENT;
}

/* A thread that still writes does so to pages that nobody reads. */
static void cover_window(void)
{
    mmap(self.base, WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* 0, or the errno, with the window as it was or covered. */
static int move_window(uint64_t start)
{
    int error = find_file();

    if (error == 0)
        error = cw_file_room_take(self.fd, start, WINDOW);
    if (error != 0)
        return error;
    if (mmap(self.base, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, self.fd,
             (off_t)start) == MAP_FAILED) {
        error = errno;
        cover_window();
        return error;
    }
    self.start = start;
    /* The end of the process did not wait for this thread: the file may be shorter than the window
     * now. */
    if (atomic_load(&self.ended))
        cover_window();
    return 0;
}

static void cut_file(void)
{
    if (find_file() == 0)
        (void)!syscall(SYS_ftruncate, self.fd, (long)atomic_load(&self.length));
}

/* The error of the first line that found no room, else 0. */
static int put_line(const char *line, size_t len)
{
    uint64_t at;
    int error = 0;

    cw_lock_acquire(&self.lock);
    at = atomic_load_explicit(&self.length, memory_order_relaxed);
    while (len > 0 && error == 0 && cw_trace_has_file()) {
        size_t some = (size_t)(self.start + WINDOW - at);

        if (some == 0) {
            error = move_window(at);
            continue;
        }
        some = some < len ? some : len;
        memcpy(self.base + (at - self.start), line, some);
        line += some;
        len -= some;
        at += some;
    }
    if (error == 0 && len == 0)
        atomic_store(&self.length, at);
    else if (error != 0) {
        end_file();
        cover_window();
        cut_file();
    }
    cw_lock_release(&self.lock);
    return error;
}

/* The addresses stay for the life of the process: a thread may still write to them. */
static int make_window(void)
{
    void *base = self.base;

    if (base == NULL)
        base = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return errno;
    self.base = base;
    return 0;
}

static void close_file(void)
{
    if (check_file(self.fd) == 0)
        cw_sys_close(self.fd);
    self.fd = -1;
}

static int begin_locked(struct cw_arena *arena, int fd, const char *path)
{
    struct stat info;
    int error;

    if (cw_trace_has_file())
        return EBUSY;
    /* Of a trace that ended for want of room, unless the program has closed it and the number came
     * again. */
    if (self.fd != fd)
        close_file();
    error = cw_sys_stat(fd, &info) != 0 ? errno : make_window();
    if (error != 0)
        return error;
    self.arena = arena;
    self.path = path;
    self.fd = fd;
    self.device = info.st_dev;
    self.inode = info.st_ino;
    atomic_store(&self.length, sizeof(CW_TRACE_HEADER) - 1);
    atomic_store(&self.ended, 0);
    error = move_window(0);
    if (error != 0) {
        self.fd = -1;
        return error;
    }
    memcpy(self.base, CW_TRACE_HEADER, sizeof(CW_TRACE_HEADER) - 1);
    atomic_fetch_or(&cw_trace_on, CW_TRACE_FILE);
    return 0;
}

int cw_trace_begin(struct cw_arena *arena, int fd, const char *path)
{
    int error;

    cw_lock_acquire(&self.lock);
    error = begin_locked(arena, fd, path);
    cw_lock_release(&self.lock);
    return error;
}

int cw_trace_stop(void)
{
    int was_on;

    cw_lock_acquire(&self.lock);
    was_on = end_file();
    if (was_on) {
        cover_window();
        cut_file();
        close_file();
    }
    cw_lock_release(&self.lock);
    return was_on ? 0 : -1;
}

void cw_trace_end(void)
{
    if (!end_file())
        return;
    atomic_store(&self.ended, 1);
    cover_window();
    cut_file();
}

void cw_trace_reset(void)
{
    int was_on = end_file();

    cw_lock_reset(&self.lock);
    if (was_on) {
        munmap(self.base, WINDOW);
        self.base = NULL;
        close_file();
    }
}

/* ---- lines ---- */

static char *put_text(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

static char *put_decimal(char *at, uint64_t value)
{
    char digits[20];
    unsigned len = 0;

    do
        digits[len++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    while (len > 0)
        *at++ = digits[--len];
    return at;
}

/* With zeros in front. */
static char *put_padded(char *at, uint64_t value, unsigned width)
{
    for (unsigned i = width; i-- > 0; value /= 10)
        at[i] = (char)('0' + value % 10);
    return at + width;
}

static char *put_hex(char *at, uint64_t value)
{
    unsigned shift = value != 0 ? (63u - (unsigned)__builtin_clzll(value)) / 4 * 4 : 0;

    for (;; shift -= 4) {
        *at++ = "0123456789abcdef"[value >> shift & 15];
        if (shift == 0)
            return at;
    }
}

/* Since the session began, by the exact clock: the session's own ticks every few milliseconds. */
static uint64_t elapsed_ns(void)
{
    uint64_t start = cw_session.start_ns, now_ns = cw_clock_ns();

    return now_ns > start ? now_ns - start : 0;
}

/* UTC: local time would need system files. */
static char *put_time(char *at, uint64_t elapsed)
{
    uint64_t us = (cw_session.start_realtime_ns + elapsed) / 1000;
    unsigned second = (unsigned)(us / 1000000 % 86400);

    at = put_padded(at, second / 3600, 2);
    *at++ = ':';
    at = put_padded(at, second / 60 % 60, 2);
    *at++ = ':';
    at = put_padded(at, second % 60, 2);
    *at++ = '.';
    return put_padded(at, us % 1000000, 6);
}

struct line {
    const char *action;
    uint64_t pointer, bytes, stream;
    uint64_t id; /* of the allocation; 0: it failed */
    uint8_t device;
    uint8_t kind;
    uint32_t api;
};

static char *put_name(char *at, uint32_t text)
{
    const char *name = cw_arena_text_at(self.arena, text);

    return put_text(at, name, strnlen(name, NAME_MAX_LEN));
}

static size_t make_line(char *buf, const struct line *line)
{
    const char *kind = cw_kind_name(line->kind);
    uint64_t elapsed = elapsed_ns();
    char *at = put_decimal(buf, cw_thread_tid());

    *at++ = ',';
    at = put_time(at, elapsed);
    *at++ = ',';
    at = put_text(at, line->action, strlen(line->action));
    if (line->pointer != 0) {
        at = put_text(at, ",0x", 3);
        at = put_hex(at, line->pointer);
    } else /* as printf and RMM have it */
        at = put_text(at, ",(nil)", 6);
    *at++ = ',';
    at = put_decimal(at, line->bytes);
    *at++ = ',';
    at = put_hex(at, line->stream);
    *at++ = ',';
    if (line->device < CW_MAX_DEVICES)
        at = put_decimal(at, line->device);
    else
        at = put_text(at, "host", 4);
    *at++ = ',';
    at = put_text(at, kind, strlen(kind));
    *at++ = ',';
    at = put_name(at, line->api);
    *at++ = ',';
    at = put_decimal(at, elapsed);
    *at++ = ',';
    if (line->id != 0)
        at = put_decimal(at, line->id);
    *at++ = '\n';
    return (size_t)(at - buf);
}

static void write_line(const struct line *line)
{
    char buf[LINE_MAX_LEN];
    int saved = errno; /* the program's */
    int error = put_line(buf, make_line(buf, line));

    if (CW_UNLIKELY(error != 0))
        cw_log(CW_LOG_WARN,
               "the trace '%s' ends here: %s (errno %d); the program runs on without it; "
               "CUWARDEN_TRACE=FILE names another place",
               self.path, cw_reason(error), error);
    errno = saved;
}

void cw_trace_begin_otel(void)
{
    atomic_fetch_or(&cw_trace_on, CW_TRACE_OTEL);
}

static void fire_otel(const struct cw_live_block *block, int is_free)
{
    uint64_t key = atomic_load_explicit(&block->key, memory_order_relaxed);

    if (is_free)
        cw_probe_otel_free(key);
    else
        cw_probe_otel_alloc(key, atomic_load_explicit(&block->bytes, memory_order_relaxed));
}

void cw_trace_block(uint32_t index, int is_free)
{
    const struct cw_live_block *block = cw_arena_at(cw_site_arena, CW_TABLE_BLOCK, index);
    const struct cw_live_site *site =
        cw_site_own(cw_site_at(atomic_load_explicit(&block->site, memory_order_relaxed)));

    if (cw_kind_counted(site->kind) == CW_COUNTED_NONE)
        return;
    if ((atomic_load_explicit(&cw_trace_on, memory_order_relaxed) & CW_TRACE_OTEL) != 0 &&
        site->device != CW_DEVICE_HOST)
        fire_otel(block, is_free);
    if (!cw_trace_has_file())
        return;
    write_line(&(struct line){
        .action = is_free ? "free" : "allocate",
        .pointer = atomic_load_explicit(&block->key, memory_order_relaxed),
        .bytes = atomic_load_explicit(&block->bytes, memory_order_relaxed),
        .stream = cw_thread.stream,
        .device = site->device,
        .kind = site->kind,
        .api = site->api,
        .id = cw_owner_id(index),
    });
}

void cw_trace_failed(const struct cw_request *request, uint32_t api)
{
    if (!cw_trace_has_file())
        return;
    write_line(&(struct line){.action = "allocate failure",
                              .bytes = request->bytes,
                              .stream = cw_thread.stream,
                              .device = request->device,
                              .kind = (uint8_t)request->kind,
                              .api = api});
}
