/* SPDX-License-Identifier: MIT */
/* The reader of reports in JSON: a small file does not cost what it could stand for. */
#include "cli/model/json_read.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_fixture.h"
#include "json_text_fixture.h"

TestSuite(json_bounds, .init = command_listen, .fini = json_forget);

/* `count` times the same, with commas between. */
static void repeat(FILE *out, const char *text, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", text);
}

/* A frame with inlined functions, a stack that names it at each depth, and sites of that stack. */
static struct cw_json_storage *read_report(unsigned inlined, unsigned sites)
{
    size_t size;
    char *text, *whole;
    FILE *out = open_memstream(&text, &size);

    fputs("{\"schema\":\"cuwarden-report/1\",\"frames\":[{\"id\":1,\"inlined\":[", out);
    repeat(out, "{\"func\":\"i\"}", inlined);
    fputs("]}],\"stacks\":[{\"id\":3,\"frames\":[", out);
    repeat(out, "1", 128);
    fputs("]}],\"sites\":[", out);
    repeat(out, "{\"stack\":3}", sites);
    fputs("]}", out);
    fclose(out);
    whole = json_complete(text);
    (void)json_read_text(whole, strlen(whole));
    free(whole);
    free(text);
    return json_storage;
}

Test(json_bounds, stacks_that_grow_to_gigabytes_are_refused)
{
    struct cw_json_storage *storage = read_report(2000, 3000); /* 60 KB, 25 GB of text */

    cr_assert_null(storage);
    cr_expect_eq(command_errors, 1);
    cr_expect_not_null(strstr(command_said, "its stacks are more than 67 MiB of text"), "%s",
                       command_said);
    storage = read_report(100, 100);
    cr_assert_not_null(storage, "%s", command_said);
}
