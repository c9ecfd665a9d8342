/* SPDX-License-Identifier: MIT */
/* Replaces debug_info.c in a command built without libdw. */
#include "cli/debug/debug_info.h"

int cw_debug_info_is_supported(void)
{
    return 0;
}

struct cw_debug_info *cw_debug_info_create(const struct cw_debug_options *options)
{
    (void)options;
    return NULL;
}

void cw_debug_info_destroy(struct cw_debug_info *info)
{
    (void)info;
}

int cw_debug_info_is_cut(const struct cw_debug_info *info)
{
    (void)info;
    return 0;
}

const struct cw_symbol_ops *cw_debug_info_ops(const struct cw_debug_info *info)
{
    (void)info;
    return NULL;
}
