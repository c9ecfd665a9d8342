/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden options`: every option, its effective value and where it came from, and what the
 * library would complain of; with --format the sections that scripts/update-docs pastes.
 */
#include "cli/cli.h"

#include <getopt.h>
#include <unistd.h>

#include "base/options/options.h"

static int print_help(void)
{
    printf("Usage: cuwarden options [--format=FORM]\n"
           "Show every option, its effective value and where it came from. What is wrong in\n"
           "the environment goes to stderr.\n"
           "\n"
           "  --format=FORM  describe the options instead: text, man, or readme\n"
           "  -h, --help     display this help and exit\n");
    return CW_EXIT_OK;
}

static void print_complaints(const struct cw_option_complaints *complaints)
{
    unsigned kept = complaints->count;

    if (kept > CW_OPTION_COMPLAINTS)
        kept = CW_OPTION_COMPLAINTS;
    for (unsigned i = 0; i < kept; i++)
        cw_cli_warn("%s", complaints->line[i]);
    if (complaints->count > kept)
        cw_cli_warn("and %u more of this kind", complaints->count - kept);
}

static void name_origin(const struct cw_options *options, size_t index, char *buf, size_t cap)
{
    switch ((enum cw_option_origin)options->origin[index]) {
    case CW_ORIGIN_DEFAULT:
        snprintf(buf, cap, "default");
        return;
    case CW_ORIGIN_PRESET:
        snprintf(buf, cap, "preset %s", cw_options_preset_name(options->preset));
        return;
    case CW_ORIGIN_ENVIRONMENT:
        snprintf(buf, cap, "environment");
        return;
    }
}

static int print_table(void)
{
    static struct cw_option_complaints complaints;
    struct cw_options options;

    cw_options_parse(environ, 1, &options, &complaints);
    printf("%-24s %-18s %s\n", "VARIABLE", "ORIGIN", "VALUE");
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        char value[CW_OPTION_VALUE_MAX];
        char origin[32];

        cw_options_print_value(&options, i, value, sizeof(value));
        name_origin(&options, i, origin, sizeof(origin));
        printf("%s%-*s %-18s %s\n", CW_OPTION_PREFIX, 24 - (int)sizeof(CW_OPTION_PREFIX) + 1,
               cw_options_row(i)->name, origin, *value ? value : "(unset)");
    }
    print_complaints(&complaints);
    return CW_EXIT_OK;
}

static int print_form(const char *form)
{
    if (cw_docs_print(stdout, form) == 0)
        return CW_EXIT_OK;
    cw_cli_error("--format: '%s' is not one of text, man, readme", form);
    return cw_cli_usage_error();
}

int cw_cmd_options(int argc, char **argv)
{
    static const struct option flags[] = {
        {"format", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *form = NULL;
    int flag;

    while ((flag = getopt_long(argc, argv, "h", flags, NULL)) != -1) {
        if (flag == 'h')
            return print_help();
        if (flag != 'f')
            return cw_cli_usage_error();
        form = optarg;
    }
    if (optind < argc) {
        cw_cli_error("extra operand '%s'", argv[optind]);
        return cw_cli_usage_error();
    }
    return form ? print_form(form) : print_table();
}
