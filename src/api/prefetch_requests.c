/* SPDX-License-Identifier: MIT */
/* What a prefetch is asked for: requests are started, ordered, waited for and cancelled, by threads
 * of the program. See prefetches.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "api/arrivals.h"
#include "api/prefetch_table.h"
#include "api/row_memory.h"
#include "base/mem.h"
#include "base/reason.h"
#include "base/sys.h"
#include "core/tags/tag.h"

static int refused(const struct cw_prefetch_row *row, int code, const char *what)
{
    return cw_rows_refused(&cw_prefetches, &row->own, code, what);
}

static int no_reader(const struct cw_prefetch_row *row)
{
    return cw_api_fail(CUWARDEN_OUT_OF_HOST, "prefetch '%s' cannot have a thread that reads",
                       row->own.name);
}

/* ---- starting ---- */

static int check_start(const struct cw_prefetch_row *row, struct cw_prefetch_request *wanted,
                       const char *path, int fd)
{
    struct cw_bridge_memory memory = {0};
    int error = CUWARDEN_OK;

    if (path != NULL ? path[0] == '\0' : fd < 0)
        return cw_api_fail(CUWARDEN_INVALID,
                           "prefetch '%s' needs the path of a file, or one that is open",
                           row->own.name);
    if (wanted->offset > INT64_MAX || wanted->bytes > INT64_MAX - wanted->offset)
        return cw_api_fail(CUWARDEN_INVALID,
                           "prefetch '%s' cannot read %ju bytes at %ju: no file is so large",
                           row->own.name, (uintmax_t)wanted->bytes, (uintmax_t)wanted->offset);
    if (wanted->bytes != 0)
        error = cw_rows_check_memory(&cw_prefetches, &row->own, cw_prefetch_memory, &row->own.place,
                                     (const void *)(uintptr_t)wanted->to, wanted->bytes, &memory);
    wanted->base = memory.base;
    return error;
}

/* The request keeps the path, or an open file of its own. */
static int take_file(const struct cw_prefetch_row *row, struct cw_prefetch_request *wanted,
                     const char *path, int fd)
{
    size_t bytes = path != NULL ? strlen(path) + 1 : 0;

    wanted->fd_was = fd;
    wanted->fd = path == NULL ? cw_sys_fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    wanted->path = path != NULL ? cw_mem_alloc(bytes) : NULL;
    if (wanted->path != NULL)
        memcpy(wanted->path, path, bytes);
    if (path == NULL && wanted->fd < 0)
        return cw_api_fail(CUWARDEN_SYSTEM, "prefetch '%s' cannot read file descriptor %d: %s",
                           row->own.name, fd, cw_reason(errno));
    return path == NULL || wanted->path != NULL
               ? CUWARDEN_OK
               : cw_api_fail(CUWARDEN_OUT_OF_HOST, "prefetch '%s' has no memory for a path",
                             row->own.name);
}

static void give_file_back(const struct cw_prefetch_request *wanted)
{
    if (wanted->fd >= 0)
        cw_sys_close(wanted->fd);
    if (wanted->path != NULL)
        cw_mem_free(wanted->path, strlen(wanted->path) + 1);
}

/* Whether there is room for one more; what was there has been answered. */
static int check_room(struct cw_prefetch_row *row)
{
    const struct cw_prefetch_request *next = cw_prefetch_at(row, row->last + 1);
    int is_free;

    cw_prefetch_settle(row);
    cw_lock_acquire(&cw_prefetches.lock);
    is_free = next->number == 0 || next->stage == CUWARDEN_ARRIVED;
    row->refused += !is_free;
    cw_lock_release(&cw_prefetches.lock);
    return is_free ? CUWARDEN_OK
                   : cw_api_fail(CUWARDEN_BUSY,
                                 "prefetch '%s' has %u files on their way, as many as can be: "
                                 "cuwarden_prefetch_wait() first",
                                 row->own.name, CW_PREFETCH_REQUESTS);
}

