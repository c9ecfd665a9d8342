/* SPDX-License-Identifier: MIT */
/* The reports of a run. See run_report.h. */
#include "cli/run/run_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/compiler.h"
#include "base/launcher.h"
#include "cli/export/form.h"
#include "cli/model/model.h"
#include "cli/ui/destination.h"
#include "cli/ui/message.h"
#include "cli/ui/screen.h"
#include "report/path/dump_name.h"

#define NAMED_MAX 16

struct cw_run_form {
    const char *extension;
    cw_form_fn write; /* NULL: the library's own */
};

static const struct cw_run_form html_form = {".html", cw_form_html};

static const struct cw_run_form forms[] = {
    {".json", NULL},
    {".txt", NULL},
    {".html", cw_form_html},
    {".pb.gz", cw_form_pprof},
    {".folded", cw_form_collapsed},
};

struct cw_run_made {
    char *path; /* that was asked for */
    char *own;  /* that was written; equal if the name tells processes apart */
    uint32_t pid;
    int is_rank;     /* told apart by its rank, which stays */
    int was_written; /* by the process itself, to `path` */
};

/* ---- names ---- */

static const struct cw_run_form *form_of(const char *name)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(forms); i++)
        if (cw_path_ends_in(name, forms[i].extension))
            return &forms[i];
    return NULL;
}

/* The processes of a job have each a run of their own, as each has a library that names its report
 * so (hook/settings.c). */
static void add_output(struct cw_run_reports *reports, const char *name,
                       const struct cw_run_form *form)
{
    struct cw_run_output *output = &reports->output[reports->outputs++];
    struct cw_launcher launcher;

    output->form = form;
    cw_launcher_read(&launcher, environ);
    if (launcher.rank[0] && launcher.size >= 2 && cw_path_is_shared(name) &&
        cw_path_insert(output->pattern, sizeof(output->pattern), name, ".rank-%r") == 0)
        return;
    snprintf(output->pattern, sizeof(output->pattern), "%s", name);
}

int cw_run_reports_init(struct cw_run_reports *reports, const struct cw_options *options,
                        const char *html, const char **instead)
{
    const struct cw_run_form *form = form_of(options->report);

    *reports = (struct cw_run_reports){.options = options};
    if (options->format != CW_FORMAT_AUTO)
        form = NULL;
    else if (!form && cw_path_names_file(options->report) &&
             cw_destination_is_strange(options->report)) {
        cw_cli_error(
            "--report: '%s' ends in none of .txt, .json, .html, .pb.gz and .folded; choose "
            "one, or name the form with --format",
            options->report);
        return -1;
    }
    if (form && form->write)
        *instead = "off";
    else
        form = NULL;
    if (!cw_path_names_file(options->report))
        *instead = "off";
    if (strcmp(options->report, "-") == 0 || cw_path_names_file(options->report))
        add_output(reports, options->report, form);
    if (html)
        add_output(reports, html, &html_form);
    cw_lines_open(&reports->lines);
    return 0;
}

/* Resolves a template relative to the process's directory, which may differ from ours. */
static void locate(const struct cw_view *view, const char *name, char *path, size_t cap)
{
    const char *from = cw_view_text(view, cw_view_header(view)->cwd);
    size_t len = 0;

    if (!cw_path_names_file(name) || name[0] == '/' || from[0] != '/') {
        snprintf(path, cap, "%s", name);
        return;
    }
    for (; *from && len + 2 < cap; from++) {
        if (*from == '%')
            path[len++] = '%';
        path[len++] = *from;
    }
    snprintf(path + len, cap - len, "/%s", name);
}

static struct cw_run_made *find_own(const struct cw_run_reports *reports, const char *own)
{
    for (size_t i = 0; i < reports->count; i++)
        if (strcmp(reports->made[i].own, own) == 0)
            return &reports->made[i];
    return NULL;
}

static struct cw_run_made *add_made(struct cw_run_reports *reports)
{
    size_t room = reports->room ? 2 * reports->room : 8;
    struct cw_run_made *grown;

    if (reports->count == reports->room) {
        grown = reallocarray(reports->made, room, sizeof(*grown));
        if (!grown)
            return NULL;
        reports->made = grown;
        reports->room = room;
    }
    reports->made[reports->count] = (struct cw_run_made){.path = NULL};
    return &reports->made[reports->count++];
}

/* ---- one report ---- */

/* out_error: gets the errno, in place of a warning and the text on stderr; or NULL. */
static int write_by_library(struct cw_run_reports *reports, const struct cw_source_file *file,
                            const char *destination, int *out_error)
{
    struct cw_report_request report = {
        .form = cw_report_form_of(reports->options),
        .process = reports->process,
        .destination = destination,
        .is_dump = out_error != NULL,
        .out_error = out_error,
        .env = environ,
        .version = PACKAGE_VERSION,
        .suppressions = reports->options->suppressions,
        .old_ns = reports->options->old,
        .has_all_frames = reports->options->frames == CW_FRAMES_ALL,
        .tensors = reports->tensors,
        .columns = destination ? 0 : cw_screen_columns(stderr),
    };

    cw_report_prepare(&reports->lines, &report);
    return cw_report_write(&file->image.view, &report); /* it has said what went wrong */
}

