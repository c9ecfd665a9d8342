/* SPDX-License-Identifier: MIT */
/*
 * Classification of leaked sites. See leak_class.h.
 *
 * Rules are matched frame by frame, callers first, because a frame's parent has a lower index: the
 * first rule that matches a stack is the first that matches its innermost frame, or else its
 * parent's. Frames of the driver, the runtime and our library match nothing, as they are not shown:
 * "leak:libcuda.so", common in files for LeakSanitizer, would suppress everything.
 */
#include "report/leaks/leak_class.h"

#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "report/symbols/qualified.h"
#include "report/snapshot/snapshot.h"
#include "base/sort.h"
#include "report/leaks/cache.h"
#include "report/symbols/stack.h"
#include "report/leaks/suppress.h"
#include "report/symbols/symbol.h"
#include "report/snapshot/tag.h"

#define NAME_MAX_SHOWN 512 /* of a qualified name */

/* ---- the built-in rules ---- */

#define ROW(kind_, leak_, label_, pattern_)                                                        \
    {                                                                                              \
        .kind = CW_RULE_##kind_, .leak = CW_LEAK_##leak_, .label = (label_),                       \
        .pattern = (pattern_), .max_bytes = CW_CAP_NONE, .max_blocks = CW_CAP_NONE                 \
    }

/*
 * File names come from NVIDIA's redistributable packages (developer.download.nvidia.com) and wheels
 * (pypi.org, nvidia-*); function names from the projects' sources, as noted with each.
 *
 * LOST rows come first: memory that a library or framework hands to its caller, who must free it.
 */
static const struct cw_rule builtin[] = {
    /* nppi_support_functions.h, npps_support_functions.h: freed by nppiFree, nppsFree */
    ROW(FUNCTION, LOST, "NPP", "^::nppiMalloc_"),
    ROW(FUNCTION, LOST, "NPP", "^::nppsMalloc_"),
    /* nccl.h: freed by ncclMemFree */
    ROW(FUNCTION, LOST, "NCCL", "^::ncclMemAlloc$"),
    ROW(FUNCTION, LOST, "NCCL", "^::pncclMemAlloc$"),
    /* cufftXt.h: freed by cufftXtFree */
    ROW(FUNCTION, LOST, "cuFFT", "^::cufftXtMalloc$"),

#define CACHE(...)
#define FRAMEWORK_RULE(cache_, leak_, kind_, pattern_)                                             \
    {.kind = CW_RULE_##kind_,                                                                      \
     .leak = CW_LEAK_##leak_,                                                                      \
     .cache = CW_CACHE_##cache_,                                                                   \
     .pattern = (pattern_),                                                                        \
     .max_bytes = CW_CAP_NONE,                                                                     \
     .max_blocks = CW_CAP_NONE},
#define CACHE_RULE(cache, kind, pattern)  FRAMEWORK_RULE(cache, CACHE, kind, pattern)
#define PASSED_RULE(cache, kind, pattern) FRAMEWORK_RULE(cache, LOST, kind, pattern)
#include "report/leaks/caches.def"

    ROW(FILE, LIBRARY, "cuBLAS", "libcublas"),
    ROW(FILE, LIBRARY, "cuBLAS", "libcublasLt"),
    ROW(FILE, LIBRARY, "cuBLAS", "libnvblas"),
    ROW(FILE, LIBRARY, "cuDNN", "libcudnn"),
    ROW(FILE, LIBRARY, "cuDNN", "libcudnn_*"),
    ROW(FILE, LIBRARY, "NCCL", "libnccl"),
    ROW(FILE, LIBRARY, "cuFFT", "libcufft"),
    ROW(FILE, LIBRARY, "cuFFT", "libcufftw"),
    ROW(FILE, LIBRARY, "cuFFT", "libcufftMp"),
    ROW(FILE, LIBRARY, "cuRAND", "libcurand"),
    ROW(FILE, LIBRARY, "cuSOLVER", "libcusolver"),
    ROW(FILE, LIBRARY, "cuSOLVER", "libcusolverMg"),
    ROW(FILE, LIBRARY, "cuSOLVER", "libcusolverMp"),
    ROW(FILE, LIBRARY, "cuSPARSE", "libcusparse"),
    ROW(FILE, LIBRARY, "cuSPARSE", "libcusparseLt"),
    ROW(FILE, LIBRARY, "cuDSS", "libcudss"),
    ROW(FILE, LIBRARY, "cuTENSOR", "libcutensor"),
    ROW(FILE, LIBRARY, "cuTENSOR", "libcutensorMg"),
    ROW(FILE, LIBRARY, "cuQuantum", "libcutensornet"),
    ROW(FILE, LIBRARY, "cuQuantum", "libcustatevec"),
    ROW(FILE, LIBRARY, "nvJPEG", "libnvjpeg"),
    ROW(FILE, LIBRARY, "nvJPEG", "libnvjpeg2k"),
    ROW(FILE, LIBRARY, "nvTIFF", "libnvtiff"),
    ROW(FILE, LIBRARY, "nvCOMP", "libnvcomp"),
    ROW(FILE, LIBRARY, "NPP", "libnpp*"),
    ROW(FILE, LIBRARY, "NVRTC", "libnvrtc"),
    ROW(FILE, LIBRARY, "TensorRT", "libnvinfer"),
    ROW(FILE, LIBRARY, "TensorRT", "libnvinfer_*"),
    ROW(FILE, LIBRARY, "NVSHMEM", "libnvshmem_host"),
    ROW(FILE, LIBRARY, "cuFile", "libcufile"),
    ROW(FILE, LIBRARY, "CUPTI", "libcupti"),
    ROW(FILE, LIBRARY, "OptiX", "libnvoptix"),
    ROW(FILE, LIBRARY, "Video Codec", "libnvcuvid"),
    ROW(FILE, LIBRARY, "Video Codec", "libnvidia-encode"),
};

