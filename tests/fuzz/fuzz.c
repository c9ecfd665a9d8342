/* SPDX-License-Identifier: MIT */
/*
 * Runs a target of the fuzzer (fuzz.h) with libFuzzer, which FUZZ_TARGET names it to, or by itself
 * where there is no libFuzzer:
 *
 *   fuzz TARGET SECONDS FIRST FILE...   the files as they are, then cases FIRST, FIRST + 1, ... of
 *                                       damaged ones until the time is over
 *   fuzz TARGET 0 NUMBER FILE...        that one case
 *   fuzz                                the names of the targets
 *
 * What the code under test prints on stderr goes nowhere.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define CASE_SECONDS 300
#define FILES        256
#define FILE_LEN_MAX ((size_t)1 << 20)
#define MUTATIONS    8

static const struct target {
    const char *name;
    void (*run)(const uint8_t *bytes, size_t size);
} targets[] = {
    {"options", fuzz_options}, {"suppressions", fuzz_suppressions},
    {"names", fuzz_names},     {"csv", fuzz_csv},
    {"json", fuzz_json},       {"elf", fuzz_elf},
    {"dwarf", fuzz_dwarf},     {"config", fuzz_config},
    {"http", fuzz_http},       {"calls", fuzz_calls},
    {"model", fuzz_model},     {"diff", fuzz_diff},
    {"merge", fuzz_merge},     {"torch", fuzz_torch},
};
#define TARGETS (sizeof(targets) / sizeof(targets[0]))

static int said = STDERR_FILENO; /* where findings are told */

/* ---- for the targets ---- */

const char *fuzz_file(const uint8_t *bytes, size_t size)
{
    static char path[64];
    static int file = -1;

    if (file < 0)
        file = memfd_create("fuzz", 0);
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size)
        fuzz_wrong("no file: %s", strerror(errno));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return path;
}

char *fuzz_text(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);

    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

void fuzz_wrong(const char *format, ...)
{
    va_list args;

    dprintf(said, "fuzz: ");
    va_start(args, format);
    vdprintf(said, format, args);
    va_end(args);
    dprintf(said, "\n");
    abort();
}

static const struct target *target_of(const char *name)
{
    for (size_t i = 0; i < TARGETS; i++)
        if (name && strcmp(targets[i].name, name) == 0)
            return &targets[i];
    for (size_t i = 0; i < TARGETS; i++)
        puts(targets[i].name);
    exit(name ? 2 : 0);
}

#ifdef CW_LIBFUZZER

static const struct target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ_TARGET");

    (void)argc;
    (void)argv;
    said = dup(STDERR_FILENO);
    if (!name || strcmp(name, "live") != 0)
        target = target_of(name);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (target)
        target->run(bytes, size);
    else
        (void)fuzz_live(bytes, size);
    return 0;
}

#else

/* ---- damage ---- */

static struct input {
    uint8_t *at;
    size_t size;
} files[FILES];
static unsigned file_count;
static uint64_t state;  /* of the random numbers */
static uint64_t number; /* of the case */

static uint64_t below(uint64_t limit)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return limit ? (z ^ (z >> 31)) % limit : 0;
}

/* Replaces `len` bytes at `at` by others; what would become too long is left as it is. */
static void put_piece(struct input *input, size_t at, size_t len, const void *by, size_t by_len)
{
    if (input->size - len + by_len > FILE_LEN_MAX)
        return;
    memmove(input->at + at + by_len, input->at + at + len, input->size - at - len);
    memmove(input->at + at, by, by_len);
    input->size += by_len - len;
}

