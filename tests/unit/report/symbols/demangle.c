/* SPDX-License-Identifier: MIT */
/* Which names are given to the C++ runtime's demangler, which would read any other as a type. */
#include "report/symbols/demangle.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

static unsigned asked;

/* Like __cxa_demangle, it knows types and names. */
static char *demangler(const char *mangled, char *buf, size_t *len, int *status)
{
    (void)buf;
    (void)len;
    asked++;
    *status = strcmp(mangled, "_Z4growi") == 0 || strcmp(mangled, "i") == 0 ? 0 : -2;
    return *status == 0 ? strdup(mangled[0] == 'i' ? "int" : "grow(int)") : NULL;
}

static const char *demangle(const char *name)
{
    union {
        char *(*function)(const char *, char *, size_t *, int *);
        void *pointer;
    } same = {.function = demangler};

    return cw_demangle(name, same.pointer);
}

Test(demangle, only_what_says_that_it_is_mangled)
{
    static const char *const others[] = {"i", "f", "Pc", "", "_", "_Rnv", "main", "Z4growi"};

    cr_expect_str_eq(demangle("_Z4growi"), "grow(int)");
    cr_expect_str_eq(demangle("_Z4growi"), "grow(int)");
    cr_expect_null(demangle("_Z"));
    cr_expect_eq(asked, 3);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        cr_expect_null(demangle(others[i]), "%s", others[i]);
    cr_expect_eq(asked, 3);
}
