/* SPDX-License-Identifier: MIT */
/*
 * See searchlist.h.
 *
 * Owns the hashes of the names that were opened with RTLD_GLOBAL, as atomics: the loader does not
 * tell of an object whether it was. A search runs inside one walk of the loader's list, which no
 * object leaves meanwhile; its memory lives as long.
 */
#include "hook/resolve/searchlist.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"

#define OPENINGS_MAX 256 /* what is opened with RTLD_GLOBAL after that counts as opened without */

static struct {
    _Atomic uint32_t count;
    struct {
        _Atomic uint64_t file, base; /* hashes of the name, and of its part after the last slash */
        _Atomic int opener;          /* the thread that may still be inside this dlopen; 0: none */
    } at[OPENINGS_MAX];
} openings;

static const char *basename_of(const char *file)
{
    const char *slash = strrchr(file, '/');

    return slash ? slash + 1 : file;
}

/* The thread is here: its dlopen has returned, or runs constructors, so what it opened is
 * relocated. Before that, the program's calls must not reach it, though the loader's list has it.
 */
static void settle(int thread)
{
    uint32_t count = atomic_load(&openings.count);

    for (uint32_t i = 0; i < count && i < OPENINGS_MAX; i++)
        if (atomic_load(&openings.at[i].opener) == thread)
            atomic_store(&openings.at[i].opener, 0);
}

void cw_searchlist_opening(const char *file)
{
    uint64_t hash = cw_hash_text(file);
    uint32_t i, count = atomic_load(&openings.count);
    int thread = (int)syscall(SYS_gettid);

    settle(thread);
    for (i = 0; i < count && i < OPENINGS_MAX; i++)
        if (atomic_load(&openings.at[i].file) == hash)
            return;
    if (count >= OPENINGS_MAX || (i = atomic_fetch_add(&openings.count, 1)) >= OPENINGS_MAX)
        return;
    atomic_store(&openings.at[i].opener, thread);
    atomic_store(&openings.at[i].base, cw_hash_text(basename_of(file)));
    atomic_store(&openings.at[i].file, hash);
}

/* ---- the loaded objects ---- */

struct item {
    struct cw_object object;
    const char *strings;
    uint32_t search; /* the last one that came here, 0: none */
    int is_start;    /* the program started with it */
};

/* One that a name stands for, the first in the loader's order. */
struct name {
    uint64_t hash;
    uint32_t item; /* plus 1, 0: an empty slot */
};

struct list {
    const char *name, *version; /* searched for */
    struct item *items;         /* in the loader's order */
    struct name *names;
    uint32_t *queue; /* items that the search comes to, in its order */
    uint32_t count, capacity, mask;
    uint32_t searches;
    uint32_t own; /* this library's item */
};

static struct name *name_slot(const struct list *list, uint64_t hash)
{
    uint32_t i = (uint32_t)cw_hash_mix(0, hash) & list->mask;

    while (list->names[i].item != 0 && list->names[i].hash != hash)
        i = (i + 1) & list->mask;
    return &list->names[i];
}

static struct item *named(const struct list *list, uint64_t hash)
{
    uint32_t item = name_slot(list, hash)->item;

    return item != 0 ? &list->items[item - 1] : NULL;
}

static void add_name(struct list *list, const char *name)
{
    struct name *slot;

    if (name == NULL || name[0] == '\0')
        return;
    slot = name_slot(list, cw_hash_text(name));
    if (slot->item == 0)
        *slot = (struct name){.hash = cw_hash_text(name), .item = list->count};
}

static int count_one(const struct cw_object *object, void *arg)
{
    (void)object;
    ++*(uint32_t *)arg;
    return 0;
}

static int add_one(const struct cw_object *object, void *arg)
{
    struct list *list = arg;
    struct cw_object_symbols symbols;

    if (list->count == list->capacity)
        return 1;
    cw_object_read(object, &symbols);
    if (cw_object_is_self(object))
        list->own = list->count;
    list->items[list->count++] = (struct item){.object = *object, .strings = symbols.strings};
    add_name(list, symbols.soname);
    add_name(list, cw_object_basename(object));
    add_name(list, object->name); /* as it was loaded, with a slash */
    return 0;
}

/* ---- searching ---- */

static void *defined(const struct list *list, uint32_t item)
{
    struct cw_object_symbols symbols;

    if (item == list->own)
        return NULL;
    cw_object_read(&list->items[item].object, &symbols);
    return cw_object_find_version(&symbols, list->name, list->version);
}

/* Adds what the first `length` in the queue need, breadth first, but not what is known to be of the
 * start. The length then. */
static uint32_t follow(struct list *list, uint32_t length)
{
    uint32_t search = ++list->searches;

    for (uint32_t i = 0; i < length; i++)
        list->items[list->queue[i]].search = search;
    for (uint32_t i = 0; i < length; i++) {
        const struct item *item = &list->items[list->queue[i]];

        for (const ElfW(Dyn) *d = item->object.dynamic; d->d_tag != DT_NULL; d++) {
            struct item *needed = d->d_tag == DT_NEEDED && item->strings != NULL
                                      ? named(list, cw_hash_text(item->strings + d->d_un.d_val))
                                      : NULL;

            if (needed == NULL || needed->is_start || needed->search == search)
                continue;
            needed->search = search;
            list->queue[length++] = (uint32_t)(needed - list->items);
        }
    }
    return length;
}