static void publish(struct cw_prefetch_row *row, const struct cw_prefetch_request *wanted)
{
    struct cw_prefetch_request *request = cw_prefetch_at(row, row->last + 1);
    struct cw_prefetch_request old;

    cw_lock_acquire(&cw_prefetches.lock);
    old = *request;
    *request = *wanted;
    request->number = ++row->last;
    cw_prefetch_guard_locked();
    cw_lock_release(&cw_prefetches.lock);
    if (old.number != 0)
        give_file_back(&old);
}

static int start(struct cw_prefetch_row *row, struct cw_prefetch_request *wanted, void *stream)
{
    void *ready = cw_prefetch_events_at(row, row->last + 1)->ready;
    int code;

    wanted->is_after = stream != CUWARDEN_NO_STREAM;
    if (!cw_gate_enter_wait()) /* it waits beside a free by the driver */
        return cw_api_busy();
    code = cw_prefetch_lost_code(row);
    if (code == 0 && wanted->is_after)
        code = cw_prefetch_driver->event_record(ready, stream);
    cw_gate_leave_wait();
    if (code != 0)
        return refused(row, code, "start");
    if (cw_prefetch_wake() != 0)
        return no_reader(row);
    wanted->number = row->last + 1;
    wanted->tag = cw_tag_here();
    publish(row, wanted);
    /* It may have gone to rest meanwhile. If it cannot come back, that is the request's answer. */
    cw_prefetch_wake();
    return CUWARDEN_OK;
}

static int check_and_start(struct cw_prefetch_row *row, struct cw_prefetch_request *wanted,
                           const char *path, int fd, void *stream)
{
    int error = check_start(row, wanted, path, fd);

    if (error == CUWARDEN_OK)
        error = check_room(row);
    if (error != CUWARDEN_OK)
        return error;
    error = take_file(row, wanted, path, fd);
    if (error == CUWARDEN_OK)
        error = start(row, wanted, stream);
    if (error != CUWARDEN_OK)
        give_file_back(wanted);
    return error;
}

int cw_api_prefetch_start(uint64_t prefetch, const char *path, int fd, uint64_t offset,
                          uint64_t bytes, void *to, void *stream, uint64_t *out_number)
{
    struct cw_prefetch_request wanted = {
        .offset = offset, .bytes = bytes, .to = (uint64_t)(uintptr_t)to, .fd = -1};
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_prefetches, prefetch, 1, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = check_and_start(cw_prefetch_of(&visit), &wanted, path, fd, stream);
    cw_rows_end_call(&cw_prefetches, &visit);
    if (error == CUWARDEN_OK && out_number != NULL)
        *out_number = wanted.number;
    return error;
}

/* ---- how far it is ---- */

static int too_old(const struct cw_prefetch_row *row, uint64_t number)
{
    return cw_api_fail(CUWARDEN_NOT_FOUND,
                       "prefetch '%s' keeps the answers of its last %u files: %ju is older",
                       row->own.name, CW_PREFETCH_REQUESTS, (uintmax_t)number);
}

/* number 0: of the last one. NOT_FOUND. */
static int find(struct cw_prefetch_row *row, uint64_t number, struct cw_prefetch_request *out)
{
    uint64_t last;

    cw_lock_acquire(&cw_prefetches.lock);
    last = row->last;
    *out = *cw_prefetch_at(row, number != 0 ? number : last);
    cw_lock_release(&cw_prefetches.lock);
    if (number == 0 && last == 0)
        return cw_api_fail(CUWARDEN_NOT_FOUND, "prefetch '%s' has started no file", row->own.name);
    if (number == 0 || out->number == number)
        return CUWARDEN_OK;
    return number > last ? cw_api_fail(CUWARDEN_NOT_FOUND,
                                       "prefetch '%s' has started no file %ju: the last is %ju",
                                       row->own.name, (uintmax_t)number, (uintmax_t)last)
                         : too_old(row, number);
}

