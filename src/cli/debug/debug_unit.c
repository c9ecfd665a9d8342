/* SPDX-License-Identifier: MIT */
/* Units, functions and inlined functions. See debug_unit.h. */
#include "cli/debug/debug_unit.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  64  /* of functions within namespaces, classes and functions */
#define NESTED_MAX 512 /* of blocks and inlined functions within a function */
#define NAMES_MAX  16  /* maximum references between entries until one has a name */

struct function {
    uint64_t low, high, reach;
    Dwarf_Die die;
};

struct cw_debug_unit {
    Dwarf_Die die;
    uint64_t size;   /* in bytes */
    uint64_t budget; /* remaining steps, and their initial number */
    int is_read;
    struct function *function; /* by address */
    size_t functions, functions_cap;
};

/* Space for one more element, or NULL. */
static void *grow(void **array, size_t *cap, size_t count, size_t size)
{
    if (count == *cap) {
        size_t wanted = *cap > 0 ? 2 * *cap : 16;
        void *grown = reallocarray(*array, wanted, size);

        if (!grown)
            return NULL;
        *array = grown;
        *cap = wanted;
    }
    return (char *)*array + count * size;
}

/* Code dropped by the linker is still described, as empty or at address 0. */
static int is_left_out(uint64_t low, uint64_t high)
{
    return low == 0 || low >= high;
}

/* ---- entries ---- */

/* 1 while the unit has steps left. */
static int spend(struct cw_debug_unit *unit)
{
    if (unit->budget == 0)
        return 0;
    unit->budget--;
    return 1;
}

/* The next entry on the same level; 0, or nonzero if there is none. In a damaged file the reference
 * may point back. */
static int next_sibling(struct cw_debug_unit *unit, Dwarf_Die *die)
{
    Dwarf_Die next;

    if (!spend(unit) || dwarf_siblingof(die, &next) != 0 ||
        dwarf_dieoffset(&next) <= dwarf_dieoffset(die))
        return -1;
    *die = next;
    return 0;
}

static const char *string_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;

    return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

/* The entry that this one instantiates, or that declares it. */
static int follow(Dwarf_Die *die)
{
    static const unsigned names[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Attribute attribute;
    Dwarf_Die next;

    for (size_t i = 0; i < 2; i++) {
        if (dwarf_formref_die(dwarf_attr(die, names[i], &attribute), &next)) {
            *die = next;
            return 0;
        }
    }
    return -1;
}

/* The linkage name if there is one, because it includes the arguments. */
static const char *function_name(const Dwarf_Die *function)
{
    const char *plain = NULL;
    Dwarf_Die die = *function;

    for (int i = 0; i < NAMES_MAX; i++) {
        const char *name = string_of(&die, DW_AT_linkage_name);

        if (!name)
            name = string_of(&die, DW_AT_MIPS_linkage_name);
        if (name)
            return name;
        if (!plain)
            plain = string_of(&die, DW_AT_name);
        if (follow(&die) != 0)
            break;
    }
    return plain;
}

/* ---- the functions of a unit ---- */

static void add_function(struct cw_debug_unit *unit, Dwarf_Die *die)
{
    Dwarf_Addr base = 0, low, high;
    ptrdiff_t at = 0;

    while (spend(unit) && (at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
        struct function *function;

        if (is_left_out(low, high))
            continue;
        function = grow((void **)&unit->function, &unit->functions_cap, unit->functions,
                        sizeof(*function));
        if (!function)
            return;
        *function = (struct function){.low = low, .high = high, .die = *die};
        unit->functions++;
    }
}

static int may_have_functions(int tag)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
        return 1;
    default:
        return 0;
    }
}

static void collect(struct cw_debug_unit *unit, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;

    if (depth == DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);

        if (tag == DW_TAG_subprogram)
            add_function(unit, &die);
        if (may_have_functions(tag))
            collect(unit, &die, depth + 1);
    } while (next_sibling(unit, &die) == 0);
}

static int compare_functions(const void *a, const void *b)
{
    const struct function *left = a, *right = b;

    return left->low < right->low ? -1 : left->low > right->low;
}

static void read_functions(struct cw_debug_unit *unit)
{
    uint64_t reach = 0;

    if (unit->is_read)
        return;
    unit->is_read = 1;
    collect(unit, &unit->die, 0);
    if (unit->functions > 1)
        qsort(unit->function, unit->functions, sizeof(*unit->function), compare_functions);
    for (size_t i = 0; i < unit->functions; i++) {
        if (unit->function[i].high > reach)
            reach = unit->function[i].high;
        unit->function[i].reach = reach;
    }
}

/* The innermost one that contains the address, or NULL. */
static struct function *find_function(const struct cw_debug_unit *unit, uint64_t address)
{
    size_t low = 0, high = unit->functions;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (unit->function[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- > 0 && unit->function[low].reach > address)
        if (unit->function[low].high > address)
            return &unit->function[low];
    return NULL;
}

/* ---- what was inlined ---- */

/* The entry within `die` that is code and contains the address; 0, or nonzero if none. */
static int enter(struct cw_debug_unit *unit, Dwarf_Die *die, uint64_t address)
{
    Dwarf_Die child;

    if (dwarf_child(die, &child) != 0)
        return -1;
    do {
        int tag = dwarf_tag(&child);

        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
             tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
            dwarf_haspc(&child, address) == 1) {
            *die = child;
            return 0;
        }
    } while (next_sibling(unit, &child) == 0);
    return -1;
}

