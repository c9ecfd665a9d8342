/* SPDX-License-Identifier: MIT */
/* See buffers.h. */
#include "api/buffers.h"

#include <string.h>

#include "api/buffer_table.h"
#include "base/float_env.h"
#include "base/lock.h"
#include "core/account/owner.h"

#define GROWTH_USUAL 1.5
#define GROWTH_MOST  16.0

struct cw_buffer_row cw_buffer_rows[CW_BUFFERS];

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_BUFFER);
static uint64_t serial; /* of the last buffer; guarded by the lock */

void cw_api_buffers_reset(void)
{
    cw_lock_reset(&lock);
    /* Ids go on, so that none of the parent's is one of the child's. */
    memset(cw_buffer_rows, 0, sizeof(cw_buffer_rows));
}

/* ---- rows ---- */

static int state_of(const struct cw_buffer_row *row)
{
    return atomic_load_explicit(&row->state, memory_order_acquire);
}

int cw_buffer_not_found(uint64_t buffer)
{
    return cw_api_not_there("buffer", buffer);
}

int cw_buffer_claim(uint64_t buffer, struct cw_buffer_row **out)
{
    struct cw_buffer_row *row = cw_buffer_row_of(buffer);
    int state = CW_BUFFER_READY;

    *out = row;
    if (!cw_buffer_is(row, buffer))
        return cw_buffer_not_found(buffer);
    if (!atomic_compare_exchange_strong(&row->state, &state, CW_BUFFER_BUSY))
        return cw_api_fail(CUWARDEN_BUSY, "another thread is changing buffer %ju; ask again",
                           (uintmax_t)buffer);
    if (cw_buffer_is(row, buffer))
        return CUWARDEN_OK;
    cw_buffer_release(row);
    return cw_buffer_not_found(buffer);
}

void cw_buffer_release(struct cw_buffer_row *row)
{
    atomic_store(&row->state, CW_BUFFER_READY);
}

/* A reader that finds more room finds the address where it is. */
void cw_buffer_show(struct cw_buffer_row *row)
{
    const struct cw_buffer_memory *memory = &row->memory;
    uint64_t room =
        (memory->bytes < row->most_bytes ? memory->bytes : row->most_bytes) / row->element_bytes;
    uint64_t address = memory->bytes != 0 ? memory->address : 0;

    if (room < cw_buffer_load(&row->room))
        cw_buffer_store(&row->room, room);
    atomic_store_explicit(&row->address, address, memory_order_release);
    atomic_store_explicit(&row->room, room, memory_order_release);
    cw_buffer_store(&row->shown.bytes, memory->bytes);
    cw_buffer_store(&row->shown.resizes, memory->resizes);
    cw_buffer_store(&row->shown.copies, memory->copies);
    cw_buffer_store(&row->shown.copied_bytes, memory->copied_bytes);
    atomic_store(&row->shown.device, memory->place.device);
    atomic_store(&row->shown.is_in_place, memory->reserved != 0);
}

static void give_row_back(struct cw_buffer_row *row)
{
    cw_lock_acquire(&lock);
    cw_buffer_store(&row->id, 0);
    cw_buffer_store(&row->room, 0);
    row->name[0] = '\0';
    atomic_store(&row->state, CW_BUFFER_FREE);
    cw_lock_release(&lock);
}

/* ---- names ---- */

static int has_name_locked(const struct cw_buffer_row *row, const char *name)
{
    return state_of(row) != CW_BUFFER_FREE && strcmp(row->name, name) == 0;
}

/* A row that is being made with this name; NULL, and what is in the way. */
static struct cw_buffer_row *take_row(const char *name, uint64_t *out_serial, int *out_exists)
{
    struct cw_buffer_row *taken = NULL;

