/* SPDX-License-Identifier: MIT */
/*
 * Reads what PyTorch says of its tensors. See torch.h.
 *
 * The file was written by the program's process: nothing in it is trusted further than to be
 * printed, and a line that is not as it should be is passed over.
 */
#include "cli/run/torch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cell_name.h"
#include "base/compiler.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "cli/run/run_preload.h"
#include "cli/ui/message.h"
#include "report/symbols/stack.h"

#define FILE_MAX_BYTES (UINT64_C(256) << 20)
#define FIELDS_MAX     5
#define FRAMEWORK      "PyTorch"

enum kind { HALF, PEAK, AT_EXIT, KINDS };

static const char *const kind_names[KINDS] = {"half", "peak", "exit"};

struct segment {
    uint64_t address, bytes;
    uint32_t device, site; /* site: of the layout, 0: no live block of it has this address */
};

/* A stack's own frame: the line that tensors are counted under. */
struct frame {
    const char *function, *file;
    uint32_t line;
    int is_chosen; /* no further frame is looked at */
};

/* Tensors of one stack in one segment. */
struct tensors {
    struct frame frame;
    size_t segment;
    uint32_t device, site; /* of the segment */
    uint32_t kind;
    uint64_t count, bytes;
};

struct snapshot {
    int is_known;
    uint64_t time_ns, bytes;
    struct segment *segment;
    size_t segments;
    struct frame *stack;
    size_t stacks;
    struct tensors *row;
    size_t rows;
};

struct reading {
    struct cw_report_tensors tensors; /* first: what is handed out */
    char *text;
    struct snapshot snapshot[KINDS], *now; /* now: that is being read, or NULL */
};

/* ---- the file ---- */

static char *read_text(const char *path)
{
    uint64_t size = 0;
    int fd = cw_regular_open(path, O_NOFOLLOW, &size);
    char *text = NULL;

    if (fd >= 0 && size < FILE_MAX_BYTES)
        text = malloc(size + 1);
    if (text)
        text[cw_sys_read_at(fd, text, size, 0)] = '\0';
    if (fd >= 0)
        close(fd);
    return text;
}

/* Takes back the escapes, in place. */
static char *unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from == '\\' && from[1]) {
            from++;
            *to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from == 'r' ? '\r' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return text;
}

/* Room for one more of `size` bytes, zeroed; NULL: no memory. */
static void *append(void *array, size_t *count, size_t size)
{
    void **at = array;
    char *grown = *at;

    if ((*count & (*count - 1)) == 0)
        grown = reallocarray(*at, *count ? 2 * *count : 1, size);
    if (!grown)
        return NULL;
    *at = grown;
    return memset(grown + (*count)++ * size, 0, size);
}

static uint64_t number(const char *field)
{
    return strtoull(field, NULL, 10);
}

/* ---- its lines ---- */

static void read_snapshot(struct reading *reading, char **field)
{
    reading->now = NULL;
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(field[1], kind_names[i]) == 0)
            reading->now = &reading->snapshot[i];
    if (!reading->now || reading->now->is_known) {
        reading->now = NULL;
        return;
    }
    reading->now->is_known = 1;
    reading->now->time_ns = number(field[2]);
}

static void read_segment(struct snapshot *snapshot, char **field)
{
    struct segment *segment = append(&snapshot->segment, &snapshot->segments, sizeof(*segment));

    if (segment)
        *segment = (struct segment){.device = (uint32_t)number(field[1]),
                                    .address = number(field[2]),
                                    .bytes = number(field[3])};
}

/* The innermost frame of the program's own, else the innermost. */
static void read_frame(struct snapshot *snapshot, char **field)
{
    struct frame *frame = snapshot->stacks ? &snapshot->stack[snapshot->stacks - 1] : NULL;
    int is_own;

    if (!frame || frame->is_chosen)
        return;
    cw_cell_name(unescape(field[1]));
    is_own = field[1][0] != '<' && !cw_file_is_installed(field[1]);
    if (frame->file && !is_own)
        return;
    *frame = (struct frame){.file = field[1],
                            .line = (uint32_t)number(field[2]),
                            .function = unescape(field[3]),
                            .is_chosen = is_own};
}