/* The functions inlined at the address, outermost first. */
static size_t find_inlined(struct cw_debug_unit *unit, const Dwarf_Die *function, uint64_t address,
                           Dwarf_Die *inlined, size_t cap)
{
    Dwarf_Die die = *function;
    size_t count = 0;

    for (int i = 0; i < NESTED_MAX && count < cap && enter(unit, &die, address) == 0; i++)
        if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
            inlined[count++] = die;
    return count;
}

/* ---- lines ---- */

/* The path as given to the compiler, if it is relative to where the compiler ran. */
static const char *shorten(struct cw_debug_unit *unit, const char *file)
{
    const char *directory = string_of(&unit->die, DW_AT_comp_dir);
    size_t len = directory ? strlen(directory) : 0;

    while (len > 0 && directory[len - 1] == '/')
        len--;
    if (!file || len == 0 || strncmp(file, directory, len) != 0 || file[len] != '/')
        return file;
    file += len + strspn(file + len, "/");
    return *file ? file : NULL;
}

static void find_line(struct cw_debug_unit *unit, uint64_t address, struct cw_symbol_place *place)
{
    Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
    int number = 0;

    if (!line)
        return;
    place->file = shorten(unit, dwarf_linesrc(line, NULL, NULL));
    if (dwarf_lineno(line, &number) == 0 && number > 0)
        place->line = (uint32_t)number;
}

/* The call site of the inlined function. */
static void find_call(struct cw_debug_unit *unit, Dwarf_Die *inlined, struct cw_symbol_place *place)
{
    Dwarf_Attribute attribute;
    Dwarf_Files *files;
    Dwarf_Word value;
    size_t count;

    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 &&
        dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && value < count)
        place->file = shorten(unit, dwarf_filesrc(files, value, NULL, NULL));
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0 &&
        value <= INT32_MAX)
        place->line = (uint32_t)value;
}

static size_t find_in_unit(struct cw_debug_unit *unit, uint64_t address,
                           struct cw_symbol_place *places, size_t cap)
{
    Dwarf_Die inlined[CW_SYMBOL_PLACES_MAX];
    struct function *function;
    size_t count = 0;

    read_functions(unit);
    function = find_function(unit, address);
    if (cap > CW_SYMBOL_PLACES_MAX)
        cap = CW_SYMBOL_PLACES_MAX;
    memset(places, 0, cap * sizeof(*places));
    unit->budget = unit->size;
    if (function)
        count = find_inlined(unit, &function->die, address, inlined, cap - 1);
    find_line(unit, address, &places[0]);
    for (size_t i = 0; i < count; i++) {
        places[i].function = function_name(&inlined[count - 1 - i]);
        find_call(unit, &inlined[count - 1 - i], &places[i + 1]);
    }
    if (function)
        places[count].function = function_name(&function->die);
    return count > 0 || places[0].file || places[0].function ? count + 1 : 0;
}

/* ---- all units ---- */

static void add_ranges(struct cw_debug_units *units, uint32_t index, uint64_t budget)
{
    Dwarf_Addr base = 0, low, high;
    ptrdiff_t at = 0;

    while (budget-- > 0 &&
           (at = dwarf_ranges(&units->unit[index].die, at, &base, &low, &high)) > 0) {
        struct cw_debug_range *range;

        if (is_left_out(low, high))
            continue;
        range = grow((void **)&units->range, &units->ranges_cap, units->ranges, sizeof(*range));
        if (!range)
            return;
        *range = (struct cw_debug_range){.low = low, .high = high, .unit = index};
        units->ranges++;
    }
}

static int compare_ranges(const void *a, const void *b)
{
    const struct cw_debug_range *left = a, *right = b;

    return left->low < right->low ? -1 : left->low > right->low;
}

void cw_debug_units_init(struct cw_debug_units *units, Dwarf *dwarf)
{
    Dwarf_Off at = 0, next;
    uint64_t reach = 0;
    size_t header;

    *units = (struct cw_debug_units){.unit = NULL};
    while (dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0 && next > at) {
        struct cw_debug_unit *unit =
            grow((void **)&units->unit, &units->units_cap, units->units, sizeof(*unit));

        if (!unit)
            break;
        *unit = (struct cw_debug_unit){.size = next - at, .budget = next - at};
        if (dwarf_offdie(dwarf, at + header, &unit->die)) {
            units->units++;
            add_ranges(units, (uint32_t)units->units - 1, next - at);
        }
        at = next;
    }
    if (units->ranges > 1)
        qsort(units->range, units->ranges, sizeof(*units->range), compare_ranges);
    for (size_t i = 0; i < units->ranges; i++) {
        if (units->range[i].high > reach)
            reach = units->range[i].high;
        units->range[i].reach = reach;
    }
}

void cw_debug_units_fini(struct cw_debug_units *units)
{
    for (size_t i = 0; i < units->units; i++)
        free(units->unit[i].function);
    free(units->unit);
    free(units->range);
    *units = (struct cw_debug_units){.unit = NULL};
}

size_t cw_debug_units_find(struct cw_debug_units *units, uint64_t address,
                           struct cw_symbol_place *places, size_t cap)
{
    size_t low = 0, high = units->ranges;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (units->range[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- > 0 && units->range[low].reach > address)
        if (units->range[low].high > address)
            return find_in_unit(&units->unit[units->range[low].unit], address, places, cap);
    return 0;
}
