/* SPDX-License-Identifier: MIT */
/* What check/targets.test compiles in several ways, to files with symbols and debug information. */
static inline __attribute__((always_inline)) int innermost(volatile int *value)
{
    *value += 17;
    return *value * 3;
}

static inline __attribute__((always_inline)) int inlined(volatile int *value)
{
    return innermost(value) + *value;
}

int seed(volatile int *value);
int seed(volatile int *value)
{
    return inlined(value) + inlined(value + 1);
}

static __attribute__((used, noinline)) int unexported(volatile int *value)
{
    return seed(value) + 1;
}
