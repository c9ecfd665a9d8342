/* SPDX-License-Identifier: MIT */
/*
 * routes ROUTE NAMES [FILE]: asks for each name of the file on this way, and says what it gets;
 * FILE is a libcudart, where the way is through one, or another library than the driver. Of
 * versions that follow each other and have the same answer only the first is said.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

typedef int (*ask_v1_fn)(const char *, void **, int, uint64_t);
typedef int (*ask_v2_fn)(const char *, void **, int, uint64_t, int *);
typedef int (*entry_point_fn)(const char *, void **, unsigned long long, int *);
typedef int (*entry_point_by_version_fn)(const char *, void **, unsigned, unsigned long long,
                                         int *);

static void *handle;
static const char *file; /* to open */

/* ---- look-ups ---- */

static void say_symbol(const char *route, const char *name, const void *found)
{
    const char *error = dlerror();

    printf("%s %s 0 0: %s %s\n", route, name, words_of(found), error ? error : "-");
}

static void by_dlsym(const char *name)
{
    say_symbol("dlsym", name, dlsym(handle, name));
}

static void by_dlvsym(const char *name)
{
    say_symbol("dlvsym", name, dlvsym(handle, name, "libcuda.so.1"));
}

static void by_default(const char *name)
{
    say_symbol("default", name, dlsym(RTLD_DEFAULT, name));
}

static void by_next(const char *name)
{
    say_symbol("next", name, dlsym(RTLD_NEXT, name));
}

/* ---- cuGetProcAddress ---- */

/* Those of the documentation, both, and others. */
static const uint64_t flag_sets[] = {0, 1, 2, 3, 4, 1ull << 32};

#define FLAG_SETS   (sizeof(flag_sets) / sizeof(flag_sets[0]))
#define ODD         5
#define FIRST       2000
#define LAST        13200
#define ALL_VERSION (ODD + (LAST - FIRST) / 10 + 1)

static int version_at(int i)
{
    static const int odd[ODD] = {-1, 0, 1, 1999, INT32_MAX};

    return i < ODD ? odd[i] : FIRST + 10 * (i - ODD);
}

typedef int (*asked_fn)(const char *name, void **found, int version, uint64_t flags, int *status);

static void every_version(const char *route, const char *name, asked_fn asked)
{
    for (size_t f = 0; f < FLAG_SETS; f++) {
        void *before = NULL;
        int code_before = -1, status_before = -1;

        for (int i = 0; i < ALL_VERSION; i++) {
            void *found = &words_mark;
            int status = -2;
            int code = asked(name, &found, version_at(i), flag_sets[f], &status);

            if (i > ODD && found == before && code == code_before && status == status_before)
                continue;
            printf("%s %s %d %llu: %s code %d status %d\n", route, *name ? name : "-",
                   version_at(i), (unsigned long long)flag_sets[f], words_of(found), code, status);
            before = found;
            code_before = code;
            status_before = status;
        }
    }
}

static ask_v1_fn ask_v1;
static ask_v2_fn ask_v2;

static int asked_v1(const char *name, void **found, int version, uint64_t flags, int *status)
{
    (void)status;
    return ask_v1(name, found, version, flags);
}

static int asked_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    return ask_v2(name, found, version, flags, status);
}

static void by_v1(const char *name)
{
    every_version("v1", name, asked_v1);
}

static void by_v2(const char *name)
{
    every_version("v2", name, asked_v2);
}

/* Without a place for the status. */
static int asked_v2_null(const char *name, void **found, int version, uint64_t flags, int *status)
{
    (void)status;
    return ask_v2(name, found, version, flags, NULL);
}

static void by_v2_null(const char *name)
{
    every_version("v2-null", name, asked_v2_null);
}

/* ---- the runtime's entry points ---- */

static void by_entry_point(const char *name)
{
    static const char *const functions[] = {"cudaGetDriverEntryPoint",
                                            "cudaGetDriverEntryPoint_ptsz"};

    for (int i = 0; i < 2; i++) {
        entry_point_fn ask = (entry_point_fn)dlsym(handle, functions[i]);

        for (size_t f = 0; ask != NULL && f < FLAG_SETS; f++) {
            void *found = &words_mark;
            int status = -2;
            int code = ask(name, &found, flag_sets[f], &status);

            printf("%s %s 0 %llu: %s code %d status %d\n", functions[i], *name ? name : "-",
                   (unsigned long long)flag_sets[f], words_of(found), code, status);
        }
    }
}

static entry_point_by_version_fn entry_by_version;

static int asked_entry(const char *name, void **found, int version, uint64_t flags, int *status)
{
    return entry_by_version(name, found, (unsigned)version, flags, status);
}

static void by_entry_point_version(const char *name)
{
    static const char *const functions[] = {"cudaGetDriverEntryPointByVersion",
                                            "cudaGetDriverEntryPointByVersion_ptsz"};

    for (int i = 0; i < 2; i++) {
        entry_by_version = (entry_point_by_version_fn)dlsym(handle, functions[i]);
        if (entry_by_version != NULL)
            every_version(functions[i], name, asked_entry);
    }
}

/* ---- the ways there ---- */

static void open_local(void)
{
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return;
    ask_v1 = (ask_v1_fn)dlsym(handle, "cuGetProcAddress");
    ask_v2 = (ask_v2_fn)dlsym(handle, "cuGetProcAddress_v2");
}

static void open_global(void)
{
    handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
}

static void open_elsewhere(void)
{
    handle = dlmopen(LM_ID_NEWLM, file, RTLD_NOW);
}

/* A first one, which the program goes on using beside another. */
static void open_beside(void)
{
    void *first;

    open_local();
    first = handle;
    open_elsewhere();
    if (handle != NULL)
        dlsym(handle, "cuInit");
    handle = first;
}

static const struct {
    const char *name;
    void (*open)(void);
    void (*ask)(const char *name);
} routes[] = {
    {"dlsym", open_local, by_dlsym},
    {"dlvsym", open_local, by_dlvsym},
    {"default", open_global, by_default},
    {"next", open_global, by_next},
    {"dlmopen", open_elsewhere, by_dlsym},
    {"beside", open_beside, by_dlsym},
    {"v1", open_local, by_v1},
    {"v2", open_local, by_v2},
    {"v2-null", open_local, by_v2_null},
    {"entry-point", open_global, by_entry_point},
    {"entry-point-by-version", open_global, by_entry_point_version},
};

static void ask_all(const char *list, void (*ask)(const char *name))
{
    FILE *names = fopen(list, "r");
    char name[200];

    if (names == NULL) {
        perror(list);
        exit(2);
    }
    while (fgets(name, sizeof(name), names)) {
        name[strcspn(name, "\n")] = '\0';
        ask(strcmp(name, "-") == 0 ? "" : name);
    }
    fclose(names);
}

int main(int argc, char **argv)
{
    file = argc > 3 ? argv[3] : "libcuda.so.1";
    for (size_t i = 0; argc > 2 && i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (strcmp(routes[i].name, argv[1]) != 0)
            continue;
        routes[i].open();
        if (handle == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        ask_all(argv[2], routes[i].ask);
        return 0;
    }
    fprintf(stderr, "routes: no such route\n");
    return 2;
}