const struct cw_rule *cw_leak_rule(uint32_t index)
{
    return index < CW_ARRAY_LEN(builtin) ? &builtin[index] : NULL;
}

/* ---- which rule is the first that matches ---- */

struct module_match {
    uint16_t in_stack; /* first rule that matches a frame in it */
    uint16_t asking;   /* first that matches it as the requester */
};

struct matches {
    const struct cw_snapshot *snapshot;
    const struct cw_rules *rules;
    struct module_match *module;
    uint16_t *frame; /* first rule that matches the frame or one of its callers */
    uint32_t modules, frames, count;
};

static uint16_t earlier(uint16_t a, uint16_t b)
{
    return a < b ? a : b; /* CW_RULE_NONE is the last */
}

/* "libnpp*" of libnppc.so.12; "libnccl" of libnccl.so.2 and libnccl-1a2b.so, not of libnccl_x.so */
static int is_file(const char *pattern, const char *name)
{
    size_t len = strlen(pattern);

    if (pattern[len - 1] == '*')
        return strncmp(name, pattern, len - 1) == 0;
    return strncmp(name, pattern, len) == 0 && (name[len] == '.' || name[len] == '-');
}

int cw_leak_rule_names_file(const char *path)
{
    const char *slash = strrchr(path, '/');

    for (size_t i = 0; i < CW_ARRAY_LEN(builtin); i++) {
        const struct cw_rule *rule = &builtin[i];

        if ((rule->kind == CW_RULE_PATH && cw_pattern_matches(rule->pattern, path)) ||
            (rule->kind == CW_RULE_FILE && is_file(rule->pattern, slash ? slash + 1 : path)))
            return 1;
    }
    return 0;
}

static void match_module(const struct matches *matches, uint32_t index)
{
    const struct cw_view *view = matches->snapshot->view;
    const struct cw_live_module *module = cw_view_module(view, index);
    struct module_match *out = &matches->module[index];
    const char *path;
    const char *name;

    *out = (struct module_match){CW_RULE_NONE, CW_RULE_NONE};
    if (!module || cw_module_is_cuda(module))
        return;
    path = cw_view_text(view, module->path);
    name = cw_module_name(view, module);
    for (uint32_t i = matches->count; i-- > 0;) {
        const struct cw_rule *rule = cw_rules_at(matches->rules, i);

        if ((rule->kind == CW_RULE_LEAK || rule->kind == CW_RULE_PATH) &&
            cw_pattern_matches(rule->pattern, path))
            out->in_stack = (uint16_t)i;
        if ((rule->kind == CW_RULE_MODULE && cw_pattern_matches(rule->pattern, path)) ||
            (rule->kind == CW_RULE_FILE && is_file(rule->pattern, name)))
            out->asking = (uint16_t)i;
    }
}

/* Matches the name itself, and for C++ names, mangled or not, also "a::b(", so that one rule works
 * with and without a demangler. */
