/* SPDX-License-Identifier: MIT */
/*
 * Damages good live files at random and makes the reports of what comes out, text and JSON.
 * Whatever is in a file, the code that reads it must end soon and touch nothing but the file's
 * copy; the sanitizers watch. It knows tables, records and the header only by their sizes, so it
 * covers what is added to the layout.
 *
 *   fuzz SECONDS FIRST FILE...   cases FIRST, FIRST + 1, ... until the time is over
 *   fuzz 0 NUMBER FILE...        that one case
 *
 * With -DCW_LIBFUZZER it is a target for libFuzzer, and has no main.
 */
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/export/form.h"
#include "live/live_copy.h"
#include "report/report.h"

#define COPIED_MAX      ((size_t)32 << 20) /* a larger image has nothing around it that tells a miss */
#define CASE_SECONDS    300
#define MUTATIONS       6
#define FILES           64
#define EXTENSION_MAX   ((size_t)1 << 20)
#define ALIGNMENT       64
#define RANDOM_MULTIPLY UINT64_C(6364136223846793005)

/* ---- one case ---- */

static void write_report(const struct cw_view *view, enum cw_report_form form)
{
    static int nowhere = -1;
    struct cw_report_request request = {
        .form = form, .process = CW_REPORT_PROCESS_DEAD, .version = "0", .old_ns = 1};

    if (nowhere < 0)
        nowhere = open("/dev/null", O_WRONLY);
    request.fd = nowhere;
    (void)cw_report_write(view, &request);
}

/* Every form that the command writes reads the same model. */
static void write_forms(const struct cw_view *view)
{
    static const cw_form_fn forms[] = {cw_form_html,     cw_form_pprof, cw_form_heaptrack,
                                       cw_form_perfetto, cw_form_torch, cw_form_collapsed};
    struct cw_report_request request = {
        .process = CW_REPORT_PROCESS_DEAD, .version = "0", .old_ns = 1};
    struct cw_report_job *job = cw_report_open(view, &request);
    struct cw_selection selection = {.metric = CW_METRIC_LIVE};
    struct cw_form_request form = {.selection = &selection, .out = fopen("/dev/null", "w")};
    uint32_t *site = NULL;

    if (job) {
        cw_report_read_stacks(job, 0);
        form.model = cw_report_of(job);
        form.site = site = cw_select_sites(form.model, &selection, &form.sites);
    }
    for (size_t i = 0; site && i < sizeof(forms) / sizeof(forms[0]); i++)
        (void)forms[i](&form);
    free(site);
    fclose(form.out);
    if (job)
        cw_report_close(job);
}

