/* SPDX-License-Identifier: MIT */
/* `run --device`: which device the program gets, before it starts. */
#ifndef CW_CLI_RUN_DEVICE_H
#define CW_CLI_RUN_DEVICE_H

#include <stdint.h>

/* Sets CUDA_VISIBLE_DEVICES for this process: to the UUID of the device with most room for
 * "auto", else to those that `device` names. Each must have `need` bytes free and the reserve. The
 * exit status; other than 0 after a message. */
int cw_run_device_set(const char *device, uint64_t need, int is_quiet);

#endif
