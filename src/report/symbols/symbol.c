/* SPDX-License-Identifier: MIT */
/*
 * Batch symbolisation. See symbol.h.
 *
 * The requests are sorted by module and address. A symbol of value v is recorded at the first
 * request at or above v, unless a nearer one is recorded there; a final sweep carries each symbol
 * on to the following requests, up to the next symbol. So the table is read once, in any order, and
 * no symbol costs more than one binary search, whatever ranges a crafted file claims.
 */
#include "report/symbols/symbol.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/out.h"
#include "report/symbols/elf.h"
#include "base/sort.h"
#include "report/symbols/stack.h"

#define WANTED      UINT32_MAX
#define TEXT_MAX    ((size_t)256 << 20)
#define TEXT_MIN    ((size_t)1 << 20)
#define SYMBOL_STEP 1024 /* symbols per read */
#define RECORDS_MAX (UINT32_C(1) << 22)
#define RECORDS_LEN (RECORDS_MAX * sizeof(struct cw_symbol_record))
#define PATH_LEN    8192 /* of a module, including the directory prefix */

struct request {
    uint64_t address; /* in the module's file, of the call */
    uint32_t module;
    uint32_t frame;
};

/* The nearest symbol at or below the request. */
struct candidate {
    uint64_t value;
    uint64_t end; /* 0: no symbol */
    uint32_t name;
    uint32_t rank; /* among symbols of equal value */
};

/* Working memory for one module. */
struct batch {
    struct cw_symbols *symbols;
    const struct request *request;
    size_t count;
    struct candidate *candidate;   /* one per request */
    Elf64_Sym *step;               /* SYMBOL_STEP */
    char *name;                    /* CW_SYMBOL_NAME_MAX */
    char *path;                    /* PATH_LEN */
    struct cw_symbol_place *place; /* CW_SYMBOL_PLACES_MAX */
    struct cw_elf *elf;
};

/* Reserves memory whose pages are allocated on first access, or NULL. */
static void *reserve(size_t len)
{
    void *range =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return range != MAP_FAILED ? range : NULL;
}

int cw_symbols_init(struct cw_symbols *symbols, const struct cw_view *view, cw_demangle_fn demangle,
                    void *demangle_arg)
{
    memset(symbols, 0, sizeof(*symbols));
    symbols->view = view;
    symbols->demangle = demangle;
    symbols->demangle_arg = demangle_arg;
    symbols->sysroot = "";
    symbols->frames = cw_view_count(view, CW_TABLE_FRAME);
    symbols->name = cw_mem_alloc(symbols->frames * sizeof(uint32_t));
    for (size_t cap = TEXT_MAX; symbols->name && !symbols->text && cap >= TEXT_MIN; cap /= 2) {
        symbols->text = reserve(cap);
        symbols->text_cap = cap;
        symbols->text_len = 1; /* 0 means "no name" */
    }
    if (symbols->text)
        return 0;
    cw_symbols_fini(symbols);
    symbols->error = ENOMEM;
    return -1;
}

void cw_symbols_fini(struct cw_symbols *symbols)
{
    cw_mem_free(symbols->name, symbols->frames * sizeof(uint32_t));
    if (symbols->text)
        munmap(symbols->text, symbols->text_cap);
    if (symbols->record)
        munmap(symbols->record, RECORDS_LEN);
    cw_mem_free(symbols->known, symbols->frames * sizeof(*symbols->known));
    memset(symbols, 0, sizeof(*symbols));
}

void cw_symbols_use(struct cw_symbols *symbols, const struct cw_symbol_ops *ops,
                    const char *sysroot)
{
    symbols->sysroot = sysroot ? sysroot : "";
    if (!ops || !symbols->text || symbols->record)
        return;
    symbols->record = reserve(RECORDS_LEN);
    symbols->known = cw_mem_alloc(symbols->frames * sizeof(*symbols->known));
    if (symbols->record && symbols->known)
        symbols->ops = ops;
}