/* The lock is held, so that the path stays. */
static int fail_as_locked(const struct cw_prefetch_row *row,
                          const struct cw_prefetch_request *request)
{
    const char *name = row->own.name;

    if (request->error == CUWARDEN_OUT_OF_HOST)
        return no_reader(row);
    if (request->error == CUWARDEN_DRIVER)
        return refused(row, request->code, "bring a file");
    if (request->error == CUWARDEN_NOT_FOUND)
        return cw_api_fail(CUWARDEN_NOT_FOUND,
                           "prefetch '%s' has stopped after %ju of %ju bytes: the block at %p was "
                           "freed",
                           name, (uintmax_t)request->handed, (uintmax_t)request->bytes,
                           (const void *)(uintptr_t)request->to);
    if (request->path == NULL)
        return cw_api_fail(CUWARDEN_SYSTEM,
                           "prefetch '%s' cannot read file descriptor %d: %s (errno %d)", name,
                           request->fd_was, cw_reason(request->code), request->code);
    return cw_api_fail(CUWARDEN_SYSTEM, "prefetch '%s' cannot read '%s': %s (errno %d)", name,
                       request->path, cw_reason(request->code), request->code);
}

/* What a request that is read has come to. */
static int answer(struct cw_prefetch_row *row, uint64_t number, uint64_t *out_bytes)
{
    const struct cw_prefetch_request *request = cw_prefetch_at(row, number);
    struct cw_prefetch_request seen;
    int error = find(row, number, &seen);

    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_prefetches.lock);
    if (request->number != number)
        error = seen.error != CUWARDEN_OK ? too_old(row, number) : CUWARDEN_OK;
    else if (request->error != CUWARDEN_OK)
        error = fail_as_locked(row, request);
    cw_lock_release(&cw_prefetches.lock);
    if (error == CUWARDEN_OK && out_bytes != NULL)
        *out_bytes = seen.handed;
    return error;
}

int cw_api_prefetch_stage(uint64_t prefetch, uint64_t number, int32_t *out)
{
    struct cw_prefetch_request seen;
    struct cw_row_visit visit;
    int error = out == NULL ? cw_api_fail(CUWARDEN_INVALID, "a stage needs a place")
                            : cw_rows_begin_call(&cw_prefetches, prefetch, 0, &visit);
    struct cw_prefetch_row *row;

    if (error != CUWARDEN_OK)
        return error;
    row = cw_prefetch_of(&visit);
    cw_prefetch_settle(row);
    error = refused(row, cw_prefetch_lost_code(row), "go on");
    if (error == CUWARDEN_OK)
        error = find(row, number, &seen);
    cw_rows_end_call(&cw_prefetches, &visit);
    if (error == CUWARDEN_OK)
        *out = seen.stage;
    return error;
}

/* ---- waiting ---- */

static void note_wait(struct cw_prefetch_row *row, uint64_t number, void (*note)(struct cw_waits *))
{
    struct cw_prefetch_request *request = cw_prefetch_at(row, number);

    cw_lock_acquire(&cw_prefetches.lock);
    if (request->number == number) /* else a later one has its place */
        note(&request->waits);
    cw_lock_release(&cw_prefetches.lock);
}

static int check_reader(void)
{
    return cw_prefetch_is_stopped()
               ? cw_api_fail(CUWARDEN_NOT_ACTIVE, "the process ends, and reads no more files")
               : cw_api_check_driver();
}

/* Until its file is read, and all of it is the driver's. BUSY: the reader is held up, maybe by a
 * thread that captures and waits for this one. */
static int wait_read(struct cw_prefetch_row *row, uint64_t number, struct cw_prefetch_request *out)
{
    uint64_t waited = 0;
    unsigned turns = 0;
    int error;

    while ((error = find(row, number, out)) == CUWARDEN_OK && out->stage == CUWARDEN_READING &&
           (error = out->is_captured ? cw_api_busy() : check_reader()) == CUWARDEN_OK) {
        if (waited == 0)
            note_wait(row, out->number, cw_waits_begin);
        number = waited = out->number;
        cw_lock_doze(&turns);
    }
    if (waited != 0)
        note_wait(row, waited, cw_waits_end);
    return error;
}

