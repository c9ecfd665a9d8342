/* SPDX-License-Identifier: MIT */
/* aarch64.test: calls dlsym, dlvsym and dlopen. */
#include <stdio.h>
#include <string.h>
void *dlsym(void *, const char *);
void *dlvsym(void *, const char *, const char *);
void *dlopen(const char *, int);
extern const void *seen_caller, *real_caller;
extern void *got_handle;
extern const char *got_name, *got_version;
static int failed;
static void check(int holds, const char *what)
{
    if (!holds) {
        puts(what);
        failed = 1;
    }
}
/* A call from here returns into here. */
static int is_here(const void *address, void (*function)(void))
{
    return (const char *)address > (const char *)function &&
           (const char *)address < (const char *)function + 800;
}
__attribute__((noinline)) static void jumps(void)
{
    volatile long keep[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const char name[] = "elsewhere", version[] = "V";
    int handle;
    check(dlsym(&handle, name) == (void *)0x1001, "a jump returns what the real one returns");
    check(got_handle == &handle && got_name == name, "a jump keeps the arguments");
    check(is_here(seen_caller, jumps), "the filter is told who calls");
    check(real_caller == seen_caller, "a jump keeps the return address");
    check(dlvsym(&handle, name, version) == (void *)0x1001, "dlvsym: a jump returns");
    check(got_handle == &handle && got_name == name && got_version == version,
          "dlvsym: keeps the arguments");
    check(is_here(seen_caller, jumps) && real_caller == seen_caller,
          "dlvsym: keeps the return address");
    check(dlopen(name, 5) == (void *)0x1001, "dlopen: a jump returns");
    check(got_handle == name && (int)(long)got_name == 5, "dlopen: keeps the arguments");
    check(is_here(seen_caller, jumps) && real_caller == seen_caller,
          "dlopen: keeps the return address");
    for (int i = 0; i < 8; i++)
        check(keep[i] == i + 1, "the caller's own stack is kept");
}
__attribute__((noinline)) static void answers(void)
{
    static const char name[] = "answer:x";
    real_caller = 0;
    check(dlsym(0, name) == (void *)(name + 7), "an answer is returned");
    check(dlsym(0, "answer:null") == 0, "NULL is an answer");
    check(dlvsym(0, name, "V") == (void *)(name + 7), "dlvsym: an answer is returned");
    check(dlvsym(0, "answer:null", "V") == 0, "dlvsym: NULL is an answer");
    check(is_here(seen_caller, answers) && real_caller == 0, "nobody else is asked");
}
int main(void)
{
    for (int i = 0; i < 3; i++) {
        jumps();
        answers();
    }
    if (!failed)
        puts("all holds");
    return failed;
}