static int write_model(const struct cw_run_form *form, const struct cw_report_model *model,
                       const char *path, const char *own)
{
    static const struct cw_selection all;
    struct cw_destination to = {
        .noun = "report", .path = own, .name = path, .makes_directories = 1};
    struct cw_form_request request = {.model = model, .selection = &all};
    uint32_t *site = cw_select_sites(model, &all, &request.sites);
    int rc = -1;

    request.site = site;
    if (site && cw_destination_open(&to) == 0) {
        request.out = to.out;
        rc = form->write(&request);
        if (rc == -1)
            cw_destination_fail(&to);
        to.failed |= rc != 0;
        rc = cw_destination_close(&to);
    }
    free(site);
    return rc;
}

static int write_by_form(struct cw_run_reports *reports, struct cw_source_file *file,
                         const struct cw_run_form *form, const char *path, const char *own)
{
    struct cw_model_request how = {.process = reports->process,
                                   .suppressions = reports->options->suppressions,
                                   .old_ns = reports->options->old,
                                   .lines = &reports->lines,
                                   .tensors = reports->tensors};
    struct cw_model model;
    int rc;

    if (cw_model_read_file(&model, file, &how) != 0)
        return -1;
    cw_model_read_stacks(&model, 0);
    rc = write_model(form, model.report, path, own);
    cw_model_free(&model);
    return rc;
}

/* Where this process's report goes; path: the name that was asked for. reserves: a name with %n is
 * taken. 0, or the errno. */
static int choose_names(const struct cw_run_reports *reports, const struct cw_view *view,
                        const char *pattern, int reserves, char *path, char *own)
{
    const char *rank = cw_view_text(view, cw_view_header(view)->rank);
    char inserted[2 * CW_PATH_MAX];
    struct cw_path_values values;
    int error;

    cw_report_path_values(view, environ, &values);
    error = reserves ? cw_report_path_reserve(path, pattern, "", NULL, &values)
                     : cw_path_expand(path, CW_PATH_MAX, pattern, &values);

    if (error != 0)
        return reserves ? error : ENAMETOOLONG;
    if (!cw_path_is_shared(pattern)) {
        snprintf(own, CW_PATH_MAX, "%s", path);
        return 0;
    }
    if (cw_path_insert(inserted, sizeof(inserted), pattern, rank[0] ? ".rank-%r" : ".%p") != 0 ||
        cw_path_expand(own, CW_PATH_MAX, inserted, &values) != 0)
        return ENAMETOOLONG;
    if (!rank[0] || !find_own(reports, own))
        return 0;
    return cw_path_insert(inserted, sizeof(inserted), pattern, ".rank-%r.%p") == 0 &&
                   cw_path_expand(own, CW_PATH_MAX, inserted, &values) == 0
               ? 0
               : ENAMETOOLONG;
}

static int is_of_same_process(const struct cw_run_made *made, const struct cw_view *view)
{
    return made && made->pid == cw_view_header(view)->pid;
}

/* Adds ".2" and so on to the name if the process was another program before, by exec. 0, or the
 * errno. */
static int number_programs(const struct cw_run_reports *reports, const struct cw_view *view,
                           char *own)
{
    char first[CW_PATH_MAX], number[16];

    snprintf(first, sizeof(first), "%s", own);
    for (unsigned i = 2; is_of_same_process(find_own(reports, own), view); i++) {
        snprintf(number, sizeof(number), ".%u", i);
        if (cw_path_insert(own, CW_PATH_MAX, first, number) != 0)
            return ENAMETOOLONG;
    }
    return 0;
}

static void remember(struct cw_run_reports *reports, const struct cw_view *view, const char *path,
                     const char *own, int was_written)
{
    struct cw_run_made *made;

    if (find_own(reports, own)) {
        reports->overwritten++;
        return;
    }
    made = add_made(reports);
    if (!made)
        return;
    made->path = strdup(path);
    made->own = strdup(own);
    made->pid = cw_view_header(view)->pid;
    made->is_rank = cw_view_text(view, cw_view_header(view)->rank)[0] != '\0';
    made->was_written = was_written;
    if (!made->path || !made->own) {
        free(made->path);
        free(made->own);
        reports->count--;
    }
}

/* The library chose the number of %n, and wrote to a device or a link as the program ended. */
static int is_left_to_library(const struct cw_run_output *output, const char *pattern,
                              const char *path)
{
    return !output->form && (cw_path_has_number(pattern) || !cw_path_is_replaceable(path));
}

/* If it cannot be written, that is said of the name that was asked for, by the library if it has
 * tried that name. */
static int write_exactly(struct cw_run_reports *reports, const struct cw_source_file *file,
                         const char *path, const char *own, int was_written)
{
    char exact[2 * CW_PATH_MAX];
    int error;

    cw_dump_name_escape(exact, sizeof(exact), own);
    if (write_by_library(reports, file, exact, &error) == 0)
        return 0;
    cw_dump_name_escape(exact, sizeof(exact), path);
    return was_written ? -1 : write_by_library(reports, file, exact, NULL);
}

