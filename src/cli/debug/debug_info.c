/* SPDX-License-Identifier: MIT */
/*
 * Debug information by libdw. See debug_info.h.
 *
 * Each module has a Dwfl of its own, at the addresses of its file, so that modules cannot conflict.
 * The search for files is implemented here and in debug_files.c, because libdwfl's own search
 * queries servers. A module stays open, and is found again by its path and build-id.
 */
#include "cli/debug/debug_info.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/debug/debug_alternate.h"
#include "cli/debug/debug_unit.h"
#include "report/symbols/symbol.h"

struct symbol {
    uint64_t low, high;
    const char *name;
};

struct module {
    struct module *next;
    char *path;
    uint8_t build_id[32];
    struct cw_debug_key key;
    Dwfl *dwfl; /* NULL: neither the module nor its debug information was found */
    Dwfl_Module *file;
    uint64_t bias;       /* dwfl's addresses minus those in the module's file */
    uint64_t dwarf_bias; /* dwfl's addresses minus those in the debug information */
    int has_dwarf;
    struct cw_debug_alternate alternate;
    struct cw_debug_info *info;
    struct cw_debug_units units;
    struct symbol *symbol; /* by address; read at the first address that no unit covers */
    size_t symbols;
    int has_symbols;
};

struct time {
    uint64_t cpu_ns, wall_ns;
};

struct cw_debug_info {
    const struct cw_debug_options *options;
    struct cw_debug_alternate none;
    struct module *module;
    struct time spent;
    int is_cut;
    struct cw_symbol_ops ops;
};

int cw_debug_info_is_supported(void)
{
    return 1;
}

/* ---- files ---- */

static int find_no_module(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                          char **file_name, Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)file_name, (void)elf;
    return -1;
}

/* libdwfl's callback for the debug file if the module itself has no debug information. For the file
 * of .gnu_debugaltlink it is called without a checksum; debug_alternate.c finds that one. */
static int find_debug_file(Dwfl_Module *file, void **data, const char *name, Dwarf_Addr base,
                           const char *path, const char *link, GElf_Word checksum, char **found)
{
    const struct module *module = *data;
    int fd = -1;

    if (link && checksum == 0)
        return -1;
    fd = cw_debug_open_by_id(module->info->options, &module->key, found);
    if (fd < 0 && link)
        fd = cw_debug_open_by_link(module->info->options, &module->key, module->path, link,
                                   checksum, found);
    if (fd < 0 && module->info->options->may_download) {
        *found = NULL;
        fd = dwfl_standard_find_debuginfo(file, data, name, base, path, link, checksum, found);
    }
    return fd;
}

/* Nobody can make this directory, so libdwfl finds nothing in it and asks the servers. */
static char no_directory[] = "/proc/no-directory", *no_path = no_directory;

static const Dwfl_Callbacks callbacks = {
    .find_elf = find_no_module,
    .find_debuginfo = find_debug_file,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &no_path,
};

/* The module's file, or else its debug file, which has its symbols too. */
static int open_file(struct module *module)
{
    char *name = NULL;
    int fd = cw_debug_open_module(module->path, &module->key);

    if (fd < 0)
        fd = cw_debug_open_by_id(module->info->options, &module->key, &name);
    if (fd < 0)
        return -1;
    module->dwfl = dwfl_begin(&callbacks);
    if (module->dwfl)
        module->file =
            dwfl_report_elf(module->dwfl, "module", name ? name : module->path, fd, 0, 1);
    free(name);
    if (!module->file) /* otherwise libdwfl owns it */
        close(fd);
    return module->file ? 0 : -1;
}

static void read_units(struct module *module, Dwarf *dwarf)
{
    const char *file = NULL, *debug_file = NULL;

    dwfl_module_info(module->file, NULL, NULL, NULL, NULL, NULL, &file, &debug_file);
    if (!debug_file)
        debug_file = file ? file : module->path;
    cw_debug_alternate_set(dwarf, debug_file, module->info->options, &module->info->none,
                           &module->alternate);
    cw_debug_units_init(&module->units, dwarf);
}

static int read_module(struct module *module)
{
    GElf_Addr bias = 0;
    void **data;
    Dwarf *dwarf;

    if (open_file(module) != 0 || dwfl_report_end(module->dwfl, NULL, NULL) != 0 ||
        !dwfl_module_info(module->file, &data, NULL, NULL, NULL, NULL, NULL, NULL))
        return -1;
    *data = module;
    if (!dwfl_module_getelf(module->file, &bias))
        return -1;
    module->bias = bias;
    dwarf = dwfl_module_getdwarf(module->file, &bias);
    module->dwarf_bias = bias;
    module->has_dwarf = dwarf != NULL;
    if (dwarf)
        read_units(module, dwarf);
    return 0;
}

/* ---- symbols, of a file apart or compressed within the module's ---- */

static int is_function(const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_size != 0;
}

static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *left = a, *right = b;

    return left->low < right->low ? -1 : left->low > right->low;
}

