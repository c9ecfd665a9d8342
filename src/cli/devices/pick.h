/* SPDX-License-Identifier: MIT */
/*
 * Which device a program gets that is about to start: the one with most room.
 *
 * A program has its memory only some seconds after it was started. So that two starts of a user in
 * the same moment do not get the same device, each choice is noted for a while (struct cw_picks),
 * and what it was for counts as taken when the next one is made: it decides between devices, but
 * refuses none.
 */
#ifndef CW_CLI_PICK_H
#define CW_CLI_PICK_H

#include "cli/devices/devices.h"

#define CW_PICKS_MAX      64
#define CW_PICK_MEMORY_NS UINT64_C(20000000000)

/* One choice, as it is kept in the file. */
struct cw_pick_note {
    char uuid[CW_DEVICE_UUID_MAX];
    uint64_t time_ns, bytes; /* since 1970; what it was for */
};

struct cw_picks {
    struct cw_pick_note note[CW_PICKS_MAX];
    unsigned count;
};

/* Earlier choices of a device whose memory is needed for this one. */
struct cw_pick_doubt {
    const char *uuid; /* NULL: there are none */
    unsigned starts;
    uint64_t bytes, time_ns; /* what they were for; when the last was made */
};

struct cw_pick {
    unsigned device[CW_DEVICES_MAX]; /* numbers in the list, the one with most room first */
    unsigned count;
    struct cw_pick_doubt doubt; /* of the first device with one */
};

/* `count` devices that each have so many bytes free. 0, or -1: there are not as many. */
int cw_pick_choose(const struct cw_devices *devices, const struct cw_picks *picks, uint64_t bytes,
                   unsigned count, struct cw_pick *out);
/* Forgets what is older than CW_PICK_MEMORY_NS, or from the future, and adds the choice. */
void cw_picks_note(struct cw_picks *picks, const struct cw_devices *devices,
                   const struct cw_pick *pick, uint64_t bytes, uint64_t now_ns);

/* What `need` and the reserve are together; the reserve of base/estimate if it is UINT64_MAX. */
uint64_t cw_pick_room(uint64_t need, uint64_t reserve);

struct cw_pick_request {
    uint64_t need, reserve; /* bytes; UINT64_MAX: the usual reserve */
    unsigned count;         /* of devices; 0: all that are left */
    const char *among;      /* as CUDA_VISIBLE_DEVICES names them; NULL: all */
    const char *named_by;   /* the flag that did, for messages */
};

/* The choice for this environment, noted. 0, or -1 after a message: the devices could not be asked;
 * or 1 after a message with the free memory of each device: none has enough. */
int cw_pick_now(const struct cw_pick_request *request, struct cw_devices *devices,
                struct cw_pick *out);
/* The UUIDs, separated by commas. Returns buf. */
const char *cw_pick_uuids(const struct cw_devices *devices, const struct cw_pick *pick, char *buf,
                          size_t cap);

#endif