void cw_symbols_want(struct cw_symbols *symbols, uint32_t innermost)
{
    uint32_t at = innermost;

    /* The callers of a marked frame are already marked. */
    while (at != 0 && at < symbols->frames && symbols->name[at] == 0) {
        const struct cw_live_frame *frame = cw_view_frame(symbols->view, at);
        uint32_t parent = frame ? frame->parent : 0;

        symbols->name[at] = WANTED;
        symbols->wanted++;
        at = parent < at ? parent : 0;
    }
}

const char *cw_symbols_name(const struct cw_symbols *symbols, uint32_t frame)
{
    if (frame >= symbols->frames || symbols->name[frame] == 0 || symbols->name[frame] == WANTED)
        return NULL;
    return symbols->text + symbols->name[frame];
}

const char *cw_symbols_table_name(const struct cw_symbols *symbols, uint32_t frame)
{
    if (frame < symbols->frames && symbols->known && symbols->known[frame].is_named)
        return NULL;
    return cw_symbols_name(symbols, frame);
}

unsigned cw_symbols_places(const struct cw_symbols *symbols, uint32_t frame)
{
    return frame < symbols->frames && symbols->known ? symbols->known[frame].count : 0;
}

static const char *text_at(const struct cw_symbols *symbols, uint32_t at)
{
    return at != 0 ? symbols->text + at : NULL;
}

struct cw_symbol_place cw_symbols_place(const struct cw_symbols *symbols, uint32_t frame,
                                        unsigned index)
{
    unsigned count = cw_symbols_places(symbols, frame);
    const struct cw_symbol_record *record;

    if (index >= count)
        return (struct cw_symbol_place){.function = NULL};
    record = &symbols->record[symbols->known[frame].first + index];
    return (struct cw_symbol_place){.function = index + 1 == count
                                                    ? cw_symbols_name(symbols, frame)
                                                    : text_at(symbols, record->function),
                                    .file = text_at(symbols, record->file),
                                    .line = record->line};
}

/* ---- one module ---- */