static int matches_function(const struct cw_rule *rule, const char *name, const char *qualified)
{
    char entry[NAME_MAX_SHOWN + 2];

    if (rule->kind == CW_RULE_FUNCTION)
        return cw_pattern_matches(rule->pattern, qualified);
    if (rule->kind != CW_RULE_LEAK)
        return 0;
    if (cw_pattern_matches(rule->pattern, name))
        return 1;
    if (strncmp(name, "_Z", 2) != 0 && !strchr(name, '('))
        return 0;
    cw_format(entry, sizeof(entry), "%s(", qualified + 2);
    return cw_pattern_matches(rule->pattern, entry);
}

static uint16_t match_function(const struct matches *matches, const char *name, uint16_t limit)
{
    uint32_t end = limit < matches->count ? limit : matches->count;
    char qualified[NAME_MAX_SHOWN];

    cw_qualified_name(name, qualified, sizeof(qualified));
    for (uint32_t i = 0; i < end; i++)
        if (matches_function(cw_rules_at(matches->rules, i), name, qualified))
            return (uint16_t)i;
    return CW_RULE_NONE;
}

/* The user's first rule for a function or file of this name. */
static uint16_t match_text(const struct matches *matches, const char *text, uint16_t limit)
{
    uint32_t end = limit < matches->rules->count ? limit : matches->rules->count;

    for (uint32_t i = 0; i < end; i++)
        if (matches->rules->rule[i].kind == CW_RULE_LEAK &&
            cw_pattern_matches(matches->rules->rule[i].pattern, text))
            return (uint16_t)i;
    return limit;
}

static uint16_t match_builtin_path(const struct matches *matches, const char *path, uint16_t limit)
{
    uint32_t end = limit < matches->count ? limit : matches->count;

    for (uint32_t i = matches->rules->count; i < end; i++) {
        const struct cw_rule *rule = cw_rules_at(matches->rules, i);

        if (rule->kind == CW_RULE_PATH && cw_pattern_matches(rule->pattern, path))
            return (uint16_t)i;
    }
    return limit;
}

static uint16_t match_code(const struct matches *matches, const struct cw_live_code *code,
                           uint16_t first)
{
    const struct cw_view *view = matches->snapshot->view;
    const char *file = cw_view_text(view, code->file);

    first = match_text(matches, cw_view_text(view, code->function), first);
    first = match_text(matches, file, first);
    return match_builtin_path(matches, file, first);
}

/* Built-in rules ignore these: their result must not depend on debug information. */
static uint16_t match_places(const struct matches *matches, const struct cw_symbols *symbols,
                             uint32_t frame, uint16_t first)
{
    unsigned count = cw_symbols_places(symbols, frame);

    for (unsigned i = 0; i < count; i++) {
        struct cw_symbol_place place = cw_symbols_place(symbols, frame, i);

        if (place.function)
            first = match_text(matches, place.function, first);
        if (place.file)
            first = match_text(matches, place.file, first);
    }
    return first;
}

static void match_frame(const struct matches *matches, const struct cw_symbols *symbols,
                        uint32_t index)
{
    const struct cw_live_frame *frame = cw_view_frame(matches->snapshot->view, index);
    const struct cw_live_module *module = cw_stack_module(matches->snapshot->view, index);
    uint32_t parent = frame ? frame->parent : 0;
    uint16_t first = matches->frame[parent < index ? parent : 0];
    const struct cw_live_code *code = cw_stack_code(matches->snapshot->view, index);
    const char *name = symbols ? cw_symbols_table_name(symbols, index) : NULL;

    if (module && frame->module < matches->modules)
        first = earlier(first, matches->module[frame->module].in_stack);
    if (name && !(module && cw_module_is_cuda(module)))
        first = earlier(first, match_function(matches, name, first));
    if (code)
        first = match_code(matches, code, first);
    else if (symbols)
        first = match_places(matches, symbols, index, first);
    matches->frame[index] = first;
}

static void matches_fini(struct matches *matches)
{
    cw_mem_free(matches->module, matches->modules * sizeof(*matches->module));
    cw_mem_free(matches->frame, matches->frames * sizeof(*matches->frame));
}

static int matches_init(struct matches *matches, const struct cw_snapshot *snapshot,
                        const struct cw_symbols *symbols, const struct cw_rules *rules)
{
    *matches = (struct matches){.snapshot = snapshot,
                                .rules = rules,
                                .modules = cw_view_count(snapshot->view, CW_TABLE_MODULE),
                                .frames = cw_view_count(snapshot->view, CW_TABLE_FRAME),
                                .count = cw_rules_count(rules)};
    matches->module = cw_mem_alloc(matches->modules * sizeof(*matches->module));
    matches->frame = cw_mem_alloc(matches->frames * sizeof(*matches->frame));
    if (!matches->module || !matches->frame) {
        matches_fini(matches);
        return -1;
    }
    matches->module[0] = (struct module_match){CW_RULE_NONE, CW_RULE_NONE};
    for (uint32_t i = 1; i < matches->modules; i++)
        match_module(matches, i);
    matches->frame[0] = CW_RULE_NONE;
    for (uint32_t i = 1; i < matches->frames; i++)
        match_frame(matches, symbols, i);
    return 0;
}

