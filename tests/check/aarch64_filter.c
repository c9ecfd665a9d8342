/* SPDX-License-Identifier: MIT */
/* aarch64.test: stands for resolve.c. "answer:..." is answered, all else goes on to `real`, which
 * notes what it got. */
#include <string.h>
struct answer {
    void *jump, *value;
};
const void *seen_caller, *real_caller;
void *got_handle;
const char *got_name, *got_version;
static void clobber(void)
{
#if defined(__aarch64__)
    __asm__ volatile(
        "mov x0, #-1\n mov x1, #-1\n mov x2, #-1\n mov x3, #-1\n mov x8, #-1\n mov x9, #-1\n"
        "mov x16, #-1\n mov x17, #-1" ::
            : "x0", "x1", "x2", "x3", "x8", "x9", "x16", "x17");
#else
    __asm__ volatile(
        "mov $-1, %%rdi\n mov $-1, %%rsi\n mov $-1, %%rdx\n mov $-1, %%rcx\n mov $-1, %%r11" ::
            : "rdi", "rsi", "rdx", "rcx", "r11");
#endif
}
/* The stack must be aligned as the ABI says: vector stores of the compiler fault if not. */
static int is_aligned(void)
{
    char here __attribute__((aligned(16)));
    return ((unsigned long)__builtin_frame_address(0) & 15) == 0 &&
           ((unsigned long)&here & 15) == 0;
}
__attribute__((noinline)) static void *real(void *handle, const char *name, const char *version)
{
    real_caller = __builtin_return_address(0);
    got_handle = handle;
    got_name = name;
    got_version = version;
    return is_aligned() ? (void *)0x1001 : 0;
}
static struct answer decide(const char *name, const void *caller)
{
    struct answer answer = {(void *)real, 0};
    seen_caller = caller;
    if (!is_aligned())
        return (struct answer){0, (void *)0xbad};
    if (strncmp(name, "answer:", 7) == 0)
        answer = (struct answer){0, (void *)(name + 7)};
    if (strcmp(name, "answer:null") == 0)
        answer = (struct answer){0, 0};
    clobber();
    return answer;
}
__attribute__((visibility("hidden"))) struct answer cw_dlsym_filter(void *h, const char *n,
                                                                    const void *caller)
{
    (void)h;
    return decide(n, caller);
}
__attribute__((visibility("hidden"))) struct answer cw_dlopen_filter(const char *file, int flags,
                                                                     const void *caller)
{
    (void)flags;
    return decide(file, caller);
}
__attribute__((visibility("hidden"))) struct answer
cw_dlvsym_filter(void *h, const char *n, const char *v, const void *caller)
{
    (void)h;
    (void)v;
    return decide(n, caller);
}
