/* SPDX-License-Identifier: MIT */
/* Calls cuInit through a weak reference, as programs do that can go without a driver. Linked
 * without one: see errors.test. */
#include <stdio.h>

int cuInit(unsigned flags) __attribute__((weak));

int main(void)
{
    if (cuInit == NULL) {
        puts("no driver");
        return 2;
    }
    printf("cuInit returned %d\n", cuInit(0));
    return 0;
}
