/* SPDX-License-Identifier: MIT */
/* Command-line tables: parsing, rejection, help and completion. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <getopt.h>
#include <string.h>
#include <stdio.h>

#include "cli/ui/flags.h"
#include "base/compiler.h"
#include "cli/ui/exit_status.h"

enum { FLAG_FORM = 0x100, FLAG_DIR, FLAG_ALL };

static const struct cw_flag_word forms[] = {
    {"text", "for people"},
    {"json", "for programs"},
    {NULL, NULL},
};
static const struct cw_flag_word requests[] = {
    {"trim", "give memory back"},
    {"limit=SIZE", "what it may hold"},
    {NULL, NULL},
};
static const struct cw_flag first[] = {
    {.id = FLAG_FORM, .name = "format", .value = "FORM", .help = "one of", .each = forms},
    {.id = 'o', .name = "output", .value = "FILE", .help = "write to FILE"},
};
static const struct cw_flag second[] = {
    {.id = FLAG_DIR, .name = "a-rather-long-directory", .value = "DIR", .help = "look in DIR too"},
    {.id = FLAG_ALL, .name = "color", .value = "WHEN", .words = "*auto always never", .help = "%w"},
};
static const struct cw_command_line line = {
    .usage = "[OPTION]... PID|FILE REQUEST\n[OPTION]... FILE",
    .about = "Do it.",
    .group = {{first, CW_ARRAY_LEN(first), NULL}, {second, CW_ARRAY_LEN(second), "More:"}},
    .requests = requests,
    .least = 1,
    .most = 2,
    .missing = "file",
    .notes = "First.\n\nSecond.",
};

static char told[256];

static int tell(void *request, int id, char *value)
{
    size_t len = strlen(told);

    (void)request;
    snprintf(told + len, sizeof(told) - len, "%x:%s ", (unsigned)id, value ? value : "-");
    return value && strcmp(value, "bad") == 0 ? -1 : 0;
}

static int parse(char *a, char *b, char *c)
{
    char name[] = "cuwarden x";
    char *argv[] = {name, a, b, c, NULL};
    int argc = 1;

    while (argv[argc])
        argc++;
    optind = 0;
    return cw_flags_parse(&line, argc, argv, tell, NULL);
}

Test(flags, tells_each_flag_and_stops_at_the_operands)
{
    char a[] = "--format=json", b[] = "-oout", c[] = "file";

    cr_assert_eq(parse(a, b, c), -1);
    cr_assert_str_eq(told, "100:json 6f:out ");
    cr_assert_eq(optind, 3);
}

Test(flags, a_value_that_is_no_word_of_the_row_never_reaches_the_command,
     .init = cr_redirect_stderr)
{
    char a[] = "--format=xml", c[] = "--color=red";

    cr_assert_eq(parse(a, NULL, NULL), CW_EXIT_USAGE);
    cr_assert_eq(parse(c, NULL, NULL), CW_EXIT_USAGE);
    cr_assert_str_eq(told, "");
    fflush(stderr);
    cr_assert_stderr_eq_str("cuwarden: --format: 'xml' is not one of text, json\n"
                            "cuwarden: --color: 'red' is not one of auto, always, never\n");
}

Test(flags, what_the_command_refuses_ends_the_parse, .init = cr_redirect_stderr)
{
    char a[] = "-obad", b[] = "-ogood";

    cr_assert_eq(parse(a, b, NULL), CW_EXIT_USAGE);
    cr_assert_str_eq(told, "6f:bad ");
}

Test(flags, operands_are_counted, .init = cr_redirect_stderr)
{
    char a[] = "1", b[] = "2", c[] = "3";

    cr_assert_eq(parse(NULL, NULL, NULL), CW_EXIT_USAGE);
    cr_assert_eq(parse(a, b, NULL), -1);
    cr_assert_eq(parse(a, b, c), CW_EXIT_USAGE);
    fflush(stderr);
    cr_assert_stderr_eq_str("cuwarden: missing file\n"
                            "Try 'cuwarden --help' for more information.\n"
                            "cuwarden: extra operand '3'\n"
                            "Try 'cuwarden --help' for more information.\n");
}

Test(flags, help_is_one_column)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    cw_flags_print_help(to, "cuwarden x", &line);
    fclose(to);
    cr_assert_str_eq(text, "Usage: cuwarden x [OPTION]... PID|FILE REQUEST\n"
                           "  or:  cuwarden x [OPTION]... FILE\n"
                           "Do it.\n"
                           "\n"
                           "Requests:\n"
                           "  trim               give memory back\n"
                           "  limit=SIZE         what it may hold\n"
                           "\n"
                           "  --format=FORM      one of\n"
                           "    text             for people\n"
                           "    json             for programs\n"
                           "  -o, --output=FILE  write to FILE\n"
                           "\n"
                           "More:\n"
                           "  --a-rather-long-directory=DIR\n"
                           "                     look in DIR too\n"
                           "  --color=WHEN       auto (default), always or never\n"
                           "\n"
                           "  -h, --help         display this help and exit\n"
                           "\n"
                           "First.\n"
                           "\n"
                           "Second.\n");
    free(text);
}

Test(flags, completions_know_values_and_requests)
{
    char text[128];

    cr_assert_str_eq(cw_flag_values(&first[0], text, sizeof(text)), "text json");
    cr_assert_str_eq(cw_flag_values(&first[1], text, sizeof(text)), "");
    cr_assert_str_eq(cw_flag_values(&second[1], text, sizeof(text)), "auto always never");
    cr_assert_str_eq(cw_flags_operand_words(&line, text, sizeof(text)), "trim limit=");
    cr_assert_eq(cw_flag_letter(&first[1]), 'o');
    cr_assert_eq(cw_flag_letter(&first[0]), '\0');
    cr_assert_str_eq(cw_flags_at(&line, 4)->name, "help");
    cr_assert_null(cw_flags_at(&line, 5));
}

Test(flags, the_manual_has_every_flag)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    cw_flags_print_synopsis(to, "x", &line);
    cw_flags_print_man(to, "x", &line);
    fclose(to);
    cr_assert_not_null(strstr(text, ".Nm\n.Cm x\n.Op Fl Fl format Ns = Ns Ar form\n"
                                    ".Op Fl Fl output Ns = Ns Ar file\n"));
    cr_assert_not_null(strstr(text, "\n.Ar pid | Ar file Ar request\n"));
    cr_assert_not_null(strstr(text, ".It Fl o , Fl Fl output Ns = Ns Ar file\nWrite to FILE.\n"));
    cr_assert_not_null(strstr(text, ".It Cm json\nFor programs.\n"));
    free(text);
}
