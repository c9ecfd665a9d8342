/* SPDX-License-Identifier: MIT */
/* See downloads.h. */
#include "api/downloads.h"

#include <string.h>

#include "api/blocks.h"
#include "api/download_table.h"
#include "base/round.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"

#define ALIGNMENT  ((uint64_t)4096)    /* of a half: a page */
#define MOST_BYTES ((uint64_t)1 << 46) /* two of them are more than a process can address */

static struct cw_download_row rows[CW_DOWNLOADS];
struct cw_lock cw_download_lock = CW_LOCK_INIT(CW_RANK_DOWNLOAD);
static uint64_t serial; /* of the last download; guarded by the lock */
static const struct cw_buffer_ops *places;
const struct cw_transfer_ops *cw_download_driver;

void cw_api_downloads_init(const struct cw_buffer_ops *its_places,
                           const struct cw_transfer_ops *ops)
{
    places = its_places;
    cw_download_driver = ops;
}

void cw_api_downloads_reset(void)
{
    cw_lock_reset(&cw_download_lock);
    /* Ids go on, so that none of the parent's is one of the child's. */
    memset(rows, 0, sizeof(rows));
    cw_transfers_reset();
}

/* ---- calls ---- */

int cw_download_refused(const struct cw_download_row *row, int code, const char *what)
{
    if (code == 0)
        return CUWARDEN_OK;
    return cw_api_fail(CUWARDEN_DRIVER, "download '%s' cannot %s: %s is %d", row->name, what,
                       code == CW_BUFFER_CONTEXT_ENDED ? "its context has ended; the driver's code"
                                                       : "the driver's code",
                       code);
}

static struct cw_download_row *row_of_locked(uint64_t download)
{
    struct cw_download_row *row = &rows[download & (CW_DOWNLOADS - 1)];

    return download != 0 && row->id == download ? row : NULL;
}

int cw_download_take(uint64_t download, int is_submitting, int alone,
                     struct cw_download_visit *visit)
{
    struct cw_download_row *row;
    int is_busy = 0;

    cw_lock_acquire(&cw_download_lock);
    row = row_of_locked(download);
    if (row != NULL) {
        is_busy = (is_submitting && row->is_submitting) || (alone && row->users != 0);
        if (!is_busy) {
            row->users++;
            row->is_submitting |= is_submitting;
        }
    }
    cw_lock_release(&cw_download_lock);
    *visit = (struct cw_download_visit){.row = row, .is_submitting = is_submitting};
    if (row == NULL)
        return cw_api_not_there("download", download);
    return is_busy
               ? cw_api_fail(CUWARDEN_BUSY, "another thread is at work on download %ju; ask again",
                             (uintmax_t)download)
               : CUWARDEN_OK;
}

void cw_download_give_up(struct cw_download_visit *visit)
{
    cw_lock_acquire(&cw_download_lock);
    visit->row->users--;
    if (visit->is_submitting)
        visit->row->is_submitting = 0;
    cw_lock_release(&cw_download_lock);
}

static int enter(struct cw_download_visit *visit)
{
    int code;

    visit->depth = cw_api_enter();
    code = places->enter(visit->row->place.context, &visit->pushed);
    if (code == 0)
        return CUWARDEN_OK;
    cw_api_leave(visit->depth);
    return cw_download_refused(visit->row, code, "go on");
}

static void leave(struct cw_download_visit *visit)
{
    places->leave(visit->row->place.context, visit->pushed);
    cw_api_leave(visit->depth);
}

int cw_download_begin_call(uint64_t download, int is_submitting, struct cw_download_visit *visit)
{
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = cw_download_take(download, is_submitting, 0, visit);
    if (error != CUWARDEN_OK)
        return error;
    error = enter(visit);
    if (error != CUWARDEN_OK)
        cw_download_give_up(visit);
    return error;
}

void cw_download_end_call(struct cw_download_visit *visit)
{
    leave(visit);
    cw_download_give_up(visit);
}

/* ---- making and ending ---- */

static int check_make(const char *name, uint64_t most_bytes, const uint64_t *out)
{
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (name == NULL || name[0] == '\0' || out == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "a download needs a name, and a place for its number");
    if (strlen(name) >= CW_DOWNLOAD_NAME_MAX)
        return cw_api_fail(CUWARDEN_INVALID,
                           "the name '%.20s...' of a download has %zu bytes, and may have %u", name,
                           strlen(name), CW_DOWNLOAD_NAME_MAX - 1);
    if (most_bytes == 0 || most_bytes > MOST_BYTES)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a frame of download '%s' would have %ju bytes: 1 to %ju can be", name,
                           (uintmax_t)most_bytes, (uintmax_t)MOST_BYTES);
    return cw_api_check_driver();
}

/* A row that its maker alone works on; NULL, and whether the name is in the way. */
static struct cw_download_row *take_row(const char *name, uint64_t *out_id, int *out_exists)
{
    struct cw_download_row *taken = NULL;

    *out_exists = 0;
    cw_lock_acquire(&cw_download_lock);
    for (struct cw_download_row *row = rows; row < rows + CW_DOWNLOADS; row++) {
        if (row->name[0] == '\0')
            taken = taken == NULL ? row : taken;
        else if (strcmp(row->name, name) == 0)
            *out_exists = 1;
    }
    if (*out_exists)
        taken = NULL;
    if (taken != NULL) {
        memset(taken, 0, sizeof(*taken));
        memcpy(taken->name, name, strlen(name) + 1);
        *out_id = ++serial * CW_DOWNLOADS + (uint64_t)(taken - rows);
    }
    cw_lock_release(&cw_download_lock);
    return taken;
}

