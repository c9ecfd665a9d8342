/* SPDX-License-Identifier: MIT */
/* Devices, contexts, events and the clock of a replay. See replay_driver.h. */
#include "cli/replay/replay_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay/replay_memory.h"

#define START_NS     UINT64_C(1000000000) /* 0 means never */
#define HANDLE_FIRST UINT64_C(0x1000)     /* of the context of device 0 */

static struct {
    uint64_t device_bytes, now_ns;
    uint64_t busy_ns; /* until then work is pending */
    uint8_t current;
    struct cw_replay_memory *memory[CW_DEVICES]; /* created when first needed */
    uint64_t *event;                             /* completion times by number; 0 is none */
    uint64_t events, event_room;
    struct cw_replay_calls calls;
} self;

void cw_replay_driver_start(uint64_t device_bytes)
{
    memset(&self, 0, sizeof(self));
    self.device_bytes = device_bytes;
    self.now_ns = START_NS;
}

void cw_replay_driver_stop(void)
{
    for (unsigned i = 0; i < CW_DEVICES; i++)
        cw_replay_memory_destroy(self.memory[i]);
    free(self.event);
    memset(&self, 0, sizeof(self));
}

void cw_replay_driver_set_time(uint64_t ns)
{
    ns += START_NS;
    if (ns > self.now_ns)
        self.now_ns = ns;
}

void cw_replay_driver_submit(void)
{
    self.busy_ns = self.now_ns + CW_REPLAY_LAG_NS;
}

void cw_replay_driver_select(uint8_t device)
{
    self.current = device < CW_MAX_DEVICES ? device : 0;
}

const struct cw_replay_calls *cw_replay_driver_calls(void)
{
    return &self.calls;
}

/* ---- memory ---- */

static struct cw_replay_memory *memory_of(uint8_t device)
{
    uint64_t bytes = device == CW_DEVICE_HOST ? CW_REPLAY_MOST - CW_REPLAY_PAGE : self.device_bytes;

    if (self.memory[device] == NULL)
        self.memory[device] = cw_replay_memory_make((device + 1u) * CW_REPLAY_MOST, bytes);
    return self.memory[device];
}

uint64_t cw_replay_driver_alloc(uint8_t device, uint64_t bytes)
{
    struct cw_replay_memory *memory = memory_of(device);
    uint64_t address = memory != NULL ? cw_replay_memory_take(memory, bytes) : 0;

    if (address != 0)
        self.calls.allocs++;
    else
        self.calls.refused++;
    return address;
}

void cw_replay_driver_free(uint64_t address)
{
    uint64_t device = address / CW_REPLAY_MOST - 1;

    if (device < CW_DEVICES && self.memory[device] != NULL &&
        cw_replay_memory_give(self.memory[device], address) == 0)
        self.calls.frees++;
}

uint64_t cw_replay_driver_total(void)
{
    return self.device_bytes;
}

uint64_t cw_replay_driver_free_bytes(uint8_t device)
{
    return memory_of(device) != NULL ? cw_replay_memory_free(memory_of(device)) : 0;
}

uint64_t cw_replay_driver_largest(uint8_t device)
{
    return memory_of(device) != NULL ? cw_replay_memory_largest(memory_of(device)) : 0;
}

/* ---- what the core asks ---- */

/* Whoever polls the clock waits for something, so time must advance. */
static uint64_t now_ns(void)
{
    self.now_ns += CW_REPLAY_TICK_NS;
    return self.now_ns;
}

/* Calls take no time. */
static uint64_t exact_ns(void)
{
    return self.now_ns;
}

static uint64_t work_ns(void)
{
    return 0;
}

static int context_current(uint64_t *out_handle)
{
    *out_handle = HANDLE_FIRST + self.current;
    return 0;
}

static int has_context_ids(void)
{
    return 0;
}

static int context_identity(uint64_t handle, uint64_t *out_identity)
{
    *out_identity = handle != 0 ? handle : HANDLE_FIRST + self.current;
    return 0;
}

static int context_facts(uint64_t handle, struct cw_context_facts *out)
{
    *out = (struct cw_context_facts){.id = handle, .device = (unsigned)(handle - HANDLE_FIRST)};
    return 0;
}

