/* SPDX-License-Identifier: MIT */
/* What goes through the halves of a download: frames are started, waited for and released. See
 * downloads.h. */
#include "api/arrivals.h"
#include "api/download_table.h"
#include "core/tags/tag.h"

static int refused(const struct cw_download_row *row, int code, const char *what)
{
    return cw_rows_refused(&cw_downloads, &row->own, code, what);
}

/* ---- halves ---- */

static void complete_locked(struct cw_download_row *row, struct cw_half *half, int code,
                            uint64_t ns)
{
    half->state = CW_HALF_COMPLETE;
    half->code = code;
    half->waited_ns = cw_waits_ns(&half->waits);
    if (code != 0)
        return;
    cw_transfers_add(row->own.place.device, half->tag, &row->done, half->bytes, ns,
                     half->waited_ns);
}

/* 0: it is not known whether it has arrived. */
static int settle_half(struct cw_download_row *row, struct cw_half *half)
{
    uint64_t number = 0, ns = 0;
    int code;

    cw_lock_acquire(&cw_downloads.lock);
    if (half->state == CW_HALF_IN_FLIGHT)
        number = half->number;
    cw_lock_release(&cw_downloads.lock);
    if (number == 0)
        return 1;
    code = cw_arrival_ask(cw_download_driver, half->begin, half->done, &ns);
    if (code == CW_TRANSFER_NOT_READY || code == CW_ARRIVAL_NOT_NOW)
        return code == CW_TRANSFER_NOT_READY;
    cw_lock_acquire(&cw_downloads.lock);
    if (half->state == CW_HALF_IN_FLIGHT && half->number == number)
        complete_locked(row, half, code, ns);
    cw_lock_release(&cw_downloads.lock);
    return 1;
}

int cw_download_settle(struct cw_download_row *row)
{
    int is_known = 1;

    for (int i = 0; i < CW_DOWNLOAD_HALVES; i++)
        is_known &= settle_half(row, &row->half[i]);
    return is_known;
}

/* ---- the order of streams ---- */

/* What `to` does later begins after what was submitted to `from`. */
static int order(struct cw_download_row *row, void *from, void *to)
{
    int code = cw_download_driver->event_record(row->ready, from);

    return code != 0 ? code : cw_download_driver->event_order(row->ready, to);
}

int cw_api_download_after(uint64_t download, void *stream, void *event)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_downloads, download, 1, &visit), code;

    if (error != CUWARDEN_OK)
        return error;
    code = event != NULL ? cw_download_driver->event_order(event, cw_download_of(&visit)->stream)
                         : order(cw_download_of(&visit), stream, cw_download_of(&visit)->stream);
    error = refused(cw_download_of(&visit), code, "wait for others");
    cw_rows_end_call(&cw_downloads, &visit);
    return error;
}

int cw_api_download_before(uint64_t download, void *stream)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_downloads, download, 1, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = refused(cw_download_of(&visit),
                    order(cw_download_of(&visit), cw_download_of(&visit)->stream, stream),
                    "hold others back");
    cw_rows_end_call(&cw_downloads, &visit);
    return error;
}

/* ---- starting ---- */

/* The half for the next frame: one that nobody needs, else the older of those that nobody has
 * taken. NULL: none. */
static struct cw_half *pick_locked(struct cw_download_row *row)
{
    struct cw_half *picked = NULL;

    for (struct cw_half *half = row->half; half < row->half + CW_DOWNLOAD_HALVES; half++) {
        if (half->state != CW_HALF_EMPTY && half->state != CW_HALF_COMPLETE)
            continue;
        if (picked == NULL || half->state < picked->state ||
            (half->state == picked->state && half->number < picked->number))
            picked = half;
    }
    return picked;
}

/* *out_before: the half as it was. */
static struct cw_half *begin_frame(struct cw_download_row *row, uint64_t bytes,
                                   struct cw_half *out_before)
{
    struct cw_half *half;

    cw_download_settle(row);
    cw_lock_acquire(&cw_downloads.lock);
    half = pick_locked(row);
    if (half == NULL) {
        row->refused++;
    } else {
        *out_before = *half;
        half->state = CW_HALF_STARTING;
        half->number = ++row->last;
        half->bytes = bytes;
        half->tag = cw_tag_here();
        half->waited_ns = 0;
        half->waits = (struct cw_waits){0};
    }
    cw_lock_release(&cw_downloads.lock);
    return half;
}

