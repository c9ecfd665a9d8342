/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden pick`: the UUID of the device with most room, for CUDA_VISIBLE_DEVICES; nothing on
 * standard output if none has enough.
 */
#include "cli/ui/flags.h"

#include <getopt.h>
#include <string.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/devices/need.h"
#include "cli/devices/pick.h"
#include "cli/estimate/model_request.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#define UUIDS_MAX (CW_DEVICES_MAX * (CW_DEVICE_UUID_MAX + 1))

enum { FLAG_NEED = 0x100, FLAG_MODEL, FLAG_RESERVE, FLAG_COUNT };

struct request {
    struct cw_model_request model;
    uint64_t need, reserve, count; /* 0: not given; the reserve may be 0 */
};

const struct cw_command_line *cw_line_pick(void)
{
    static const struct cw_flag flags[] = {
        {.id = FLAG_NEED,
         .name = "need",
         .value = "SIZE",
         .help = "memory that the program needs on each device"},
        {.id = FLAG_MODEL,
         .name = "model",
         .value = "FILE",
         .help = "or: what 'cuwarden estimate FILE' says that it needs"},
        {.id = FLAG_RESERVE,
         .name = "reserve",
         .value = "SIZE",
         .help = "memory that must be free in addition (default: 600 MiB for driver and context "
                 "and 10 %, at most 2 GiB)"},
        {.id = FLAG_COUNT,
         .name = "count",
         .value = "N",
         .help = "pick N devices (default: 1, or that of --tp)"},
    };
    static struct cw_command_line line = {
        .usage = "--need=SIZE | --model=FILE [OPTION]...",
        .about = "Print the UUID of the GPU with most free memory, if that is enough: "
                 "CUDA_VISIBLE_DEVICES=$(cuwarden pick --need=14G) PROGRAM. UUIDs of several are "
                 "separated by commas.",
        .notes = "Asks NVML, else the driver. A CUDA_VISIBLE_DEVICES that is already set is "
                 "respected: one of the devices that it names is picked. A GPU that is divided by "
                 "MIG is its instances. Among equals the first is picked; what was picked within "
                 "the last 20 seconds, by the same user, counts as taken, so that programs that "
                 "start at the same time get different devices.\n\n"
                 "The exit status is 0 if a device was picked, 1 if the devices or the model could "
                 "not be read, 2 for a usage error, and 3 if no device has enough: then the free "
                 "memory of each is listed on stderr.",
    };

    line.group[0] = (struct cw_flag_group){flags, CW_ARRAY_LEN(flags), NULL};
    line.group[1] = cw_model_load_flags();
    line.group[1].heading = "With --model, as of 'cuwarden estimate':";
    return &line;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_NEED:
        return cw_need_parse("need", value, 0, &request->need);
    case FLAG_MODEL:
        request->model.path = value;
        return 0;
    case FLAG_RESERVE:
        return cw_need_parse("reserve", value, 1, &request->reserve);
    case FLAG_COUNT:
        return cw_need_parse_count(value, &request->count);
    default:
        return cw_model_set_flag(&request->model, flag, value);
    }
}

static int check(const struct request *request)
{
    if ((request->need != 0) == (request->model.path != NULL)) {
        cw_cli_error(request->need != 0 ? "--need and --model exclude each other"
                                        : "missing --need=SIZE or --model=FILE");
        return cw_cli_usage_error();
    }
    if (request->need != 0 && request->model.has_load) {
        cw_cli_error("--need is a size already; --batch, --context and the like are for --model");
        return cw_cli_usage_error();
    }
    return CW_EXIT_OK;
}

/* By the estimate. */
static int find_need(struct request *request)
{
    static struct cw_model_answer answer;
    int status = request->model.path ? cw_model_estimate(&request->model, &answer) : CW_EXIT_OK;

    if (status != CW_EXIT_OK || !request->model.path)
        return status;
    if (answer.estimate.is_partial) {
        cw_cli_error("'%s': only a part of what it takes is known, and no GPU is picked for that; "
                     "give --need=SIZE",
                     request->model.path);
        return CW_EXIT_FAILURE;
    }
    request->need = answer.estimate.total;
    if (request->count == 0)
        request->count = answer.load.devices;
    return CW_EXIT_OK;
}

static int pick_now(const struct request *request, struct cw_devices *devices, struct cw_pick *out)
{
    const struct cw_pick_request wish = {
        .need = request->need,
        .reserve = request->reserve,
        .count = request->count != 0 ? (unsigned)request->count : 1,
    };

    switch (cw_pick_now(&wish, devices, out)) {
    case 0:
        return CW_EXIT_OK;
    case 1:
        return CW_EXIT_NO_ROOM;
    default:
        return CW_EXIT_FAILURE;
    }
}

int cw_cmd_pick(int argc, char **argv)
{
    static struct request request = {.reserve = UINT64_MAX};
    static struct cw_devices devices;
    static char uuids[UUIDS_MAX];
    struct cw_pick pick;
    int status = cw_flags_parse(cw_line_pick(), argc, argv, set_flag, &request);

    if (status >= 0)
        return status;
    status = check(&request);
    if (status == CW_EXIT_OK)
        status = find_need(&request);
    if (status != CW_EXIT_OK)
        return status;
    status = pick_now(&request, &devices, &pick);
    if (status == CW_EXIT_OK)
        printf("%s\n", cw_pick_uuids(&devices, &pick, uuids, sizeof(uuids)));
    return status;
}
