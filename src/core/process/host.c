/* SPDX-License-Identifier: MIT */
/* The host of the core. See host.h. */
#include "core/process/host.h"

static const struct cw_host_ops nobody;

const struct cw_host_ops *cw_host = &nobody;

void cw_host_set(const struct cw_host_ops *host)
{
    cw_host = host != NULL ? host : &nobody;
}
