/* SPDX-License-Identifier: MIT */
/* What a thread has. See thread.h. */
#include "api/thread.h"

#include <stddef.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/process/host.h"
#include "core/process/thread.h"

static CW_TLS struct cw_api_thread *own;

/* Before the session is armed the host cannot tell of ends. */
static void watch(struct cw_api_thread *thread)
{
    thread->is_watched = cw_host->watch_thread != NULL && cw_host->watch_thread() == 0;
}

struct cw_api_thread *cw_api_thread(void)
{
    if (own == NULL && !cw_thread.ended)
        own = cw_mem_alloc(sizeof(*own));
    if (own != NULL && !own->is_watched)
        watch(own);
    return own;
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