static uint16_t match_id(const struct matches *matches, uint32_t id)
{
    for (uint32_t i = 0; i < matches->rules->count; i++)
        if (matches->rules->rule[i].kind == CW_RULE_SITE && matches->rules->rule[i].site == id)
            return (uint16_t)i;
    return CW_RULE_NONE;
}

static uint16_t match_tag(const struct matches *matches, uint32_t tag)
{
    char label[CW_TAG_LABEL_MAX];

    if (cw_tag_label(matches->snapshot->view, tag, label, sizeof(label))[0] == '\0')
        return CW_RULE_NONE;
    for (uint32_t i = 0; i < matches->rules->count; i++)
        if (matches->rules->rule[i].kind == CW_RULE_TAG &&
            cw_pattern_matches(matches->rules->rule[i].pattern, label))
            return (uint16_t)i;
    return CW_RULE_NONE;
}

static uint16_t match_site(const struct matches *matches, const struct cw_snapshot_site *site)
{
    uint16_t first = earlier(match_id(matches, site->id), match_tag(matches, site->tag));

    if (site->stack < matches->frames)
        first = earlier(first, matches->frame[site->stack]);
    if (site->owner < matches->modules)
        first = earlier(first, matches->module[site->owner].asking);
    return first;
}

/* ---- classes ---- */

static enum cw_leak_class class_by_kind(const struct cw_snapshot_site *site)
{
    if (cw_kind_counted(site->kind) != CW_COUNTED_NONE) {
        if (cw_leaked_blocks(site) == 0)
            return CW_LEAK_NONE;
        return site->live_blocks > 0 ? CW_LEAK_LOST : CW_LEAK_CONTEXT;
    }
    if (site->live_blocks == 0)
        return CW_LEAK_NONE;
    switch (site->kind) {
    case CW_KIND_IPC:
        return CW_LEAK_IPC;
    case CW_KIND_IMPORTED:
    case CW_KIND_EXTERNAL:
    case CW_KIND_EXTERNAL_MAP:
    case CW_KIND_GRAPHICS:
        return CW_LEAK_IMPORT;
    default:
        return CW_LEAK_HANDLE;
    }
}

/* The cache whose memory a rule says this is. Stream-ordered memory known only to come from a
 * framework is the program's: there the driver does the caching. */
static unsigned cache_of(const struct cw_rule *rule, const struct cw_snapshot_site *site)
{
    if (rule->leak != CW_LEAK_CACHE ||
        (rule->kind != CW_RULE_FUNCTION && site->kind == CW_KIND_ASYNC))
        return CW_CACHE_NONE;
    return rule->cache;
}

/* What a cache that empties itself at exit has left then is lost. */
static int is_kept(const struct cw_snapshot *snapshot, const struct cw_snapshot_site *site)
{
    const struct cw_cache *cache = cw_cache_row(site->cache);
    const struct cw_live_header *self = snapshot->view->self;

    if (!cache)
        return 0;
    return !cache->is_emptied ||
           atomic_load_explicit(&self->exit_kind, memory_order_relaxed) != CW_EXIT_EXIT;
}

/* Whether a built-in rule decides the class of this site. */
static int is_concerned(const struct cw_rule *rule, const struct cw_snapshot *snapshot,
                        const struct cw_snapshot_site *site)
{
    if (!cw_leak_is_counted(site->leak) || rule->leak == CW_LEAK_LOST)
        return 0;
    return rule->leak != CW_LEAK_CACHE || is_kept(snapshot, site);
}

static void apply(struct cw_snapshot_site *site, const struct cw_rule *rule, uint16_t index,
                  struct cw_rule_use *use)
{
    uint64_t bytes = cw_leaked_bytes(site);
    uint64_t blocks = cw_leaked_blocks(site);

    site->rule = index;
    site->past_cap = bytes > rule->max_bytes || blocks > rule->max_blocks;
    if (!site->past_cap)
        site->leak = rule->leak;
    if (!use)
        return;
    if (site->past_cap) {
        use->past++;
        return;
    }
    use->sites++;
    use->bytes += bytes;
    use->blocks += blocks;
}

