/* SPDX-License-Identifier: MIT */
/* Words that were probably meant. */
#include "base/nearest.h"

#include <criterion/criterion.h>

#include <string.h>

Test(nearest, finds_what_was_probably_meant)
{
    static const char *const known[] = {"report", "run", "replay", "top", "metrics"};
    static const struct {
        const char *word, *meant; /* NULL: nothing is near */
    } rows[] = {{"rpeort", "report"},
                {"REPROT", "report"},
                {"rn", "run"},
                {"metric", "metrics"},
                {"replya", "replay"},
                {"xyz", NULL},
                {"frobnicate", NULL},
                {"a_word_that_is_longer_than_all_that_anybody_would_have_meant_to_type", NULL}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct cw_nearest nearest = cw_nearest_to(rows[i].word, strlen(rows[i].word));

        for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
            cw_nearest_offer(&nearest, known[k], strlen(known[k]));
        if (!rows[i].meant)
            cr_expect_null(nearest.found, "'%s' is near '%s'", rows[i].word, nearest.found);
        else
            cr_expect(nearest.found && strcmp(nearest.found, rows[i].meant) == 0,
                      "'%s' is not near '%s'", rows[i].word, rows[i].meant);
    }
}
