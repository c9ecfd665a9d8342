/* SPDX-License-Identifier: MIT */
/* PTX, as far as variables go: a line of a module that declares one, as in
 *
 *     .visible .const .align 4 .b8 words[1024];
 *
 * (PTX ISA, "Variable Declarations"). Those of other modules (.extern) and arrays whose size only
 * their initialiser tells are left out. Nothing of a kernel is read.
 */
#include "sim_ptx.h"
#include "sim.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK 4096 /* comments come before the version */

bool sim_ptx_is(const char *image)
{
    return (image[0] == '/' || image[0] == '.' || isspace((unsigned char)image[0])) &&
           memmem(image, strnlen(image, LOOK), ".version", 8) != NULL;
}

/* The next word of a declaration, at *at, which moves behind it. */
static bool take_word(const char **at, char word[SIM_MAX_NAME])
{
    int n = 0;

    if (sscanf(*at, " %127[^] \t\r\n[;=,]%n", word, &n) != 1)
        return false;
    *at += n;
    return true;
}

/* Bytes of one element by its type, ".b8" to ".f64"; 0 for other words. */
static size_t element_bytes(const char *word)
{
    unsigned bits;

    if (word[0] != '.' || !strchr("bsuf", word[1]) || sscanf(word + 2, "%u", &bits) != 1)
        return 0;
    return bits / 8;
}

/* "[2][512]" */
static size_t count(const char *at)
{
    size_t product = 1, n;
    int length;

    while (sscanf(at, " [%zu ]%n", &n, &length) == 1) {
        product *= n;
        at += length;
    }
    return product * (strncmp(at, "[]", 2) != 0);
}

/* Bytes of the variable that the line declares, 0 if it does not. */
static size_t declares(const char *line, char name[SIM_MAX_NAME])
{
    size_t bytes = 0, elements = 1;
    bool is_variable = false;

    while (take_word(&line, name) && name[0] == '.') {
        is_variable = is_variable || !strcmp(name, ".global") || !strcmp(name, ".const");
        if (!strcmp(name, ".extern") || !strcmp(name, ".entry") || !strcmp(name, ".func"))
            return 0;
        if (!strcmp(name, ".align") && !take_word(&line, name))
            return 0;
        if (name[0] == '.' && name[1] == 'v')
            elements = name[2] == '2' || name[2] == '4' ? (size_t)(name[2] - '0') : 1;
        bytes = element_bytes(name) ? element_bytes(name) : bytes;
    }
    return is_variable ? bytes * elements * count(line) : 0;
}

char *sim_ptx_variables(const char *ptx)
{
    char *text = NULL;
    size_t size = 0, bytes;
    char name[SIM_MAX_NAME];
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fputs("cusim\nopen\n", out);
    for (; *ptx; ptx += strcspn(ptx, "\n"), ptx += *ptx == '\n') {
        bytes = declares(ptx, name);
        if (bytes > 0)
            fprintf(out, "global %s %zu\n", name, bytes);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
