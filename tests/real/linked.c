/* SPDX-License-Identifier: MIT */
/* What the dynamic linker binds to each of the driver's functions: FUNCTION(name) in functions.inc.
 */
#include "words.h"

#define FUNCTION(name) extern void name(void);
#include "functions.inc"
#undef FUNCTION

static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {
#define FUNCTION(name) {#name, name},
#include "functions.inc"
};

int main(void)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        printf("linked %s 0 0: %s -\n", functions[i].name,
               words_of((const void *)functions[i].function));
    return 0;
}
