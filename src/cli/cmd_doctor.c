/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor`: whether a program can be monitored here, and the command line for it. The
 * checks are in doctor_*.c; this file has the command line and the two output formats.
 */
#include "cli/ui/flags.h"

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/doctor/doctor.h"
#include "base/printable.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "report/json/json_put.h"
#include "cli/doctor/library.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#define TEXT_COLUMN 22

static const char *const verdict_names[CW_VERDICT_COUNT] = {
    [CW_VERDICT_OK] = "ok",
    [CW_VERDICT_WARNING] = "warning",
    [CW_VERDICT_PROBLEM] = "problem",
};

struct request {
    int is_json;
    int is_gpu;
    const char *preload;
    const char *root;
    char **argv; /* the program and its arguments; NULL after the last */
};

enum { FLAG_FORMAT = 0x100, FLAG_GPU, FLAG_PRELOAD, FLAG_SYSROOT };

const struct cw_command_line *cw_line_doctor(void)
{
    static const struct cw_flag flags[] = {
        {.id = FLAG_FORMAT, .name = "format", .value = "FORM", .words = "*text json", .help = "%w"},
        {.id = FLAG_GPU,
         .name = "gpu",
         .help = "ask the driver what the pool relies on, by using device 0 for some seconds in a "
                 "process of its own, and list the devices"},
        {.id = FLAG_PRELOAD,
         .name = "preload",
         .value = "FILE",
         .help = "check FILE instead of the installed libcuwarden.so"},
        {.id = FLAG_SYSROOT,
         .name = "sysroot",
         .value = "DIR",
         .help = "check the system under DIR: an unpacked image, or /proc/PID/root"},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]... [PROGRAM [ARGUMENT]...]\n[OPTION]... PID\n--gpu [--format=FORM]",
        .about = "Check whether PROGRAM can be monitored here, and print the command line for it. "
                 "Without PROGRAM, check the machine alone; with PID, check whether that process "
                 "is monitored.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL}},
        .operands = CW_OPERAND_PROGRAM | CW_OPERAND_PID,
        .most = -1,
        .notes = "Without --gpu nothing is executed, loaded or changed. For a program whose name "
                 "is a number, "
                 "give ./NUMBER.\n\n"
                 "The exit status is 0 if it can be (or is) monitored, 1 if there is a problem, "
                 "and 2 for a usage error. With --gpu, 0 means that the driver is as assumed.",
    };

    return &line;
}

/* ---- the line to run ---- */

static void append_quoted(char **line, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";
    int needs_quotes = !*word || word[strspn(word, plain)] != '\0';

    *line = stpcpy(*line, needs_quotes ? " '" : " ");
    for (; *word; word++) {
        if (*word == '\'')
            *line = stpcpy(*line, "'\\''");
        else
            *(*line)++ = *word;
    }
    *line = stpcpy(*line, needs_quotes ? "'" : "");
}

/* To be freed; NULL if out of memory. */
static char *line_to_run(const struct request *request, const char *begin, const char *preload)
{
    size_t size = strlen(begin) + 32;
    char *line, *end;

    for (char **word = request->argv; *word; word++)
        size += 4 * strlen(*word) + 4;
    size += preload ? 4 * strlen(preload) : 0;
    line = malloc(size);
    if (!line)
        return NULL;
    end = stpcpy(line, begin);
    if (preload) {
        append_quoted(&end, "--preload");
        append_quoted(&end, preload);
    }
    if (strncmp(begin, "cuwarden", 8) == 0)
        end = stpcpy(end, " --");
    for (char **word = request->argv; *word; word++)
        append_quoted(&end, *word);
    return line;
}

/* ---- text ---- */

static void print_findings(const struct cw_doctor *doctor)
{
    for (size_t i = 0; i < doctor->findings; i++) {
        const struct cw_finding *finding = &doctor->finding[i];

        printf("%-9s %-11s %s\n", verdict_names[finding->verdict], finding->check, finding->text);
        if (finding->way_out)
            printf("%*s-> %s\n", TEXT_COLUMN, "", finding->way_out);
    }
}

static void print_verdict(const struct cw_doctor *doctor, const char *subject)
{
    unsigned problems = doctor->count[CW_VERDICT_PROBLEM];
    unsigned warnings = doctor->count[CW_VERDICT_WARNING];

    if (problems > 0)
        printf("\n%s cannot be monitored: %u problem%s, %u warning%s\n", subject, problems,
               cw_cli_plural(problems), warnings, cw_cli_plural(warnings));
    else if (doctor->pid)
        printf("\n%s is monitored: %u warning%s\n", subject, warnings, cw_cli_plural(warnings));
    else
        printf("\n%s can be monitored: %u warning%s\n", subject, warnings, cw_cli_plural(warnings));
}

static void print_gpu_verdict(const struct cw_doctor *doctor)
{
    unsigned problems = doctor->count[CW_VERDICT_PROBLEM];
    unsigned warnings = doctor->count[CW_VERDICT_WARNING];

    if (doctor->gpus == 0)
        printf("\nThe driver was not asked\n");
    else
        printf("\nThe driver is %sas cuwarden assumes: %u problem%s, %u warning%s\n",
               problems > 0 ? "not " : "", problems, cw_cli_plural(problems), warnings,
               cw_cli_plural(warnings));
}

static void print_text(const struct cw_doctor *doctor, const struct request *request)
{
    char subject[PATH_MAX + 32] = "Programs on this machine";
    char *line, *with_variables, *begin;

    print_findings(doctor);
    if (request->is_gpu) {
        print_gpu_verdict(doctor);
        return;
    }
    if (doctor->pid)
        snprintf(subject, sizeof(subject), "Process %u", (unsigned)doctor->pid);
    else if (doctor->shown_name)
        snprintf(subject, sizeof(subject), "%s", doctor->shown_name);
    print_verdict(doctor, cw_printable_clean_string(subject));
    if (!doctor->shown_name || doctor->count[CW_VERDICT_PROBLEM] > 0)
        return;
    line = line_to_run(request, "cuwarden run", request->preload);
    if (asprintf(&begin, "LD_PRELOAD=%s NVTX_INJECTION64_PATH=%s", doctor->library,
                 doctor->library) < 0)
        begin = NULL;
    with_variables = begin ? line_to_run(request, begin, NULL) : NULL;
    if (line && with_variables)
        printf("\n  %s\n\nor, without the command:\n\n  %s\n", cw_printable_clean_string(line),
               cw_printable_clean_string(with_variables));
    free(line);
    free(begin);
    free(with_variables);
}

/* ---- JSON ---- */

static void put_findings(struct cw_json *json, const struct cw_doctor *doctor)
{
    cw_json_open(json, "findings", '[');
    for (size_t i = 0; i < doctor->findings; i++) {
        const struct cw_finding *finding = &doctor->finding[i];

        cw_json_element(json, '{');
        cw_json_string(json, "check", finding->check);
        cw_json_string(json, "verdict", verdict_names[finding->verdict]);
        cw_json_string(json, "text", finding->text);
        if (finding->way_out)
            cw_json_string(json, "way_out", finding->way_out);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}

static void put_gpus(struct cw_json *json, const struct cw_doctor *doctor)
{
    cw_json_open(json, "devices", '[');
    for (size_t i = 0; i < doctor->gpus; i++) {
        const struct cw_doctor_gpu *gpu = &doctor->gpu[i];
        const struct cw_device_properties *has = &gpu->properties;

        cw_json_element(json, '{');
        cw_json_number(json, "device", (uint64_t)gpu->ordinal);
        cw_json_string(json, "name", gpu->name);
        cw_json_string(json, "bus", gpu->bus);
        cw_json_number(json, "total_bytes", gpu->total);
        cw_json_number(json, "compute_major", has->capability_major);
        cw_json_number(json, "compute_minor", has->capability_minor);
        cw_json_number(json, "multiprocessors", has->multiprocessors);
        cw_json_number(json, "clock_khz", has->clock_khz);
        cw_json_number(json, "memory_clock_khz", has->memory_clock_khz);
        cw_json_number(json, "memory_bus_bits", has->memory_bus_bits);
        cw_json_truth(json, "unified_addressing", has->has_unified_addressing != 0);
        cw_json_truth(json, "integrated", gpu->integrated);
        cw_json_truth(json, "managed_memory", gpu->managed);
        cw_json_number(json, "driver_version", (uint64_t)gpu->driver);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}

static void put_all(struct cw_json *json, const struct cw_doctor *doctor, const char *line,
                    int is_gpu)
{
    const struct cw_program_file *program = &doctor->program;

    cw_json_open(json, NULL, '{');
    cw_json_string(json, "cuwarden", PACKAGE_VERSION);
    if (doctor->pid)
        cw_json_number(json, "pid", doctor->pid);
    if (doctor->shown_name)
        cw_json_string(json, "program", doctor->shown_name);
    if (program->steps > 0 && program->state == CW_PROGRAM_FOUND)
        cw_json_string(json, "path", program->step[program->steps - 1].path);
    cw_json_truth(json, is_gpu ? "as_assumed" : "watchable",
                  doctor->count[CW_VERDICT_PROBLEM] == 0);
    cw_json_number(json, "problems", doctor->count[CW_VERDICT_PROBLEM]);
    cw_json_number(json, "warnings", doctor->count[CW_VERDICT_WARNING]);
    if (line && doctor->count[CW_VERDICT_PROBLEM] == 0)
        cw_json_string(json, "run", line);
    put_findings(json, doctor);
    if (is_gpu)
        put_gpus(json, doctor);
    cw_json_close(json, '}');
    cw_out_char(json->out, '\n');
}

/* 0, or -1 after a message. */
static int print_json(const struct cw_doctor *doctor, const struct request *request)
{
    char *line = doctor->shown_name ? line_to_run(request, "cuwarden run", request->preload) : NULL;
    char buffer[BUFSIZ];
    struct cw_out out;

    fflush(stdout);
    cw_out_init(&out, STDOUT_FILENO, buffer, sizeof(buffer));
    put_all(&(struct cw_json){.out = &out, .first = 1}, doctor, line, request->is_gpu);
    free(line);
    if (cw_out_flush(&out) == 0)
        return 0;
    cw_cli_error("write error: %s", strerror(out.error));
    return -1;
}

/* ---- the command line ---- */

/* Paths inside begin with a slash, so the directory must not end with one. */
static int set_root(struct request *request, char *path)
{
    struct stat status;
    size_t len = strlen(path);

    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        cw_cli_error("--sysroot: '%s' is not a readable directory", path);
        return -1;
    }
    while (len > 0 && path[len - 1] == '/')
        path[--len] = '\0';
    request->root = path;
    return 0;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_FORMAT:
        request->is_json = strcmp(value, "json") == 0;
        return 0;
    case FLAG_GPU:
        request->is_gpu = 1;
        return 0;
    case FLAG_PRELOAD:
        request->preload = value;
        return 0;
    default:
        return set_root(request, value);
    }
}

/* 0 if the operand is not a process id; -1 after a message. */
static int parse_pid(const char *operand, uint32_t *pid)
{
    unsigned long number;

    if (!*operand || operand[strspn(operand, "0123456789")] != '\0')
        return 0;
    number = strtoul(operand, NULL, 10);
    if (strlen(operand) > 10 || number == 0 || number > INT32_MAX) {
        cw_cli_error("'%s' is not a process id; for a program of that name, give ./%s", operand,
                     operand);
        return -1;
    }
    *pid = (uint32_t)number;
    return 0;
}

static void check_all(struct cw_doctor *doctor, const struct request *request)
{
    if (doctor->pid) {
        cw_doctor_check_process(doctor);
        return;
    }
    cw_loader_init(&doctor->loader, doctor->root, getenv("LD_LIBRARY_PATH"));
    if (doctor->shown_name) {
        cw_program_file_find(&doctor->program, doctor->root, request->argv[0], getenv("PATH"));
        cw_doctor_check_program(doctor);
    }
    cw_doctor_check_library(doctor);
    cw_doctor_check_machine(doctor);
}

int cw_cmd_doctor(int argc, char **argv)
{
    static struct cw_doctor doctor;
    struct request request = {.root = ""};
    char library[PATH_MAX];
    int status = cw_flags_parse(cw_line_doctor(), argc, argv, set_flag, &request);

    if (status >= 0)
        return status;
    request.argv = argv + optind;
    if (request.is_gpu && (request.argv[0] || *request.root)) {
        cw_cli_error("--gpu: asks the driver of this machine, not about '%s'; give one of the two",
                     request.argv[0] ? request.argv[0] : request.root);
        return cw_cli_usage_error();
    }
    if (request.argv[0] && !request.argv[1] && parse_pid(request.argv[0], &doctor.pid) != 0)
        return cw_cli_usage_error();
    if (!request.is_gpu && cw_library_find(request.preload, library, sizeof(library)) != 0)
        return CW_EXIT_FAILURE;
    doctor.root = request.root;
    doctor.library = library;
    doctor.shown_name = doctor.pid ? NULL : request.argv[0];
    if (request.is_gpu)
        cw_doctor_check_gpu(&doctor);
    else
        check_all(&doctor, &request);
    if (!request.is_json)
        print_text(&doctor, &request);
    else if (print_json(&doctor, &request) != 0)
        status = CW_EXIT_FAILURE;
    cw_doctor_free(&doctor);
    if (status == CW_EXIT_FAILURE)
        return status;
    return doctor.count[CW_VERDICT_PROBLEM] > 0 ? CW_EXIT_FAILURE : CW_EXIT_OK;
}
