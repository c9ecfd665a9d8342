/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden estimate`: what a transformer takes of a device's memory, from what its files say of
 * its shape (estimate/facts.h) and what it is to do. Needs no GPU; where NVML is there, the devices
 * of this machine are compared, too.
 */
#include "cli/ui/flags.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/devices/need.h"
#include "cli/estimate/estimate_print.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#define GIB UINT64_C(1073741824)

enum { FLAG_FORMAT = 0x100, FLAG_MEMORY };

struct request {
    struct cw_model_request model;
    struct cw_estimate_against against;
    int is_json;
};

const struct cw_command_line *cw_line_estimate(void)
{
    static const struct cw_flag flags[] = {
        {.id = FLAG_MEMORY,
         .name = "memory",
         .value = "LIST",
         .help = "memory of devices to compare with (default: 8G,16G,24G,32G,48G,80G,141G,192G)"},
        {.id = FLAG_FORMAT,
         .name = "format",
         .value = "FORM",
         .words = "*text json",
         .help = "output format: %w"},
    };
    static struct cw_command_line line = {
        .usage = "[OPTION]... [FILE|DIR]",
        .about = "Estimate the device memory that a transformer takes, and on which devices it "
                 "fits. FILE is a config.json of Hugging Face, an index or a header of "
                 "safetensors, or a GGUF file; DIR is the directory of a model.",
        .operands = CW_OPERAND_FILE,
        .most = 1,
        .notes = "Weights are never read. Weights in safetensors tell their size; config.json is "
                 "looked for beside them. Sizes are for one device, without other programs on "
                 "it; with --tp for each of several. A device fits if it has the total and a "
                 "reserve: 600 MiB for driver and context and 10 %, at most 2 GiB.\n\n"
                 "The exit status is 0 if the estimate was made, whether it fits or not, 1 if it "
                 "was not, and 2 for a usage error.",
    };

    line.group[0] = cw_model_load_flags();
    line.group[1] = cw_model_shape_flags();
    line.group[2] = (struct cw_flag_group){flags, CW_ARRAY_LEN(flags), "Output:"};
    return &line;
}

/* "8G,24G" */
static int set_memories(struct cw_estimate_against *against, char *value)
{
    char *rest = value, *word;

    against->memories = 0;
    while ((word = strsep(&rest, ","))) {
        if (against->memories == CW_MEMORIES_MAX) {
            cw_cli_error("--memory: there are more than %d sizes", CW_MEMORIES_MAX);
            return -1;
        }
        if (cw_need_parse("memory", word, 0, &against->memory[against->memories]) != 0)
            return -1;
        against->memories++;
    }
    return 0;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_FORMAT:
        request->is_json = strcmp(value, "json") == 0;
        return 0;
    case FLAG_MEMORY:
        return set_memories(&request->against, value);
    default:
        return cw_model_set_flag(&request->model, flag, value);
    }
}

static int print(const struct request *request, const struct cw_model_answer *answer)
{
    if (!request->is_json) {
        cw_estimate_print_text(stdout, answer, &request->against);
        return CW_EXIT_OK;
    }
    if (cw_estimate_print_json(stdout, &request->model, answer, &request->against) == 0)
        return CW_EXIT_OK;
    cw_cli_error("write error: %s", strerror(errno));
    return CW_EXIT_FAILURE;
}

int cw_cmd_estimate(int argc, char **argv)
{
    static struct request request = {
        .against = {.memory = {8 * GIB, 16 * GIB, 24 * GIB, 32 * GIB, 48 * GIB, 80 * GIB, 141 * GIB,
                               192 * GIB},
                    .memories = 8}};
    static struct cw_model_answer answer;
    static struct cw_devices devices;
    int status = cw_flags_parse(cw_line_estimate(), argc, argv, set_flag, &request);

    if (status >= 0)
        return status;
    request.model.path = argv[optind];
    status = cw_model_estimate(&request.model, &answer);
    if (status != CW_EXIT_OK)
        return status;
    if (cw_devices_by_nvml(&devices) == 0)
        request.against.devices = &devices;
    return print(&request, &answer);
}