static void read_tensors(struct snapshot *snapshot, char **field)
{
    uint64_t segment = number(field[1]), stack = number(field[2]);
    struct tensors *row;

    if (segment >= snapshot->segments || stack >= snapshot->stacks)
        return;
    row = append(&snapshot->row, &snapshot->rows, sizeof(*row));
    if (!row)
        return;
    row->segment = segment;
    row->frame = snapshot->stack[stack];
    row->count = number(field[3]);
    row->bytes = number(field[4]);
    snapshot->bytes += row->bytes;
}

static void read_line(struct reading *reading, char *line)
{
    char *field[FIELDS_MAX] = {line};
    unsigned count = 1;

    for (char *at = line; *at && count < FIELDS_MAX; at++)
        if (*at == '\t') {
            *at = '\0';
            field[count++] = at + 1;
        }
    if (strcmp(field[0], "cuwarden-torch") == 0 && count >= 3)
        reading->tensors.version = unescape(field[2]);
    else if (strcmp(field[0], "E") == 0 && count >= 2)
        reading->tensors.error = unescape(field[1]);
    else if (strcmp(field[0], "P") == 0 && count >= 2)
        reading->tensors.most_bytes = number(field[1]);
    else if (strcmp(field[0], "S") == 0 && count >= 3)
        read_snapshot(reading, field);
    else if (!reading->now)
        return;
    else if (strcmp(field[0], "G") == 0 && count >= 4)
        read_segment(reading->now, field);
    else if (strcmp(field[0], "K") == 0)
        append(&reading->now->stack, &reading->now->stacks, sizeof(struct frame));
    else if (strcmp(field[0], "F") == 0 && count >= 4)
        read_frame(reading->now, field);
    else if (strcmp(field[0], "B") == 0 && count >= 5)
        read_tensors(reading->now, field);
}

static void read_lines(struct reading *reading)
{
    char *rest = reading->text, *line;

    while ((line = strsep(&rest, "\n")))
        read_line(reading, line);
}

/* ---- the account beside it ---- */

static int compare_addresses(const void *left, const void *right)
{
    const struct segment *const *a = left, *const *b = right;

    return ((*a)->address > (*b)->address) - ((*a)->address < (*b)->address);
}

static int compare_address(const void *key, const void *element)
{
    const uint64_t *address = key;
    const struct segment *const *segment = element;

    return (*address > (*segment)->address) - (*address < (*segment)->address);
}

/* Gives the segments the sites of the live blocks with their addresses. */
static void join(const struct snapshot *snapshot, const struct cw_view *view)
{
    struct segment **by_address = calloc(snapshot->segments + 1, sizeof(struct segment *));
    uint32_t count = cw_view_count(view, CW_TABLE_BLOCK);

    for (size_t i = 0; by_address && i < snapshot->segments; i++)
        by_address[i] = &snapshot->segment[i];
    if (by_address)
        qsort(by_address, snapshot->segments, sizeof(struct segment *), compare_addresses);
    for (uint32_t i = 1; by_address && i < count; i++) {
        const struct cw_live_block *block = cw_view_block(view, i);
        uint64_t key = block ? atomic_load(&block->key) : 0;
        struct segment **found;

        if (!block || atomic_load(&block->state) != CW_BLOCK_LIVE)
            continue;
        found = bsearch(&key, by_address, snapshot->segments, sizeof(struct segment *),
                        compare_address);
        if (found)
            (*found)->site = atomic_load(&block->site);
    }
    free(by_address);
}

static void count_segments(const struct snapshot *snapshot, struct cw_report_tensors *out)
{
    for (size_t i = 0; i < snapshot->segments; i++) {
        const struct segment *segment = &snapshot->segment[i];

        out->segments += segment->bytes != 0;
        out->segment_bytes += segment->bytes;
        out->known += segment->site != 0;
        out->known_bytes += segment->site != 0 ? segment->bytes : 0;
    }
}

