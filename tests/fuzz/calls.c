/* SPDX-License-Identifier: MIT */
/*
 * Sequences of CUDA calls against a model. The first byte chooses the settings; then each two bytes
 * are a call: a kind and its argument. The core is the real one, on the fake driver.
 *
 * The model knows of each block that was freed which work was outstanding then, and so who may have
 * it next: never two owners, never a block that the device may still use, none of another context,
 * class or size, none during a capture. No byte is held beyond the limit, nothing is refused that
 * there is room for, errors are the driver's own, and in the end nothing is left.
 */
#include "ask_fixture.h"

#include <string.h>

#include "core/account/tracker.h"
#include "core/account/usage.h"
#include "core/control/lifecycle.h"
#include "core/device/graph.h"
#include "core/limits/excess.h"
#include "core/limits/limit.h"
#include "fuzz.h"

#define PLACES    3 /* of contexts, all on device 0 */
#define KEPT      32
#define CALLS_MAX 600
#define CAPACITY  (1000 * MIB)
#define STREAM    UINT64_C(0x51) /* that captures */

enum fate { GONE, LIVE, FREED };

struct block {
    enum fate fate;
    enum cw_pool_class class;
    uint64_t held;
    unsigned place;
    uint32_t generation;
    int is_exported, was_kept;
    uint64_t work[PLACES]; /* at the free, of each context */
    uint32_t during[PLACES];
};

static struct world {
    struct block block[FAKE_BLOCKS];
    uint64_t key[KEPT]; /* that the program remembers, live or freed */
    unsigned current, live;
    int in_capture;
    uint64_t limit;
} world;

static void must(int holds, const char *what)
{
    if (!holds)
        fuzz_wrong("calls: %s", what);
}

static struct block *block_of(uint64_t key)
{
    return &world.block[fake_number(key)];
}

static uint32_t generation(unsigned place)
{
    return fake_driver.context[place].generation;
}

/* ---- what is allowed ---- */

static int is_ready(const struct block *block)
{
    for (unsigned i = 0; i < PLACES; i++)
        if (!fake_is_finished(i, block->during[i], block->work[i]))
            return 0;
    return 1;
}

/* What a request may get: a hit, or an idle block when it was out of memory (request/ladder.c). */
enum served { BY_DRIVER, BY_POOL, BY_LADDER };

static int has_size(const struct block *block, uint64_t bytes, enum served how)
{
    uint64_t excess = cw_size_excess(block->held, bytes);
    uint64_t most = how == BY_LADDER && world.limit != 0 ? bytes : bytes / 2;

    return block->held >= bytes &&
           (excess <= cw_size_tolerance(bytes) ||
            (block->class < CW_POOL_HOST &&
             (excess <= most || cw_size_class_down(block->held) == cw_size_class_up(bytes))));
}

static void expect_idle(const struct block *block, enum cw_pool_class class, uint64_t bytes,
                        enum served how)
{
    must(block->fate == FREED && block->was_kept, "a block that is not idle is handed out");
    must(block->class == class, "a block of another class is handed out");
    must(block->place == world.current && block->generation == generation(world.current),
         "a block of another context is handed out");
    must(!block->is_exported, "a block that others may use is handed out");
    must(!world.in_capture, "a block is handed out during a capture");
    must(has_size(block, bytes, how), "a block of another size is handed out");
    must(is_ready(block), "a block that the device may still use is handed out");
}

/* The fake has no fragmentation: all that is free, and all that lies idle. */
static int has_room(uint64_t bytes)
{
    uint64_t live = 0;

    for (unsigned i = 1; i < FAKE_BLOCKS && i < CALLS_MAX; i++)
        if (world.block[i].fate == LIVE && world.block[i].class < CW_POOL_HOST)
            live += world.block[i].held;
    return live + bytes <= CAPACITY && (world.limit == 0 || live + bytes <= world.limit);
}

/* ---- calls ---- */

