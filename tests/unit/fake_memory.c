/* SPDX-License-Identifier: MIT */
/* The memory of the fake driver. See fake_memory.h. */
#include "fake_memory.h"

#include <pthread.h>
#include <string.h>

#include "fake_driver.h"

static pthread_mutex_t memory_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards blocks and free ones */
static struct fake_block {
    uint64_t bytes; /* 0: free */
    uint64_t handle;
    enum cw_kind kind;
} blocks[FAKE_BLOCKS];
static unsigned free_blocks[FAKE_BLOCKS], free_count, next_block, taken;

uint64_t fake_free_bytes(void)
{
    uint64_t capacity = fake_driver.capacity, used = fake_driver.taken_bytes + fake_driver.others;

    if (capacity == 0)
        return fake_driver.free_bytes;
    return used < capacity ? capacity - used : 0;
}

#define ADDRESS_SHIFT 28

unsigned fake_number(uint64_t key)
{
    return (unsigned)(key >> ADDRESS_SHIFT);
}

unsigned fake_taken(void)
{
    return taken;
}

/* Of the device. */
static int is_charged(enum cw_kind kind)
{
    return kind != CW_KIND_PINNED && kind != CW_KIND_MANAGED;
}

uint64_t fake_take(uint64_t handle, enum cw_kind kind, uint64_t bytes)
{
    uint64_t charged = is_charged(kind) ? bytes : 0;
    unsigned number;

    pthread_mutex_lock(&memory_mutex);
    if (fake_driver.capacity != 0 && charged > fake_free_bytes()) {
        pthread_mutex_unlock(&memory_mutex);
        return 0;
    }
    fake_driver.taken_bytes += charged;
    if (fake_driver.taken_bytes > fake_driver.most_taken)
        fake_driver.most_taken = fake_driver.taken_bytes;
    number = free_count > 0 ? free_blocks[--free_count] : ++next_block;
    if (number >= FAKE_BLOCKS)
        fake_broken("too many blocks");
    blocks[number] = (struct fake_block){.bytes = bytes, .handle = handle, .kind = kind};
    taken++;
    pthread_mutex_unlock(&memory_mutex);
    return (uint64_t)number << ADDRESS_SHIFT;
}

static void drop_locked(unsigned number)
{
    if (is_charged(blocks[number].kind))
        fake_driver.taken_bytes -= blocks[number].bytes;
    blocks[number].bytes = 0;
    free_blocks[free_count++] = number;
    taken--;
}

static struct fake_block *block_of(uint64_t key)
{
    unsigned number = fake_number(key);

    return key == (uint64_t)number << ADDRESS_SHIFT && number < FAKE_BLOCKS &&
                   blocks[number].bytes != 0
               ? &blocks[number]
               : NULL;
}

int fake_give(uint64_t key)
{
    const struct fake_block *block;
    uint64_t handle;

    pthread_mutex_lock(&memory_mutex);
    block = block_of(key);
    handle = block != NULL ? block->handle : 0;
    pthread_mutex_unlock(&memory_mutex);
    if (handle == 0)
        return -1;
    fake_finish(handle);
    pthread_mutex_lock(&memory_mutex);
    if (block_of(key) == NULL)
        fake_broken("two threads free one block");
    drop_locked(fake_number(key));
    pthread_mutex_unlock(&memory_mutex);
    return 0;
}

int fake_block_alloc(uint64_t bytes, uint64_t *out_key)
{
    if (fake_current() == 0)
        fake_broken("asked for memory without a context");
    if (fake_begin(FAKE_BLOCK_ALLOC) != 0)
        return -1;
    *out_key = fake_take(fake_current(), CW_KIND_DEVICE, bytes);
    return *out_key != 0 ? 0 : -1;
}

/* Managed memory, which the device is not charged for; freed as the program frees its own. */
int fake_fallback_alloc(unsigned device, uint64_t bytes, uint64_t *out_key)
{
    (void)device;
    if (fake_begin(FAKE_FALLBACK_ALLOC) != 0)
        return -1;
    *out_key = fake_take(fake_current(), CW_KIND_MANAGED, bytes);
    return 0;
}

#define POOL_HANDLE 0x9001

int fake_driver_pools(unsigned device, uint64_t out_pool[CW_DRIVER_POOLS], unsigned *out_count)
{
    (void)device;
    if (fake_begin(FAKE_DRIVER_POOLS) != 0)
        return -1;
    out_pool[0] = POOL_HANDLE;
    *out_count = 1;
    return 0;
}

int fake_driver_pool_use(uint64_t pool, uint64_t *out_held, uint64_t *out_used)
{
    if (fake_begin(FAKE_POOL_SPARE) != 0)
        return -1;
    *out_held = pool == POOL_HANDLE ? fake_driver.pool_used + fake_driver.pool_spare : 0;
    *out_used = pool == POOL_HANDLE ? fake_driver.pool_used : 0;
    return 0;
}

int fake_driver_pool_trim(uint64_t pool)
{
    if (fake_begin(FAKE_POOL_TRIM) != 0)
        return -1;
    if (pool == POOL_HANDLE)
        fake_driver.pool_spare = 0;
    return 0;
}

int fake_block_free(struct cw_context_name name, enum cw_kind kind, uint64_t key)
{
    struct fake_block block = {0};

    if (!fake_is_itself(name))
        return fake_begin(FAKE_BLOCK_FREE), -1;

    pthread_mutex_lock(&memory_mutex);
    if (block_of(key) != NULL)
        block = *block_of(key);
    pthread_mutex_unlock(&memory_mutex);
    if (block.bytes == 0)
        fake_broken("gave back what is no block");
    if (block.kind == CW_KIND_MANAGED)
        block.kind = CW_KIND_DEVICE;
    if (block.handle != name.handle || block.kind != kind)
        fake_broken("gave back a block of another context or kind");
    if (fake_begin(FAKE_BLOCK_FREE) != 0)
        return -1;
    return fake_give(key);
}

void fake_forget_blocks(uint64_t handle)
{
    pthread_mutex_lock(&memory_mutex);
    for (unsigned i = 1; i <= next_block; i++)
        if (blocks[i].bytes != 0 && blocks[i].handle == handle)
            drop_locked(i);
    pthread_mutex_unlock(&memory_mutex);
}

void fake_memory_init(void)
{
    memset(blocks, 0, sizeof(blocks));
    free_count = next_block = taken = 0;
}
