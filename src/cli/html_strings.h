/* SPDX-License-Identifier: MIT */
/*
 * The texts of an HTML report, each once, by number in the order of their first use.
 *
 * Owns its arrays; the texts are the caller's and must live as long. One caller at a time.
 */
#ifndef CW_CLI_HTML_STRINGS_H
#define CW_CLI_HTML_STRINGS_H

#include <stdint.h>
#include <stdio.h>

struct cw_html_strings {
    const char **text; /* by number */
    uint32_t count;
    uint32_t *slot; /* open addressing: number + 1, 0 is empty */
    uint32_t slots; /* a power of two, at least twice `count` */
    int failed;     /* no memory; told */
};

/* Its number; 0 with `failed` set after a message without memory. */
uint32_t cw_html_strings_add(struct cw_html_strings *self, const char *text);
void cw_html_strings_free(struct cw_html_strings *self);

/*
 * The text as a string of JSON that may stand inside <script>: no '<' is left that could close the
 * element or open a comment.
 */
void cw_html_put_text(FILE *out, const char *text);

#endif
