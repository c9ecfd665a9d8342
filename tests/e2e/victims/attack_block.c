/* SPDX-License-Identifier: MIT */
/* The blocks: how they are got and freed, and what must come of a request.
 *
 * A block's slot is in the table from before the address is known until after it is freed, so that
 * the sums of what lives are never too small. The driver, which knows no pool, takes `exact`;
 * rounding to classes and reuse of larger blocks may make it `most`, and at most half a percent of
 * the device more than `exact`. Between the two a request may be granted or not; outside only one
 * answer is right.
 */
#include "attack.h"

enum { WIDTHS = 6, HEIGHTS = 4 };
static const size_t widths[WIDTHS] = {1, 100, 512, 1000, 4096, 70000};
static const size_t heights[HEIGHTS] = {1, 3, 16, 100};
static size_t pitches[MAX_DEVICES][WIDTHS]; /* what the first request got */

static const char *const kind_names[] = {"device", "pitched", "pinned"};

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

size_t most_of(size_t size)
{
    return round_up(size + size / 2, 512);
}

size_t most_taken(const struct device *device)
{
    size_t bound = device->exact + device->capacity / 200;

    return device->most < bound ? device->most : bound;
}

static void charge(const struct block *block, int sign)
{
    struct device *device = &attack.devices[block->context->device];

    if (block->kind == PINNED || block->size > device->capacity)
        return;
    device->exact += (size_t)sign * round_up(block->size, 512);
    device->most += (size_t)sign * most_of(block->size);
    if (most_taken(device) > device->peak)
        device->peak = most_taken(device);
}

size_t head_words(const struct block *block)
{
    return block->size / 4 < HEAD_WORDS ? block->size / 4 : HEAD_WORDS;
}

size_t tail_words(const struct block *block)
{
    return block->size / 4 < 2 * HEAD_WORDS ? 0 : TAIL_WORDS;
}

CUdeviceptr tail_address(const struct block *block)
{
    return block->address + (block->size / 4 - TAIL_WORDS) * 4;
}

/* ---- the table ---- */

static struct block *take_slot(struct context *context, enum kind kind, size_t size)
{
    struct block *found = NULL;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < MAX_BLOCKS && !found; i++)
        if (!attack.blocks[i].serial)
            found = &attack.blocks[i];
    if (found) {
        memset(found, 0, sizeof *found);
        found->serial = ++attack.serial;
        found->is_busy = found->is_leaving = true;
        found->context = context;
        found->kind = kind;
        found->size = size;
        charge(found, 1);
    }
    pthread_mutex_unlock(&attack.lock);
    return found;
}

static void drop_slot(struct block *block)
{
    pthread_mutex_lock(&attack.lock);
    charge(block, -1);
    block->serial = 0;
    pthread_mutex_unlock(&attack.lock);
}

struct block *take_block(struct thread *self, struct context *context)
{
    unsigned start = below(self, MAX_BLOCKS);
    struct block *found = NULL;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < MAX_BLOCKS && !found; i++) {
        struct block *block = &attack.blocks[(start + i) % MAX_BLOCKS];

        if (block->serial && !block->is_busy && (!context || block->context == context))
            found = block;
    }
    if (found)
        found->is_busy = true;
    pthread_mutex_unlock(&attack.lock);
    return found;
}

void put_block(struct block *block)
{
    LOCKED(block->is_busy = false);
}

static bool overlaps(CUdeviceptr address, size_t size, CUdeviceptr other, size_t other_size)
{
    return address < other + other_size && other < address + size;
}

bool is_covered(CUdeviceptr address)
{
    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        if (attack.contexts[i].is_alive &&
            overlaps(address, 1, attack.contexts[i].ledger, MAX_CHECKS * 4))
            return true;
    for (unsigned i = 0; i < MAX_BLOCKS; i++)
        if (attack.blocks[i].serial &&
            overlaps(address, 1, attack.blocks[i].address, attack.blocks[i].size))
            return true;
    return false;
}

/* The address is known: two owners of it must not be. */
static void settle_in(struct thread *self, struct block *block)
{
    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < MAX_BLOCKS; i++) {
        const struct block *other = &attack.blocks[i];

        if (other != block && other->serial && !other->is_leaving &&
            overlaps(block->address, block->size, other->address, other->size))
            violated(self, "block %u at %#llx lies within block %u, which is alive", block->serial,
                     (unsigned long long)block->address, other->serial);
    }
    block->is_leaving = false;
    attack.allocs++;
    pthread_mutex_unlock(&attack.lock);
}

static void remember(const struct block *block)
{
    struct gone *gone = &attack.gone[attack.ngone++ % MAX_GONE];

    gone->address = block->address;
    gone->size = block->size;
    gone->kind = block->kind;
    gone->has_handle = block->has_handle;
    gone->has_memops = block->has_memops;
    gone->handle = block->handle;
}

/* ---- allocating ---- */

enum outlook { MUST_WORK, MUST_FAIL, UNCERTAIN };

/* The block's own charge is in the sums already. */
static enum outlook foresee(const struct block *block)
{
    const struct device *device = &attack.devices[block->context->device];
    size_t reserve = attack.captures ? device->capacity / 4 : 0; /* a pool may not trim meanwhile */

