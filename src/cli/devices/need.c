/* SPDX-License-Identifier: MIT */
/* Sizes and counts of the flags that ask for devices. See need.h. */
#include "cli/devices/need.h"

#include "base/options/option_values.h"
#include "cli/devices/devices.h"
#include "cli/ui/message.h"

#define MIB (UINT64_C(1) << 20)

int cw_need_parse(const char *flag, const char *value, int may_be_zero, uint64_t *out)
{
    struct cw_device_sizes sizes = {.count = 0};
    uint64_t bytes;

    if (cw_sizes_parse(value, 0, &sizes) == 0 && sizes.count == 0 &&
        sizes.fallback.kind == CW_SIZE_BYTES) {
        bytes = sizes.fallback.amount;
        if (bytes >= MIB || (bytes == 0 && may_be_zero)) {
            *out = bytes;
            return 0;
        }
    }
    cw_cli_error("--%s: '%s' is not %sa size of 1 MiB or more, as in 14G or 800M", flag, value,
                 may_be_zero ? "0 or " : "");
    return -1;
}

int cw_need_parse_count(const char *value, uint64_t *out)
{
    if (cw_count_parse(value, out) == 0 && *out >= 1 && *out <= CW_DEVICES_MAX)
        return 0;
    cw_cli_error("--count: '%s' is not a number from 1 to %d", value, CW_DEVICES_MAX);
    return -1;
}
