/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden options`: every option, its effective value and where it comes from, and the library's
 * complaints; with --format, the sections that scripts/update-docs pastes.
 */
#include "cli/ui/flags.h"
#include "cli/ui/docs.h"
#include "cli/ui/json_docs.h"

#include <string.h>
#include <unistd.h>
#include <stdio.h>

#include "base/printable.h"
#include "base/options/options.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

const struct cw_command_line *cw_line_options(void)
{
    static const struct cw_flag flags[] = {
        {.id = 0x100,
         .name = "format",
         .value = "FORM",
         .words = "text man readme synopsis flags fields schema caches",
         .help = "describe the options (text; man and readme: as in cuwarden(1) and in "
                 "docs/options.md), the command (synopsis, flags), the report in JSON (fields, "
                 "schema) or the caches of frameworks (caches) instead"},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]...",
        .about = "Show every option, its effective value and where it comes from. Errors in the "
                 "environment are reported on stderr.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL}},
    };

    return &line;
}

static void print_complaints(const struct cw_option_complaints *complaints)
{
    unsigned kept = complaints->count;

    if (kept > CW_OPTION_COMPLAINTS)
        kept = CW_OPTION_COMPLAINTS;
    for (unsigned i = 0; i < kept; i++)
        cw_cli_warn("%s", complaints->line[i]);
    if (complaints->count > kept)
        cw_cli_warn("and %u more", complaints->count - kept);
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

static const char *effect_of(const struct cw_options *options, enum cw_bound bound)
{
    if (cw_bound_kind(bound)->force == CW_BOUND_SOFT)
        return "soft, a cause of pressure";
    if (options->limit.fallback.kind != CW_SIZE_PLATFORM)
        return "a cause of pressure only";
    return bound == CW_BOUND_MPS ? "refuses where MPS serves the process" : "refuses";
}

/* Those that are set, in the form of our own sizes. */
static void print_platform(const struct cw_options *options)
{
    for (unsigned i = 0; i < CW_BOUND_VARIABLES; i++) {
        char value[CW_OPTION_VALUE_MAX];
        struct cw_out out;

        if (!cw_platform_limits_has(&options->platform, i))
            continue;
        cw_out_init(&out, -1, value, sizeof(value) - 1);
        cw_sizes_print(&options->platform.of[i], &out);
        value[out.len] = '\0';
        printf("%-24s %-18s %s (%s)\n", cw_bound_kind((enum cw_bound)i)->name, "platform", value,
               effect_of(options, (enum cw_bound)i));
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
               cw_options_row(i)->name, origin,
               *value ? cw_printable_clean_string(value) : "(unset)");
    }
    print_platform(&options);
    print_complaints(&complaints);
    return CW_EXIT_OK;
}

static int print_form(const char *form)
{
    size_t count;
    const struct cw_command *command = cw_cli_commands(&count);
    int is_synopsis = strcmp(form, "synopsis") == 0;

    if (strcmp(form, "fields") == 0)
        return cw_json_docs_print_fields(stdout) == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
    if (strcmp(form, "schema") == 0)
        return cw_json_docs_print_schema(stdout) == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
    if (strcmp(form, "caches") == 0) {
        cw_docs_print_caches(stdout);
        return CW_EXIT_OK;
    }
    if (!is_synopsis && strcmp(form, "flags") != 0) {
        cw_docs_print(stdout, form);
        return CW_EXIT_OK;
    }
    for (size_t i = 0; i < count; i++)
        (is_synopsis ? cw_flags_print_synopsis : cw_flags_print_man)(stdout, command[i].name,
                                                                     command[i].line());
    return CW_EXIT_OK;
}

static int set_form(void *form, int flag, char *value)
{
    (void)flag;
    *(const char **)form = value;
    return 0;
}

int cw_cmd_options(int argc, char **argv)
{
    const char *form = NULL;
    int status = cw_flags_parse(cw_line_options(), argc, argv, set_form, &form);

    if (status >= 0)
        return status;
    return form ? print_form(form) : print_table();
}
