/* SPDX-License-Identifier: MIT */
/* What fits natively fits with us: a program fills a device to 90, 94, 97, 99 and 100 percent.
 *
 * It keeps the driver's account (edges_account.h): no request may be refused that the driver would
 * have granted with half a percent of the device, or of the limit, to spare. What is told to be
 * free must be so much, too, and to be had. Parts:
 *
 *   trade   takes a block, gives it back and keeps a slightly smaller one, again and again
 *   crumbs  very many blocks of a size that is bad to round, then the rest at once
 *   phases  fills with one size, frees most of it, fills with another, and so on
 *   mix     takes and frees all sorts of sizes
 *   told    the same, and now and then takes all that cuMemGetInfo says there is
 */
#include "edges_account.h"

enum { BLOCKS = 16384 };

struct block {
    CUdeviceptr address;
    size_t size;
};

static const char *const parts[] = {"trade", "crumbs", "phases", "mix", "told"};
enum part { TRADE, CRUMBS, PHASES, MIX, TOLD, PARTS };

enum style { POWERS, ARBITRARY, EDGES, FEW, STYLES };

static struct {
    enum part part;
    enum style style;
    struct account account;
    size_t cap;    /* of what is taken */
    size_t middle; /* sizes are about this one */
    struct block blocks[BLOCKS];
    unsigned nblocks;
} self;

/* ---- sizes ---- */

/* Just above the boundary of a class: multiples of an eighth of a power of two. */
static size_t above_class(size_t bytes)
{
    size_t power = 512;

    while (power * 2 <= bytes)
        power *= 2;
    return power + power / 8 * below(8) + 1;
}

static size_t some_size(void)
{
    size_t low = self.middle / 4, size = low + below((unsigned)(self.middle / 256)) * 960;

    switch (self.style) {
    case POWERS:
        return (low > 512 ? low : 512) << below(5);
    case EDGES:
        return above_class(size);
    case FEW:
        return self.middle + self.middle / 16 * below(3);
    default:
        return size + below(2000);
    }
}

/* ---- blocks ---- */

static void expect_driver_agrees(void)
{
    if (edges.is_native && cusim_used_bytes(0) != account_used(&self.account))
        violated("the driver says that %llu bytes are taken, %zu expected", cusim_used_bytes(0),
                 account_used(&self.account));
}

/* Work that is lazy, here and there. */
static void touch(const struct block *block)
{
    if (chance(5))
        WORKS(cuMemsetD8Async(block->address, 1, 16, NULL));
}

static bool take(size_t size)
{
    struct block block = {.size = size};
    CUresult code;

    if (self.nblocks == BLOCKS)
        return false;
    edges.operation++;
    code = cuMemAlloc(&block.address, size);
    trace("%zu bytes: %d, %zu of %zu are taken with them", size, (int)code,
          account_after(&self.account, size), self.account.total);
    account_judge(&self.account, size, code);
    if (code != CUDA_SUCCESS)
        return false;
    account_add(&self.account, size);
    self.blocks[self.nblocks++] = block;
    touch(&block);
    expect_driver_agrees();
    return true;
}

static void give(unsigned which)
{
    struct block block = self.blocks[which];

    edges.operation++;
    trace("%zu bytes are freed", block.size);
    WORKS(cuMemFree(block.address));
    self.blocks[which] = self.blocks[--self.nblocks];
    account_sub(&self.account, block.size);
    expect_driver_agrees();
}

static bool is_room(size_t size)
{
    return account_after(&self.account, size) <= self.cap && self.nblocks < BLOCKS;
}

static size_t room(void)
{
    size_t used = account_used(&self.account);

    return used < self.cap ? self.cap - used : 0;
}

/* What is left, in one block, as far as whole units allow. */
static void take_rest(void)
{
    size_t rest = room() / self.account.unit * self.account.unit;

    if (rest > 0 && take(rest))
        give(self.nblocks - 1);
}

static void give_share(unsigned percent)
{
    for (unsigned i = self.nblocks; i-- > 0;)
        if (chance(percent))
            give(i);
}

/* ---- the parts ---- */