static uint64_t size_of(unsigned arg)
{
    static const uint64_t unit[] = {1,           4 * KIB,  100 * KIB, MIB,
                                    5 * MIB + 1, 20 * MIB, 64 * MIB,  512};

    return (arg % 32 + 1) * unit[arg / 32];
}

static uint64_t allocate_device(uint64_t bytes, enum served *out_how)
{
    int fits = has_room(bytes) && !world.in_capture;
    struct ask ask = ask_for(bytes);

    must(ask.key != 0 || !fits, "memory that is there is refused");
    *out_how = ask.was_hit ? BY_POOL : ask.last == CW_LADDER_SERVED ? BY_LADDER : BY_DRIVER;
    return ask.key;
}

static void allocate(enum cw_pool_class class, unsigned arg)
{
    uint64_t bytes = size_of(arg), key;
    enum served how = BY_DRIVER;
    struct block *block;
    int was_hit = 0;

    if (class == CW_POOL_DEVICE) {
        key = allocate_device(bytes, &how);
    } else {
        key = pool_alloc(class, bytes, &was_hit);
        how = was_hit ? BY_POOL : BY_DRIVER;
    }
    if (key == 0)
        return;
    block = block_of(key);
    must(block->fate != LIVE, "a block has two owners");
    if (how != BY_DRIVER)
        expect_idle(block, class, bytes, how);
    else
        *block = (struct block){
            .class = class, .place = world.current, .generation = generation(world.current)};
    block->held = cw_tracker_at(cw_tracker_find(CW_SPACE_ADDRESS, key))->held;
    must(block->held >= bytes, "a block is smaller than was asked for");
    block->fate = LIVE;
    world.live++;
    for (unsigned i = 0; i < KEPT; i++) {
        uint64_t *at = &world.key[(arg + i) % KEPT];

        if (*at == 0 || block_of(*at)->fate != LIVE || i == KEPT - 1) {
            *at = key;
            break;
        }
    }
}

static void release(unsigned arg)
{
    uint64_t key = world.key[arg % KEPT];
    struct block *block = block_of(key);
    enum cw_pool_free how;

    if (key == 0)
        return;
    if (block->fate != LIVE) {
        uint32_t index = cw_tracker_find(CW_SPACE_ADDRESS, key);

        how = pool_free(block->class, key, NULL);
        must(how == (index != 0 ? CW_POOL_REFUSED : CW_POOL_DRIVER), "a second free succeeds");
        return;
    }
    for (unsigned i = 0; i < PLACES; i++) {
        block->work[i] = fake_driver.context[i].submitted;
        block->during[i] = generation(i);
    }
    how = pool_free(block->class, key, NULL);
    must(how != CW_POOL_REFUSED, "a free is refused");
    must(how == CW_POOL_DRIVER || !(world.in_capture || block->is_exported),
         "what others use, or a capture, is kept");
    block->was_kept = how == CW_POOL_KEPT;
    block->fate = FREED;
    world.live--;
}

static void export(unsigned arg)
{
    uint64_t key = world.key[arg % KEPT];

    if (key == 0 || block_of(key)->fate != LIVE)
        return;
    block_of(key)->is_exported = 1;
    atomic_fetch_or(&cw_tracker_at(cw_tracker_find(CW_SPACE_ADDRESS, key))->flags,
                    CW_BLOCK_EXPORTED);
}

static void set_capture(int on)
{
    if (on == world.in_capture)
        return;
    if (on) {
        cw_capture_begin();
        cw_capture_started(STREAM, pool_index(FIRST_CONTEXT + world.current), 1);
    } else
        cw_capture_ended(STREAM, cw_capture_find(STREAM));
    world.in_capture = on;
}