    if (block->kind == PINNED)
        return MUST_WORK;
    if (block->size > device->capacity)
        return MUST_FAIL;
    if (is_loose())
        return UNCERTAIN;
    if (device->exact > device->capacity)
        return MUST_FAIL;
    return most_taken(device) + reserve <= device->capacity ? MUST_WORK : UNCERTAIN;
}

static CUresult call_pitched(struct thread *self, struct block *block)
{
    unsigned width = 0, element = 4u << below(self, 3);
    size_t pitch = 0, height;
    CUresult code;

    while (widths[width] != block->size >> 32)
        width++;
    height = (uint32_t)block->size;
    block->size = round_up(widths[width], 512) * height;
    code = cuMemAllocPitch(&block->address, &pitch, widths[width], height, element);
    if (code != CUDA_SUCCESS)
        return code;
    pthread_mutex_lock(&attack.lock);
    if (!pitches[block->context->device][width])
        pitches[block->context->device][width] = pitch;
    if (pitch != pitches[block->context->device][width])
        violated(self, "a width of %zu has a pitch of %zu, before it was %zu", widths[width], pitch,
                 pitches[block->context->device][width]);
    pthread_mutex_unlock(&attack.lock);
    block->size = pitch * height;
    return code;
}

static CUresult call_allocate(struct thread *self, struct block *block)
{
    static const unsigned flags[] = {0, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP,
                                     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP,
                                     CU_MEMHOSTALLOC_WRITECOMBINED};
    void *pointer = NULL;
    CUresult code;

    if (block->kind == DEVICE)
        return cuMemAlloc(&block->address, block->size);
    if (block->kind == PITCHED)
        return call_pitched(self, block);
    block->host_flags = flags[(attack.seed / 8 + below(self, 2)) % 5];
    if (block->host_flags == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP))
        code = cuMemAllocHost(&pointer, block->size);
    else
        code = cuMemHostAlloc(&pointer, block->size, block->host_flags);
    block->address = (CUdeviceptr)(uintptr_t)pointer;
    return code;
}

static void judge(struct thread *self, const struct block *block, enum outlook outlook,
                  CUresult code)
{
    const struct device *device = &attack.devices[block->context->device];

    if (code != CUDA_SUCCESS && code != CUDA_ERROR_OUT_OF_MEMORY)
        expect(self, code, CUDA_SUCCESS, "allocation");
    pthread_mutex_lock(&attack.lock);
    if (is_loose() && outlook == UNCERTAIN && attack.starts == 0 &&
        device->peak <= device->capacity)
        outlook = MUST_WORK; /* whatever the others did meanwhile */
    pthread_mutex_unlock(&attack.lock);
    if ((code == CUDA_SUCCESS && outlook == MUST_FAIL) ||
        (code != CUDA_SUCCESS && outlook == MUST_WORK))
        violated(self,
                 "allocation of %zu bytes returned %d while %zu to %zu of %zu bytes are taken",
                 block->size, (int)code, device->exact, most_taken(device), device->capacity);
}

/* A pitched block's size is given as its width and height. */
static size_t full_size(enum kind kind, size_t size)
{
    return kind == PITCHED ? round_up(size >> 32, 512) * (uint32_t)size : size;
}

struct block *obtain(struct thread *self, struct context *context, enum kind kind, size_t size)
{
    struct block *block = take_slot(context, kind, full_size(kind, size));
    enum outlook outlook;
    struct guard guard;
    CUresult code;

    if (!block)
        return NULL;
    outlook = foresee(block);
    enter(self, context);
    guard = guard_begin(self);
    if (attack.is_deterministic && outlook == UNCERTAIN && !guard.is_forbidden) {
        drop_slot(block);
        return NULL;
    }
    block->size = size;
    pthread_rwlock_rdlock(&attack.addresses);
    code =
        attack.is_limited ? note_end(call_allocate(self, block)) : note(call_allocate(self, block));
    trace(self, "block %u: %zu bytes %s of context %d: %d at %#llx", block->serial, block->size,
          kind_names[kind], (int)(context - attack.contexts), (int)code,
          (unsigned long long)block->address);
    if (guard_end(self, &guard, code, "allocation"))
        judge(self, block, outlook, code);
    if (code == CUDA_SUCCESS)
        settle_in(self, block);
    pthread_rwlock_unlock(&attack.addresses);
    if (code == CUDA_SUCCESS) {
        check_new(self, block);
        return block;
    }
    LOCKED(attack.failed++);
    drop_slot(block);
    return NULL;
}