static void give_row_back(struct cw_download_row *row)
{
    cw_lock_acquire(&cw_download_lock);
    memset(row, 0, sizeof(*row));
    cw_lock_release(&cw_download_lock);
}

/* What of the row is there goes; the first code that is none. The context is current. */
static int drop(struct cw_download_row *row)
{
    int code = row->stream != NULL ? cw_download_driver->stream_wait(row->stream) : 0, its;
    void *events[] = {row->ready, row->half[0].begin, row->half[0].done, row->half[1].begin,
                      row->half[1].done};

    cw_download_settle(row);
    for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        its = events[i] != NULL ? cw_download_driver->event_destroy(events[i]) : 0;
        code = code != 0 ? code : its;
    }
    its = row->stream != NULL ? cw_download_driver->stream_destroy(row->stream) : 0;
    code = code != 0 ? code : its;
    its = row->half[0].data != NULL ? cw_download_driver->host_free(row->half[0].data) : 0;
    return code != 0 ? code : its;
}

static int fill(struct cw_download_row *row)
{
    uint64_t each = cw_round_up(row->most_bytes, ALIGNMENT);
    void *data = NULL;
    int code = cw_download_driver->host_alloc(CW_DOWNLOAD_HALVES * each, &data);

    if (code == CW_BUFFER_NO_MEMORY)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST,
                           "download '%s' cannot have two frames of %ju bytes of pinned memory",
                           row->name, (uintmax_t)row->most_bytes);
    if (code == 0) {
        if (cw_session_is_armed())
            cw_api_block_own(cw_tracker_find(CW_SPACE_ADDRESS, (uint64_t)(uintptr_t)data),
                             cw_owner_text(row->name));
        code = cw_download_driver->stream_create(&row->stream);
    }
    if (code == 0)
        code = cw_download_driver->event_create(0, &row->ready);
    for (int i = 0; i < CW_DOWNLOAD_HALVES; i++) {
        row->half[i].data = data != NULL ? (char *)data + (uint64_t)i * each : NULL;
        if (code == 0)
            code = cw_download_driver->event_create(1, &row->half[i].begin);
        if (code == 0)
            code = cw_download_driver->event_create(1, &row->half[i].done);
    }
    return cw_download_refused(row, code, "begin");
}

static int make(struct cw_download_row *row, uint64_t most_bytes)
{
    struct cw_download_visit visit = {.row = row};
    unsigned depth = cw_api_enter();
    int code = places != NULL ? places->place(&row->place) : CW_BUFFER_NO_CONTEXT, error;

    cw_api_leave(depth);
    row->most_bytes = most_bytes;
    if (code == CW_BUFFER_NO_CONTEXT)
        return cw_api_fail(CUWARDEN_NOT_STARTED,
                           "download '%s' needs a context: none is current in this thread; "
                           "cudaFree(0) is enough",
                           row->name);
    error = code != 0 ? cw_download_refused(row, code, "begin") : enter(&visit);
    if (error != CUWARDEN_OK)
        return error;
    error = fill(row);
    if (error != CUWARDEN_OK)
        drop(row);
    leave(&visit);
    return error;
}

int cw_api_download_make(const char *name, uint64_t most_bytes, uint64_t *out)
{
    uint64_t id = 0;
    struct cw_download_row *row;
    int exists, error = check_make(name, most_bytes, out);

    if (error != CUWARDEN_OK)
        return error;
    row = take_row(name, &id, &exists);
    if (exists)
        return cw_api_fail(CUWARDEN_EXISTS, "there is a download '%s' already", name);
    if (row == NULL)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST, "no room for download '%s': there are %u already",
                           name, CW_DOWNLOADS);
    error = make(row, most_bytes);
    if (error != CUWARDEN_OK) {
        give_row_back(row);
        return error;
    }
    cw_lock_acquire(&cw_download_lock);
    row->id = id;
    cw_lock_release(&cw_download_lock);
    *out = id;
    return CUWARDEN_OK;
}

int cw_api_download_end(uint64_t download)
{
    struct cw_download_visit visit;
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = cw_download_take(download, 1, 1, &visit);
    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_download_lock);
    visit.row->id = 0;
    cw_lock_release(&cw_download_lock);
    error = enter(&visit);
    if (error == CUWARDEN_OK) {
        error = cw_download_refused(visit.row, drop(visit.row), "end");
        leave(&visit);
    }
    give_row_back(visit.row);
    return error;
}

/* ---- how it stands ---- */

int cw_api_download_now(uint64_t download, struct cuwarden_download *out, size_t size)
{
    struct cuwarden_download now = {.id = download};
    struct cw_download_visit visit;
    int error = cw_download_take(download, 0, 0, &visit);
    const struct cw_download_row *row = visit.row;

    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_download_lock);
    now.name = row->name;
    now.most_bytes = row->most_bytes;
    now.started = row->last;
    now.taken = row->taken;
    now.skipped = row->skipped;
    now.refused = row->refused;
    now.bytes = row->done.bytes;
    now.transfer_ns = row->done.ns;
    now.waited_ns = row->done.waited_ns;
    now.overlap = cw_transfers_overlap(&row->done);
    now.device = row->place.device;
    cw_lock_release(&cw_download_lock);
    cw_download_give_up(&visit);
    cw_api_give(out, size, &now, sizeof(now));
    return CUWARDEN_OK;
}
