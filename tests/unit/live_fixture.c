/* SPDX-License-Identifier: MIT */
/* Live layouts made by hand. See live_fixture.h. */
#include "live_fixture.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

static void require(int condition)
{
    if (!condition)
        abort();
}

static const char argv_text[] = "./victim\0--size\0003";

void fixture_create(struct fixture *fixture)
{
    struct cw_live_header *header;

    memset(fixture, 0, sizeof(*fixture));
    require(cw_arena_create(&fixture->arena, (size_t)4 << 30) == 0);
    header = fixture->arena.header;
    header->pid = 4711;
    header->ppid = 4710;
    header->start_realtime_ns = UINT64_C(1700000000123456789);
    header->end_ns = 400 * FIXTURE_MS;
    header->exit_kind = CW_EXIT_EXIT;
    header->exit_code = 3;
    header->driver_version = 12040;
    header->exe = fixture_text(fixture, "/opt/demo/victim");
    header->command = fixture_text(fixture, "./victim --size 3");
    header->cwd = fixture_text(fixture, "/opt/demo");
    header->host = fixture_text(fixture, "node7");
    header->argc = 3;
    header->argv = cw_arena_text(&fixture->arena, argv_text, sizeof(argv_text) - 1);
}

void fixture_destroy(struct fixture *fixture)
{
    cw_arena_destroy(&fixture->arena);
}

struct cw_view fixture_view(const struct fixture *fixture)
{
    struct cw_view view;

    cw_arena_view(&fixture->arena, &view);
    return view;
}

uint32_t fixture_text(struct fixture *fixture, const char *s)
{
    return cw_arena_text(&fixture->arena, s, strlen(s));
}

static void *append(struct fixture *fixture, enum cw_table table, uint32_t *out_index)
{
    *out_index = cw_arena_append(&fixture->arena, table);
    require(*out_index != 0);
    return cw_arena_at(&fixture->arena, table, *out_index);
}

uint32_t fixture_module(struct fixture *fixture, const char *path, uint64_t bias,
                        enum cw_module_role role)
{
    uint32_t index;
    struct cw_live_module *module = append(fixture, CW_TABLE_MODULE, &index);

    module->bias = bias;
    module->base = bias;
    module->end = bias + (1 << 20);
    module->path = fixture_text(fixture, path);
    module->role = (uint8_t)role;
    return index;
}

struct cw_live_module *fixture_module_at(struct fixture *fixture, uint32_t module)
{
    return cw_arena_at(&fixture->arena, CW_TABLE_MODULE, module);
}

static void copy_build_id(struct cw_live_module *module, const char *notes, size_t len)
{
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= len;) {
        const ElfW(Nhdr) *note = (const void *)(notes + at);
        size_t id = at + sizeof(*note) + ((note->n_namesz + 3u) & ~3u);

        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= sizeof(module->build_id)) {
            memcpy(module->build_id, notes + id, note->n_descsz);
            module->build_id_len = (uint8_t)note->n_descsz;
            return;
        }
        at = id + ((note->n_descsz + 3u) & ~3u);
    }
}

static int fill_own_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct cw_live_module *module = arg;

    (void)size;
    module->bias = info->dlpi_addr;
    module->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE && module->build_id_len == 0)
            copy_build_id(module, (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                          info->dlpi_phdr[i].p_memsz);
    return 1; /* the program comes first */
}

uint32_t fixture_own_module(struct fixture *fixture)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    uint32_t index;

    require(len > 0);
    path[len] = '\0';
    index = fixture_module(fixture, path, 0, CW_MODULE_PROGRAM);
    dl_iterate_phdr(fill_own_module, fixture_module_at(fixture, index));
    return index;
}

uint32_t fixture_frame(struct fixture *fixture, uint32_t caller, uint32_t module, uint64_t offset)
{
    uint32_t index;
    struct cw_live_frame *frame = append(fixture, CW_TABLE_FRAME, &index);

    frame->parent = caller;
    frame->module = module;
    frame->pc = offset + 1;
    if (module != 0)
        frame->pc += fixture_module_at(fixture, module)->bias;
    return index;
}

uint32_t fixture_line(struct fixture *fixture, uint32_t caller, const char *file,
                      const char *function, uint32_t line)
{
    uint32_t index, code_index;
    struct cw_live_frame *frame = append(fixture, CW_TABLE_FRAME, &index);
    struct cw_live_code *code = append(fixture, CW_TABLE_CODE, &code_index);

    code->file = fixture_text(fixture, file);
    code->function = fixture_text(fixture, function);
    code->line = line;
    frame->parent = caller;
    frame->module = CW_MODULE_PYTHON;
    frame->pc = code_index;
    return index;
}