    *out_exists = 0;
    cw_lock_acquire(&lock);
    for (struct cw_buffer_row *row = cw_buffer_rows; row < cw_buffer_rows + CW_BUFFERS; row++) {
        if (has_name_locked(row, name))
            *out_exists = 1;
        else if (taken == NULL && state_of(row) == CW_BUFFER_FREE)
            taken = row;
    }
    if (*out_exists)
        taken = NULL;
    if (taken != NULL) {
        /* Who has an id that is out of date may be looking. */
        cw_buffer_store(&taken->address, 0);
        cw_buffer_store(&taken->used, 0);
        taken->memory = (struct cw_buffer_memory){0};
        memcpy(taken->name, name, strlen(name) + 1);
        atomic_store(&taken->state, CW_BUFFER_MAKING);
        *out_serial = ++serial;
    }
    cw_lock_release(&lock);
    return taken;
}

int cw_api_buffer_find(const char *name, uint64_t element_bytes, uint64_t *out)
{
    uint64_t id = 0, its_bytes = 0;
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (name == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "a buffer is found by its name; this one is NULL");
    cw_lock_acquire(&lock);
    for (struct cw_buffer_row *row = cw_buffer_rows; row < cw_buffer_rows + CW_BUFFERS; row++)
        if (has_name_locked(row, name)) {
            id = atomic_load_explicit(&row->id, memory_order_acquire);
            its_bytes = id != 0 ? row->element_bytes : 0;
        }
    cw_lock_release(&lock);
    if (id == 0) /* also: it is still being made */
        return cw_api_fail(CUWARDEN_NOT_FOUND, "there is no buffer '%s'", name);
    if (element_bytes != 0 && element_bytes != its_bytes)
        return cw_api_fail(CUWARDEN_WRONG_SIZE, "buffer '%s' has elements of %ju bytes, not of %ju",
                           name, (uintmax_t)its_bytes, (uintmax_t)element_bytes);
    *out = id;
    return CUWARDEN_OK;
}

/* ---- making and ending ---- */

/* False for NaN. These comparisons do not trap (base/float_env.h). */
static int is_within(double value, double least, double most)
{
    return __builtin_isgreaterequal(value, least) && __builtin_islessequal(value, most);
}

/* For texts; what is no number, or far from one that makes sense, is 0. */
static intmax_t percent(double share)
{
    if (!is_within(share, -1e6, 1e6))
        return 0;
    return share < 0 ? -(intmax_t)cw_float_times(-share, 100)
                     : (intmax_t)cw_float_times(share, 100);
}

static int check_name(const char *name)
{
    if (name == NULL || name[0] == '\0')
        return cw_api_fail(CUWARDEN_INVALID, "a buffer needs a name; this one is %s",
                           name == NULL ? "NULL" : "empty");
    if (strlen(name) >= CW_BUFFER_NAME_MAX)
        return cw_api_fail(CUWARDEN_INVALID,
                           "the name '%.20s...' of a buffer has %zu bytes, and may have %u", name,
                           strlen(name), CW_BUFFER_NAME_MAX - 1);
    return CUWARDEN_OK;
}

/* Fills in what the program has left to us. */
static int check_spec(struct cuwarden_buffer_spec *spec)
{
    int error = check_name(spec->name);

    if (error != CUWARDEN_OK)
        return error;
    if (spec->element_bytes == 0)
        return cw_api_fail(CUWARDEN_INVALID, "an element of buffer '%s' has 0 bytes", spec->name);
    if (spec->growth == 0)
        spec->growth = GROWTH_USUAL;
    if (!is_within(spec->growth, 1, GROWTH_MOST))
        return cw_api_fail(CUWARDEN_INVALID,
                           "buffer '%s' cannot grow to %jd %% of what it is: 100 to %jd",
                           spec->name, percent(spec->growth), percent(GROWTH_MOST));
    if ((spec->flags & ~(uint32_t)(CUWARDEN_ASYNCHRONOUS | CUWARDEN_COPYING)) != 0)
        return cw_api_fail(CUWARDEN_INVALID, "buffer '%s' has the flags 0x%x; there are 0x%x",
                           spec->name, spec->flags, CUWARDEN_ASYNCHRONOUS | CUWARDEN_COPYING);
    if (spec->least_bytes == 0 && (spec->most_bytes == 0 || spec->most_bytes > CW_BUFFER_LEAST))
        spec->least_bytes = CW_BUFFER_LEAST;
    if (spec->most_bytes != 0 &&
        (spec->least_bytes > spec->most_bytes || spec->element_bytes > spec->most_bytes))
        return cw_api_fail(CUWARDEN_INVALID,
                           "buffer '%s' would have at least %ju bytes, elements of %ju, and at "
                           "most %ju bytes",
                           spec->name, (uintmax_t)spec->least_bytes, (uintmax_t)spec->element_bytes,
                           (uintmax_t)spec->most_bytes);
    return CUWARDEN_OK;
}