/* In memory of its own that ends where the image ends, so that a look beyond it is seen. */
static void report_on(const struct cw_live_copy *image)
{
    struct cw_view view = image->view;
    char *copy = NULL;

    if (image->size <= COPIED_MAX) {
        copy = aligned_alloc(ALIGNMENT, (image->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        memcpy(copy, image->memory, image->size);
        view.base = copy;
    }
    write_report(&view, CW_REPORT_TEXT);
    write_report(&view, CW_REPORT_JSON);
    write_report(&view, CW_REPORT_SHORT_IF_LEAKED);
    write_forms(&view);
    free(copy);
}

/* 1 if there was something to report on. */
static int try_file(const void *bytes, size_t size)
{
    static int file = -1;
    struct cw_live_copy image;
    char why[256];

    if (file < 0)
        file = memfd_create("live", 0);
    if (ftruncate(file, 0) != 0 || (size > 0 && pwrite(file, bytes, size, 0) != (ssize_t)size))
        abort();
    if (cw_live_copy_read(file, &image, why, sizeof(why)) != 0)
        return 0;
    report_on(&image);
    cw_live_copy_free(&image);
    return 1;
}

#ifdef CW_LIBFUZZER

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    (void)try_file(bytes, size);
    return 0;
}

#else

/* ---- damage ---- */

static uint64_t state;

static uint64_t next(void)
{
    state = state * RANDOM_MULTIPLY + 1442695040888963407u;
    return (state ^ state >> 33) * UINT64_C(0xff51afd7ed558ccd) >> 11;
}

static uint64_t below(uint64_t limit)
{
    return limit ? next() % limit : 0;
}

struct bytes {
    char *at;
    size_t size, cap;
};

static struct cw_live_header *header_of(struct bytes *bytes)
{
    return (struct cw_live_header *)bytes->at;
}

/* Where something is: anywhere, among the header's first words, in the tables' descriptions, or in
 * the first records of a table. */
static size_t place(struct bytes *bytes, size_t len)
{
    size_t room = bytes->size > len ? bytes->size - len : 1, at = 0;
    const struct cw_live_table *table = &header_of(bytes)->table[below(CW_TABLE_COUNT)];

    switch (below(5)) {
    case 0:
        at = below(room);
        break;
    case 1:
        at = below(offsetof(struct cw_live_header, table));
        break;
    case 2:
        at = offsetof(struct cw_live_header, table) +
             below(sizeof(struct cw_live_table) * CW_TABLE_COUNT);
        break;
    default:
        at = table->chunk[0] + below((uint64_t)table->elem_size * (table->count + 1));
        break;
    }
    return at % room;
}

static uint64_t value(const struct bytes *bytes)
{
    const uint64_t odd[] = {0,
                            1,
                            2,
                            8,
                            63,
                            64,
                            65,
                            255,
                            0x7fffffff,
                            0x80000000,
                            0xffffffff,
                            INT64_MAX,
                            UINT64_MAX,
                            bytes->size,
                            bytes->size - 8,
                            (uint64_t)1 << 34};

    switch (below(3)) {
    case 0:
        return next() << 20 ^ next();
    case 1:
        return below(bytes->size * 2);
    default:
        return odd[below(sizeof(odd) / sizeof(odd[0]))];
    }
}

static void flip_bit(struct bytes *bytes)
{
    bytes->at[place(bytes, 1)] ^= (char)(1 << below(8));
}

static void put_number(struct bytes *bytes)
{
    static const size_t widths[] = {1, 2, 4, 4, 8, 8};
    size_t width = widths[below(6)];
    uint64_t number = value(bytes);

    memcpy(bytes->at + place(bytes, 8) / width * width, &number, width);
}

static void swap_chunks(struct bytes *bytes)
{
    struct cw_live_header *header = header_of(bytes);
    _Atomic uint64_t *a = &header->table[below(CW_TABLE_COUNT)].chunk[below(3)];
    _Atomic uint64_t *b = &header->table[below(CW_TABLE_COUNT)].chunk[below(3)];
    uint64_t kept = *a;

    *a = *b;
    *b = kept;
}

static void damage_table(struct bytes *bytes)
{
    struct cw_live_table *table = &header_of(bytes)->table[below(CW_TABLE_COUNT)];

    switch (below(4)) {
    case 0:
        table->count = (uint32_t)value(bytes);
        break;
    case 1:
        table->elem_size = (uint32_t)(table->elem_size + 8 * below(8));
        break;
    case 2:
        table->first = 1u << below(32);
        break;
    default:
        table->chunk[below(4)] = value(bytes) / ALIGNMENT * ALIGNMENT;
        break;
    }
}

static void copy_piece(struct bytes *bytes)
{
    size_t len = 1 + below(512), from = place(bytes, len), to = place(bytes, len);

    if (from + len <= bytes->size && to + len <= bytes->size)
        memmove(bytes->at + to, bytes->at + from, len);
}

static void cut_off(struct bytes *bytes)
{
    if (below(4) == 0) {
        header_of(bytes)->cut = 1; /* else it is refused, most of the time */
        bytes->size =
            sizeof(struct cw_live_header) + below(bytes->size - sizeof(struct cw_live_header));
    }
}

static void extend(struct bytes *bytes)
{
    size_t more = below(bytes->cap - bytes->size);

    for (size_t i = 0; i < more; i += 8)
        memcpy(bytes->at + bytes->size + i / 8 * 8, &(uint64_t){next()},
               more - i < 8 ? more - i : 8);
    bytes->size += more;
}

static void (*const damages[])(struct bytes *bytes) = {
    flip_bit,    flip_bit,     put_number, put_number, put_number, put_number,
    swap_chunks, damage_table, copy_piece, copy_piece, cut_off,    extend,
};

/* ---- the files, and the loop ---- */

static struct bytes files[FILES];
static unsigned file_count;
static uint64_t number;

static void read_file(const char *path)
{
    struct bytes *file = &files[file_count];
    int fd = open(path, O_RDONLY);
    struct stat info;

    if (file_count == FILES || fd < 0 || fstat(fd, &info) != 0 ||
        (size_t)info.st_size < sizeof(struct cw_live_header)) {
        fprintf(stderr, "fuzz: no live file: %s\n", path);
        exit(2);
    }
    file->size = (size_t)info.st_size;
    file->at = malloc(file->size);
    if (read(fd, file->at, file->size) != info.st_size)
        exit(2);
    close(fd);
    file_count++;
}

static void say_number(void)
{
    fprintf(stderr, "fuzz: case %llu\n", (unsigned long long)number);
}

static void take_too_long(int signal)
{
    (void)signal;
    fprintf(stderr, "fuzz: case %llu takes too long\n", (unsigned long long)number);
    abort();
}

static int try_number(void)
{
    static char *memory;
    const struct bytes *file;
    struct bytes bytes;
    int tried;

    state = number * UINT64_C(0x9e3779b97f4a7c15);
    file = &files[below(file_count)];
    bytes = (struct bytes){.size = file->size, .cap = file->size + EXTENSION_MAX};
    bytes.at = memory = realloc(memory, bytes.cap);
    memcpy(bytes.at, file->at, file->size);
    for (uint64_t i = 1 + below(MUTATIONS); i > 0; i--)
        damages[below(sizeof(damages) / sizeof(damages[0]))](&bytes);
    alarm(CASE_SECONDS);
    tried = try_file(bytes.at, bytes.size);
    alarm(0);
    return tried;
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
    unsigned long long cases = 0, reports = 0;

    if (argc < 4)
        return 2;
    number = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++)
        read_file(argv[i]);
    __sanitizer_set_death_callback(say_number);
    signal(SIGALRM, take_too_long);
    do {
        cases++;
        reports += (unsigned)try_number();
        number++;
    } while (time(NULL) < end);
    printf("%llu cases, %llu of them reported on\n", cases, reports);
    return reports * 5 < cases && cases > 100; /* most refused: nothing is tried */
}

#endif