uint32_t fixture_site(struct fixture *fixture, uint32_t stack, const char *api, enum cw_kind kind,
                      unsigned device)
{
    uint32_t index;
    struct cw_live_site *site = append(fixture, CW_TABLE_SITE, &index);

    site->stack = stack;
    site->api = fixture_text(fixture, api);
    site->kind = (uint8_t)kind;
    site->device = (uint8_t)device;
    return index;
}

uint32_t fixture_tag(struct fixture *fixture, const char *name, const char *domain)
{
    uint32_t index = cw_arena_append(&fixture->arena, CW_TABLE_TAG);
    struct cw_live_tag *tag = cw_arena_at(&fixture->arena, CW_TABLE_TAG, index);

    tag->name = fixture_text(fixture, name);
    tag->domain = domain != NULL ? fixture_text(fixture, domain) : 0;
    return index;
}

struct cw_live_site *fixture_site_at(struct fixture *fixture, uint32_t site)
{
    return cw_arena_at(&fixture->arena, CW_TABLE_SITE, site);
}

/* Called before a site changes: keeps what it held at the device's last peak. */
static void save_at_peak(struct cw_live_site *site, const struct cw_live_device *device)
{
    struct cw_site_sums sums;

    if (site->at_peak_version == device->peak_version)
        return;
    site->at_peak_version = device->peak_version;
    cw_view_site_sums(site, &sums);
    site->at_peak_blocks = sums.live_blocks;
    site->at_peak_bytes = sums.live_bytes;
}

static void grow(struct fixture *fixture, struct cw_live_site *site, uint64_t bytes, uint64_t held,
                 uint64_t t_ns)
{
    struct cw_live_header *header = fixture->arena.header;
    struct cw_live_device *device = &header->device[site->device];

    site->total_bytes += bytes;
    site->extra_bytes += held - bytes;
    site->allocs++;
    site->last_ns = t_ns;
    if (site->first_ns == 0)
        site->first_ns = t_ns;
    if (cw_kind_counted(site->kind) == CW_COUNTED_NONE)
        return;
    device->live_bytes += bytes;
    header->live_bytes += bytes;
    device->held_bytes += held;
    if (device->held_bytes > device->peak_held)
        device->peak_held = (uint64_t)device->held_bytes;
    if (header->live_bytes > header->peak_bytes)
        header->peak_bytes = (uint64_t)header->live_bytes;
    if (device->live_bytes > device->peak_bytes) {
        device->peak_bytes = (uint64_t)device->live_bytes;
        device->peak_ns = t_ns;
        device->peak_version++;
    }
}

static void add_blocks(struct fixture *fixture, uint32_t site_index, uint64_t bytes, uint64_t held,
                       uint8_t flags, unsigned blocks, uint64_t t_ns)
{
    struct cw_live_site *site = fixture_site_at(fixture, site_index);
    uint32_t index;

    for (unsigned i = 0; i < blocks; i++) {
        struct cw_live_block *block = append(fixture, CW_TABLE_BLOCK, &index);

        save_at_peak(site, &fixture->arena.header->device[site->device]);
        block->key = UINT64_C(0x7f0000000000) + ++fixture->next_key * UINT64_C(512);
        block->bytes = bytes;
        block->held = held;
        block->born_ns = t_ns;
        block->site = site_index;
        block->tid = 4711;
        block->flags = flags;
        block->state = CW_BLOCK_LIVE;
        grow(fixture, site, bytes, held, t_ns);
    }
}

void fixture_alloc(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks,
                   uint64_t t_ns)
{
    add_blocks(fixture, site, bytes, bytes, 0, blocks, t_ns);
}

void fixture_pool_alloc(struct fixture *fixture, uint32_t site, uint64_t bytes, uint64_t held,
                        unsigned blocks, uint64_t t_ns)
{
    add_blocks(fixture, site, bytes, held, CW_BLOCK_POOLED, blocks, t_ns);
}

/* Returns what the blocks held beyond the bytes asked for. */
static uint64_t shrink(struct fixture *fixture, uint32_t site_index, uint64_t bytes,
                       unsigned blocks, enum cw_block_state state)
{
    struct cw_live_site *site = fixture_site_at(fixture, site_index);
    struct cw_live_device *device = &fixture->arena.header->device[site->device];
    uint32_t count = fixture->arena.header->table[CW_TABLE_BLOCK].count;
    uint64_t extra = 0;

    save_at_peak(site, device);
    device->live_bytes -= bytes * blocks;
    fixture->arena.header->live_bytes -= bytes * blocks;
    for (uint32_t i = 1; i < count && blocks > 0; i++) {
        struct cw_live_block *block = cw_arena_at(&fixture->arena, CW_TABLE_BLOCK, i);

        if (block->site == site_index && block->bytes == bytes && block->state == CW_BLOCK_LIVE) {
            block->state = state;
            extra += block->held - bytes;
            if (state != CW_BLOCK_IDLE)
                device->held_bytes -= block->held;
            blocks--;
        }
    }
    return extra;
}

