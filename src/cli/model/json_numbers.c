/* SPDX-License-Identifier: MIT */
/* Record numbers, in pages allocated on demand. See json_numbers.h. */
#include "cli/model/json_numbers.h"

#include <stdlib.h>

#include "base/compiler.h"

#define PAGE 4096u

int cw_json_numbers_insert(struct cw_json_numbers *numbers, uint32_t number, uint32_t place)
{
    uint32_t **page;

    if (number >= CW_JSON_NUMBERS)
        return -1;
    page = &numbers->page[number / PAGE];
    if (!*page)
        *page = calloc(PAGE, sizeof(**page));
    if (!*page)
        return -1;
    (*page)[number % PAGE] = place + 1;
    return 0;
}

uint32_t cw_json_numbers_find(const struct cw_json_numbers *numbers, uint32_t number)
{
    const uint32_t *page = number < CW_JSON_NUMBERS ? numbers->page[number / PAGE] : NULL;

    return page && page[number % PAGE] != 0 ? page[number % PAGE] - 1 : CW_JSON_NO_PLACE;
}

void cw_json_numbers_free(struct cw_json_numbers *numbers)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(numbers->page); i++)
        free(numbers->page[i]);
}
