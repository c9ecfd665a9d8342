/* SPDX-License-Identifier: MIT */
/* Pickles, byte by byte: what has a sign stays positive, and what was written once is recalled. */
#include "cli/export/pickle.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#include "base/compiler.h"
#include "command_fixture.h"

static char *bytes;
static size_t len;

/* Behind the protocol, without the end. */
static void expect_bytes(const char *wanted, size_t wanted_len)
{
    cr_assert_eq(len, wanted_len + 3, "%zu bytes", len);
    cr_expect_arr_eq(bytes, "\x80\x02", 2);
    cr_expect_arr_eq(bytes + 2, wanted, wanted_len);
    cr_expect_eq(bytes[len - 1], '.');
    free(bytes);
}

static void begin(struct cw_pickle *pickle)
{
    cw_pickle_begin(pickle, open_memstream(&bytes, &len));
}

static void end(struct cw_pickle *pickle)
{
    FILE *out = pickle->out;

    cr_expect_eq(cw_pickle_end(pickle), 0);
    fclose(out);
}

TestSuite(pickle, .init = command_listen);

Test(pickle, numbers_are_positive_whatever_their_highest_bit)
{
    static const struct {
        uint64_t number;
        const char *wanted;
        size_t len;
    } rows[] = {
        {0, "J\0\0\0\0", 5},
        {0x7fffffff, "J\xff\xff\xff\x7f", 5},
        {0x80000000, "\x8a\x05\0\0\0\x80\0", 7},
        {0x7fffffffffff, "\x8a\x06\xff\xff\xff\xff\xff\x7f", 8},
        {0x800000000000, "\x8a\x07\0\0\0\0\0\x80\0", 9},
        {UINT64_C(1) << 63, "\x8a\x09\0\0\0\0\0\0\0\x80\0", 11},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_pickle pickle;

        begin(&pickle);
        cw_pickle_number(&pickle, rows[i].number);
        end(&pickle);
        expect_bytes(rows[i].wanted, rows[i].len);
    }
}

Test(pickle, a_string_is_written_once)
{
    static const char wanted[] = "]X\2\0\0\0abr\0\0\0\0aj\0\0\0\0a";
    struct cw_pickle pickle;

    begin(&pickle);
    cw_pickle_list(&pickle);
    for (unsigned i = 0; i < 2; i++) {
        cw_pickle_text(&pickle, "ab");
        cw_pickle_append(&pickle);
    }
    end(&pickle);
    expect_bytes(wanted, sizeof(wanted) - 1);
    cr_expect_eq(command_errors, 0);
}
