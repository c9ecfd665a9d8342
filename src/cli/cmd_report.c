/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden report`: reports on a running, dead or finished process, from its live file or its
 * report in JSON.
 *
 * A row of `forms` writes each form from the model (model.h); text and JSON use the code with which
 * the library writes its final report.
 */
#include "cli/ui/flags.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options/options.h"
#include "cli/ui/destination.h"
#include "cli/export/form.h"
#include "cli/model/selection.h"
#include "report/report.h"
#include "report/text/report_text.h"
#include "cli/run/verdict.h"
#include "cli/ui/screen.h"
#include "cli/input/lines.h"
#include "cli/ui/color.h"
#include "cli/input/source_file.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/input/live_files.h"
#include "cli/ui/message.h"

struct form {
    const char *name;
    cw_form_fn write;
    int is_text;     /* for people */
    int has_heading; /* shows the file's name if there are several */
    int holds_several;
    const char *help;
};

enum {
    FLAG_FORMAT = 0x100,
    FLAG_COLOR,
    FLAG_NO_PAGER,
    FLAG_SUGGEST,
    FLAG_SECTIONS,
    FLAG_FRAMES,
    FLAG_BRIEF,
    FLAG_CALLS
};

#define NAME_OF(id, name, help) " " name
#define SECTIONS_HELP                                                                              \
    "show only these sections of the text, of" CW_TEXT_SECTIONS(NAME_OF) " (with commas)"

#define NOTES                                                                                      \
    "PID is looked for in the directory that CUWARDEN_LIVE names, and in the directories "         \
    "cuwarden-UID under /dev/shm and TMPDIR. A file whose name is a number is ./NUMBER.\n\n"       \
    "Exit status is 0 if every report was written, 1 if not, 2 for a usage error."
#define WITHOUT_LINES "\n\nThis command was built without libdw and has no source lines."

static const struct form forms[] = {
    {"text", cw_form_text, 1, 1, 1, "for people (default)"},
    {"json", cw_form_json, 0, 0, 1, "for programs, and as input for later reports"},
    {"html", cw_form_html, 0, 0, 0, "a page for a browser, in one file"},
    {"collapsed", cw_form_collapsed, 0, 0, 1, "stacks for flamegraph.pl, inferno, speedscope"},
    {"pprof", cw_form_pprof, 0, 0, 0, "for pprof, as in: go tool pprof -http=: FILE"},
    {"perfetto", cw_form_perfetto, 0, 0, 0,
     "use over time, in Chrome's JSON: FILE.json for ui.perfetto.dev"},
    {"heaptrack", cw_form_heaptrack, 0, 0, 0, "for heaptrack_gui and heaptrack_print"},
    {"torch", cw_form_torch, 0, 0, 0, "blocks by address, for pytorch.org/memory_viz"},
};
static const struct form suggestions = {"suggestions", cw_form_suggestions, 0, 1, 1, ""};

struct request {
    const struct form *form;
    struct cw_options options; /* from the environment: suppressions, and the age of old blocks */
    unsigned sections;         /* of the text */
    int has_form, suggests, is_brief, has_frames, by_call;
    int has_selection; /* a flag of select.h was given */
    struct cw_selection selection;
    struct cw_lines lines;
    struct cw_destination destination;
    unsigned written; /* reports so far */
};

#define FORMS CW_ARRAY_LEN(forms)

const struct cw_command_line *cw_line_report(void)
{
    static struct cw_flag_word words[FORMS + 1];
    static const struct cw_flag flags[] = {
        {.id = FLAG_FORMAT,
         .name = "format",
         .value = "FORM",
         .help = "form of the report",
         .each = words},
        {.id = 'o',
         .name = "output",
         .value = "FILE",
         .help = "write to FILE instead of standard output; a name that ends in .json, .html, "
                 ".pb.gz (pprof) or .folded (collapsed) chooses the form unless --format does"},
        {.id = FLAG_CALLS,
         .name = "call-addresses",
         .help =
             "with --format=collapsed, a frame for each call, with its line or address, not one "
             "for each function"},
        {.id = FLAG_COLOR,
         .name = "color",
         .value = "WHEN",
         .words = "*auto always never",
         .help = "%w"},
        {.id = FLAG_NO_PAGER,
         .name = "no-pager",
         .help = "do not use PAGER for text on a terminal"},
        {.id = FLAG_BRIEF,
         .name = "brief",
         .help = "print what is wrong and who held the memory, in at most eight lines"},
        {.id = FLAG_FRAMES,
         .name = "frames",
         .value = "WHICH",
         .words = "fold all",
         .help = "frames in the text's call stacks: %w; fold makes a line of those of frameworks "
                 "(default: CUWARDEN_FRAMES)"},
        {.id = FLAG_SECTIONS, .name = "sections", .value = "LIST", .help = SECTIONS_HELP},
        {.id = FLAG_SUGGEST,
         .name = "suggest-suppressions",
         .help = "instead of the report, write rules for CUWARDEN_SUPPRESSIONS that match what "
                 "leaked"},
    };
    static struct cw_command_line line = {
        .usage = "[OPTION]... FILE|PID|DIR",
        .about = "Report on a process that runs, or that died before it could write its report, "
                 "from its live file: FILE, that of process PID, or all in DIR, the newest first. "
                 "FILE may also be a report in JSON, and - is standard input.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL},
                  {cw_select_flags, CW_SELECT_FLAGS, "Which call sites, and which metric:"},
                  {cw_lines_flags, CW_LINES_FLAGS, "Source lines:"}},
        .operands = CW_OPERAND_PID | CW_OPERAND_FILE,
        .least = 1,
        .most = 1,
        .missing = "file, process id or directory",
    };

    for (size_t i = 0; i < FORMS; i++)
        words[i] = (struct cw_flag_word){forms[i].name, forms[i].help};
    line.notes = cw_debug_info_is_supported() ? NOTES : NOTES WITHOUT_LINES;
    return &line;
}

/* ---- one file ---- */

/* Separates processes. */
static int begin_report(struct request *request, const char *path, int with_heading)
{
    struct cw_destination *to = &request->destination;

    if (cw_destination_open(to) != 0)
        return -1;
    if (!with_heading || !request->form->has_heading)
        return 0;
    fprintf(to->out, "%s%s%s:\n", request->written > 0 ? "\n" : "",
            request->form->is_text ? "" : "# ", path);
    return 0;
}

/* Text with colours: goes to a temporary file first. */
static int paint_form(const struct request *request, struct cw_form_request *form)
{
    FILE *out = form->out;
    int rc;

    form->out = tmpfile();
    if (!form->out) {
        cw_cli_error("cannot create a temporary file for the report: %s", strerror(errno));
        form->out = out;
        return CW_FORM_TOLD;
    }
    rc = request->form->write(form);
    if (rc == 0 && fflush(form->out) == 0)
        rc = cw_color_text(fileno(form->out), out);
    else if (rc != CW_FORM_TOLD) {
        cw_cli_error("cannot write the report to a temporary file: %s", strerror(errno));
        rc = CW_FORM_TOLD;
    }
    fclose(form->out);
    form->out = out;
    return rc;
}

/* Of the screen, not of the pager's pipe. */
static unsigned columns_of(const struct cw_destination *to)
{
    return cw_screen_columns(to->path ? to->out : stdout);
}

static int write_form(struct request *request, struct cw_form_request *form)
{
    struct cw_destination *to = &request->destination;
    int rc;

    form->out = to->out;
    form->columns = columns_of(to);
    if (cw_destination_has_color(to))
        rc = paint_form(request, form);
    else
        rc = request->form->write(form);
    if (rc == 0)
        return cw_destination_flush(to);
    if (rc != CW_FORM_TOLD)
        return cw_destination_fail(to);
    to->failed = 1;
    return -1;
}

/* Applies the selection to the model's lists, for forms that write them. */
static int apply_selection(struct request *request, struct cw_model *model,
                           const struct cw_form_request *form)
{
    int lists_leaks = request->form->is_text || request->suggests;

    if (!request->has_selection && (!lists_leaks || model->job))
        return 0;
    return cw_selection_apply(model, &request->selection, form->site, form->sites,
                              lists_leaks ? CW_SELECTION_TEXT : CW_SELECTION_JSON);
}

static int write_brief(struct request *request, struct cw_model *model)
{
    struct cw_verdict_ending ending = {.peak_bytes = model->report->snapshot.summary.peak_bytes,
                                       .prefix = "",
                                       .columns = columns_of(&request->destination)};
    struct cw_run_verdict verdict = {.processes = 0};

    if (model->job)
        cw_report_read_listed(model->job, cw_verdict_want);
    else
        cw_model_read_stacks(model, 1);
    cw_verdict_add(&verdict, model->report);
    cw_verdict_print(&verdict, &ending, request->destination.out);
    cw_verdict_free(&verdict);
    return cw_destination_flush(&request->destination);
}

static int write_whole(struct request *request, struct cw_model *model,
                       struct cw_form_request *form)
{
    cw_model_read_stacks(model, request->form->is_text);
    if (request->form->write == cw_form_pprof && !request->destination.path &&
        isatty(STDOUT_FILENO)) {
        cw_cli_error("pprof's format is compressed, not for a terminal: add --output=FILE.pb.gz");
        return -1;
    }
    return write_form(request, form);
}

static int write_model(struct request *request, struct cw_source_file *file, int with_heading)
{
    struct cw_model_request how = {.suppressions = request->options.suppressions,
                                   .old_ns = request->options.old,
                                   .lines = &request->lines};
    struct cw_form_request form = {.selection = &request->selection,
                                   .sections = request->sections,
                                   .has_all_frames = request->options.frames == CW_FRAMES_ALL,
                                   .by_call = request->by_call};
    struct cw_model model;
    uint32_t *site = NULL;
    int rc = -1;

    if (cw_model_read_file(&model, file, &how) != 0)
        return -1;
    form.model = model.report;
    form.site = site = cw_select_sites(model.report, &request->selection, &form.sites);
    if (site && form.sites == 0 && cw_select_filters(&request->selection))
        cw_cli_error("'%s': no call site matches the selection", file->path);
    else if (site && apply_selection(request, &model, &form) == 0 &&
             begin_report(request, file->path, with_heading) == 0) {
        rc = request->is_brief ? write_brief(request, &model) : write_whole(request, &model, &form);
    }
    cw_model_free(&model);
    free(site);
    return rc;
}

/* 0, -1 after a message, or 1 if the file has been removed since it was found. Closes it. */
static int report_source(struct request *request, struct cw_source_file *file,
                         enum cw_source source, int with_heading)
{
    int rc = source == CW_SOURCE_GONE ? 1 : -1;

    if (source == CW_SOURCE_LIVE || source == CW_SOURCE_JSON) {
        rc = write_model(request, file, with_heading);
        request->written += rc == 0;
    }
    cw_source_file_close(file);
    return rc;
}

static int report_file(struct request *request, const char *path, size_t named, int with_heading)
{
    struct cw_source_file file;
    enum cw_source source = cw_source_file_open(&file, path, named);

    return report_source(request, &file, source, with_heading);
}

/* ---- files ---- */

static int report_all(struct request *request, const struct cw_live_files *files,
                      const char *directory)
{
    int rc = 0;

    if (files->count == 0) {
        cw_cli_error("'%s' has no live files (PID-START-RANDOM.live)", directory);
        return -1;
    }
    if (files->count > 1 && !request->form->holds_several) {
        cw_cli_error("'%s' has %zu live files, and --format=%s is about one process: name a file",
                     directory, files->count, request->form->name);
        return -1;
    }
    for (size_t i = 0; i < files->count; i++)
        if (report_file(request, files->file[i].path, files->file[i].named, 1) < 0)
            rc = -1;
    return rc;
}

static int report_directory(struct request *request, const char *directory)
{
    struct cw_live_files files = {.count = 0};
    int rc = -1;

    if (cw_live_files_add(&files, directory, 0, 1) != 0)
        cw_cli_error("cannot read '%s': %s", directory, strerror(errno));
    else
        rc = report_all(request, &files, directory);
    cw_live_files_free(&files);
    return rc;
}

static int report_process(struct request *request, const char *number)
{
    struct cw_live_files files = {.count = 0};
    const struct cw_live_name *name = cw_live_files_of_process(&files, number);
    struct cw_source_file file;
    int rc = -1;

    if (name)
        rc = report_source(request, &file, cw_source_file_open_found(&file, name), 0);

    if (rc > 0)
        cw_cli_error("process %s has just ended, and its live file with it", number);
    cw_live_files_free(&files);
    return rc;
}

static int is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static int report_operand(struct request *request, const char *operand)
{
    struct stat status;

    if (is_number(operand))
        return report_process(request, operand);
    if (stat(operand, &status) == 0 && S_ISDIR(status.st_mode))
        return report_directory(request, operand);
    return report_file(request, operand, 0, 0);
}

/* ---- the command line ---- */

static int set_form(struct request *request, const char *name)
{
    request->has_form = 1;
    request->form = forms;
    while (strcmp(name, request->form->name) != 0)
        request->form++;
    return 0;
}

/* As the name of the output ends; otherwise text. 0, or -1 after a message. */
static int set_form_by_name(struct request *request)
{
    static const struct cw_named_form names[] = {
        {".perfetto.json", "perfetto"}, {".json", "json"}, {".html", "html"}, {".pb.gz", "pprof"},
        {".folded", "collapsed"},       {NULL, NULL}};
    const char *form;

    if (cw_destination_form(&request->destination, names, &form) != 0)
        return -1;
    return form ? set_form(request, form) : 0;
}

static int set_sections(struct request *request, const char *list)
{
    static const char *const names[] = {
#define X(id, name, help) name,
        CW_TEXT_SECTIONS(X)
#undef X
    };
    size_t len;

    request->sections = 0;
    for (const char *at = list; *at; at += len + (at[len] == ',')) {
        size_t i = 0;

        len = strcspn(at, ",");
        while (i < CW_ARRAY_LEN(names) &&
               (strlen(names[i]) != len || strncmp(names[i], at, len) != 0))
            i++;
        if (i == CW_ARRAY_LEN(names)) {
            cw_cli_error(
                "--sections: '%.*s' is not a section; choose from" CW_TEXT_SECTIONS(NAME_OF),
                (int)len, at);
            return -1;
        }
        request->sections |= 1u << i;
    }
    if (request->sections != 0)
        return 0;
    cw_cli_error("--sections: '%s' names no section", list);
    return -1;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    if (cw_lines_has_flag(flag))
        return cw_lines_set(&request->lines, flag, value);
    if (cw_select_has_flag(flag)) {
        request->has_selection = 1;
        return cw_select_set(&request->selection, flag, value);
    }
    switch (flag) {
    case FLAG_SECTIONS:
        return set_sections(request, value);
    case FLAG_FRAMES:
        request->has_frames = 1;
        request->options.frames = value[0] == 'a' ? CW_FRAMES_ALL : CW_FRAMES_FOLD;
        return 0;
    case FLAG_BRIEF:
        request->is_brief = 1;
        return 0;
    case FLAG_FORMAT:
        return set_form(request, value);
    case FLAG_COLOR:
        cw_destination_set_color(&request->destination, value);
        return 0;
    case FLAG_NO_PAGER:
        request->destination.without_pager = 1;
        return 0;
    case FLAG_CALLS:
        request->by_call = 1;
        return 0;
    case FLAG_SUGGEST:
        request->suggests = 1;
        return 0;
    default:
        cw_destination_set_path(&request->destination, value);
        return 0;
    }
}

/* Rejects flags that cannot be combined; 0, or -1 after a message. */
static int check_request(struct request *request)
{
    const char *about_text;

    if (!request->has_form && !request->suggests && set_form_by_name(request) != 0)
        return -1;
    about_text = request->is_brief                  ? "--brief"
                 : request->has_frames              ? "--frames"
                 : request->sections != CW_TEXT_ALL ? "--sections"
                                                    : NULL;
    if (!request->form->is_text && about_text) {
        cw_cli_error("%s applies to text, not to --format=%s", about_text, request->form->name);
        return -1;
    }
    if (request->by_call && request->form->write != cw_form_collapsed) {
        cw_cli_error("--call-addresses needs --format=collapsed");
        return -1;
    }
    if (!request->suggests)
        return 0;
    if (request->has_form || request->has_selection) {
        cw_cli_error("--suggest-suppressions writes rules, not a report: leave out %s",
                     request->has_form ? "--format" : "the flags that select call sites");
        return -1;
    }
    request->form = &suggestions;
    return 0;
}

int cw_cmd_report(int argc, char **argv)
{
    static struct request request = {
        .form = forms, .sections = CW_TEXT_ALL, .destination = {.noun = "report"}};
    int failed, status;

    cw_options_parse(environ, 1, &request.options, NULL);
    status = cw_flags_parse(cw_line_report(), argc, argv, set_flag, &request);
    if (status >= 0)
        return status;
    if (check_request(&request) != 0)
        return cw_cli_usage_error();
    request.destination.is_text = request.form->is_text;
    cw_lines_open(&request.lines);
    failed = report_operand(&request, argv[optind]) != 0;
    if (cw_destination_close(&request.destination) != 0)
        failed = 1;
    cw_lines_tell(&request.lines);
    cw_lines_close(&request.lines);
    return failed ? CW_EXIT_FAILURE : CW_EXIT_OK;
}