/* Until the device has all of it. BUSY: it may, but the driver cannot be asked now. */
static int wait_copied(struct cw_prefetch_row *row, uint64_t number)
{
    struct cw_prefetch_request seen;
    int error, code;

    if (!cw_gate_enter_wait())
        return cw_api_busy();
    code = cw_prefetch_lost_code(row);
    if (code == 0)
        code = cw_prefetch_driver->event_wait(cw_prefetch_events_at(row, number)->done);
    cw_gate_leave_wait();
    if (code != 0 && !cw_arrival_is_captured(code))
        return refused(row, code, "be waited for");
    cw_prefetch_settle(row);
    error = find(row, number, &seen);
    return error == CUWARDEN_OK && seen.stage == CUWARDEN_ARRIVING ? cw_api_busy() : error;
}

static int wait_arrived(struct cw_prefetch_row *row, uint64_t number, uint64_t *out_bytes)
{
    struct cw_prefetch_request seen;
    int error = wait_read(row, number, &seen);

    if (error != CUWARDEN_OK)
        return error;
    number = seen.number;
    cw_prefetch_settle(row);
    error = find(row, number, &seen);
    if (error == CUWARDEN_OK && seen.stage == CUWARDEN_ARRIVING) {
        note_wait(row, number, cw_waits_begin);
        error = wait_copied(row, number);
        note_wait(row, number, cw_waits_end);
    }
    return error != CUWARDEN_OK ? error : answer(row, number, out_bytes);
}

int cw_api_prefetch_wait(uint64_t prefetch, uint64_t number, uint64_t *out_bytes)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_prefetches, prefetch, 0, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = wait_arrived(cw_prefetch_of(&visit), number, out_bytes);
    cw_rows_end_call(&cw_prefetches, &visit);
    return error;
}

static int hold_back(struct cw_prefetch_row *row, uint64_t number, void *stream)
{
    int code;

    if (!cw_gate_enter_wait()) /* so does this */
        return cw_api_busy();
    code = cw_prefetch_lost_code(row);
    if (code == 0)
        code = cw_prefetch_driver->event_order(cw_prefetch_events_at(row, number)->done, stream);
    cw_gate_leave_wait();
    return refused(row, code, "hold others back");
}

/* An event that is recorded later than a stream waits for it holds nothing back, and a value in
 * memory that a stream waits for would hold up frees, which the reader's calls wait for in turn:
 * so the stream can be ordered only once the driver has the last copy. */
int cw_api_prefetch_before(uint64_t prefetch, uint64_t number, void *stream)
{
    struct cw_prefetch_request seen;
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_prefetches, prefetch, 0, &visit);
    struct cw_prefetch_row *row = cw_prefetch_of(&visit);

    if (error != CUWARDEN_OK)
        return error;
    error = wait_read(row, number, &seen);
    if (error == CUWARDEN_OK)
        error = answer(row, seen.number, NULL);
    if (error == CUWARDEN_OK)
        error = hold_back(row, seen.number, stream);
    cw_rows_end_call(&cw_prefetches, &visit);
    return error;
}

int cw_api_prefetch_cancel(uint64_t prefetch, uint64_t number)
{
    struct cw_row_visit visit;
    int error = cw_rows_take(&cw_prefetches, prefetch, 0, &visit);
    struct cw_prefetch_row *row = cw_prefetch_of(&visit);

    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_prefetches.lock);
    for (unsigned i = 0; i < CW_PREFETCH_REQUESTS; i++)
        if (row->request[i].number != 0 && (number == 0 || row->request[i].number == number))
            cw_prefetch_cut_locked(&row->request[i], CUWARDEN_OK);
    cw_lock_release(&cw_prefetches.lock);
    cw_rows_give_up(&cw_prefetches, &visit);
    return CUWARDEN_OK;
}
