/* SPDX-License-Identifier: MIT */
/* Which device the program gets. See run_device.h. */
#include "cli/run/run_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "cli/devices/pick.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#define UUIDS_MAX (CW_DEVICES_MAX * (CW_DEVICE_UUID_MAX + 1))
#define SIZE_TEXT 24

static void say(const struct cw_devices *devices, const struct cw_pick *pick)
{
    for (unsigned i = 0; i < pick->count; i++) {
        const struct cw_device_memory *device = &devices->device[pick->device[i]];
        char size[SIZE_TEXT], label[32];

        fprintf(stderr, "cuwarden: runs on %s: %s, %s free\n",
                cw_device_label(device, label, sizeof(label)), device->name,
                cw_format_size(size, sizeof(size), device->free));
    }
}

int cw_run_device_set(const char *device, uint64_t need, int is_quiet)
{
    static struct cw_devices devices;
    static char uuids[UUIDS_MAX];
    int is_auto = strcmp(device, "auto") == 0;
    const struct cw_pick_request request = {
        .need = need,
        .reserve = UINT64_MAX,
        .count = is_auto ? 1 : 0,
        .among = is_auto ? NULL : device,
        .named_by = "--device",
    };
    struct cw_pick pick;

    if (cw_pick_now(&request, &devices, &pick) != 0)
        return CW_EXIT_SELF;
    if (setenv("CUDA_VISIBLE_DEVICES", cw_pick_uuids(&devices, &pick, uuids, sizeof(uuids)), 1) !=
        0) {
        cw_cli_error("cannot set CUDA_VISIBLE_DEVICES: %s", strerror(errno));
        return CW_EXIT_SELF;
    }
    if (!is_quiet)
        say(&devices, &pick);
    return CW_EXIT_OK;
}
