/* SPDX-License-Identifier: MIT */
/*
 * Modules. See module.h.
 *
 * Owns `ranges`, sorted by start, and the counters by which the loader says that its list changed.
 * Both are guarded by cw_intern_lock. A refresh collects without a lock and then merges under it.
 */
#include "core/stacks/module.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/elf_note.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/own_path.h"
#include "core/process/loader.h"
#include "core/process/intern.h"

struct range {
    uint64_t base, end;
    uint32_t module;
    uint32_t seen; /* refresh in which it was last mapped */
};

static struct cw_arena *arena;
static struct range *ranges; /* capacity range_capacity, from cw_mem */
static uint32_t range_count, range_capacity;
static uint32_t refreshes; /* generation of the current table */
static unsigned long long loader_adds, loader_subs;
static uint64_t self_base, self_end;
static void (*watch)(void);

struct found {
    uint64_t base, end, bias;
    uint64_t first_start, first_end; /* whole pages of what the file has at base */
    uint8_t build_id[20];
    uint8_t build_id_len;
    char path[PATH_MAX];
};

/* Grows by mmap-backed doubling; lives only during one refresh. */
struct found_list {
    struct found *items;
    size_t count, capacity;
    unsigned long long adds, subs;
    unsigned long long known_adds, known_subs; /* those of the last refresh, if there was one */
    int has_known, unchanged;
};

static int add_found(struct found_list *list, const struct found *item)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 32;
        struct found *items = cw_mem_alloc(capacity * sizeof(*items));

        if (items == NULL)
            return -1;
        if (list->items != NULL) {
            memcpy(items, list->items, list->count * sizeof(*items));
            cw_mem_free(list->items, list->capacity * sizeof(*items));
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = *item;
    return 0;
}

static void read_build_id(const struct dl_phdr_info *info, const ElfW(Phdr) * segment,
                          struct found *item)
{
    const char *id;
    size_t len = cw_elf_note_build_id((const char *)(info->dlpi_addr + segment->p_vaddr),
                                      segment->p_memsz, &id);

    if (len == 0)
        return;
    item->build_id_len = (uint8_t)(len < sizeof(item->build_id) ? len : sizeof(item->build_id));
    memcpy(item->build_id, id, item->build_id_len);
}

static void read_segments(const struct dl_phdr_info *info, struct found *item)
{
    uint64_t page = (uint64_t)getpagesize();

    item->base = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD) {
            if (start < item->base) {
                item->base = start;
                item->first_start = start & ~(page - 1);
                item->first_end = (start + segment->p_filesz + page - 1) & ~(page - 1);
            }
            if (start + segment->p_memsz > item->end)
                item->end = start + segment->p_memsz;
        } else if (segment->p_type == PT_NOTE) {
            read_build_id(info, segment, item);
        }
    }
}

/* The loader has no name for the program. Nor does /proc/self/exe if it was started by way of the
 * loader ("ld.so --library-path ... PROGRAM"): so what is mapped there is asked for first. */
static void find_program(struct found *item)
{
    int saved_errno = errno;
    char mapping[64];
    ssize_t len;

    cw_format(mapping, sizeof(mapping), "/proc/self/map_files/%jx-%jx",
              (uintmax_t)item->first_start, (uintmax_t)item->first_end);
    len = readlink(mapping, item->path, sizeof(item->path) - 1);
    errno = saved_errno;
    if (len <= 0)
        (void)cw_own_path(item->path, sizeof(item->path));
}

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct found_list *list = arg;
    struct found *item;

    if (list->count == 0 &&
        size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
        list->adds = info->dlpi_adds;
        list->subs = info->dlpi_subs;
        if (list->has_known && list->adds == list->known_adds && list->subs == list->known_subs) {
            list->unchanged = 1;
            return 1;
        }
    }
    item = cw_mem_alloc(sizeof(*item));
    if (item == NULL)
        return 1;
    item->bias = info->dlpi_addr;
    read_segments(info, item);
    if (info->dlpi_name != NULL && info->dlpi_name[0] != '\0')
        strncpy(item->path, info->dlpi_name, sizeof(item->path) - 1);
    else if (list->count == 0)
        find_program(item);
    if (item->end > item->base)
        add_found(list, item);
    cw_mem_free(item, sizeof(*item));
    return 0;
}

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static uint8_t role_of(const struct found *item)
{
    const char *name = basename_of(item->path);

    if (item->base <= (uint64_t)(uintptr_t)&cw_module_refresh &&
        (uint64_t)(uintptr_t)&cw_module_refresh < item->end)
        return CW_MODULE_SELF;
    if (strncmp(name, "libcuda.so", 10) == 0)
        return CW_MODULE_DRIVER;
    /* UCX's hooks stand in front of ours and pass calls on. */
    if (strncmp(name, "libcudart", 9) == 0 || strncmp(name, "libucm_cuda.so", 14) == 0)
        return CW_MODULE_RUNTIME;
    return CW_MODULE_PROGRAM;
}

static int is_same_file(uint32_t index, const struct found *item)
{
    const struct cw_live_module *module = cw_arena_at(arena, CW_TABLE_MODULE, index);

    return module->base == item->base && module->end == item->end && module->bias == item->bias &&
           module->build_id_len == item->build_id_len &&
           memcmp(module->build_id, item->build_id, item->build_id_len) == 0 &&
           strcmp(cw_arena_text_at(arena, module->path), item->path) == 0;
}