static void classify_site(const struct matches *matches, struct cw_snapshot_site *site)
{
    uint16_t index = match_site(matches, site);
    const struct cw_rule *rule = index != CW_RULE_NONE ? cw_rules_at(matches->rules, index) : NULL;

    if (!rule)
        return;
    site->cache = (uint8_t)cache_of(rule, site); /* what is left of it or not: it may have grown */
    if (site->leak == CW_LEAK_NONE || site->leak == CW_LEAK_HANDLE ||
        (cw_rule_is_builtin(rule) && !is_concerned(rule, matches->snapshot, site)))
        return;
    apply(site, rule, index, matches->rules->use ? &matches->rules->use[index] : NULL);
}

/* ---- lists ---- */

static int is_leak_before(const void *a, const void *b, const void *arg)
{
    const struct cw_snapshot_site *sites = arg;
    uint32_t i = *(const uint32_t *)a;
    uint32_t k = *(const uint32_t *)b;

    if (cw_leaked_bytes(&sites[i]) != cw_leaked_bytes(&sites[k]))
        return cw_leaked_bytes(&sites[i]) > cw_leaked_bytes(&sites[k]);
    if (sites[i].id != sites[k].id)
        return sites[i].id < sites[k].id;
    return i < k;
}

/* Fills `list` with the sites of the classes first to last; returns the remaining storage. */
static uint32_t *make_list(struct cw_snapshot *snapshot, struct cw_snapshot_list *list,
                           uint32_t *storage, unsigned first, unsigned last)
{
    *list = (struct cw_snapshot_list){.site = storage};
    for (uint32_t i = 0; i < snapshot->sites; i++) {
        const struct cw_snapshot_site *site = &snapshot->site[i];

        if (site->leak < first || site->leak > last)
            continue;
        list->site[list->count++] = i;
        list->bytes += cw_leaked_bytes(site);
        list->blocks += cw_leaked_blocks(site);
    }
    cw_sort(list->site, list->count, sizeof(uint32_t), is_leak_before, snapshot->site);
    return storage + list->count;
}

static void make_lists(struct cw_snapshot *snapshot)
{
    uint32_t *storage = snapshot->list_storage;

    storage = make_list(snapshot, &snapshot->leaks, storage, CW_LEAK_LOST, CW_LEAK_CONTEXT);
    storage = make_list(snapshot, &snapshot->library, storage, CW_LEAK_LIBRARY, CW_LEAK_LIBRARY);
    storage = make_list(snapshot, &snapshot->caches, storage, CW_LEAK_CACHE, CW_LEAK_CACHE);
    storage = make_list(snapshot, &snapshot->imports, storage, CW_LEAK_IMPORT, CW_LEAK_IPC);
    make_list(snapshot, &snapshot->suppressed, storage, CW_LEAK_SUPPRESSED, CW_LEAK_SUPPRESSED);
    snapshot->summary.leaked_bytes = snapshot->leaks.bytes;
    snapshot->summary.leaked_blocks = snapshot->leaks.blocks;
    snapshot->summary.leak_sites = snapshot->leaks.count;
}

int cw_leak_classify(struct cw_snapshot *snapshot, const struct cw_symbols *symbols,
                     const struct cw_rules *rules)
{
    static const struct cw_rules only_builtin;
    struct matches matches;
    int result = matches_init(&matches, snapshot, symbols, rules ? rules : &only_builtin);

    for (uint32_t i = 0; i < snapshot->sites; i++) {
        struct cw_snapshot_site *site = &snapshot->site[i];

        site->leak = (uint8_t)class_by_kind(site);
        site->rule = CW_RULE_NONE;
        site->past_cap = 0;
        site->cache = CW_CACHE_NONE;
        if (result == 0)
            classify_site(&matches, site);
        if (site->leak == CW_LEAK_LOST && site->grows)
            site->leak = CW_LEAK_GROWING;
    }
    if (result == 0)
        matches_fini(&matches);
    make_lists(snapshot);
    return result;
}

void cw_leak_want(const struct cw_snapshot *snapshot, struct cw_symbols *symbols)
{
    for (uint32_t i = 0; i < snapshot->sites; i++)
        if ((snapshot->site[i].leak != CW_LEAK_NONE && snapshot->site[i].leak != CW_LEAK_HANDLE) ||
            snapshot->site[i].growth != 0)
            cw_symbols_want(symbols, snapshot->site[i].stack);
}