static void *find_in_queue(const struct list *list, uint32_t length)
{
    void *found = NULL;

    for (uint32_t i = 0; i < length && found == NULL; i++)
        found = defined(list, list->queue[i]);
    return found;
}

/* What stands before libc was there when libc was loaded: the program, what is preloaded, some of
 * what it needs. */
static void mark_start(struct list *list)
{
    uint32_t length = 0;

    while (length < list->count && !cw_object_is_libc(&list->items[length].object)) {
        list->queue[length] = length;
        length++;
    }
    length = follow(list, length);
    for (uint32_t i = 0; i < length; i++)
        list->items[list->queue[i]].is_start = 1;
}

/* What stands before us has been asked, and may be who asks. */
static void *find_at_start(const struct list *list)
{
    int is_one = list->own < list->count && list->items[list->own].is_start;
    void *found = NULL;

    for (uint32_t i = is_one ? list->own + 1 : 0; i < list->count && found == NULL; i++)
        if (list->items[i].is_start)
            found = defined(list, i);
    return found;
}

static void *find_in_global(struct list *list)
{
    uint32_t count = atomic_load(&openings.count);
    void *found = NULL;

    for (uint32_t i = 0; i < count && i < OPENINGS_MAX && found == NULL; i++) {
        struct item *item = named(list, atomic_load(&openings.at[i].file));

        if (atomic_load(&openings.at[i].opener) != 0)
            continue;
        if (item == NULL)
            item = named(list, atomic_load(&openings.at[i].base));
        if (item == NULL || item->is_start)
            continue;
        list->queue[0] = (uint32_t)(item - list->items);
        found = find_in_queue(list, follow(list, 1));
    }
    return found;
}

static struct item *item_of(const struct list *list, const struct cw_object *object)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].object.base == object->base)
            return &list->items[i];
    return NULL;
}

/* An opened object stands before what it brought. What an earlier search came to adds nothing to
 * that one, opened or not. */
static void *find_in_openers(struct list *list, const struct item *caller)
{
    uint32_t before = list->searches;
    void *found = NULL;

    for (uint32_t i = 0; i < list->count && found == NULL; i++) {
        uint32_t length;

        if (list->items[i].is_start || list->items[i].search > before)
            continue;
        list->queue[0] = i;
        length = follow(list, 1);
        if (caller->search == list->searches)
            found = find_in_queue(list, length);
    }
    return found;
}

static void *find(struct list *list, const struct cw_object *object)
{
    const struct item *caller = object != NULL ? item_of(list, object) : NULL;
    void *found;

    mark_start(list);
    found = find_at_start(list);
    if (found == NULL)
        found = find_in_global(list);
    if (found == NULL && caller != NULL && !caller->is_start)
        found = find_in_openers(list, caller);
    return found;
}

static void *find_brought(struct list *list, const struct cw_object *object)
{
    const struct item *caller = item_of(list, object);

    mark_start(list);
    return caller != NULL && !caller->is_start ? find_in_openers(list, caller) : NULL;
}

/* object NULL: the program, which is the first. */
static void *find_in_needed(struct list *list, const struct cw_object *object)
{
    const struct item *item = object != NULL ? item_of(list, object) : list->items;

    if (item == NULL || list->count == 0)
        return NULL;
    list->queue[0] = (uint32_t)(item - list->items);
    return find_in_queue(list, follow(list, 1));
}

/* ---- the walk ---- */

struct task {
    void *(*find)(struct list *list, const struct cw_object *object);
    const struct cw_object *object;
    struct list list;
    void *found;
};

/* Inside the walk's first step: no object goes away before it is done. */
static int run(const struct cw_object *first, void *arg)
{
    struct task *task = arg;
    struct list *list = &task->list;
    size_t bytes;

    (void)first;
    cw_object_visit(count_one, &list->capacity);
    list->mask = 63;
    while (list->mask < list->capacity * 6) /* three names each */
        list->mask = list->mask * 2 + 1;
    bytes = list->capacity * (sizeof(*list->items) + sizeof(*list->queue)) +
            (list->mask + (size_t)1) * sizeof(*list->names);
    list->items = cw_mem_alloc(bytes);
    if (list->items == NULL)
        return 1;
    list->names = (struct name *)(list->items + list->capacity);
    list->queue = (uint32_t *)(list->names + list->mask + 1);
    list->own = list->capacity;
    cw_object_visit(add_one, list);
    task->found = task->find(list, task->object);
    cw_mem_free(list->items, bytes);
    return 1;
}

static void *search(void *(*how)(struct list *list, const struct cw_object *object),
                    const struct cw_object *object, const char *name, const char *version)
{
    struct task task = {.find = how, .object = object, .list = {.name = name, .version = version}};

    cw_object_visit(run, &task);
    return task.found;
}

void *cw_searchlist_find(const struct cw_object *caller, const char *name, const char *version)
{
    settle((int)syscall(SYS_gettid));
    return search(find, caller, name, version);
}

void *cw_searchlist_brought_symbol(const struct cw_object *caller, const char *name,
                                   const char *version)
{
    return search(find_brought, caller, name, version);
}

void *cw_searchlist_needed_symbol(const struct cw_object *object, const char *name,
                                  const char *version)
{
    return search(find_in_needed, object, name, version);
}

void *cw_searchlist_program_symbol(const char *name)
{
    return search(find_in_needed, NULL, name, NULL);
}