/* A file that returns to the same addresses is the same module: a plugin that comes and goes must
 * not make the table grow. 0: no such module. */
static uint32_t find_former(const struct found *item)
{
    uint32_t count = cw_arena_count(arena, CW_TABLE_MODULE);

    for (uint32_t i = 1; i < count; i++)
        if (is_same_file(i, item))
            return i;
    return 0;
}

static uint32_t make_record(const struct found *item, uint32_t generation)
{
    uint32_t index = find_former(item);
    struct cw_live_module *module;

    if (index != 0)
        return index;
    index = cw_arena_append(arena, CW_TABLE_MODULE);
    if (index == 0)
        return 0;
    module = cw_arena_at(arena, CW_TABLE_MODULE, index);
    module->base = item->base;
    module->end = item->end;
    module->bias = item->bias;
    module->generation = generation;
    memcpy(module->build_id, item->build_id, sizeof(module->build_id));
    module->build_id_len = item->build_id_len;
    module->role = role_of(item);
    module->path = cw_arena_text(arena, item->path, strlen(item->path));
    cw_arena_show(arena, module, sizeof(*module));
    return index;
}

/* First range whose end is above pc; range_count if none. */
static uint32_t lower_bound(uint64_t pc)
{
    uint32_t low = 0, high = range_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (ranges[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int reserve_range_locked(void)
{
    uint32_t capacity = range_capacity ? range_capacity * 2 : 64;
    struct range *bigger;

    if (range_count < range_capacity)
        return 0;
    bigger = cw_mem_alloc(capacity * sizeof(*bigger));
    if (bigger == NULL)
        return -1;
    if (ranges != NULL) {
        memcpy(bigger, ranges, range_count * sizeof(*bigger));
        cw_mem_free(ranges, range_capacity * sizeof(*ranges));
    }
    ranges = bigger;
    range_capacity = capacity;
    return 0;
}

static void insert_range_locked(const struct found *item)
{
    uint32_t at = lower_bound(item->base);

    if (at < range_count && ranges[at].base == item->base &&
        is_same_file(ranges[at].module, item)) {
        ranges[at].seen = refreshes;
        return;
    }
    if (reserve_range_locked() != 0)
        return;
    memmove(&ranges[at + 1], &ranges[at], (range_count - at) * sizeof(*ranges));
    ranges[at] = (struct range){.base = item->base,
                                .end = item->end,
                                .module = make_record(item, refreshes),
                                .seen = refreshes};
    range_count++;
}

static void drop_unmapped_locked(void)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < range_count; i++)
        if (ranges[i].seen == refreshes)
            ranges[kept++] = ranges[i];
    range_count = kept;
}

static void merge_locked(const struct found_list *list)
{
    /* Another thread has collected later and merged earlier: this list is the older one. */
    if (list->adds + list->subs < loader_adds + loader_subs)
        return;
    refreshes++;
    loader_adds = list->adds;
    loader_subs = list->subs;
    /* Unloaded modules must leave first: a new module may have their addresses. */
    for (size_t i = 0; i < list->count; i++) {
        uint32_t at = lower_bound(list->items[i].base);

        if (at < range_count && ranges[at].base == list->items[i].base &&
            is_same_file(ranges[at].module, &list->items[i]))
            ranges[at].seen = refreshes;
    }
    drop_unmapped_locked();
    for (size_t i = 0; i < list->count; i++)
        insert_range_locked(&list->items[i]);
}

void cw_module_set_watch(void (*changed)(void))
{
    watch = changed;
}

void cw_module_refresh(void)
{
    struct found_list list = {0};

    cw_lock_acquire(&cw_intern_lock);
    list.known_adds = loader_adds;
    list.known_subs = loader_subs;
    list.has_known = refreshes != 0;
    cw_lock_release(&cw_intern_lock);
    cw_loader_visit(collect, &list);
    if (!list.unchanged && list.count != 0) {
        cw_lock_acquire(&cw_intern_lock);
        merge_locked(&list);
        cw_lock_release(&cw_intern_lock);
        if (watch != NULL)
            watch();
    }
    if (list.items != NULL)
        cw_mem_free(list.items, list.capacity * sizeof(*list.items));
}

uint32_t cw_module_find_locked(uint64_t pc)
{
    uint32_t at = lower_bound(pc);

    return at < range_count && ranges[at].base <= pc ? ranges[at].module : 0;
}

static int find_self(struct dl_phdr_info *info, size_t size, void *arg)
{
    static struct found item; /* too large for a small stack; sessions are armed one at a time */

    (void)size;
    (void)arg;
    memset(&item, 0, sizeof(item));
    read_segments(info, &item);
    if (role_of(&item) != CW_MODULE_SELF)
        return 0;
    self_base = item.base;
    self_end = item.end;
    return 1;
}

void cw_module_init(struct cw_arena *in)
{
    arena = in;
    if (self_end == 0)
        cw_loader_visit(find_self, NULL);
}

void cw_module_reset(void)
{
    ranges = NULL;
    range_count = range_capacity = 0;
    refreshes = 0;
    loader_adds = loader_subs = 0;
}

int cw_module_is_self(uint64_t pc)
{
    return pc >= self_base && pc < self_end;
}
