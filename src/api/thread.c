/* SPDX-License-Identifier: MIT */
/* What a thread has. See thread.h. */
#include "api/thread.h"

#include <stddef.h>

#include "base/compiler.h"
#include "base/mem.h"

static CW_TLS struct cw_api_thread *own;
static struct cw_api_thread common;

struct cw_api_thread *cw_api_thread(void)
{
    if (own == NULL)
        own = cw_mem_alloc(sizeof(*own));
    return own != NULL ? own : &common;
}

const struct cw_api_thread *cw_api_thread_seen(void)
{
    return own;
}

void cw_api_thread_ends(void)
{
    if (own != NULL) {
        if (own->owners.of != NULL)
            cw_mem_free(own->owners.of, own->owners.sites);
        cw_mem_free(own, sizeof(*own));
    }
    own = NULL;
}