static void trade(void)
{
    size_t keep = self.style == FEW ? self.middle : some_size();

    for (unsigned i = 0; i < 4000 && is_room(keep); i++) {
        size_t larger = keep + keep / 64 * below(10);

        if (is_room(larger) && take(larger))
            give(self.nblocks - 1);
        take(keep);
        if (self.style != FEW && chance(10))
            keep = some_size();
    }
    take_rest();
}

static void crumbs(void)
{
    size_t least = self.account.total / 15000, size = above_class(least + below(1u << 16));

    for (unsigned rounds = 0; rounds < 2; rounds++) {
        unsigned most = BLOCKS / (1 + below(3));

        while (is_room(size) && self.nblocks < most && take(size))
            continue;
        take_rest();
        give_share(50);
        size = above_class(size + below(1000));
    }
}

static void phases(void)
{
    for (unsigned i = 0; i < 6; i++) {
        size_t size = some_size();

        while (is_room(size) && self.nblocks < 3000 && take(size))
            continue;
        if (chance(30))
            WORKS(cuCtxSynchronize());
        take_rest();
        give_share(60 + below(41));
        self.middle -= self.middle / 64 * below(8);
    }
}

static void mix(void)
{
    unsigned noperations = 300 + below(1500);

    for (unsigned i = 0; i < noperations; i++) {
        size_t size = some_size();

        if (is_room(size) || (self.cap == self.account.total && chance(20)))
            take(size);
        else if (chance(3))
            give_share(30);
        else if (self.nblocks > 0)
            give(below(self.nblocks));
        if (chance(2))
            WORKS(cuCtxSynchronize());
    }
    take_rest();
}

/* A pool knows nothing of units: small blocks that it keeps may share one with those that live, so
 * that it cannot be had, and what large ones leave unused of theirs it does not tell of. */
static void ask_and_take(void)
{
    size_t total, told, used = account_used(&self.account), budget = account_budget(&self.account);
    size_t margin = self.account.unit > 512 ? self.account.unit : 0;

    WORKS(cuMemGetInfo(&told, &total));
    trace("%zu of %zu bytes are said to be free, of which %zu are taken", told, total, used);
    edges.checks++;
    if (margin == 0 && used + told + budget < total)
        violated("%zu of %zu bytes are said to be free, where %zu are taken", told, total, used);
    if (told <= margin || self.nblocks == BLOCKS)
        return;
    told = (told - margin) / 512 * 512;
    if (told > 0 && !take(told))
        violated("%zu bytes are refused that were said to be free, less %zu", told, margin);
    if (told > 0)
        give(self.nblocks - 1);
}

static void told(void)
{
    for (unsigned i = 0; i < 12; i++) {
        unsigned noperations = 20 + below(100);

        for (unsigned k = 0; k < noperations; k++) {
            size_t size = some_size();

            if (is_room(size) && chance(70))
                take(size);
            else if (self.nblocks > 0)
                give(below(self.nblocks));
        }
        ask_and_take();
    }
}

/* ---- one program ---- */

static void begin(void)
{
    static const unsigned percents[] = {90, 94, 97, 99, 100};
    CUcontext context;
    size_t most;

    self.part = choose_part(parts, PARTS);
    self.style = below(STYLES);
    self.nblocks = 0;
    cusim_set_lazy(edges.seed + 1);
    WORKS(cuDevicePrimaryCtxRetain(&context, 0));
    WORKS(cuCtxSetCurrent(context));
    account_begin(&self.account);
    self.cap = self.account.total / 100 * percents[below(5)];
    if (edges.is_full)
        self.cap = self.account.total;
    if (self.cap > self.account.total / 100 * 99)
        self.cap = self.account.total;
    most = self.account.total / 16;
    self.middle = self.account.total / 2000;
    while (self.middle < most && chance(75))
        self.middle += self.middle / 2 + below(1000);
    forget_misuse();
}

static void end(void)
{
    while (self.nblocks > 0)
        give(self.nblocks - 1);
    WORKS(cuCtxSetCurrent(NULL));
    WORKS(cuDevicePrimaryCtxRelease(0));
    expect_no_misuse(NULL);
    edges.refused += self.account.is_refused;
}

void fill_run(void)
{
    static void (*const run[PARTS])(void) = {trade, crumbs, phases, mix, told};

    begin();
    trace("%s, up to %zu of %zu bytes, sizes about %zu", parts[self.part], self.cap,
          self.account.total, self.middle);
    run[self.part]();
    end();
}