void choose_sizes(struct thread *self)
{
    static const size_t sizes[] = {
        1,       3,       4,       16,      100,     512,     513,      1000,     1024,   2048,
        4096,    4097,    5000,    8192,    10000,   65536,   70000,    100000,   262144, 1048575,
        1048576, 1048577, 2097152, 3145728, 5000000, 8388608, 12582912, 25165824,
    };
    enum { ALL = sizeof sizes / sizeof *sizes, SMALL = ALL - 6 };

    attack.waits = 4 + below(self, 3) * (attack.style == STEPS ? 15 : 10);
    if (attack.nsizes && attack.chain != attack.seed && chance(self, 70))
        return; /* what is cached still fits */
    attack.nsizes = 1 + below(self, MAX_SIZES);
    for (unsigned i = 0; i < MAX_SIZES; i++)
        attack.sizes[i] = sizes[below(self, i ? SMALL : ALL)];
    for (unsigned i = 0; i < 2; i++)
        attack.planes[i] = widths[below(self, WIDTHS)] << 32 | heights[below(self, HEIGHTS)];
}

static size_t some_size(struct thread *self, const struct context *context, enum kind kind)
{
    const struct device *device = &attack.devices[context->device];
    size_t size = attack.sizes[below(self, attack.nsizes)];

    if (kind == PITCHED)
        return attack.planes[below(self, 2)];
    if (kind == DEVICE && chance(self, 2)) /* more than there is */
        return is_loose() ? device->capacity + 1 : device->capacity - device->exact + 1;
    if (chance(self, 20))
        size -= below(self, (unsigned)(size / 16 + 1)); /* the same class, more or less */
    return chance(self, 5) ? 1 + below(self, 200000) : size;
}

/* The first thing that a program does with memory of the host is often not a call. */
static void write_directly(struct thread *self, struct block *block)
{
    uint32_t *words = (uint32_t *)(uintptr_t)block->address;

    block->head = new_pattern(block);
    block->tail = 0;
    for (size_t i = 0; i < head_words(block); i++)
        words[i] = block->head;
    trace(self, "block %u is written directly, %#x", block->serial, block->head);
}

static void begin_use(struct thread *self, struct block *block)
{
    if (block->kind == PINNED && chance(self, 40))
        write_directly(self, block);
    else if (chance(self, 80))
        fill(self, block);
    put_block(block);
}

void allocate(struct thread *self)
{
    struct context *context = some_context(self);
    unsigned which = below(self, 100);
    enum kind kind = which < 60 ? DEVICE : which < 70 ? PITCHED : PINNED;
    struct block *block = obtain(self, context, kind, some_size(self, context, kind));

    if (block)
        begin_use(self, block);
}

/* Too little, mostly, for the work of a block just freed to be over. */
static void wait_a_little(struct thread *self)
{
    unsigned how = below(self, 100);

    if (how < 15)
        capture(self);
    for (unsigned i = how / 20; i > 0; i--)
        if (how < 60)
            wait_for(self);
        else
            wait_in_vain(self);
}

/* What a cache is made for. */
void replace(struct thread *self, struct block *block)
{
    struct context *context = block->context;
    enum kind kind = block->kind;
    size_t size = kind == PITCHED ? attack.planes[0] : block->size;

    spoil(self, block);
    release(self, block);
    wait_a_little(self);
    block = obtain(self, context, kind, size);
    if (block)
        begin_use(self, block);
}

/* Leaves little of a device. */
void squeeze(struct thread *self)
{
    struct context *context = some_context(self);
    const struct device *device = &attack.devices[context->device];
    size_t leave = (size_t)(1 + below(self, 24)) << 20, room;
    struct block *block;

    LOCKED(room =
               device->capacity > most_taken(device) ? device->capacity - most_taken(device) : 0);
    if (room < leave + (16u << 20))
        return;
    block = obtain(self, context, DEVICE, (room - leave) / 9 * 8 - (2u << 20));
    if (block)
        put_block(block);
}

/* ---- freeing ---- */

static CUresult call_free(const struct block *block)
{
    if (block->kind == PINNED)
        return cuMemFreeHost((void *)(uintptr_t)block->address);
    return cuMemFree(block->address);
}

static void set_leaving(struct block *block, bool is_leaving)
{
    LOCKED(block->is_leaving = is_leaving);
}

static void clear_slot(struct block *block)
{
    pthread_mutex_lock(&attack.lock);
    remember(block);
    charge(block, -1);
    block->serial = 0;
    pthread_mutex_unlock(&attack.lock);
}

void release(struct thread *self, struct block *block)
{
    struct guard guard;
    bool is_free;
    CUresult code;

    LOCKED(is_free = block->users == 0);
    if (chance(self, 30))
        spoil(self, block);
    for (unsigned i = below(self, 3); i > 0; i--)
        work(self, block); /* may well be under way when it is freed */
    if (!is_free) {
        put_block(block);
        return;
    }
    enter(self, chance(self, 70) ? block->context : some_context(self));
    set_leaving(block, true);
    guard = guard_begin(self);
    code = note(call_free(block));
    trace(self, "block %u at %#llx is freed: %d", block->serial, (unsigned long long)block->address,
          (int)code);
    if (!guard_end(self, &guard, code, "free")) {
        set_leaving(block, false);
        put_block(block);
        return;
    }
    expect(self, code, CUDA_SUCCESS, "free");
    clear_slot(block);
    LOCKED(attack.frees++);
}

void forget(struct thread *self, struct block *block)
{
    trace(self, "block %u is left to its context", block->serial);
    attack.leaked_blocks++;
    attack.leaked_bytes += block->size;
    clear_slot(block);
}