static void end_context(unsigned place, enum cw_context_outcome outcome)
{
    for (unsigned i = 1; outcome != CW_CONTEXT_KEPT && i < CALLS_MAX; i++) {
        struct block *block = &world.block[i];

        if (block->place != place || block->generation != generation(place))
            continue;
        world.live -= block->fate == LIVE;
        block->fate = GONE;
    }
    for (unsigned i = 0; outcome != CW_CONTEXT_KEPT && i < KEPT; i++)
        if (world.key[i] != 0 && block_of(world.key[i])->fate == GONE)
            world.key[i] = 0; /* the address is anybody's now */
    pool_end_context(FIRST_CONTEXT + place, outcome);
}

static void context_call(unsigned arg)
{
    unsigned place = arg % PLACES;

    set_capture(0);
    switch (arg / PLACES % 4) {
    case 0:
        end_context(place, CW_CONTEXT_DESTROYED);
        pooled_context(place, 0);
        break;
    case 1:
        end_context(place, CW_CONTEXT_RENEWED);
        break;
    case 2:
        end_context(place, CW_CONTEXT_KEPT);
        break;
    default:
        break;
    }
    world.current = place;
    fake_set_current(FIRST_CONTEXT + place);
}

static void stream_call(unsigned arg)
{
    uint64_t handle = FIRST_CONTEXT + arg % PLACES;

    switch (arg / PLACES % 4) {
    case 0:
    case 1:
        fake_submit(handle); /* a copy, a kernel */
        break;
    case 2:
        fake_finish(handle);
        break;
    default:
        pool_sync(handle);
        break;
    }
}

static void call(unsigned kind, unsigned arg)
{
    switch (kind % 16) {
    case 0:
        allocate(CW_POOL_HOST, arg);
        break;
    case 1:
        allocate(CW_POOL_HOST_FLAGS + 3, arg);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        allocate(CW_POOL_DEVICE, arg);
        break;
    case 6:
        context_call(arg);
        break;
    case 7:
        export(arg);
        break;
    case 8:
        set_capture(arg & 1);
        break;
    case 9:
        fake_driver.now_ns += arg * 20 * FAKE_MS;
        break;
    case 10:
    case 11:
        stream_call(arg);
        break;
    default:
        release(arg);
        break;
    }
}

/* ---- from the first call to the last ---- */

static void start(unsigned settings)
{
    static const char *const limits[] = {"none", "600M", "none", "64M"};
    struct cw_options *options = core_options();

    memset(&world, 0, sizeof(world));
    options->free_sync = settings & 1 ? CW_FREE_STRICT : CW_FREE_DEFERRED;
    if (cw_sizes_parse(settings & 8 ? "50%" : "200M", 0, &options->pool_max) != 0)
        fuzz_wrong("no pool");
    ask_start(limits[settings / 2 % 4], "", CAPACITY);
    world.limit = cw_limit_of(0);
    fake_driver.clock_step = 20 * FAKE_MS; /* so that no wait is long */
    for (unsigned i = 1; i < PLACES; i++)
        pooled_context(i, 0);
}

static void check(void)
{
    must(pool_check() == 0, "the sums are not those of the blocks");
    must(pool_count(CW_BLOCK_LIVE) == world.live, "other blocks are live than the program's");
    must(core_held(0) == fake_driver.taken_bytes, "the account is not what the driver gave");
    must(world.limit == 0 || core_held(0) <= world.limit, "more is held than the limit");
    must(cw_usage_in_flight(0) == 0, "bytes are reserved for nobody");
}

static void finish(void)
{
    set_capture(0);
    for (unsigned i = 0; i < PLACES; i++)
        end_context(i, CW_CONTEXT_DESTROYED);
    must(world.live == 0 && fake_taken() == 0, "blocks outlive their context");
    must(core_held(0) == 0 && core_live_total() == 0, "something is accounted that is gone");
    cw_lifecycle_reset();
}

void fuzz_calls(const uint8_t *bytes, size_t size)
{
    if (size == 0 || size > 2 * CALLS_MAX)
        return;
    start(bytes[0]);
    for (size_t i = 1; i + 1 < size; i += 2) {
        call(bytes[i], bytes[i + 1]);
        if (i % 64 == 1)
            check();
    }
    check();
    finish();
}
