/* SPDX-License-Identifier: MIT */
/* See transfers.h. */
#include "api/transfers.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/float_env.h"
#include "core/tags/tag_name.h"
#include "live/layout.h"

#define ADD(field, by) atomic_fetch_add_explicit(&(field), by, memory_order_relaxed)
#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define CLEAR(field)   atomic_store_explicit(&(field), 0, memory_order_relaxed)

struct row {
    _Atomic uint64_t count, bytes, ns, waited_ns, overlapped_ns;
    struct {
        _Atomic uint64_t count, bytes;
    } way[CW_WAYS];
};

static struct row devices[CW_MAX_DEVICES];
static struct row tags[CW_TAGS_MAX + 1][CW_MAX_DEVICES]; /* 0: without any */

/* NULL: nobody counts there. */
static struct row *row_at(uint8_t device, uint16_t tag)
{
    if (device >= CW_MAX_DEVICES)
        return NULL;
    if (tag == CW_TRANSFERS_ANY)
        return &devices[device];
    return tag <= CW_TAGS_MAX ? &tags[tag][device] : NULL;
}

/* done: of this one alone. */
static void add(struct row *row, const struct cw_transfers *done)
{
    if (row == NULL)
        return;
    ADD(row->count, done->count);
    ADD(row->bytes, done->bytes);
    ADD(row->ns, done->ns);
    ADD(row->waited_ns, done->waited_ns);
    ADD(row->overlapped_ns, done->overlapped_ns);
}

void cw_waits_begin(struct cw_waits *waits)
{
    if (waits->waiters++ == 0)
        waits->since_ns = cw_clock_ns();
}

void cw_waits_end(struct cw_waits *waits)
{
    if (--waits->waiters == 0)
        waits->ns += cw_clock_ns() - waits->since_ns;
}

uint64_t cw_waits_ns(const struct cw_waits *waits)
{
    return waits->ns + (waits->waiters != 0 ? cw_clock_ns() - waits->since_ns : 0);
}

void cw_transfers_add(uint8_t device, uint16_t tag, struct cw_transfers *own, uint64_t bytes,
                      uint64_t ns, uint64_t waited_ns)
{
    struct cw_transfers done = {.count = 1,
                                .bytes = bytes,
                                .ns = ns,
                                .waited_ns = waited_ns,
                                .overlapped_ns = waited_ns < ns ? ns - waited_ns : 0};

    own->count++;
    own->bytes += bytes;
    own->ns += ns;
    own->waited_ns += waited_ns;
    own->overlapped_ns += done.overlapped_ns;
    add(row_at(device, CW_TRANSFERS_ANY), &done);
    add(row_at(device, tag), &done);
}

static void carry(struct row *row, enum cw_transfer_way way, uint64_t bytes)
{
    if (row == NULL)
        return;
    ADD(row->way[way].count, 1);
    ADD(row->way[way].bytes, bytes);
}

void cw_transfers_carried(uint8_t device, uint16_t tag, enum cw_transfer_way way, uint64_t bytes)
{
    carry(row_at(device, CW_TRANSFERS_ANY), way, bytes);
    carry(row_at(device, tag), way, bytes);
}

void cw_transfers_sum(uint8_t device, uint16_t tag, struct cw_transfers *sums)
{
    const struct row *row = row_at(device, tag);

    if (row == NULL)
        return;
    sums->count += LOAD(row->count);
    sums->bytes += LOAD(row->bytes);
    sums->ns += LOAD(row->ns);
    sums->waited_ns += LOAD(row->waited_ns);
    sums->overlapped_ns += LOAD(row->overlapped_ns);
}

void cw_transfers_sum_carried(uint8_t device, uint16_t tag, struct cw_carried *sums)
{
    const struct row *row = row_at(device, tag);

    for (int way = 0; row != NULL && way < CW_WAYS; way++) {
        sums->count[way] += LOAD(row->way[way].count);
        sums->bytes[way] += LOAD(row->way[way].bytes);
    }
}

double cw_transfers_overlap(const struct cw_transfers *sums)
{
    return cw_float_ratio(sums->overlapped_ns, sums->ns);
}

static void clear(struct row *row)
{
    if (LOAD(row->count) == 0) /* a page that was never written stays so */
        return;
    CLEAR(row->count);
    CLEAR(row->bytes);
    CLEAR(row->ns);
    CLEAR(row->waited_ns);
    CLEAR(row->overlapped_ns);
    for (int way = 0; way < CW_WAYS; way++) {
        CLEAR(row->way[way].count);
        CLEAR(row->way[way].bytes);
    }
}

void cw_transfers_reset(void)
{
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        clear(&devices[i]);
        for (unsigned tag = 0; tag <= CW_TAGS_MAX; tag++)
            clear(&tags[tag][i]);
    }
}