static void count_frees(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks,
                        enum cw_block_state state)
{
    fixture_site_at(fixture, site)->freed_extra += shrink(fixture, site, bytes, blocks, state);
    fixture_site_at(fixture, site)->frees += blocks;
    fixture_site_at(fixture, site)->freed_bytes += bytes * blocks;
}

void fixture_free(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks)
{
    count_frees(fixture, site, bytes, blocks, CW_BLOCK_FREE);
}

void fixture_keep(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks)
{
    count_frees(fixture, site, bytes, blocks, CW_BLOCK_IDLE);
}

void fixture_reclaim(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks)
{
    fixture_site_at(fixture, site)->far_extra +=
        shrink(fixture, site, bytes, blocks, CW_BLOCK_FREE);
    fixture_site_at(fixture, site)->reclaimed += blocks;
    fixture_site_at(fixture, site)->reclaimed_bytes += bytes * blocks;
}

struct cw_live_bucket *fixture_bucket(struct fixture *fixture, unsigned device, enum cw_kind kind,
                                      uint64_t size)
{
    uint32_t index;
    struct cw_live_bucket *bucket = append(fixture, CW_TABLE_BUCKET, &index);

    bucket->device = (uint8_t)device;
    bucket->kind = (uint8_t)kind;
    bucket->size = size;
    fixture->arena.header->pool_mode = 1;
    return bucket;
}

struct cw_live_event *fixture_event(struct fixture *fixture, enum cw_event_type type, uint32_t site,
                                    int code)
{
    uint32_t index;
    struct cw_live_event *event = append(fixture, CW_TABLE_EVENT, &index);

    event->type = (uint8_t)type;
    event->site = site;
    event->code = code;
    event->t_ns = 100 * FIXTURE_MS;
    return event;
}

struct cw_live_oom *fixture_oom(struct fixture *fixture, uint32_t event, uint32_t site)
{
    uint32_t index;
    struct cw_live_oom *oom = append(fixture, CW_TABLE_OOM, &index);

    oom->t_ns = 100 * FIXTURE_MS;
    oom->event = event;
    oom->site = site;
    oom->code = 2;
    oom->device = fixture_site_at(fixture, site)->device;
    return oom;
}

#define GIB ((uint64_t)1 << 30)

static void fill_memory(struct cw_live_memory *memory)
{
    memory->limit = 64 * GIB;
    memory->min_free = GIB / 2;
    memory->spare = 2 * GIB;
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        memory->refused[i] = i + 1;
    memory->limited = 9;
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++) {
        memory->rung[i].tried = 10 * (i + 1);
        memory->rung[i].helped = i + 1;
        memory->rung[i].released = i * GIB;
    }
    memory->fallbacks = 5;
    memory->fallback_bytes = 3 * GIB;
    memory->level = CW_LEVEL_CRITICAL;
    memory->level_since_ns = 300 * FIXTURE_MS;
    memory->level_ns[CW_LEVEL_LOW] = 200 * FIXTURE_MS;
    memory->level_ns[CW_LEVEL_HIGH] = 60 * FIXTURE_MS;
    memory->level_ns[CW_LEVEL_CRITICAL] = 40 * FIXTURE_MS;
    memory->level_entered[CW_LEVEL_HIGH] = 3;
    memory->level_entered[CW_LEVEL_CRITICAL] = 2;
    memory->highest_use = 9731;
    memory->pressure_blocks = 12;
    memory->pressure_bytes = 3 * GIB / 2;
}

static struct cw_live_event *scarce_event(struct fixture *fixture, enum cw_event_type type,
                                          unsigned device, uint32_t site)
{
    struct cw_live_event *event = fixture_event(fixture, type, site, 0);

    event->device = (uint8_t)device;
    event->bytes = 120 * GIB;
    event->total_bytes = 141 * GIB;
    event->free_bytes = 21 * GIB;
    event->released = 3 * GIB / 2;
    event->count = 1;
    return event;
}