static void read_symbols(struct module *module)
{
    int count = dwfl_module_getsymtab(module->file);

    module->has_symbols = 1;
    module->symbol = count > 0 ? calloc((size_t)count, sizeof(*module->symbol)) : NULL;
    for (int i = 0; module->symbol && i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name =
            dwfl_module_getsym_info(module->file, i, &symbol, &address, NULL, NULL, NULL);

        if (name && *name && is_function(&symbol))
            module->symbol[module->symbols++] =
                (struct symbol){.low = address, .high = address + symbol.st_size, .name = name};
    }
    if (module->symbol)
        qsort(module->symbol, module->symbols, sizeof(*module->symbol), compare_symbols);
}

static const char *symbol_at(struct module *module, uint64_t address)
{
    size_t low = 0, high;

    if (!module->has_symbols)
        read_symbols(module);
    high = module->symbols;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (module->symbol[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && module->symbol[low - 1].high > address ? module->symbol[low - 1].name : NULL;
}

/* ---- struct cw_symbol_ops ---- */

static struct time time_now(void)
{
    return (struct time){cw_clock_read(CLOCK_THREAD_CPUTIME_ID), cw_clock_ns()};
}

static void spend_since(struct cw_debug_info *info, struct time begin)
{
    struct time now = time_now();

    info->spent.cpu_ns += now.cpu_ns - begin.cpu_ns;
    info->spent.wall_ns += now.wall_ns - begin.wall_ns;
}

static int is_time_up(struct cw_debug_info *info)
{
    if (info->options->may_download ||
        (info->spent.cpu_ns < CW_DEBUG_CPU_SECONDS * UINT64_C(1000000000) &&
         info->spent.wall_ns < CW_DEBUG_WALL_SECONDS * UINT64_C(1000000000)))
        return 0;
    info->is_cut = 1;
    return 1;
}

static size_t look_up(struct module *module, uint64_t address, struct cw_symbol_place *places,
                      size_t cap)
{
    size_t count = 0;

    address += module->bias;
    if (module->has_dwarf)
        count = cw_debug_units_find(&module->units, address - module->dwarf_bias, places, cap);
    if (count == 0)
        places[count++] = (struct cw_symbol_place){.function = NULL};
    if (!places[count - 1].function)
        places[count - 1].function = symbol_at(module, address);
    return count > 1 || places[0].function || places[0].file ? count : 0;
}

static size_t find_places(void *file, uint64_t address, struct cw_symbol_place *places, size_t cap)
{
    struct module *module = file;
    struct time begin = time_now();
    size_t count;

    if (is_time_up(module->info))
        return 0;
    count = look_up(module, address, places, cap);
    spend_since(module->info, begin);
    return count;
}

static void free_module(struct module *module)
{
    if (module->has_dwarf)
        cw_debug_units_fini(&module->units);
    free(module->symbol);
    if (module->dwfl)
        dwfl_end(module->dwfl);
    cw_debug_alternate_fini(&module->alternate);
    free(module->path);
    free(module);
}

static struct module *find_module(const struct cw_debug_info *info, const char *path,
                                  const uint8_t *build_id, size_t build_id_len)
{
    for (struct module *module = info->module; module; module = module->next)
        if (module->key.build_id_len == build_id_len &&
            memcmp(module->build_id, build_id, build_id_len) == 0 &&
            strcmp(module->path, path) == 0)
            return module;
    return NULL;
}

static struct module *add_module(struct cw_debug_info *info, const char *path,
                                 const uint8_t *build_id, size_t build_id_len)
{
    struct module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->path = strdup(path);
    if (!module->path || build_id_len > sizeof(module->build_id)) {
        free_module(module);
        return NULL;
    }
    module->info = info;
    memcpy(module->build_id, build_id, build_id_len);
    module->key = (struct cw_debug_key){.build_id = module->build_id, .build_id_len = build_id_len};
    module->next = info->module;
    info->module = module;
    if (read_module(module) != 0)
        module->file = NULL;
    return module;
}

static void *open_module(void *arg, const char *path, const uint8_t *build_id, size_t build_id_len)
{
    struct cw_debug_info *info = arg;
    struct module *module = find_module(info, path, build_id, build_id_len);
    struct time begin = time_now();

    if (!module && !is_time_up(info))
        module = add_module(info, path, build_id, build_id_len);
    spend_since(info, begin);
    return module && module->file ? module : NULL;
}

struct cw_debug_info *cw_debug_info_create(const struct cw_debug_options *options)
{
    struct cw_debug_info *info = calloc(1, sizeof(*info));

    if (!info)
        return NULL;
    elf_version(EV_CURRENT); /* otherwise libelf opens nothing */
    if (cw_debug_alternate_init(&info->none) != 0) {
        free(info);
        return NULL;
    }
    info->options = options;
    info->ops = (struct cw_symbol_ops){.open = open_module, .find = find_places, .arg = info};
    return info;
}

void cw_debug_info_destroy(struct cw_debug_info *info)
{
    struct module *next;

    if (!info)
        return;
    for (struct module *module = info->module; module; module = next) {
        next = module->next;
        free_module(module);
    }
    cw_debug_alternate_fini(&info->none);
    free(info);
}

int cw_debug_info_is_cut(const struct cw_debug_info *info)
{
    return info && info->is_cut;
}

const struct cw_symbol_ops *cw_debug_info_ops(const struct cw_debug_info *info)
{
    return info ? &info->ops : NULL;
}
