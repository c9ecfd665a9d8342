/* SPDX-License-Identifier: MIT */
/*
 * Floating point in a thread of the program, which may trap what it likes (feenableexcept, gfortran
 * -ffpe-trap), round as it likes, and look at the flags afterwards. Between hold and release
 * nothing traps and numbers are rounded to nearest; then all is as it was, the flags too.
 *
 * The compiler does not order arithmetic by these calls, memory only: what is computed in between
 * must be read from memory and be written there, as a function that is not inlined does.
 */
#ifndef CW_BASE_FLOAT_ENV_H
#define CW_BASE_FLOAT_ENV_H

#include <stdint.h>

struct cw_float_env {
    uint64_t control, flags; /* x86-64: both in control, MXCSR; no long double is used here */
};

#if defined(__x86_64__)

#define CW_FLOAT_CALM UINT32_C(0x1f80) /* at a process's start (System V ABI, section 3.2.1) */

static inline struct cw_float_env cw_float_hold(void)
{
    uint32_t before, calm = CW_FLOAT_CALM;

    __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=m"(before) : "m"(calm) : "memory");
    return (struct cw_float_env){.control = before};
}

static inline void cw_float_release(const struct cw_float_env *env)
{
    uint32_t before = (uint32_t)env->control;

    __asm__ volatile("ldmxcsr %0" : : "m"(before) : "memory");
}

#elif defined(__aarch64__)

static inline struct cw_float_env cw_float_hold(void)
{
    struct cw_float_env env;

    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr\n\tmsr fpcr, xzr"
                     : "=&r"(env.control), "=r"(env.flags)
                     :
                     : "memory");
    return env;
}

static inline void cw_float_release(const struct cw_float_env *env)
{
    __asm__ volatile("msr fpsr, %1\n\tmsr fpcr, %0"
                     :
                     : "r"(env->control), "r"(env->flags)
                     : "memory");
}

#endif

/* part / of; 0 if `of` is 0. */
static inline double cw_float_ratio(uint64_t part, uint64_t of)
{
    volatile uint64_t above = part, below = of;
    struct cw_float_env env = cw_float_hold();
    volatile double ratio = of != 0 ? (double)above / (double)below : 0;

    cw_float_release(&env);
    return ratio;
}

/* value * by, truncated; 0 if below 1 or NaN, UINT64_MAX if too large. */
static inline uint64_t cw_float_times(double value, uint64_t by)
{
    volatile double one = value;
    volatile uint64_t other = by;
    struct cw_float_env env = cw_float_hold();
    double product = one * (double)other;
    volatile uint64_t whole = !(product >= 1)     ? 0
                              : product >= 0x1p64 ? UINT64_MAX
                                                  : (uint64_t)product;

    cw_float_release(&env);
    return whole;
}

#endif
