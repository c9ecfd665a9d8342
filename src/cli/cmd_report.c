/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden report`: the report of a process that runs, has died, or has ended, made from its live
 * file by the code that the library itself uses at the end.
 */
#include "cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/debug_info.h"
#include "live/image.h"
#include "report/report.h"

#define WHY_MAX 256

struct request {
    enum cw_report_form form;
    const char *output;        /* NULL: standard output */
    int fd;                    /* -1: not open yet */
    struct cw_options options; /* of the environment: what is suppressed, and what is old */
    int suggests;              /* suppressions, and no report */
    int without_lines;
    struct cw_debug_options debug;
    struct cw_debug_info *lines; /* NULL: nobody reads source lines */
};

static int print_help(void)
{
    printf("Usage: cuwarden report [OPTION]... FILE|PID|DIR\n"
           "Report on a process that runs, or that died before it could write its report, from\n"
           "its live file: FILE, that of process PID, or all in DIR, the newest first.\n"
           "\n"
           "  --format=FORM      text (default) or json\n"
           "  -o, --output=FILE  write to FILE, not to standard output\n"
           "  --suggest-suppressions\n"
           "                     write, in place of the report, rules for CUWARDEN_SUPPRESSIONS\n"
           "                     that match what leaked\n"
           "  --debug-dir=DIR    look in DIR too for files with debug information (more than\n"
           "                     one may be given; /usr/lib/debug is the last)\n"
           "  --debuginfod       ask the servers of DEBUGINFOD_URLS for those not found here\n"
           "  --no-lines         neither source lines nor inlined functions\n"
           "  --sysroot=DIR      the process's files are under DIR: it ran on another machine,\n"
           "                     or in a container\n"
           "  -h, --help         display this help and exit\n"
           "\n"
           "PID is looked for in the directory that CUWARDEN_LIVE names, and in the directories\n"
           "cuwarden-UID under /dev/shm and TMPDIR. A file whose name is a number is ./NUMBER.\n"
           "%s"
           "\n"
           "Exit status is 0 if every report was written, 1 if not, 2 for a bad command line.\n",
           cw_debug_info_is_supported()
               ? ""
               : "This command was built without libdw and has no source lines.\n");
    return CW_EXIT_OK;
}

/* ---- one file ---- */

/* Reads the file; returns 0, or -1 after a message. */
static int read_image(const char *path, struct cw_image *image)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char why[WHY_MAX];
    int rc;

    if (fd < 0) {
        cw_cli_error("cannot read '%s': %s", path, strerror(errno));
        return -1;
    }
    rc = cw_image_read(fd, image, why, sizeof(why));
    close(fd);
    if (rc != 0)
        cw_cli_error("'%s' %s", path, why);
    return rc;
}

typedef char *(*demangle_fn)(const char *mangled, char *buf, size_t *len, int *status);

static const char *demangle(const char *mangled, void *arg)
{
    static char *last;
    int status = -1;

    free(last);
    last = ((demangle_fn)arg)(mangled, NULL, NULL, &status);
    return status == 0 ? last : NULL;
}

static void *find_demangler(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

    return library ? dlsym(library, "__cxa_demangle") : NULL;
}

/* Only when there is something to write: a wrong name must not empty a good file. */
static int open_output(struct request *request)
{
    if (request->fd >= 0)
        return 0;
    if (!request->output)
        request->fd = STDOUT_FILENO;
    else
        request->fd = open(request->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (request->fd >= 0)
        return 0;
    cw_cli_error("cannot write '%s': %s", request->output, strerror(errno));
    return -1;
}

static int fail_write(const struct request *request)
{
    cw_cli_error("cannot write all of the report to %s",
                 request->output ? request->output : "standard output");
    return -1;
}

static int write_image(struct request *request, const char *path, const struct cw_image *image,
                       int with_heading)
{
    void *demangler = find_demangler();
    uint32_t pid = cw_view_header(&image->view)->pid;
    int is_alive = image->is_locked == 1 || cw_live_file_is_mapped(pid, path);
    struct cw_report_request report = {
        .form = request->form,
        .process = is_alive ? CW_REPORT_PROCESS_ALIVE : CW_REPORT_PROCESS_DEAD,
        .version = PACKAGE_VERSION,
        .suppressions = request->options.suppressions,
        .old_ns = request->options.old,
        .demangle = demangler ? demangle : NULL,
        .demangle_arg = demangler,
        .lines = cw_debug_info_ops(request->lines),
        .sysroot = request->debug.sysroot,
    };

    if (open_output(request) != 0)
        return -1;
    if (with_heading && request->form != CW_REPORT_JSON &&
        dprintf(request->fd, "%s%s:\n", request->form == CW_REPORT_TEXT ? "" : "# ", path) < 0)
        return fail_write(request);
    report.fd = request->fd;
    return cw_report_write(&image->view, &report) == 0 ? 0 : fail_write(request);
}

static int report_file(struct request *request, const char *path, int with_heading)
{
    struct cw_image image;
    int rc;

    if (read_image(path, &image) != 0)
        return -1;
    rc = write_image(request, path, &image, with_heading);
    cw_image_free(&image);
    return rc;
}

/* ---- which files ---- */

static int report_directory(struct request *request, const char *directory)
{
    struct cw_live_files files = {.count = 0};
    int rc = 0;

    if (cw_live_files_add(&files, directory, 0) != 0) {
        cw_cli_error("cannot read '%s': %s", directory, strerror(errno));
        rc = -1;
    } else if (files.count == 0) {
        cw_cli_error("'%s' has no live files (PID-START-RANDOM.live)", directory);
        rc = -1;
    }
    for (size_t i = 0; i < files.count; i++) {
        if (i > 0 && request->fd >= 0 && request->form != CW_REPORT_JSON)
            dprintf(request->fd, "\n");
        if (report_file(request, files.file[i].path, 1) != 0)
            rc = -1;
    }
    cw_live_files_free(&files);
    return rc;
}

static int report_process(struct request *request, const char *number)
{
    struct cw_live_files files = {.count = 0};
    const char *path = cw_live_files_of_process(&files, number);
    int rc = path ? report_file(request, path, 0) : -1;

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
    return report_file(request, operand, 0);
}

/* ---- the command line ---- */

static int set_form(struct request *request, const char *form)
{
    if (strcmp(form, "text") == 0)
        request->form = CW_REPORT_TEXT;
    else if (strcmp(form, "json") == 0)
        request->form = CW_REPORT_JSON;
    else {
        cw_cli_error("--format: '%s' is not one of text, json", form);
        return -1;
    }
    return 0;
}

static int check_directory(const char *flag, const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    cw_cli_error("--%s: '%s' is not a directory that can be read; name one", flag, path);
    return -1;
}

static int add_debug_directory(struct request *request, const char *path)
{
    struct cw_debug_options *debug = &request->debug;
    const char **grown;

    if (check_directory("debug-dir", path) != 0)
        return -1;
    grown = reallocarray(debug->dir, debug->dirs + 1, sizeof(*debug->dir));
    if (!grown) {
        cw_cli_error("no memory for --debug-dir '%s'", path);
        return -1;
    }
    debug->dir = grown;
    debug->dir[debug->dirs++] = path;
    return 0;
}

/* Modules' paths begin with a slash, so the directory does not end with one. */
static int set_sysroot(struct request *request, char *path)
{
    size_t len = strlen(path);

    if (check_directory("sysroot", path) != 0)
        return -1;
    while (len > 0 && path[len - 1] == '/')
        path[--len] = '\0';
    request->debug.sysroot = path;
    return 0;
}

static int set_flag(struct request *request, int flag)
{
    switch (flag) {
    case 'f':
        return set_form(request, optarg);
    case 'o':
        request->output = strcmp(optarg, "-") == 0 ? NULL : optarg;
        return 0;
    case 's':
        request->suggests = 1;
        return 0;
    case 'd':
        return add_debug_directory(request, optarg);
    case 'D':
        request->debug.may_download = 1;
        return 0;
    case 'n':
        request->without_lines = 1;
        return 0;
    case 'r':
        return set_sysroot(request, optarg);
    default:
        return -1;
    }
}

/* Who reads source lines; one line where nobody can, for all reports together. */
static void find_lines(struct request *request)
{
    if (request->without_lines)
        return;
    if (!cw_debug_info_is_supported())
        cw_cli_warn("no source lines: this command was built without libdw (--no-lines says that "
                    "none are wanted)");
    request->lines = cw_debug_info_create(&request->debug);
}

static int finish(struct request *request, int failed)
{
    if (request->fd > STDERR_FILENO && close(request->fd) != 0 && !failed)
        failed = fail_write(request);
    cw_debug_info_destroy(request->lines);
    free(request->debug.dir);
    return failed ? CW_EXIT_FAILURE : CW_EXIT_OK;
}

int cw_cmd_report(int argc, char **argv)
{
    static const struct option flags[] = {
        {"format", required_argument, NULL, 'f'},
        {"output", required_argument, NULL, 'o'},
        {"suggest-suppressions", no_argument, NULL, 's'},
        {"debug-dir", required_argument, NULL, 'd'},
        {"debuginfod", no_argument, NULL, 'D'},
        {"no-lines", no_argument, NULL, 'n'},
        {"sysroot", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static struct request request = {.form = CW_REPORT_TEXT, .fd = -1, .debug = {.sysroot = ""}};
    int flag;

    cw_options_parse(environ, 1, &request.options, NULL);

    while ((flag = getopt_long(argc, argv, "ho:", flags, NULL)) != -1) {
        if (flag == 'h')
            return print_help();
        if (set_flag(&request, flag) != 0)
            return cw_cli_usage_error();
    }
    if (optind == argc)
        cw_cli_error("missing file, process id or directory");
    else if (optind + 1 < argc)
        cw_cli_error("extra operand '%s'", argv[optind + 1]);
    if (optind + 1 != argc)
        return cw_cli_usage_error();
    if (request.suggests && request.form != CW_REPORT_TEXT) {
        cw_cli_error("--suggest-suppressions writes rules, not a report: leave out --format");
        return cw_cli_usage_error();
    }
    if (request.suggests)
        request.form = CW_REPORT_SUGGESTIONS;
    find_lines(&request);
    return finish(&request, report_operand(&request, argv[optind]) != 0);
}
