/* SPDX-License-Identifier: MIT */
/*
 * Loaded into a program, whose floating point it makes that of `gfortran -ffpe-trap=...,inexact`,
 * with another rounding: TRAPS=on. TRAPS=off leaves it without traps, so that flags can be set. In
 * both cases the end is told if any of it is not as it was.
 */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int traps;

static __attribute__((constructor)) void begin(void)
{
    const char *wanted = getenv("TRAPS");

    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    if (wanted != NULL && strcmp(wanted, "on") == 0)
        feenableexcept(FE_ALL_EXCEPT);
    traps = fegetexcept();
}

static __attribute__((destructor)) void end(void)
{
    static const char text[] = "the floating point is not as it was\n";

    if (fegetround() != FE_UPWARD || fegetexcept() != traps || fetestexcept(FE_ALL_EXCEPT) != 0)
        (void)!write(2, text, sizeof(text) - 1);
}
