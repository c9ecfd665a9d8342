/* SPDX-License-Identifier: MIT */
/* What the files of the victim drv_script share. drv_script.c says what the program is. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "victim.h"

#include <string.h>

#define ARGS 6

struct block {
    CUdeviceptr at;
    size_t bytes;
    unsigned long long id;
};

extern struct block blocks[128];

/* The arguments of a command; those that are not there are "" and 0. */
struct args {
    const char *word;
    char text[ARGS][400];
};

struct command {
    const char *name; /* NULL: the table ends here */
    int (*run)(const struct args *args);
    int silent; /* says for itself, if at all */
};

/* Commands of one call are rows of a list ROW(WORD, FUNCTION, CALL), from which their functions and
 * their rows in the table are made. Those that allocate note the size, args->text[1], in the block
 * args->text[0]. */
#define DEFINE_CALL(word, function, call)                                                          \
    static NOINLINE int function(const struct args *args)                                          \
    {                                                                                              \
        (void)args;                                                                                \
        return (int)(call);                                                                        \
    }
#define DEFINE_ALLOC(word, function, call)                                                         \
    static NOINLINE int function(const struct args *args)                                          \
    {                                                                                              \
        struct block *block = block_at(args, 0);                                                   \
                                                                                                   \
        block->bytes = size_at(args, 1);                                                           \
        return (int)(call);                                                                        \
    }
#define ENTRY(word, function, call) {word, function, 0},

extern const struct command memory_commands[];
extern const struct command work_commands[];

static inline size_t size_at(const struct args *args, int i)
{
    char *end;
    size_t value = strtoull(args->text[i], &end, 0);

    return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static inline struct block *block_at(const struct args *args, int i)
{
    return &blocks[args->text[i][0] & 127];
}

#endif
