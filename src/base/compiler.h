/* SPDX-License-Identifier: MIT */
/* Compiler attributes, spelled once. */
#ifndef CW_BASE_COMPILER_H
#define CW_BASE_COMPILER_H

/* For a variable that several files use: its address needs no load from the GOT. (-fvisibility
 * alone speaks of definitions, not of declarations.) */
#define CW_HIDDEN          __attribute__((visibility("hidden")))
#define CW_EXPORT          __attribute__((visibility("default")))
#define CW_PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#define CW_NOINLINE        __attribute__((noinline))
#define CW_INLINE          inline __attribute__((always_inline))
#define CW_COLD            __attribute__((cold, noinline))
/* A function of glibc that other C libraries lack: a strong reference would keep their programs
 * from starting under the preload. Test it before the call. */
#define CW_OPTIONAL    __attribute__((weak))
#define CW_UNUSED      __attribute__((unused))
#define CW_LIKELY(x)   __builtin_expect(!!(x), 1)
#define CW_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The code that every pair of calls runs, placed together: a program that works between two calls
 * has pushed the last ones out of its caches, and pays for each line and page. */
#define CW_HOT      __attribute__((hot))
#define CW_HOT_DATA __attribute__((section("cw_hot"))) /* not const */

/* Initial-exec: the library is preloaded, so its TLS block is allocated with the thread and an
 * access can neither allocate nor fail, not even in a signal handler or inside malloc. */
#define CW_TLS __thread __attribute__((tls_model("initial-exec")))

#define CW_CACHE_LINE   64
#define CW_ALIGNED_LINE __attribute__((aligned(CW_CACHE_LINE)))

/* glibc aligns the thread-local storage of objects that come late (dlopen, or beside an auditor) as
 * its own; an object that wants more is not loaded. */
#ifdef __x86_64__
#define CW_ALIGNED_TLS CW_ALIGNED_LINE
#else
#define CW_ALIGNED_TLS __attribute__((aligned(16)))
#endif

#define CW_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