static int write_output(struct cw_run_reports *reports, const struct cw_run_output *output,
                        struct cw_source_file *file, int was_written)
{
    const struct cw_view *view = &file->image.view;
    char pattern[CW_PATH_MAX], path[CW_PATH_MAX], own[CW_PATH_MAX];
    int reserves = output->form && cw_path_has_number(output->pattern), error, rc;

    locate(view, output->pattern, pattern, sizeof(pattern));
    if (strcmp(pattern, "-") == 0)
        return write_by_library(reports, file, NULL, NULL) == 0;
    error = choose_names(reports, view, pattern, reserves, path, own);
    if (error == 0)
        error = number_programs(reports, view, own);
    if (error != 0) {
        if (output->form)
            cw_cli_error("cannot write '%s': %s", pattern, strerror(error));
        return 0;
    }
    if (is_left_to_library(output, pattern, path))
        return was_written ? 0 : write_by_library(reports, file, pattern, NULL) == 0;
    rc = output->form ? write_by_form(reports, file, output->form, path, own)
                      : write_exactly(reports, file, path, own, was_written);
    if (rc == 0)
        remember(reports, view, path, own, was_written && !output->form);
    else if (reserves)
        unlink(path);
    return rc == 0;
}

int cw_run_reports_write(struct cw_run_reports *reports, struct cw_source_file *file,
                         int was_written)
{
    int wrote = 0;

    for (unsigned i = 0; i < reports->outputs; i++) {
        int is_written = write_output(reports, &reports->output[i], file, was_written);

        wrote |= is_written;
        reports->missing += reports->output[i].form == &html_form && !is_written;
    }
    return wrote;
}

/* ---- all ---- */

static unsigned count_sharers(const struct cw_run_reports *reports, const struct cw_run_made *made)
{
    unsigned count = 0;

    for (size_t i = 0; i < reports->count; i++)
        count += strcmp(reports->made[i].path, made->path) == 0;
    return count;
}

/* What --format=both appends to the name of the other report; "" without it. */
static const char *second_suffix(const struct cw_run_reports *reports, const char *path)
{
    if (reports->options->format != CW_FORMAT_BOTH)
        return "";
    return cw_path_ends_in(path, ".json") ? ".txt" : ".json";
}

static void rename_second(const struct cw_run_reports *reports, const struct cw_run_made *made)
{
    const char *suffix = second_suffix(reports, made->path);
    char from[CW_PATH_MAX + 8], to[CW_PATH_MAX + 8];

    snprintf(from, sizeof(from), "%s%s", made->own, suffix);
    snprintf(to, sizeof(to), "%s%s", made->path, suffix);
    if (suffix[0])
        (void)rename(from, to);
}

static void name_report(const struct cw_run_reports *reports, const struct cw_run_made *made)
{
    const char *suffix = second_suffix(reports, made->own);
    char name[CW_PATH_MAX];

    snprintf(name, sizeof(name), "%s", made->own);
    (void)cw_printable_clean_string(name);
    fprintf(stderr, "cuwarden: report of process %u: %s\n", (unsigned)made->pid, name);
    if (suffix[0])
        fprintf(stderr, "cuwarden: report of process %u: %s%s\n", (unsigned)made->pid, name,
                suffix);
}

/* The only process gets the name that was asked for; of several, the one that the library wrote is
 * one of them again. */
static void settle(const struct cw_run_reports *reports, struct cw_run_made *made)
{
    if (made->is_rank || strcmp(made->path, made->own) == 0)
        return;
    if (count_sharers(reports, made) > 1) {
        if (made->was_written && !find_own(reports, made->path))
            unlink(made->path);
        return;
    }
    if (rename(made->own, made->path) != 0) {
        cw_cli_error("cannot rename '%s' to '%s': %s", made->own, made->path, strerror(errno));
        return;
    }
    rename_second(reports, made);
    free(made->own);
    made->own = strdup(made->path);
}

size_t cw_run_reports_finish(struct cw_run_reports *reports, int is_quiet)
{
    for (size_t i = 0; i < reports->count; i++)
        settle(reports, &reports->made[i]);
    for (size_t i = 0; i < reports->count && i < NAMED_MAX && !is_quiet; i++)
        if (reports->made[i].own)
            name_report(reports, &reports->made[i]);
    if (reports->count > NAMED_MAX && !is_quiet)
        fprintf(stderr, "cuwarden: and %zu more reports\n", reports->count - NAMED_MAX);
    if (reports->overwritten > 0 && !is_quiet)
        cw_cli_warn("reports overwritten by later ones in the same file: %u; use %%p in the name "
                    "to keep all",
                    reports->overwritten);
    return reports->count;
}

void cw_run_reports_free(struct cw_run_reports *reports)
{
    for (size_t i = 0; i < reports->count; i++) {
        free(reports->made[i].path);
        free(reports->made[i].own);
    }
    free(reports->made);
    cw_lines_close(&reports->lines);
    *reports = (struct cw_run_reports){.count = 0};
}
