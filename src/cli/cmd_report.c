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
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "live/image.h"
#include "live/place.h"
#include "report/report.h"

#define WHY_MAX 256

struct request {
    enum cw_report_form form;
    const char *output;        /* NULL: standard output */
    int fd;                    /* -1: not open yet */
    struct cw_options options; /* of the environment: what is suppressed, and what is old */
};

static int print_help(void)
{
    printf("Usage: cuwarden report [OPTION]... FILE|PID|DIR\n"
           "Report on a process that runs, or that died before it could write its report, from\n"
           "its live file: FILE, that of process PID, or all in DIR, the newest first.\n"
           "\n"
           "  --format=FORM      text (default) or json\n"
           "  -o, --output=FILE  write to FILE, not to standard output\n"
           "  -h, --help         display this help and exit\n"
           "\n"
           "PID is looked for in the directory that CUWARDEN_LIVE names, and in the directories\n"
           "cuwarden-UID under /dev/shm and TMPDIR. A file whose name is a number is ./NUMBER.\n"
           "\n"
           "Exit status is 0 if every report was written, 1 if not, 2 for a bad command line.\n");
    return CW_EXIT_OK;
}

/* ---- one file ---- */

/* Where the lock does not tell: whether the process still has the file mapped. */
static int is_mapped(uint32_t pid, const char *path)
{
    const char *slash = strrchr(path, '/');
    char line[PATH_MAX + 128];
    int is_there = 0;
    FILE *maps;

    snprintf(line, sizeof(line), "/proc/%u/maps", pid);
    maps = fopen(line, "re");
    if (!maps)
        return 0;
    while (!is_there && fgets(line, sizeof(line), maps))
        is_there = strstr(line, slash ? slash + 1 : path) != NULL;
    fclose(maps);
    return is_there;
}

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
    int is_alive = image->is_locked == 1 || is_mapped(pid, path);
    struct cw_report_request report = {
        .form = request->form,
        .process = is_alive ? CW_REPORT_PROCESS_ALIVE : CW_REPORT_PROCESS_DEAD,
        .version = PACKAGE_VERSION,
        .suppressions = request->options.suppressions,
        .old_ns = request->options.old,
        .demangle = demangler ? demangle : NULL,
        .demangle_arg = demangler,
    };

    if (open_output(request) != 0)
        return -1;
    if (with_heading && request->form == CW_REPORT_TEXT && dprintf(request->fd, "%s:\n", path) < 0)
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
        if (i > 0 && request->fd >= 0 && request->form == CW_REPORT_TEXT)
            dprintf(request->fd, "\n");
        if (report_file(request, files.file[i].path, 1) != 0)
            rc = -1;
    }
    cw_live_files_free(&files);
    return rc;
}

/* A process that became another program by exec has left a file of its former self: the newest one
 * counts, and one whose process runs before all others. */
static const char *choose(const struct cw_live_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        int fd = open(files->file[i].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int is_locked = fd >= 0 && cw_place_is_locked(fd) == 1;

        if (fd >= 0)
            close(fd);
        if (is_locked)
            return files->file[i].path;
    }
    return files->count > 0 ? files->file[0].path : NULL;
}

static int report_process(struct request *request, const char *number)
{
    unsigned long pid = strtoul(number, NULL, 10);
    struct cw_live_files files = {.count = 0};
    char where[4 * PATH_MAX];
    const char *path;
    int rc = -1;

    if (strlen(number) > 10 || pid == 0 || pid > UINT32_MAX) {
        cw_cli_error("'%s' is no process id; a file of that name is ./%s", number, number);
        return -1;
    }
    cw_live_files_of(&files, (uint32_t)pid, where, sizeof(where));
    path = choose(&files);
    if (path)
        rc = report_file(request, path, 0);
    else
        cw_cli_error(
            "no live file of process %s in %s; it goes when the process ends in order, and "
            "is elsewhere if CUWARDEN_LIVE was set: name the file or its directory",
            number, where);
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

static int finish(struct request *request, int failed)
{
    if (request->fd > STDERR_FILENO && close(request->fd) != 0 && !failed)
        failed = fail_write(request);
    return failed ? CW_EXIT_FAILURE : CW_EXIT_OK;
}

int cw_cmd_report(int argc, char **argv)
{
    static const struct option flags[] = {
        {"format", required_argument, NULL, 'f'},
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static struct request request = {.form = CW_REPORT_TEXT, .fd = -1};
    int flag;

    cw_options_parse(environ, 1, &request.options, NULL);

    while ((flag = getopt_long(argc, argv, "ho:", flags, NULL)) != -1) {
        if (flag == 'h')
            return print_help();
        if (flag == 'o')
            request.output = strcmp(optarg, "-") == 0 ? NULL : optarg;
        else if (flag != 'f' || set_form(&request, optarg) != 0)
            return cw_cli_usage_error();
    }
    if (optind == argc)
        cw_cli_error("missing file, process id or directory");
    else if (optind + 1 < argc)
        cw_cli_error("extra operand '%s'", argv[optind + 1]);
    if (optind + 1 != argc)
        return cw_cli_usage_error();
    return finish(&request, report_operand(&request, argv[optind]) != 0);
}
