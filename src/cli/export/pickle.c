/* SPDX-License-Identifier: MIT */
/* Python's pickles. See pickle.h. */
#include "cli/export/pickle.h"
#include "cli/ui/message.h"

#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

enum opcode {
    PROTO = 0x80,
    LONG1 = 0x8a,
    NEWFALSE = 0x89,
    BININT = 'J',
    BINUNICODE = 'X',
    EMPTY_LIST = ']',
    EMPTY_DICT = '}',
    APPEND = 'a',
    SETITEM = 's',
    LONG_BINPUT = 'r',
    LONG_BINGET = 'j',
    STOP = '.',
};

static void put_op(struct cw_pickle *pickle, enum opcode opcode)
{
    fputc(opcode, pickle->out);
}

/* Little-endian. */
static void put_bytes(struct cw_pickle *pickle, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        fputc((int)(value >> (8 * i) & 0xff), pickle->out);
}

void cw_pickle_begin(struct cw_pickle *pickle, FILE *out)
{
    *pickle = (struct cw_pickle){.out = out};
    put_op(pickle, PROTO);
    put_bytes(pickle, 2, 1);
}

int cw_pickle_end(struct cw_pickle *pickle)
{
    int failed = pickle->failed || pickle->strings.failed;

    put_op(pickle, STOP);
    cw_strings_free(&pickle->strings);
    free(pickle->memo_of);
    pickle->memo_of = NULL;
    return failed || ferror(pickle->out) ? -1 : 0;
}

/* The fewest bytes that hold it with its sign. */
void cw_pickle_number(struct cw_pickle *pickle, uint64_t number)
{
    unsigned count = 1;

    if (number <= INT32_MAX) {
        put_op(pickle, BININT);
        put_bytes(pickle, number, 4);
        return;
    }
    while (count < 8 && number >> (8 * count - 1) != 0)
        count++;
    if (number >> 63 != 0)
        count = 9;
    put_op(pickle, LONG1);
    put_bytes(pickle, count, 1);
    put_bytes(pickle, number, count < 8 ? count : 8);
    if (count == 9)
        put_bytes(pickle, 0, 1);
}

void cw_pickle_false(struct cw_pickle *pickle)
{
    put_op(pickle, NEWFALSE);
}

static int make_room(struct cw_pickle *pickle)
{
    uint32_t cap = pickle->memo_cap ? pickle->memo_cap * 2 : 1024;
    uint32_t *grown;

    if (pickle->strings.count < pickle->memo_cap)
        return 0;
    grown = reallocarray(pickle->memo_of, cap, sizeof(*grown));
    if (!grown) {
        if (!pickle->failed)
            cw_cli_error("out of memory");
        pickle->failed = 1;
        return -1;
    }
    pickle->memo_of = grown;
    pickle->memo_cap = cap;
    return 0;
}

void cw_pickle_text(struct cw_pickle *pickle, const char *text)
{
    uint32_t before = pickle->strings.count;
    uint32_t number;

    if (make_room(pickle) != 0)
        return;
    number = cw_strings_add(&pickle->strings, text);
    if (pickle->strings.count == before) {
        if (!pickle->strings.failed)
            cw_pickle_recall(pickle, pickle->memo_of[number]);
        return;
    }
    put_op(pickle, BINUNICODE);
    put_bytes(pickle, strlen(text), 4);
    fputs(text, pickle->out);
    pickle->memo_of[number] = cw_pickle_remember(pickle);
}

void cw_pickle_list(struct cw_pickle *pickle)
{
    put_op(pickle, EMPTY_LIST);
}

void cw_pickle_dictionary(struct cw_pickle *pickle)
{
    put_op(pickle, EMPTY_DICT);
}

void cw_pickle_append(struct cw_pickle *pickle)
{
    put_op(pickle, APPEND);
}

void cw_pickle_set(struct cw_pickle *pickle)
{
    put_op(pickle, SETITEM);
}

uint32_t cw_pickle_remember(struct cw_pickle *pickle)
{
    put_op(pickle, LONG_BINPUT);
    put_bytes(pickle, pickle->memos, 4);
    return pickle->memos++;
}

void cw_pickle_recall(struct cw_pickle *pickle, uint32_t number)
{
    put_op(pickle, LONG_BINGET);
    put_bytes(pickle, number, 4);
}