/* *out_writes: the contents of the half are no longer what they were. */
static int submit(struct cw_download_row *row, const struct cw_half *half, uint64_t from,
                  void *stream, int *out_writes)
{
    int code = stream != CUWARDEN_NO_STREAM ? order(row, stream, row->stream) : 0;

    if (code == 0)
        code = cw_download_driver->event_record(half->begin, row->stream);
    if (code == 0)
        code = cw_download_driver->download(half->data, from, half->bytes, row->stream);
    *out_writes = code == 0;
    if (code == 0)
        code = cw_download_driver->event_record(half->done, row->stream);
    return code;
}

/* Of a frame that the driver refuses, the one in whose place it would have come is still there. */
static void end_frame(struct cw_download_row *row, struct cw_half *half,
                      const struct cw_half *before, int writes, int code)
{
    cw_lock_acquire(&cw_downloads.lock);
    if (writes) {
        row->skipped += before->state == CW_HALF_COMPLETE;
        half->state = code == 0 ? CW_HALF_IN_FLIGHT : CW_HALF_EMPTY;
    } else {
        *half = *before;
    }
    cw_lock_release(&cw_downloads.lock);
}

static int start(struct cw_download_row *row, uint64_t from, uint64_t bytes, void *stream,
                 uint64_t *out_number)
{
    struct cw_half *half, before;
    uint64_t number;
    int code, writes;

    if (bytes > row->most_bytes)
        return cw_api_fail(CUWARDEN_TOO_LARGE,
                           "download '%s' cannot have a frame of %ju bytes: its maximum is %ju",
                           row->own.name, (uintmax_t)bytes, (uintmax_t)row->most_bytes);
    half = begin_frame(row, bytes, &before);
    if (half == NULL)
        return cw_api_fail(CUWARDEN_BUSY,
                           "download '%s' has no half for another frame: each is on its way, or "
                           "held until it is released",
                           row->own.name);
    number = half->number;
    code = submit(row, half, from, stream, &writes);
    end_frame(row, half, &before, writes, code);
    if (code == 0 && out_number != NULL)
        *out_number = number;
    return refused(row, code, "start");
}

int cw_api_download_start(uint64_t download, const void *from, uint64_t bytes, void *stream,
                          uint64_t *out_number)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_downloads, download, 1, &visit);

    if (error != CUWARDEN_OK)
        return error;
    if (from == NULL || bytes == 0)
        error = cw_api_fail(CUWARDEN_INVALID, "download '%s' cannot start: %s", visit.row->name,
                            from == NULL ? "the address is NULL" : "0 bytes are no frame");
    else
        error = start(cw_download_of(&visit), (uint64_t)(uintptr_t)from, bytes, stream, out_number);
    cw_rows_end_call(&cw_downloads, &visit);
    return error;
}

/* ---- waiting ---- */

/* Of two frames the one to take: complete rather than held, held rather than on its way; of two
 * that are complete the last, of two on their way the first. */
static int is_better(const struct cw_half *half, const struct cw_half *other)
{
    if (half->state != other->state)
        return half->state > other->state;
    return (half->state == CW_HALF_COMPLETE) == (half->number > other->number);
}

/* The half to take, or to wait for; no older frame than the one that was taken last. NULL: there is
 * none with such a number. */
static struct cw_half *choose_locked(struct cw_download_row *row, uint64_t least)
{
    struct cw_half *chosen = NULL;

    if (least < row->seen)
        least = row->seen;
    for (struct cw_half *half = row->half; half < row->half + CW_DOWNLOAD_HALVES; half++)
        if (half->state >= CW_HALF_IN_FLIGHT && half->number >= least &&
            (chosen == NULL || is_better(half, chosen)))
            chosen = half;
    return chosen;
}

static void hold_locked(struct cw_download_row *row, struct cw_half *chosen)
{
    for (struct cw_half *half = row->half; half < row->half + CW_DOWNLOAD_HALVES; half++)
        if (half != chosen && half->state == CW_HALF_HELD)
            half->state = CW_HALF_EMPTY;
    if (chosen->state == CW_HALF_COMPLETE)
        row->taken++;
    chosen->state = CW_HALF_HELD;
    row->seen = chosen->number;
}

