/* SPDX-License-Identifier: MIT */
/* What is read from a command's --help: flags, their values, operands. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/ui/help_text.h"

static struct cw_help help;

static void parse(const char *text)
{
    char *copy = strdup(text);

    cr_assert_eq(cw_help_parse(&help, copy), 0);
    free(copy);
}

static void fini(void)
{
    cw_help_free(&help);
}

static const struct cw_help_flag *flag(const char *name)
{
    size_t i = 0;

    while (i < help.flags && strcmp(help.flag[i].name, name) != 0)
        i++;
    cr_assert_lt(i, help.flags, "no flag %s", name);
    return &help.flag[i];
}

TestSuite(help_text, .fini = fini);

Test(help_text, flags_with_and_without_values)
{
    parse("Usage: cuwarden x [OPTION]... FILE\n"
          "Do it - with care.\n"
          "\n"
          "  -o, --output=FILE  write to FILE\n"
          "  --debug-dir=DIR    look in DIR too (more than\n"
          "                     one may be given)\n"
          "  --suggest-suppressions\n"
          "                     write rules\n"
          "  --device=N         on this one\n"
          "  -h, --help         display this help and exit\n");
    cr_assert_eq(help.flags, 5);
    cr_assert_eq(flag("output")->letter, 'o');
    cr_assert_eq(flag("output")->value, CW_HELP_VALUE_FILE);
    cr_assert_str_eq(flag("output")->help, "write to FILE");
    cr_assert_eq(flag("debug-dir")->value, CW_HELP_VALUE_DIRECTORY);
    cr_assert_str_eq(flag("debug-dir")->help, "look in DIR too (more than one may be given)");
    cr_assert_eq(flag("suggest-suppressions")->value, CW_HELP_VALUE_NONE);
    cr_assert_str_eq(flag("suggest-suppressions")->help, "write rules");
    cr_assert_eq(flag("device")->value, CW_HELP_VALUE_OTHER);
    cr_assert_str_eq(flag("device")->words, "");
    cr_assert_eq(flag("help")->letter, 'h');
}

Test(help_text, words_only_where_the_text_is_a_list)
{
    parse("Usage: cuwarden x\n"
          "  --a=FORM  text (default) or json\n"
          "  --b=FORM  describe the options instead: text, man, or readme\n"
          "  --c=WORD  Pool and account: with a colon:\n"
          "              pool, track, off\n"
          "  --d=N     one or the other thing\n"
          "  --e=WORD  Where it lies: auto, off, or DIRECTORY\n"
          "  --f=WORD  only: one\n"
          "  --g=1..9  from one, to nine\n"
          "  --h       text or json\n");
    cr_assert_str_eq(flag("a")->words, "text json");
    cr_assert_str_eq(flag("b")->words, "text man readme");
    cr_assert_str_eq(flag("c")->words, "pool track off");
    cr_assert_str_eq(flag("d")->words, "");
    cr_assert_str_eq(flag("e")->words, "");
    cr_assert_str_eq(flag("f")->words, "");
    cr_assert_str_eq(flag("g")->words, "");
    cr_assert_str_eq(flag("h")->words, "");
}

Test(help_text, operands_of_all_usage_lines)
{
    parse("Usage: cuwarden x [--preload=FILE] [--] PROGRAM [ARGUMENT]...\n"
          "  or:  cuwarden x [OPTION]... PID\n");
    cr_assert(help.operands.program);
    cr_assert(help.operands.pid);
    cr_assert_not(help.operands.file);
    cr_assert_str_eq(help.operands.words, "");
    cw_help_free(&help);
    parse("Usage: cuwarden x bash|zsh\n");
    cr_assert_str_eq(help.operands.words, "bash zsh");
    cw_help_free(&help);
    parse("Usage: cuwarden x PID|FILE REQUEST\n"
          "\n"
          "Requests:\n"
          "  trim            give it back\n"
          "  limit=SIZE      what it may hold\n"
          "\n"
          "  --all           of trim: everything\n");
    cr_assert(help.operands.pid && help.operands.file);
    cr_assert_str_eq(help.operands.words, "trim limit=");
    cr_assert_eq(help.flags, 1);
}

Test(help_text, odd_texts_are_read_too)
{
    static const char *const odd[] = {"",
                                      "\n\n",
                                      "  -",
                                      "  --",
                                      "  -x",
                                      "Usage: ",
                                      "Usage: cuwarden ",
                                      "Requests:\n  ",
                                      "            more of nothing\n"};

    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        parse(odd[i]);
        cr_assert_leq(help.flags, 1);
        cw_help_free(&help);
    }
    parse("  --only  this\n");
    cr_assert_str_eq(help.operands.words, "");
}