static void add_account(struct fixture *fixture, uint32_t site)
{
    uint32_t event = fixture->arena.header->table[CW_TABLE_EVENT].count;
    struct cw_live_oom *oom;

    fixture_event(fixture, CW_EVENT_OOM, site, 2)->bytes = 8 * GIB;
    oom = fixture_oom(fixture, event, site);
    oom->bytes = 8 * GIB;
    oom->fits = 3 * GIB;
    oom->limit = 64 * GIB;
    oom->live = 40 * GIB;
    oom->held = 60 * GIB;
    oom->idle = 15 * GIB;
    oom->spare = 2 * GIB;
    oom->free_bytes = 61 * GIB;
    oom->total_bytes = 141 * GIB;
    oom->holder[0].site = site;
    oom->holder[0].bytes = 30 * GIB;
    oom->holder[0].blocks = 212;
    oom->rest_bytes = 10 * GIB;
    oom->rest_blocks = 33;
    oom->holders = 1;
}

void fixture_scarce(struct fixture *fixture, unsigned device, uint32_t site)
{
    struct cw_live_event *event;

    fill_memory(&fixture->arena.header->device[device].memory);
    event = scarce_event(fixture, CW_EVENT_PRESSURE, device, site);
    event->level_before = CW_LEVEL_MEDIUM;
    event->level = CW_LEVEL_HIGH;
    event->share = 8513;
    event = scarce_event(fixture, CW_EVENT_TRIM, device, site);
    event->cause = CW_CAUSE_MIN_FREE;
    event->rung = CW_RUNG_ALL;
    event->bytes = 2 * GIB;
    event->count = 14;
    event = scarce_event(fixture, CW_EVENT_LIMIT, device, 0);
    event->bytes = 64 * GIB;
    event->released = 0;
    add_account(fixture, site);
}

/* ---- over time ---- */

void fixture_moment(struct fixture *fixture, unsigned slot, uint64_t t_ns)
{
    struct cw_live_growth *growth = &fixture->arena.header->growth;

    growth->t_ns[slot] = t_ns;
    growth->taken++;
    growth->is_on = 1;
}

struct cw_live_series *fixture_series(struct fixture *fixture, uint32_t site)
{
    uint32_t index;
    struct cw_live_series *series = append(fixture, CW_TABLE_SERIES, &index);

    series->site = site;
    fixture_site_at(fixture, site)->series = index;
    return series;
}

struct cw_live_timeline *fixture_timeline(struct fixture *fixture, unsigned device)
{
    uint32_t index;
    struct cw_live_timeline *timeline = append(fixture, CW_TABLE_TIMELINE, &index);

    timeline->device = device;
    return timeline;
}

struct cw_live_regrowth *fixture_regrowth(struct fixture *fixture, uint32_t site)
{
    uint32_t index;
    struct cw_live_regrowth *regrowth = append(fixture, CW_TABLE_REGROWTH, &index);

    regrowth->site = site;
    return regrowth;
}

struct cw_live_tag *fixture_tag_at(struct fixture *fixture, uint32_t tag)
{
    return cw_arena_at(&fixture->arena, CW_TABLE_TAG, tag);
}

static void add_bits(_Atomic uint64_t *sum, double value)
{
    uint64_t bits = *sum;
    double now;

    memcpy(&now, &bits, sizeof(now));
    now += value;
    memcpy(&bits, &now, sizeof(bits));
    *sum = bits;
}

void fixture_step(struct fixture *fixture, uint32_t index, uint64_t t_ns, uint64_t bytes)
{
    struct cw_live_tag *tag = fixture_tag_at(fixture, index);
    double y = (double)bytes;

    if (tag->steps == 0) {
        tag->first_ns = t_ns;
        tag->first_bytes = bytes;
        tag->least_bytes = bytes;
    }
    tag->begun++;
    tag->steps++;
    tag->last_ns = t_ns;
    tag->last_bytes = bytes;
    if (bytes < tag->least_bytes)
        tag->least_bytes = bytes;
    if (bytes > tag->most_bytes)
        tag->most_bytes = bytes;
    add_bits(&tag->sum_y, y);
    add_bits(&tag->sum_xy, y * (double)tag->steps);
    add_bits(&tag->sum_yy, y * y);
}

struct cw_live_device *fixture_device(struct fixture *fixture, unsigned index, const char *name)
{
    struct cw_live_device *device = &fixture->arena.header->device[index];

    strncpy(device->name, name, sizeof(device->name) - 1);
    device->total = (uint64_t)141 << 30;
    for (unsigned i = 0; i < sizeof(device->uuid); i++)
        device->uuid[i] = (uint8_t)(0x10 + i);
    device->known = 1;
    return device;
}