static int device_facts(unsigned device, struct cw_device_facts *out)
{
    *out = (struct cw_device_facts){.total = self.device_bytes};
    snprintf(out->name, sizeof(out->name), "replayed device %u", device);
    out->uuid[0] = (uint8_t)(device + 1);
    return 0;
}

static int device_count(unsigned *out_count)
{
    *out_count = CW_MAX_DEVICES;
    return 0;
}

static int memory_info(struct cw_context_name context, uint64_t *out_free, uint64_t *out_total)
{
    *out_free = cw_replay_driver_free_bytes(
        context.handle ? (uint8_t)(context.handle - HANDLE_FIRST) : self.current);
    *out_total = self.device_bytes;
    return 0;
}

static int context_wait(struct cw_context_name context)
{
    (void)context;
    self.calls.waits++;
    self.busy_ns = self.now_ns;
    return 0;
}

static int has_context_events(void)
{
    return 1;
}

static int event_create(struct cw_context_name context, uint64_t *out_event)
{
    (void)context;
    if (self.events + 1 >= self.event_room) {
        uint64_t room = self.event_room ? 2 * self.event_room : 64;
        uint64_t *more = realloc(self.event, room * sizeof(*more));

        if (more == NULL)
            return -1;
        self.event = more;
        self.event_room = room;
    }
    self.event[++self.events] = 0;
    *out_event = self.events;
    return 0;
}

static int event_record(struct cw_context_name context, uint64_t event)
{
    (void)context;
    self.calls.events++;
    self.event[event] = self.busy_ns;
    return 0;
}

static int event_query(struct cw_context_name context, uint64_t event)
{
    (void)context;
    self.calls.events++;
    return self.now_ns >= self.event[event];
}

/* A free waits, as in a program whose kernels are short: its work is over then. */
static int context_poll(struct cw_context_name context, uint64_t event, int *out_passed)
{
    (void)event;
    *out_passed = 1;
    return context_wait(context);
}

static int block_alloc(uint64_t bytes, uint64_t *out_key)
{
    *out_key = cw_replay_driver_alloc(self.current, bytes);
    return *out_key != 0 ? 0 : -1;
}

static int block_free(struct cw_context_name context, enum cw_kind kind, uint64_t key)
{
    (void)context;
    (void)kind;
    cw_replay_driver_free(key);
    return 0;
}

/* A trace does not contain the host's spare memory. */
static int fallback_alloc(unsigned device, uint64_t bytes, uint64_t *out_key)
{
    (void)device;
    (void)bytes;
    (void)out_key;
    return -1;
}

static int driver_pools(unsigned device, uint64_t out_pool[CW_DRIVER_POOLS], unsigned *out_count)
{
    (void)device;
    (void)out_pool;
    *out_count = 0;
    return 0;
}

static int exchange_capture_mode(int mode)
{
    return mode;
}

static int driver_pool_use(uint64_t pool, uint64_t *out_held, uint64_t *out_used)
{
    (void)pool;
    (void)out_held;
    (void)out_used;
    return -1;
}

static int driver_pool_trim(uint64_t pool)
{
    (void)pool;
    return -1;
}

const struct cw_driver_ops cw_replay_ops = {
    .now_ns = now_ns,
    .exact_ns = exact_ns,
    .work_ns = work_ns,
    .exchange_capture_mode = exchange_capture_mode,
    .context_current = context_current,
    .has_context_ids = has_context_ids,
    .context_identity = context_identity,
    .context_facts = context_facts,
    .device_facts = device_facts,
    .device_count = device_count,
    .memory_info = memory_info,
    .context_wait = context_wait,
    .has_context_events = has_context_events,
    .event_create = event_create,
    .event_record = event_record,
    .event_query = event_query,
    .context_poll = context_poll,
    .block_alloc = block_alloc,
    .block_free = block_free,
    .fallback_alloc = fallback_alloc,
    .driver_pools = driver_pools,
    .driver_pool_use = driver_pool_use,
    .driver_pool_trim = driver_pool_trim,
};