/* ---- rows ---- */

static int compare_texts(const char *left, const char *right)
{
    return left && right ? strcmp(left, right) : (left != NULL) - (right != NULL);
}

/* By line and device. */
static int compare_lines(const struct tensors *left, const struct tensors *right)
{
    int order = compare_texts(left->frame.file, right->frame.file);

    if (order == 0)
        order = (left->frame.line > right->frame.line) - (left->frame.line < right->frame.line);
    if (order == 0)
        order = compare_texts(left->frame.function, right->frame.function);
    if (order == 0)
        order = (left->device > right->device) - (left->device < right->device);
    return order;
}

/* Those of one site beside each other, too. */
static int compare_tensors(const void *left, const void *right)
{
    const struct tensors *a = left, *b = right;
    int order = compare_lines(a, b);

    return order != 0 ? order : (a->site > b->site) - (a->site < b->site);
}

static void add_to(struct cw_report_tensor *row, const struct tensors *from)
{
    switch (from->kind) {
    case HALF:
        row->half_tensors += from->count;
        row->half_bytes += from->bytes;
        break;
    case PEAK:
        row->peak_tensors += from->count;
        row->peak_bytes += from->bytes;
        break;
    default:
        row->exit_tensors += from->count;
        row->exit_bytes += from->bytes;
    }
}

/* One row of all with the same line and device, of which there are `count`. */
static void fold(const struct tensors *from, size_t count, struct cw_report_tensor *row)
{
    uint64_t bytes = 0, most = 0;

    *row = (struct cw_report_tensor){.function = from->frame.function,
                                     .file = from->frame.file,
                                     .line = from->frame.line,
                                     .device = from->device};
    for (size_t i = 0; i < count; i++) {
        bytes = i > 0 && from[i].site == from[i - 1].site ? bytes : 0;
        bytes += from[i].kind == PEAK ? from[i].bytes : 0;
        if (bytes > most && from[i].site != 0) {
            most = bytes;
            row->site = from[i].site;
        }
        add_to(row, &from[i]);
    }
}

static int compare_rows(const void *left, const void *right)
{
    const struct cw_report_tensor *a = left, *b = right;

    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes ? 1 : -1;
    return (a->exit_bytes < b->exit_bytes) - (a->exit_bytes > b->exit_bytes);
}

/* All three snapshots' tensors in one array. */
static struct tensors *gather(const struct snapshot *snapshot, size_t *out_count)
{
    struct tensors *all;
    size_t count = 0;

    for (uint32_t kind = 0; kind < KINDS; kind++)
        count += snapshot[kind].rows;
    all = calloc(count + 1, sizeof(*all));
    *out_count = 0;
    for (uint32_t kind = 0; all && kind < KINDS; kind++)
        for (size_t i = 0; i < snapshot[kind].rows; i++) {
            struct tensors *to = &all[(*out_count)++];
            const struct segment *segment;

            *to = snapshot[kind].row[i];
            segment = &snapshot[kind].segment[to->segment];
            to->kind = kind;
            to->device = segment->device;
            to->site = segment->site;
        }
    return all;
}

static void make_rows(struct cw_report_tensors *out, const struct snapshot *snapshot)
{
    size_t count, end;
    struct tensors *all = gather(snapshot, &count);

    out->row = all ? calloc(count + 1, sizeof(*out->row)) : NULL;
    if (out->row)
        qsort(all, count, sizeof(*all), compare_tensors);
    for (size_t i = 0; out->row && i < count; i = end) {
        for (end = i + 1; end < count && compare_lines(&all[i], &all[end]) == 0; end++)
            ;
        fold(&all[i], end - i, &out->row[out->rows++]);
    }
    if (out->row)
        qsort(out->row, out->rows, sizeof(*out->row), compare_rows);
    free(all);
}

/* ---- one process ---- */

