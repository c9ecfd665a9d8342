/* SPDX-License-Identifier: MIT */
/*
 * What the functions keep for a thread: why its last call failed, its scopes and whose memory they
 * leave alone, the block that it looked at. Made by its first need and given back as it ends.
 * Thread-local is only the pointer: room for such data is scarce where an auditor of the loader
 * runs (LD_AUDIT).
 */
#ifndef CW_API_THREAD_H
#define CW_API_THREAD_H

#include <stdint.h>
#include <sys/types.h>

#include "api/blocks.h"

#define CW_API_TEXT_MAX  256
#define CW_API_SCOPES    16
#define CW_API_SCOPE_MAX 48 /* bytes of a name in the message */

struct cw_api_scope {
    uint64_t mark;
    char name[CW_API_SCOPE_MAX];
};

/* Who owns a site's memory, as far as was asked. */
enum cw_api_owner { CW_API_OWNER_UNKNOWN, CW_API_OWNER_PROGRAM, CW_API_OWNER_OTHER };

struct cw_api_owners {
    uint8_t *of; /* an enum cw_api_owner for each site; NULL: nobody was asked */
    uint32_t sites;
    pid_t pid; /* whose sites they are */
};

struct cw_api_thread {
    int is_watched; /* the host tells of the thread's end */
    int error;
    char text[CW_API_TEXT_MAX];
    unsigned depth; /* of its scopes */
    struct cw_api_scope scope[CW_API_SCOPES];
    struct cw_api_owners owners;
    struct cw_api_block found;
};

/* The calling thread's; NULL without memory, and once the thread has ended. */
struct cw_api_thread *cw_api_thread(void);
/* The same if there is one, else NULL. */
const struct cw_api_thread *cw_api_thread_seen(void);
void cw_api_thread_ends(void);

#endif