static void damage(struct input *input)
{
    static const char *const words[] = {"%",     "{",   "}",     "[",        "]",
                                        "\"",    ",",   ":",     "=",        "\n",
                                        "-1",    "*",   "^",     "$",        "18446744073709551616",
                                        "1e999", "\\u", "%q{A}", "\r\n\r\n", "\xff"};
    static const uint64_t odd[] = {0,          1,          0x7f,      0x80,      0xff,
                                   0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
    const char *word = words[below(sizeof(words) / sizeof(words[0]))];
    const struct input *other = &files[below(file_count)];
    size_t at = below(input->size + 1), left = input->size - at;
    size_t from = below(other->size),
           len = below(other->size - from < 64 ? other->size - from : 64);
    uint8_t piece[64], byte = (uint8_t)below(256);
    uint64_t value = odd[below(sizeof(odd) / sizeof(odd[0]))];

    memcpy(piece, other->at + from, len);
    switch (below(7)) {
    case 0:
        if (left > 0)
            input->at[at] ^= (uint8_t)(1 << below(8));
        break;
    case 1:
        put_piece(input, at, left > 0, &byte, 1);
        break;
    case 2:
        put_piece(input, at, 0, word, strlen(word));
        break;
    case 3:
        put_piece(input, at, below((left < 64 ? left : 64) + 1), "", 0);
        break;
    case 4:
        put_piece(input, at, 0, piece, len);
        break;
    case 5:
        put_piece(input, at, len < left ? len : left, piece, len);
        break;
    default:
        len = (size_t)1 << below(4);
        put_piece(input, at, len < left ? len : left, &value, len);
        break;
    }
}

/* ---- the cases ---- */

static void read_file(const char *path)
{
    struct input *input = &files[file_count];
    int fd = open(path, O_RDONLY);
    ssize_t got;

    if (file_count == FILES || fd < 0)
        return;
    input->at = malloc(FILE_LEN_MAX);
    got = read(fd, input->at, FILE_LEN_MAX);
    close(fd);
    input->size = got > 0 ? (size_t)got : 0;
    file_count++;
}

static void tell_number(void)
{
    dprintf(said, "fuzz: case %llu\n", (unsigned long long)number);
}

static void tell(int signal)
{
    tell_number();
    if (signal == SIGALRM)
        dprintf(said, "fuzz: it takes too long\n");
    _exit(3);
}

/* In memory that ends where the bytes end, so that a look beyond them is seen. */
static void run(const struct target *target, const struct input *input)
{
    uint8_t *bytes = malloc(input->size ? input->size : 1);

    memcpy(bytes, input->at, input->size);
    alarm(CASE_SECONDS);
    target->run(bytes, input->size);
    alarm(0);
    free(bytes);
}

static void run_number(const struct target *target)
{
    static struct input input;
    const struct input *file;

    if (!input.at)
        input.at = malloc(2 * FILE_LEN_MAX);
    state = number * UINT64_C(0x2545f4914f6cdd1d);
    file = &files[below(file_count)];
    memcpy(input.at, file->at, file->size);
    input.size = file->size;
    for (uint64_t i = 1 + below(MUTATIONS); i > 0; i--)
        damage(&input);
    run(target, &input);
}

static void be_quiet(void)
{
    int nowhere = open("/dev/null", O_WRONLY);

    said = dup(STDERR_FILENO);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_report_fd((void *)(intptr_t)said);
    __sanitizer_set_death_callback(tell_number);
#endif
}

int main(int argc, char **argv)
{
    const struct target *target = target_of(argc > 1 ? argv[1] : NULL);
    uint64_t end = cw_clock_ns() + (uint64_t)(argc > 2 ? strtod(argv[2], NULL) * 1e9 : 0);
    unsigned long long cases = 0;
    int is_one = argc > 2 && strcmp(argv[2], "0") == 0;

    for (int i = 4; i < argc; i++)
        read_file(argv[i]);
    if (file_count == 0)
        return 2;
    number = strtoull(argv[3], NULL, 10);
    be_quiet();
    signal(SIGALRM, tell);
    signal(SIGABRT, tell);
    signal(SIGILL, tell);
#ifndef __SANITIZE_ADDRESS__ /* which says more */
    signal(SIGSEGV, tell);
    signal(SIGBUS, tell);
    signal(SIGFPE, tell);
#endif
    for (unsigned i = 0; !is_one && i < file_count; i++, cases++)
        run(target, &files[i]);
    do {
        run_number(target);
        number++;
        cases++;
    } while (!is_one && cw_clock_ns() < end);
    printf("%s: %llu cases\n", target->name, cases);
    return 0;
}

#endif