static void add_row(struct cw_report_tensors *tensors, const struct cw_report_tensor *row)
{
    tensors->peak_tensors += row->peak_tensors;
    tensors->peak_bytes += row->peak_bytes;
    tensors->exit_tensors += row->exit_tensors;
    tensors->exit_bytes += row->exit_bytes;
}

static void sum_up(struct reading *reading, const struct cw_view *view)
{
    struct cw_report_tensors *tensors = &reading->tensors;
    const struct snapshot *most = &reading->snapshot[PEAK];
    uint64_t start_ns = cw_view_header(view)->start_ns;

    join(most, view);
    count_segments(most, tensors);
    tensors->peak_ns = most->time_ns > start_ns ? most->time_ns - start_ns : 0;
    tensors->has_exit = (uint8_t)reading->snapshot[AT_EXIT].is_known;
    make_rows(tensors, reading->snapshot);
    for (uint32_t i = 0; i < tensors->rows; i++)
        add_row(tensors, &tensors->row[i]);
}

static void free_snapshots(struct reading *reading)
{
    for (size_t i = 0; i < KINDS; i++) {
        free(reading->snapshot[i].segment);
        free(reading->snapshot[i].stack);
        free(reading->snapshot[i].row);
        reading->snapshot[i] = (struct snapshot){.is_known = 0};
    }
}

struct cw_report_tensors *cw_torch_read(struct cw_torch *torch, const struct cw_view *view)
{
    char path[CW_PLACE_MAX + 32];
    struct reading *reading = torch->directory[0] ? calloc(1, sizeof(*reading)) : NULL;

    if (!reading)
        return NULL;
    snprintf(path, sizeof(path), "%s/" CW_LIVE_TORCH_PREFIX "%u", torch->directory,
             (unsigned)cw_view_header(view)->pid);
    reading->text = read_text(path);
    if (!reading->text) {
        free(reading);
        return NULL;
    }
    torch->processes++;
    reading->tensors.framework = FRAMEWORK;
    read_lines(reading);
    sum_up(reading, view);
    free_snapshots(reading);
    return &reading->tensors;
}

void cw_torch_free(struct cw_report_tensors *tensors)
{
    struct reading *reading = (struct reading *)tensors;

    if (!reading)
        return;
    free(tensors->row);
    free(reading->text);
    free(reading);
}

/* ---- the directories ---- */

/* Beside the library, or where an installed one is, if a library of its own was named. */
static int find_module(const char *library, char *out_directory, size_t cap)
{
    const char *const places[] = {library, CW_PKGLIBDIR "/"};
    char path[PATH_MAX + 32];

    for (size_t i = 0; i < CW_ARRAY_LEN(places); i++) {
        int len = (int)(strrchr(places[i], '/') - places[i]);

        snprintf(out_directory, cap, "%.*s/torch", len, places[i]);
        snprintf(path, sizeof(path), "%s/sitecustomize.py", out_directory);
        if (access(path, R_OK) == 0)
            return 0;
    }
    cw_cli_error("--torch: cannot read '%s': %s; there are no tensors", path, strerror(errno));
    return -1;
}

/* Before what the user has there; Python passes over our part once it has read it. */
void cw_torch_begin(struct cw_torch *torch, const char *directory, const char *library)
{
    char module[PATH_MAX];

    *torch = (struct cw_torch){.is_wanted = 1};
    if (find_module(library, module, sizeof(module)) != 0)
        return;
    if (cw_run_put_first("PYTHONPATH", module) == 0 &&
        cw_run_put_first(CW_TORCH_VARIABLE, directory) == 0)
        snprintf(torch->directory, sizeof(torch->directory), "%s", directory);
    else
        cw_cli_error("--torch: cannot set PYTHONPATH: %s", strerror(errno));
}

void cw_torch_end(struct cw_torch *torch)
{
    DIR *dir = torch->directory[0] ? opendir(torch->directory) : NULL;
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, CW_LIVE_TORCH_PREFIX, sizeof(CW_LIVE_TORCH_PREFIX) - 1) == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    torch->directory[0] = '\0';
}