static size_t first_at_or_above(const struct batch *batch, uint64_t address)
{
    size_t low = 0;
    size_t high = batch->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (batch->request[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Among aliases, prefers the one with a size, then the exported one. */
static uint32_t rank_of(const Elf64_Sym *symbol)
{
    unsigned bind = ELF64_ST_BIND(symbol->st_info);

    return (symbol->st_size != 0 ? 4u : 0u) + (bind == STB_GLOBAL ? 2u
                                               : bind == STB_WEAK ? 1u
                                                                  : 0u);
}

static void note_symbol(const struct batch *batch, const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    struct candidate *candidate;
    size_t at;

    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF)
        return;
    at = first_at_or_above(batch, symbol->st_value);
    if (at == batch->count)
        return;
    candidate = &batch->candidate[at];
    if (candidate->end != 0 &&
        (candidate->value > symbol->st_value ||
         (candidate->value == symbol->st_value && candidate->rank >= rank_of(symbol))))
        return;
    /* Without a size, it extends to the next symbol, or to the end of its section. */
    candidate->end = symbol->st_size != 0 ? symbol->st_value + symbol->st_size
                                          : cw_elf_section_end(batch->elf, symbol->st_shndx);
    candidate->value = symbol->st_value;
    candidate->name = symbol->st_name;
    candidate->rank = rank_of(symbol);
}

static void read_symbols(const struct batch *batch)
{
    size_t count;

    for (uint64_t first = 0;; first += count) {
        count = cw_elf_read_symbols(batch->elf, first, batch->step, SYMBOL_STEP);
        if (count == 0)
            return;
        for (size_t i = 0; i < count; i++)
            note_symbol(batch, &batch->step[i]);
    }
}

static void note_error(struct cw_symbols *symbols, int error)
{
    if (symbols->error == 0)
        symbols->error = error;
}

/* Appends a name to the text; returns its offset, or 0 if it is empty or does not fit. */
static uint32_t keep_name(struct cw_symbols *symbols, const char *name)
{
    size_t len = strnlen(name, CW_SYMBOL_NAME_MAX - 1);
    size_t at = symbols->text_len;

    if (len == 0)
        return 0;
    if (len + 1 > symbols->text_cap - at) {
        note_error(symbols, ENOMEM);
        return 0;
    }
    memcpy(symbols->text + at, name, len);
    symbols->text[at + len] = '\0';
    symbols->text_len += len + 1;
    return (uint32_t)at;
}

static uint32_t keep_function(struct cw_symbols *symbols, const char *name)
{
    const char *readable = NULL;

    if (symbols->demangle)
        readable = symbols->demangle(name, symbols->demangle_arg);
    return keep_name(symbols, readable ? readable : name);
}

static uint32_t read_name(const struct batch *batch, uint32_t name)
{
    size_t len = cw_elf_read_name(batch->elf, name, batch->name, CW_SYMBOL_NAME_MAX);
    char *version = memchr(batch->name, '@', len);

    if (version)
        *version = '\0';
    return keep_function(batch->symbols, batch->name);
}

static void assign_names(const struct batch *batch)
{
    struct candidate nearest = {0};
    uint32_t text = 0;

    for (size_t i = 0; i < batch->count; i++) {
        const struct candidate *here = &batch->candidate[i];
        int covered;

        if (here->end != 0 && (nearest.end == 0 || here->value >= nearest.value)) {
            nearest = *here;
            text = 0;
        }
        covered = nearest.end != 0 && batch->request[i].address < nearest.end;
        if (covered && text == 0)
            text = read_name(batch, nearest.name);
        batch->symbols->name[batch->request[i].frame] = covered ? text : 0;
    }
}

/* ---- debug information ---- */

/* Records the result for a frame whose name is from the table, or unknown. */
static void keep_places(const struct batch *batch, uint32_t frame, size_t count)
{
    struct cw_symbols *symbols = batch->symbols;
    struct cw_symbol_known *known = &symbols->known[frame];
    const struct cw_symbol_place *own = &batch->place[count - 1];

    if (count > RECORDS_MAX - symbols->records)
        return;
    *known = (struct cw_symbol_known){.first = symbols->records, .count = (uint16_t)count};
    for (size_t i = 0; i < count; i++) {
        const struct cw_symbol_place *place = &batch->place[i];
        const char *function = i + 1 < count ? place->function : NULL;

        symbols->record[symbols->records++] =
            (struct cw_symbol_record){.function = function ? keep_function(symbols, function) : 0,
                                      .file = place->file ? keep_name(symbols, place->file) : 0,
                                      .line = place->line};
    }
    if (symbols->name[frame] == 0 && own->function) {
        symbols->name[frame] = keep_function(symbols, own->function);
        known->is_named = 1;
    }
}

/* Equal addresses, of frames with different callers, are adjacent. */
static void find_places(const struct batch *batch, const uint8_t *build_id, size_t build_id_len)
{
    struct cw_symbols *symbols = batch->symbols;
    void *file = symbols->ops->open(symbols->ops->arg, batch->path, build_id, build_id_len);

    for (size_t i = 0; file && i < batch->count; i++) {
        const struct request *request = &batch->request[i];
        size_t count;

        if (i > 0 && request->address == request[-1].address) {
            symbols->known[request->frame] = symbols->known[request[-1].frame];
            symbols->name[request->frame] = symbols->name[request[-1].frame];
            continue;
        }
        count = symbols->ops->find(file, request->address, batch->place, CW_SYMBOL_PLACES_MAX);
        if (count > 0)
            keep_places(batch, request->frame, count);
    }
}

static void resolve_module(struct batch *batch)
{
    struct cw_symbols *symbols = batch->symbols;
    const struct cw_live_module *module = cw_view_module(symbols->view, batch->request[0].module);
    const char *path = module ? cw_view_text(symbols->view, module->path) : "";
    uint8_t build_id[sizeof(module->build_id)];
    size_t build_id_len;

    if (!strchr(path, '/') || /* [vdso], or none */
        cw_format(batch->path, PATH_LEN, "%s%s", symbols->sysroot, path) >= PATH_LEN)
        return;
    memcpy(build_id, module->build_id, sizeof(build_id));
    build_id_len =
        module->build_id_len < sizeof(build_id) ? module->build_id_len : sizeof(build_id);
    if (cw_elf_open_symbols(batch->elf, batch->path, build_id, build_id_len) == 0) {
        memset(batch->candidate, 0, batch->count * sizeof(*batch->candidate));
        read_symbols(batch);
        assign_names(batch);
        cw_elf_close(batch->elf);
    }
    note_error(symbols, batch->elf->error);
    if (symbols->ops && !cw_module_is_cuda(module))
        find_places(batch, build_id, build_id_len);
    if (symbols->error != 0 && !symbols->unread)
        symbols->unread = path;
}

/* ---- all of them ---- */

static int is_request_before(const void *a, const void *b, const void *arg)
{
    const struct request *left = a;
    const struct request *right = b;

    (void)arg;
    if (left->module != right->module)
        return left->module < right->module;
    if (left->address != right->address)
        return left->address < right->address;
    return left->frame < right->frame;
}

static size_t collect_requests(struct cw_symbols *symbols, struct request *requests, size_t limit)
{
    size_t count = 0;

    for (uint32_t i = 1; i < symbols->frames; i++) {
        const struct cw_live_frame *frame = cw_view_frame(symbols->view, i);
        const struct cw_live_module *module;

        if (symbols->name[i] != WANTED)
            continue;
        symbols->name[i] = 0;
        module = frame ? cw_view_module(symbols->view, frame->module) : NULL;
        if (!module || count == limit)
            continue;
        requests[count++] = (struct request){
            .address = frame->pc - 1 - module->bias, .module = frame->module, .frame = i};
    }
    return count;
}

static void resolve_sorted(struct batch *batch, const struct request *requests, size_t count)
{
    for (size_t first = 0; first < count; first += batch->count) {
        batch->request = requests + first;
        batch->count = 1;
        while (first + batch->count < count &&
               requests[first + batch->count].module == requests[first].module)
            batch->count++;
        resolve_module(batch);
    }
}

/* Buffers independent of the number of requests; one allocation, not on the stack. */
struct workspace {
    Elf64_Sym step[SYMBOL_STEP];
    char name[CW_SYMBOL_NAME_MAX];
    char path[PATH_LEN];
    struct cw_symbol_place place[CW_SYMBOL_PLACES_MAX];
    struct cw_elf elf;
};

int cw_symbols_resolve(struct cw_symbols *symbols)
{
    size_t limit = symbols->wanted;
    struct request *requests = cw_mem_alloc(limit * sizeof(*requests));
    struct candidate *candidates = cw_mem_alloc(limit * sizeof(*candidates));
    struct workspace *space = cw_mem_alloc(sizeof(*space));
    int has_memory = requests && candidates && space;

    if (limit > 0 && has_memory) {
        struct batch batch = {.symbols = symbols,
                              .candidate = candidates,
                              .step = space->step,
                              .name = space->name,
                              .path = space->path,
                              .place = space->place,
                              .elf = &space->elf};
        size_t count = collect_requests(symbols, requests, limit);

        cw_sort(requests, count, sizeof(*requests), is_request_before, NULL);
        resolve_sorted(&batch, requests, count);
    }
    if (limit > 0 && !has_memory)
        note_error(symbols, ENOMEM);
    symbols->wanted = 0;
    cw_mem_free(requests, limit * sizeof(*requests));
    cw_mem_free(candidates, limit * sizeof(*candidates));
    cw_mem_free(space, sizeof(*space));
    return symbols->error;
}