static void fill(struct cw_buffer_row *row, const struct cuwarden_buffer_spec *spec)
{
    row->element_bytes = spec->element_bytes;
    row->least_bytes = spec->least_bytes;
    row->most_bytes = spec->most_bytes;
    row->growth = spec->growth;
    row->flags = spec->flags;
    row->memory.name = cw_owner_text(spec->name);
    row->born_ns = cw_session_now();
    cw_buffer_store(&row->used_ns, row->born_ns);
}

/* With memory for the first elements. */
static int begin(struct cw_buffer_row *row, const struct cuwarden_buffer_spec *spec)
{
    unsigned depth = cw_api_enter();
    int code, error = CUWARDEN_OK;
    uint64_t least;

    fill(row, spec);
    code = cw_buffer_memory_begin(&row->memory, spec->most_bytes,
                                  (spec->flags & CUWARDEN_COPYING) == 0);
    if (code == CW_BUFFER_NO_CONTEXT)
        error = cw_api_fail(CUWARDEN_NOT_STARTED,
                            "buffer '%s' needs a context: none is current in this thread; "
                            "cudaFree(0) is enough",
                            spec->name);
    else if (code != 0)
        error = cw_buffer_refused(row, code, 0, "begin");
    if (code == 0 && row->most_bytes == 0)
        row->most_bytes = row->memory.place.total;
    least = row->least_bytes / row->element_bytes;
    if (code == 0)
        error = cw_buffer_grow(row, spec->count > least ? spec->count : least, NULL);
    if (code == 0 && error != CUWARDEN_OK)
        cw_buffer_memory_end(&row->memory);
    cw_api_leave(depth);
    return error;
}

static int make(const struct cuwarden_buffer_spec *spec, uint64_t *out)
{
    uint64_t number = 0;
    int exists, error;
    struct cw_buffer_row *row = take_row(spec->name, &number, &exists);

    if (exists)
        return cw_api_fail(CUWARDEN_EXISTS, "there is a buffer '%s' already", spec->name);
    if (row == NULL)
        return cw_api_fail(CUWARDEN_OUT_OF_HOST, "no room for buffer '%s': there are %u already",
                           spec->name, CW_BUFFERS);
    error = begin(row, spec);
    if (error != CUWARDEN_OK) {
        give_row_back(row);
        return error;
    }
    *out = number * CW_BUFFERS + (uint64_t)(row - cw_buffer_rows);
    cw_buffer_store(&row->used, spec->count);
    cw_buffer_show(row);
    atomic_store_explicit(&row->id, *out, memory_order_release);
    cw_buffer_release(row);
    return CUWARDEN_OK;
}

int cw_api_buffer_make(const struct cuwarden_buffer_spec *spec, size_t size, uint64_t *out)
{
    struct cuwarden_buffer_spec own;
    int error = cw_api_check_started();

    if (error != CUWARDEN_OK)
        return error;
    if (spec == NULL || out == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "a buffer needs a description, and a place for its "
                                             "number; one of these is NULL");
    cw_api_give(&own, sizeof(own), spec, size);
    error = check_spec(&own);
    if (error == CUWARDEN_OK)
        error = cw_api_check_driver();
    return error == CUWARDEN_OK ? make(&own, out) : error;
}