static void give_locked(struct cw_download_row *row, struct cw_half *half,
                        struct cuwarden_frame *out)
{
    hold_locked(row, half);
    *out = (struct cuwarden_frame){.data = half->data,
                                   .bytes = half->bytes,
                                   .number = half->number,
                                   .waited_ns = half->waited_ns};
}

/* A frame that is waited for. */
struct awaited {
    struct cw_half *half; /* NULL: none is on its way */
    uint64_t number;
};

/* 1: *out_frame, or the failure of the frame in *out_code. 0: *out_awaited is waited for from now
 * on. */
static int take_frame(struct cw_download_row *row, uint64_t least, struct awaited *out_awaited,
                      struct cuwarden_frame *out_frame, int *out_code)
{
    struct cw_half *half;
    int is_taken;

    cw_lock_acquire(&cw_downloads.lock);
    half = choose_locked(row, least);
    is_taken = half != NULL && half->state != CW_HALF_IN_FLIGHT;
    if (is_taken) {
        *out_code = half->code;
        if (half->code == 0)
            give_locked(row, half, out_frame);
        else
            half->state = CW_HALF_EMPTY;
    } else if (half != NULL) {
        cw_waits_begin(&half->waits);
    }
    *out_awaited = (struct awaited){half, half != NULL ? half->number : 0};
    cw_lock_release(&cw_downloads.lock);
    return is_taken;
}

static void end_wait(const struct awaited *awaited)
{
    cw_lock_acquire(&cw_downloads.lock);
    if (awaited->half->number == awaited->number) /* else it has been filled again */
        cw_waits_end(&awaited->half->waits);
    cw_lock_release(&cw_downloads.lock);
}

/* Another thread is about to submit such a frame, in the place of an older one perhaps. */
static int is_starting(struct cw_download_row *row, uint64_t least)
{
    int is = 0;

    cw_lock_acquire(&cw_downloads.lock);
    for (const struct cw_half *half = row->half; half < row->half + CW_DOWNLOAD_HALVES; half++)
        is |= half->state == CW_HALF_STARTING && half->number >= least;
    cw_lock_release(&cw_downloads.lock);
    return is;
}

static int wait_frame(struct cw_download_row *row, uint64_t least, struct cuwarden_frame *out)
{
    struct awaited awaited;
    unsigned turns = 0;
    int code = 0, is_known;

    for (;;) {
        is_known = cw_download_settle(row);
        if (take_frame(row, least, &awaited, out, &code))
            return refused(row, code, "be completed");
        if (awaited.half == NULL && !is_starting(row, least))
            break;
        if (awaited.half == NULL) {
            cw_lock_doze(&turns);
            continue;
        }
        /* If it has been filled again meanwhile, that is waited for. */
        code =
            is_known ? cw_arrival_wait(cw_download_driver, awaited.half->done) : CW_ARRIVAL_NOT_NOW;
        end_wait(&awaited);
        if (code == CW_ARRIVAL_NOT_NOW)
            return cw_api_busy();
        if (code != 0)
            return refused(row, code, "be waited for");
    }
    return cw_api_fail(CUWARDEN_NOT_FOUND, "download '%s' has no frame%s on its way", row->own.name,
                       least != 0 ? " of this number, and no later one," : "");
}

int cw_api_download_wait(uint64_t download, uint64_t least, struct cuwarden_frame *out, size_t size)
{
    struct cuwarden_frame frame = {0};
    struct cw_row_visit visit;
    int error = cw_rows_begin_call(&cw_downloads, download, 0, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = wait_frame(cw_download_of(&visit), least, &frame);
    cw_rows_end_call(&cw_downloads, &visit);
    if (error == CUWARDEN_OK)
        cw_api_give(out, size, &frame, sizeof(frame));
    return error;
}

int cw_api_download_release(uint64_t download)
{
    struct cw_row_visit visit;
    int error = cw_rows_take(&cw_downloads, download, 0, &visit), was_held = 0;

    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_downloads.lock);
    for (int i = 0; i < CW_DOWNLOAD_HALVES; i++)
        if (cw_download_of(&visit)->half[i].state == CW_HALF_HELD) {
            cw_download_of(&visit)->half[i].state = CW_HALF_EMPTY;
            was_held = 1;
        }
    cw_lock_release(&cw_downloads.lock);
    if (!was_held)
        error = cw_api_fail(CUWARDEN_UNBALANCED, "download '%s' has no frame to release",
                            visit.row->name);
    cw_rows_give_up(&cw_downloads, &visit);
    return error;
}
