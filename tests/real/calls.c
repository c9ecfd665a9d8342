/* SPDX-License-Identifier: MIT */
/*
 * calls FILE cold|warm: calls each function of calls.inc, all of the library FILE, once with nulls
 * and once with plausible arguments, each in a child of its own, and says how that ended, what the
 * code and the error state were, and what was written to where the arguments point. "warm": after a
 * first call, which tells that there is no GPU.
 */
#include HEADER

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "words.h"

#define ROOMS      16
#define ROOM_WORDS 512
#define LIMIT_S    10

/* For what is written: a place for each argument. */
static uint64_t rooms[ROOMS][ROOM_WORDS];
static void *library;

enum { NONE, SIZE, PLACES };

/* A value of one word or less, or of a struct; pointers point at the argument's place. */
static const void *argument_at(int number, size_t bytes, int kind, int is_pointer)
{
    static uint64_t values[ROOMS][64];
    uint64_t *value = values[number % ROOMS];

    if (is_pointer)
        value[0] = (uint64_t)(uintptr_t)rooms[number % ROOMS];
    else if (kind == SIZE)
        value[0] = 4096;
    return bytes <= sizeof(values[0]) ? value : rooms[0];
}

static const char *name_at(int number)
{
    return strcpy((char *)rooms[number % ROOMS], "cuMemAlloc");
}

#define POINTER_CLASS 5 /* gcc's, of __builtin_classify_type */
#define NULL_OF(type) ((type){0})
#define NAME(number)  name_at(number)
#define ARGUMENT(type, number, kind)                                                               \
    (*(type *)argument_at(number, sizeof(type), kind,                                              \
                          __builtin_classify_type((type){0}) == POINTER_CLASS))

/* ---- what is said of one call ---- */

static char said[4096];

static void __attribute__((format(printf, 1, 2))) add(const char *format, ...)
{
    size_t length = strlen(said);
    va_list list;

    va_start(list, format);
    vsnprintf(said + length, sizeof(said) - length, format, list);
    va_end(list);
}

static void say_text(const char *text)
{
    add(" %s", text ? text : "null");
}

/* Addresses are not the same in each run. */
static int is_address(uint64_t value)
{
    return value >> 40 >= 0x55 && value >> 48 == 0;
}

static void say_code(long code)
{
    if (is_address((uint64_t)code))
        say_text(words_of((void *)code));
    else
        add(" %d", (int)code);
}

static void say_rooms(void)
{
    for (int room = 0; room < ROOMS; room++)
        for (int word = 0; word < ROOM_WORDS; word++) {
            uint64_t value = rooms[room][word];

            if (value == 0)
                continue;
            if (is_address(value))
                add(" %d.%d=%s", room, word, words_of((void *)(uintptr_t)value));
            else
                add(" %d.%d=%llx", room, word, (unsigned long long)value);
        }
}

static void say_state(void)
{
    static const char *const last[] = {"cudaPeekAtLastError", "cudaGetLastError",
                                       "cudaPeekAtLastError"};
    const char *error = dlerror();
    int (*current)(void **) = (int (*)(void **))dlsym(library, "cuCtxGetCurrent");
    void *context = &words_mark;

    if (error != NULL)
        add("; dlerror %s", error);
    if (current != NULL)
        add("; context %d %s", current(&context), words_of(context));
    for (int i = 0; i < 3 && dlsym(library, last[i]) != NULL; i++)
        add("; last %d", ((int (*)(void))dlsym(library, last[i]))());
}

/* ---- the calls ---- */

#define CODE(call)    say_code((long)(call))
#define TEXT(call)    say_text(call)
#define NOTHING(call) (call)
#define OTHER(call)   (void)(call)

#define UNPACK(...) __VA_ARGS__
#define CALL(name, value, result, types, nulls, plausible)                                         \
    static void call_##name(int with)                                                              \
    {                                                                                              \
        result(*function) types = (result(*) types)dlsym(library, #name);                          \
        if (with)                                                                                  \
            value(function plausible);                                                             \
        else                                                                                       \
            value(function nulls);                                                                 \
    }
#define UNDECLARED(name)                                                                           \
    static void call_##name(int with)                                                              \
    {                                                                                              \
        long (*function)(void *, void *, void *, void *, void *, void *, void *, void *) =         \
            (long (*)(void *, void *, void *, void *, void *, void *, void *, void *))dlsym(       \
                library, #name);                                                                   \
        if (with)                                                                                  \
            say_code(function(rooms[0], rooms[1], rooms[2], rooms[3], rooms[4], rooms[5],          \
                              rooms[6], rooms[7]));                                                \
        else                                                                                       \
            say_code(function(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));                    \
    }
#include "calls.inc"
#undef CALL
#undef UNDECLARED

static const struct {
    const char *name;
    void (*call)(int with);
} calls[] = {
#define CALL(name, value, result, types, nulls, plausible) {#name, call_##name},
#define UNDECLARED(name)                                   {#name, call_##name},
#include "calls.inc"
};

static void in_child(size_t i, int with)
{
    struct rlimit none = {0, 0};
    int pipes[2], status;
    ssize_t got;
    pid_t child;

    if (pipe(pipes) != 0 || (child = fork()) < 0) {
        perror("calls");
        exit(99);
    }
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &none);
        alarm(LIMIT_S);
        dlerror();
        calls[i].call(with);
        say_state();
        say_rooms();
        got = write(pipes[1], said, strlen(said));
        _exit(got == (ssize_t)strlen(said) ? 0 : 98);
    }
    close(pipes[1]);
    got = read(pipes[0], said, sizeof(said) - 1);
    said[got > 0 ? got : 0] = '\0';
    close(pipes[0]);
    waitpid(child, &status, 0);
    printf("%s %s:%s", calls[i].name, with ? "plausible" : "null", said);
    if (WIFSIGNALED(status))
        printf(" signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        printf(" exit status %d", WEXITSTATUS(status));
    puts("");
    said[0] = '\0';
    fflush(stdout);
}

/* What a program of this library does first. */
static int first_call(void)
{
    static const char *const names[] = {"cudaGetDeviceCount", "nvmlInit_v2"};
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int count;

    for (int i = 0; i < 2; i++) {
        int (*first)(int *) = (int (*)(int *))dlsym(library, names[i]);

        if (first != NULL)
            return first(&count);
    }
    return init != NULL ? init(0) : -1;
}

int main(int argc, char **argv)
{
    library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        fprintf(stderr, "calls: %s\n", argc > 2 ? dlerror() : "arguments are missing");
        return 2;
    }
    if (strcmp(argv[2], "warm") == 0)
        printf("first: %d\n", first_call());
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        for (int with = 0; with < 2; with++)
            in_child(i, with);
    return 0;
}
