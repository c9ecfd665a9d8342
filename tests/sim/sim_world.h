/* SPDX-License-Identifier: MIT */
/* What is true of the simulated machine as a whole, whichever library is asked: the devices that
 * the environment describes, and how much of them all processes hold together. Needs no driver: the
 * stand-in for NVML is made of it too. The caller sees to it that one thread at a time is in here.
 */
#ifndef CUSIM_SIM_WORLD_H
#define CUSIM_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define SIM_MAX_DEVICES 16

bool sim_parse_size(const char *text, size_t *out, const char **end);
size_t sim_option_size(const char *name, size_t fallback);
long sim_option_number(const char *name, long fallback);

int sim_world_devices(void);
void sim_world_memory(size_t memory[SIM_MAX_DEVICES]);
void sim_world_uuid(int device, unsigned char uuid[16]);
/* The devices that the driver has, in its order: those that CUDA_VISIBLE_DEVICES leaves. Returns
 * how many. */
int sim_world_visible(int device[SIM_MAX_DEVICES]);
void sim_world_name(int device, char *name, size_t size);
/* "GPU-", 36 characters and the end. */
#define SIM_UUID_TEXT 41
void sim_world_uuid_text(int device, char text[SIM_UUID_TEXT]);

/* ---- sim_share.c: the bytes that the processes hold, if CUSIM_SHARED names a file ---- */

/* Opens it unless it is open; without CUSIM_SHARED nothing happens and nothing is shared. */
void sim_share_open(void);
bool sim_share_is_on(void);
void sim_share_join(void);   /* from now on this process holds what it tells */
void sim_share_forget(void); /* in a forked child: what was told is the parent's */
/* No other process charges anything in between. */
void sim_share_lock(void);
void sim_share_unlock(void);
/* What all living processes hold of a device. Under the lock. */
uint64_t sim_share_sum(int device);
/* The next process that holds something of the device, from this slot on, which is 0 at first; the
 * slot to go on from, or 0. */
int sim_share_user(int slot, int device, int64_t *pid, uint64_t *used);
void sim_share_tell(int device, uint64_t used);

#pragma GCC visibility pop

#endif
