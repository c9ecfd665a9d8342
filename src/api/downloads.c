/* SPDX-License-Identifier: MIT */
/* See downloads.h. */
#include "api/downloads.h"

#include "api/blocks.h"
#include "api/download_table.h"
#include "base/round.h"
#include "core/account/owner.h"
#include "core/account/tracker.h"

#define ALIGNMENT  ((uint64_t)4096)    /* of a half: a page */
#define MOST_BYTES ((uint64_t)1 << 46) /* two of them are more than a process can address */

static struct cw_download_row rows[CW_DOWNLOADS];
struct cw_rows cw_downloads = CW_ROWS_INIT("download", rows);
const struct cw_transfer_ops *cw_download_driver;

void cw_api_downloads_init(const struct cw_buffer_ops *its_places,
                           const struct cw_transfer_ops *ops)
{
    cw_downloads.places = its_places;
    cw_download_driver = ops;
}

void cw_api_downloads_reset(void)
{
    cw_rows_reset(&cw_downloads);
    cw_transfers_reset();
}

/* ---- making and ending ---- */

static int check_make(const char *name, uint64_t most_bytes, const uint64_t *out)
{
    int error = cw_rows_check_make(&cw_downloads, name, out);

    if (error != CUWARDEN_OK)
        return error;
    if (most_bytes == 0 || most_bytes > MOST_BYTES)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a frame of download '%s' would have %ju bytes: 1 to %ju can be", name,
                           (uintmax_t)most_bytes, (uintmax_t)MOST_BYTES);
    return cw_api_check_driver();
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
                           row->own.name, (uintmax_t)row->most_bytes);
    if (code == 0) {
        if (cw_session_is_armed())
            cw_api_block_own(cw_tracker_find(CW_SPACE_ADDRESS, (uint64_t)(uintptr_t)data),
                             cw_owner_text(row->own.name));
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
    return cw_rows_refused(&cw_downloads, &row->own, code, "begin");
}

static int make(struct cw_download_row *row, uint64_t most_bytes)
{
    struct cw_row_visit visit = {.row = &row->own};
    int error = cw_rows_place_here(&cw_downloads, &row->own);

    row->most_bytes = most_bytes;
    if (error == CUWARDEN_OK)
        error = cw_rows_enter(&cw_downloads, &visit);
    if (error != CUWARDEN_OK)
        return error;
    error = fill(row);
    if (error != CUWARDEN_OK)
        drop(row);
    cw_rows_leave(&cw_downloads, &visit);
    return error;
}

int cw_api_download_make(const char *name, uint64_t most_bytes, uint64_t *out)
{
    uint64_t id = 0;
    struct cw_row *row = NULL;
    int error = check_make(name, most_bytes, out);

    if (error == CUWARDEN_OK)
        error = cw_rows_claim(&cw_downloads, name, &row, &id);
    if (error != CUWARDEN_OK)
        return error;
    error = make((struct cw_download_row *)row, most_bytes);
    return cw_rows_settle(&cw_downloads, row, id, error, out);
}

int cw_api_download_end(uint64_t download)
{
    struct cw_row_visit visit;
    int error = cw_rows_begin_end(&cw_downloads, download, &visit);

    if (error != CUWARDEN_OK)
        return error;
    error = cw_rows_enter(&cw_downloads, &visit);
    if (error == CUWARDEN_OK) {
        error = cw_rows_refused(&cw_downloads, visit.row, drop(cw_download_of(&visit)), "end");
        cw_rows_leave(&cw_downloads, &visit);
    }
    cw_rows_drop(&cw_downloads, visit.row);
    return error;
}

/* ---- how it stands ---- */

int cw_api_download_now(uint64_t download, struct cuwarden_download *out, size_t size)
{
    struct cuwarden_download now = {.id = download};
    struct cw_row_visit visit;
    int error = cw_rows_take(&cw_downloads, download, 0, &visit);
    const struct cw_download_row *row = cw_download_of(&visit);

    if (error != CUWARDEN_OK)
        return error;
    cw_lock_acquire(&cw_downloads.lock);
    now.name = row->own.name;
    now.most_bytes = row->most_bytes;
    now.started = row->last;
    now.taken = row->taken;
    now.skipped = row->skipped;
    now.refused = row->refused;
    now.bytes = row->done.bytes;
    now.transfer_ns = row->done.ns;
    now.waited_ns = row->done.waited_ns;
    now.overlap = cw_transfers_overlap(&row->done);
    now.device = row->own.place.device;
    cw_lock_release(&cw_downloads.lock);
    cw_rows_give_up(&cw_downloads, &visit);
    cw_api_give(out, size, &now, sizeof(now));
    return CUWARDEN_OK;
}
