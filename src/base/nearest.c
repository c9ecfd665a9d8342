/* SPDX-License-Identifier: MIT */
/* Levenshtein's distance. See nearest.h. */
#include "base/nearest.h"

#define LEN_MAX 64 /* longer words are near none */

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

/* Ignores case; len at most LEN_MAX. */
static unsigned edit_distance(const char *word, size_t len, const char *known, size_t known_len)
{
    unsigned row[LEN_MAX + 1];

    for (unsigned i = 0; i <= len; i++)
        row[i] = i;
    for (size_t k = 0; k < known_len; k++) {
        unsigned diagonal = row[0]++;

        for (size_t i = 1; i <= len; i++) {
            unsigned replaced = diagonal + (upper(word[i - 1]) != upper(known[k]));

            diagonal = row[i];
            row[i] = min3(row[i] + 1, row[i - 1] + 1, replaced);
        }
    }
    return row[len];
}

void cw_nearest_offer(struct cw_nearest *nearest, const char *known, size_t known_len)
{
    unsigned distance;

    if (nearest->len > LEN_MAX)
        return;
    distance = edit_distance(nearest->word, nearest->len, known, known_len);
    if (distance >= nearest->least)
        return;
    nearest->least = distance;
    nearest->found = known;
    nearest->found_len = known_len;
}