int cw_api_buffer_end(uint64_t buffer)
{
    struct cw_buffer_row *row;
    unsigned depth;
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = cw_buffer_claim(buffer, &row);
    if (error != CUWARDEN_OK)
        return error;
    depth = cw_api_enter();
    error = cw_buffer_refused(row, cw_buffer_memory_end(&row->memory), 0, "free its memory");
    cw_api_leave(depth);
    give_row_back(row);
    return error;
}

/* ---- capacity ---- */

static CW_COLD int grow(uint64_t buffer, uint64_t count, void *stream)
{
    struct cw_buffer_row *row;
    unsigned depth;
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = cw_buffer_claim(buffer, &row);
    if (error != CUWARDEN_OK)
        return error;
    depth = cw_api_enter();
    error = cw_buffer_grow(row, count, stream);
    cw_api_leave(depth);
    cw_buffer_show(row);
    cw_buffer_release(row);
    return error;
}

static inline int has_room(const struct cw_buffer_row *row, uint64_t buffer, uint64_t count)
{
    return CW_LIKELY(cw_buffer_is(row, buffer) &&
                     count <= atomic_load_explicit(&row->room, memory_order_acquire));
}

/* The largest stays, whichever thread comes last. */
static inline void note_used(struct cw_buffer_row *row, uint64_t count)
{
    uint64_t used = cw_buffer_load(&row->used);

    while (count > used &&
           !atomic_compare_exchange_weak_explicit(&row->used, &used, count, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

CW_HOT int cw_api_buffer_ensure(uint64_t buffer, uint64_t count, void *stream, void **out_address)
{
    struct cw_buffer_row *row = cw_buffer_row_of(buffer);
    int error = CUWARDEN_OK;

    if (CW_UNLIKELY(!has_room(row, buffer, count)))
        error = grow(buffer, count, stream);
    if (CW_UNLIKELY(error != CUWARDEN_OK))
        return error;
    note_used(row, count);
    cw_buffer_store(&row->used_ns, cw_session_now());
    if (out_address != NULL)
        *out_address = (void *)(uintptr_t)cw_buffer_load(&row->address);
    return CUWARDEN_OK;
}

int cw_api_buffer_use(uint64_t buffer, uint64_t count)
{
    struct cw_buffer_row *row = cw_buffer_row_of(buffer);

    if (!cw_buffer_is(row, buffer))
        return cw_buffer_not_found(buffer);
    if (!has_room(row, buffer, count))
        return cw_api_fail(CUWARDEN_TOO_LARGE,
                           "buffer '%s' cannot use %ju elements: it has room for %ju", row->name,
                           (uintmax_t)count, (uintmax_t)cw_buffer_load(&row->room));
    cw_buffer_store(&row->used, count);
    cw_buffer_store(&row->used_ns, cw_session_now());
    return CUWARDEN_OK;
}

/* ---- how they stand ---- */

static uint64_t since(uint64_t then)
{
    uint64_t now = cw_session_now();

    return now > then ? now - then : 0;
}

static void read_locked(const struct cw_buffer_row *row, struct cuwarden_buffer *out)
{
    *out = (struct cuwarden_buffer){.id = cw_buffer_load(&row->id),
                                    .name = row->name,
                                    .address = cw_buffer_load(&row->address),
                                    .element_bytes = row->element_bytes,
                                    .used = cw_buffer_load(&row->used),
                                    .capacity = cw_buffer_load(&row->room),
                                    .capacity_bytes = cw_buffer_load(&row->shown.bytes),
                                    .most_bytes = row->most_bytes,
                                    .resizes = cw_buffer_load(&row->shown.resizes),
                                    .copies = cw_buffer_load(&row->shown.copies),
                                    .copied_bytes = cw_buffer_load(&row->shown.copied_bytes),
                                    .age_ns = since(row->born_ns),
                                    .unused_ns = since(cw_buffer_load(&row->used_ns)),
                                    .device = atomic_load(&row->shown.device),
                                    .is_in_place = atomic_load(&row->shown.is_in_place)};
    out->utilisation = cw_float_ratio(out->used, out->capacity);
}

/* 1, or 0: it is nobody's. While the lock is held, nobody else takes the row. */
static int read_row(const struct cw_buffer_row *row, char name[CW_BUFFER_NAME_MAX],
                    struct cuwarden_buffer *out)
{
    int is_there;

    cw_lock_acquire(&lock);
    is_there = atomic_load_explicit(&row->id, memory_order_acquire) != 0;
    if (is_there) {
        read_locked(row, out);
        memcpy(name, row->name, CW_BUFFER_NAME_MAX);
    }
    cw_lock_release(&lock);
    return is_there;
}

int cw_api_buffer_now(uint64_t buffer, struct cuwarden_buffer *out, size_t size)
{
    char name[CW_BUFFER_NAME_MAX];
    struct cuwarden_buffer now;

    if (!read_row(cw_buffer_row_of(buffer), name, &now) || now.id != buffer)
        return cw_buffer_not_found(buffer);
    cw_api_give(out, size, &now, sizeof(now));
    return CUWARDEN_OK;
}

int cw_api_buffer_visit(cuwarden_buffer_fn fn, void *arg)
{
    int error = cw_api_check_active(), rc = 0;

    if (error == CUWARDEN_OK && fn == NULL)
        error = cw_api_fail(CUWARDEN_INVALID, "a visit needs a function to call; this one is NULL");
    if (error != CUWARDEN_OK)
        return error;
    for (unsigned i = 0; i < CW_BUFFERS && rc == 0; i++) {
        char name[CW_BUFFER_NAME_MAX];
        struct cuwarden_buffer now;
        struct cw_api_outside outside;

        if (!read_row(&cw_buffer_rows[i], name, &now))
            continue;
        now.name = name;
        outside = cw_api_pause();
        rc = fn(&now, arg);
        cw_api_resume(&outside);
    }
    return CUWARDEN_OK;
}

/* ---- giving back ---- */

/* The row is the caller's, and is released. */
static int shrink(struct cw_buffer_row *row, uint64_t *out_bytes)
{
    unsigned depth = cw_api_enter();
    int error;

    error = cw_buffer_shrink(row, out_bytes);
    cw_api_leave(depth);
    cw_buffer_show(row);
    cw_buffer_release(row);
    return error;
}

int cw_api_buffer_shrink(uint64_t buffer, uint64_t *out_bytes)
{
    struct cw_buffer_row *row;
    uint64_t bytes = 0;
    int error = cw_api_check_driver();

    if (error == CUWARDEN_OK)
        error = cw_buffer_claim(buffer, &row);
    if (error == CUWARDEN_OK)
        error = shrink(row, &bytes);
    if (error == CUWARDEN_OK && out_bytes != NULL)
        *out_bytes = bytes;
    return error;
}

/* The caller has the row of a buffer that is to be cleaned. 0: there is none, or another thread is
 * changing it, and so uses it, or has ended it. */
static int claim_for_cleaning(struct cw_buffer_row *row, uint64_t unused_ns, double below)
{
    char name[CW_BUFFER_NAME_MAX];
    struct cuwarden_buffer now;

    return read_row(row, name, &now) && now.capacity_bytes != 0 && now.unused_ns >= unused_ns &&
           now.utilisation < below && cw_buffer_claim(now.id, &row) == CUWARDEN_OK;
}

int cw_api_buffer_clean(uint64_t unused_ns, double below, uint64_t *out_bytes)
{
    uint64_t bytes = 0;
    int last = cw_api_check_active();

    if (last != CUWARDEN_OK)
        return last;
    if (!is_within(below, 0, 1))
        return cw_api_fail(CUWARDEN_INVALID, "a utilisation is 0 to 100 %%, not %jd %%",
                           percent(below));
    last = cw_api_check_driver();
    if (last != CUWARDEN_OK)
        return last;
    for (struct cw_buffer_row *row = cw_buffer_rows; row < cw_buffer_rows + CW_BUFFERS; row++) {
        int error = claim_for_cleaning(row, unused_ns, below) ? shrink(row, &bytes) : CUWARDEN_OK;

        if (error != CUWARDEN_OK)
            last = error;
    }
    if (out_bytes != NULL)
        *out_bytes = bytes;
    return last;
}
