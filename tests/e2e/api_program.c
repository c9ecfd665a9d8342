/* SPDX-License-Identifier: MIT */
/*
 * As little as a program needs, in the C and C++ of any standard, built in every way that programs
 * and plugins are: e2e/api.test. It prints what the library says of it, and as a plugin returns it.
 */
#include <cuwarden/cuwarden.h>

#include <stdio.h>

#ifdef __cplusplus
#define EXPORT extern "C"
#else
#define EXPORT extern
#endif

EXPORT int work(void);

/* 7: all answers are those of a library that is there; 0: of none. */
int work(void)
{
    int is_there = cuwarden_is_active() && cuwarden_version()[0] != '\0';
    int pushed = cuwarden_tag_push("plugin") == CUWARDEN_OK;
    int popped = cuwarden_tag_pop() == CUWARDEN_OK && cuwarden_tag_pop() == CUWARDEN_UNBALANCED;

    return is_there | pushed << 1 | popped << 2;
}

#ifdef LOADS /* a plugin, by this name */
typedef int (*work_fn)(void);

int main(void)
{
    void *plugin = dlopen(LOADS, RTLD_NOW | RTLD_LOCAL);
    work_fn its_work = plugin != NULL ? (work_fn)dlsym(plugin, "work") : NULL;

    printf("%d %d\n", work(), its_work != NULL ? its_work() : -1);
    return 0;
}
#elif !defined(PLUGIN)
int main(void)
{
    dlsym((void *)0, "no_such_symbol"); /* its error is the program's, and stays */
    cuwarden_is_active();
    printf("%d %s\n", work(), cuwarden_error_name(CUWARDEN_NOT_ACTIVE));
    return 0;
}
#endif
